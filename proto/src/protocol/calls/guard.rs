//! The calls of a guarded key, which rejects writes with a stale fencing token.

use alloc::string::{String, ToString as _};
use alloc::vec;

use crate::name::{FencingToken, GuardKey, OwnerId, RequestId};
use crate::protocol::key;
use crate::protocol::script::{Bound, Publish, ScriptCall, scripts};
use crate::timing::{GuardMemory, LifeTime};

/// The calls of one guarded key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GuardCalls {
    key: GuardKey,
    memory: GuardMemory,
}

/// The lease under which a write is made, and the number of the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// The token of the lease. All writers of a key must use tokens of the same name.
    pub token: FencingToken,
    /// The owner of the lease. It distinguishes equal tokens of two leases.
    pub owner: OwnerId,
    /// The number of this write among the writes of this lease to this key, from 1. The next write
    /// may be sent only after the reply to the last.
    pub number: u64,
}

/// An operation on a guarded key.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct GuardedWrite(Kind);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Kind {
    Set { value: String, life: Option<LifeTime> },
    Delete,
    Claim,
}

/// Omits the value.
impl core::fmt::Debug for GuardedWrite {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "GuardedWrite({})", self.0.name())
    }
}

impl GuardedWrite {
    /// Replaces the value, for a time or without an end.
    pub fn set(value: impl Into<String>, life: Option<LifeTime>) -> Self {
        Self(Kind::Set { value: value.into(), life })
    }

    /// Deletes the key.
    pub const fn delete() -> Self {
        Self(Kind::Delete)
    }

    /// Writes nothing, but from now on no older token can write. Claim a key before reading it if
    /// the next write depends on its value: otherwise an older holder may write in between.
    pub const fn claim() -> Self {
        Self(Kind::Claim)
    }
}

impl Kind {
    const fn name(&self) -> &'static str {
        match self {
            Self::Set { .. } => "set",
            Self::Delete => "del",
            Self::Claim => "claim",
        }
    }
}

impl GuardCalls {
    /// Creates the calls of this key, with the time for which its newest token is remembered.
    pub const fn new(key: GuardKey, memory: GuardMemory) -> Self {
        Self { key, memory }
    }

    /// The key.
    pub const fn key(&self) -> &GuardKey {
        &self.key
    }

    /// Builds the call of a write, which is refused if the key has seen a newer token.
    pub fn write(
        &self,
        request: RequestId,
        bound: Bound,
        stamp: Stamp,
        write: &GuardedWrite,
    ) -> ScriptCall {
        let keys = vec![key::fence(&self.key), self.key.as_str().into()];
        let call = ScriptCall::new(&scripts::GUARD_WRITE, request, bound, Publish::default(), keys)
            .arg(stamp.token.to_text())
            .arg(stamp.owner.to_text())
            .arg(stamp.number.to_string())
            .ms(self.memory.get())
            .arg(write.0.name());
        match &write.0 {
            Kind::Set { value, life: Some(life) } => call.arg(value.as_str()).ms(life.get()),
            Kind::Set { value, life: None } => call.arg(value.as_str()).arg(""),
            Kind::Delete | Kind::Claim => call,
        }
    }

    /// Builds the query of the newest token, and of the time for which it is still remembered.
    pub fn newest(&self, request: RequestId) -> ScriptCall {
        let keys = vec![key::fence(&self.key)];
        ScriptCall::new(&scripts::GUARD_NEWEST, request, Bound::NONE, Publish::default(), keys)
    }
}
