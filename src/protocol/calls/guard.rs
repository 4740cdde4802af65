//! The calls about a guarded key: writes that a stale fencing token cannot make.

use alloc::string::{String, ToString as _};
use alloc::vec;

use crate::name::{FencingToken, GuardKey, OwnerId, RequestId};
use crate::protocol::key;
use crate::protocol::script::{Bound, Publish, ScriptCall, scripts};
use crate::timing::{GuardMemory, LifeTime};

/// The calls about one guarded key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GuardCalls {
    key: GuardKey,
    memory: GuardMemory,
}

/// In whose name something is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// The token of the lease: that of the one name which protects this key.
    pub token: FencingToken,
    /// The owner of the lease. Equal tokens of two leases are never taken for one.
    pub owner: OwnerId,
    /// The how many-th write of this lease to this key it is, from 1. The next may only be sent
    /// when the last was answered.
    pub number: u64,
}

/// What is done to a guarded key.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct GuardedWrite(Kind);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Kind {
    Set { value: String, life: Option<LifeTime> },
    Delete,
    Claim,
}

/// Not the value.
impl core::fmt::Debug for GuardedWrite {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "GuardedWrite({})", self.0.name())
    }
}

impl GuardedWrite {
    /// `SET`, whatever was there: for a time, or without an end.
    pub fn set(value: impl Into<String>, life: Option<LifeTime>) -> Self {
        Self(Kind::Set { value: value.into(), life })
    }

    /// `DEL`.
    pub const fn delete() -> Self {
        Self(Kind::Delete)
    }

    /// Writes nothing, but from now on no older token can. To be done first of all where what is
    /// written depends on what is read: else an older holder may still write in between.
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
    /// The calls about this key, whose newest token is remembered for so long.
    pub const fn new(key: GuardKey, memory: GuardMemory) -> Self {
        Self { key, memory }
    }

    /// The key.
    pub const fn key(&self) -> &GuardKey {
        &self.key
    }

    /// Writes, unless a newer token was seen.
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

    /// Asks for the newest token that was seen, and for how long it is remembered.
    pub fn newest(&self, request: RequestId) -> ScriptCall {
        let keys = vec![key::fence(&self.key)];
        ScriptCall::new(&scripts::GUARD_NEWEST, request, Bound::NONE, Publish::default(), keys)
    }
}
