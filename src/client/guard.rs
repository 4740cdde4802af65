//! Writes to Redis that a stale lease cannot make, and scripts that run only while a lease is held.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use std::sync::OnceLock;

use super::hold::LeaseEnd;
use super::{Client, Lease};
use crate::error::{EvalError, FailureKind, GuardError, InvalidOption, LossReason, RequestError};
use crate::host::Host;
use crate::name::{GuardKey, LockName};
use crate::protocol::calls::{GuardCalls, GuardedWrite, OwnScript, Stamp};
use crate::protocol::reply::Code;
use crate::protocol::script::Bound;
use crate::timing::{GuardMemory, HORIZON};
use crate::transport::Transport;

/// A key that remembers the newest fencing token it has seen, and refuses writes with an older one.
///
/// It need not be on the Redis where the lock is. One key is protected by locks of one name, since
/// tokens of different names do not count on from each other. [`of_lock`](Self::of_lock) says
/// which; otherwise the first write decides for this guard and its clones.
pub struct Guard<T: Transport, H> {
    client: Client<T, H>,
    calls: GuardCalls,
    /// The name of the lock that protects the key.
    lock: Arc<OnceLock<String>>,
}

impl<T: Transport, H> Clone for Guard<T, H> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            calls: self.calls.clone(),
            lock: Arc::clone(&self.lock),
        }
    }
}

impl<T: Transport, H> fmt::Debug for Guard<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("key", self.calls.key()).finish_non_exhaustive()
    }
}

impl<T: Transport, H: Host> Client<T, H> {
    /// A guard over this key, which remembers tokens for so long.
    ///
    /// # Errors
    /// [`InvalidOption`] when the key is not acceptable, see [`GuardKey`].
    pub fn guard(&self, key: &str, memory: GuardMemory) -> Result<Guard<T, H>, InvalidOption> {
        let calls = GuardCalls::new(GuardKey::parse(key)?, memory);
        Ok(Guard { client: self.clone(), calls, lock: Arc::default() })
    }
}

impl<T: Transport, H: Host> Guard<T, H> {
    /// The key.
    pub const fn key(&self) -> &GuardKey {
        self.calls.key()
    }

    /// A guard of the same key that accepts leases of the lock of this name alone, from its first
    /// write on.
    ///
    /// # Errors
    /// [`InvalidOption`] when this is not the name of a lock, see [`LockName`].
    pub fn of_lock(self, name: &str) -> Result<Self, InvalidOption> {
        let name = LockName::parse(name)?;
        Ok(Self { lock: Arc::new(OnceLock::from(String::from(name.as_str()))), ..self })
    }

    /// Rejects a lease of another lock than that which protects the key.
    fn check_lock(&self, name: &str) -> Result<(), InvalidOption> {
        let lock = self.lock.get_or_init(|| name.into());
        if lock == name {
            return Ok(());
        }
        let texts =
            ["a lease of lock \"", lock, "\", which protects this key, not of \"", name, "\""];
        Err(InvalidOption::new("lease", texts.concat()))
    }

    /// Does it, unless the lease has ended or a newer token was seen. Writes of one lease to one
    /// key are done one after the other.
    ///
    /// One request; and one more before it where the client has not heard of that Redis yet, whose
    /// clock bounds it.
    ///
    /// `name` says which of several locks that were taken together protects the key; `None` for the
    /// first.
    ///
    /// # Errors
    /// [`GuardError`]; [`InvalidOption`] of `lease` for a lease of another lock than that which
    /// protects the key. What was not heard of, or refused for now ([`OutOfMemory`],
    /// [`Unavailable`], [`TokenAhead`]), a copy that the network still has may do within a minute
    /// and a half, unless a newer write has come before it: whoever asks again makes one.
    ///
    /// [`TokenAhead`]: GuardError::TokenAhead
    /// [`OutOfMemory`]: crate::error::RefusalKind::OutOfMemory
    /// [`Unavailable`]: crate::error::RefusalKind::Unavailable
    pub async fn write<T2: Transport, H2: Host>(
        &self,
        lease: &Lease<T2, H2>,
        name: Option<&str>,
        write: &GuardedWrite,
    ) -> Result<(), GuardError> {
        let token = match name {
            Some(name) => lease.token_of(name),
            None => Some(lease.token()),
        };
        let (Some(token), Some(part)) = (token, lease.part()) else {
            let accepted = "the name of a lock that the lease holds";
            return Err(GuardError::InvalidOption(InvalidOption::new("name", accepted)));
        };
        let protects = name.unwrap_or_else(|| lease.name().as_str());
        self.check_lock(protects).map_err(GuardError::InvalidOption)?;
        let owner = part.grant.owner;
        let turn = lease.hold().write_turn(self.key()).await;
        let bound = self.bound().await.map_err(GuardError::Request)?;
        // Looked at when its turn has come: it may have waited for the one before.
        lease.check().map_err(GuardError::Lost)?;
        let stamp = Stamp { token, owner, number: turn.number };
        let query = self.client.query(|id| self.calls.write(id, bound, stamp, write));
        let asked = self.client.question_or_copy(query).await;
        let (reply, may_be_done) = asked.map_err(GuardError::Request)?;
        match reply.code {
            Code::Done | Code::AlreadyYours => Ok(()),
            // By an attempt that was not heard of, before what made this one stale.
            Code::No | Code::TooOld | Code::TokenAhead if may_be_done => Err(unheard()),
            Code::No => Err(GuardError::Stale { newest: newest(&reply.value) }),
            Code::TooOld => Err(GuardError::TooOld { oldest: newest(&reply.value) }),
            Code::TokenAhead => Err(GuardError::TokenAhead),
            Code::Late => {
                Err(GuardError::Request(RequestError::NotExecuted(FailureKind::TimedOut)))
            }
            _ => Err(unheard()),
        }
    }

    /// Until when a copy of a write that is sent now may do it. Without an end, which takes Redis'
    /// clock, it could as long as no newer write has come.
    async fn bound(&self) -> Result<Bound, RequestError> {
        if self.client.link().clock().is_none() {
            self.newest().await?;
        }
        let now = self.client.host().now();
        let not_after = self.client.link().clock().map(|clock| clock.after(HORIZON, now));
        Ok(Bound { not_after, keep: HORIZON })
    }

    /// The newest token that was seen; `None` when none is remembered.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn newest(&self) -> Result<Option<u64>, RequestError> {
        let query = self.client.query(|request| self.calls.newest(request));
        let reply = self.client.question(query).await?;
        Ok((reply.code == Code::Done).then(|| newest(&reply.value)))
    }
}

const fn unheard() -> GuardError {
    GuardError::Request(RequestError::Unreachable(FailureKind::NO_ANSWER))
}

fn newest(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

impl<T: Transport, H: Host> Lease<T, H> {
    /// Runs a script of the caller's in Redis, in one atomic step with the question whether the
    /// lease is still held; answers its result as JSON. Once, whatever is resent, unless it is
    /// [`repeatable`](OwnScript::repeatable).
    ///
    /// # Errors
    /// [`EvalError`]. What a script that failed has done until then stays done, since Redis undoes
    /// nothing.
    pub async fn eval(&self, script: &OwnScript) -> Result<String, EvalError> {
        self.check().map_err(|reason| EvalError::Request(RequestError::Lost(reason)))?;
        let part = self.only_part().ok_or_else(|| {
            let accepted = "one that is held on one gateway, in one slot of a cluster";
            EvalError::Request(InvalidOption::new("lease", accepted).into())
        })?;
        // That of the grant: what a downgrade has brought since may not be in the latch yet.
        let (owner, token) = (part.grant.owner, part.grant.token);
        let call = part.target.eval(owner, token, script).map_err(RequestError::from)?;
        let reply = self.client().once(call).await?;
        match reply.code {
            Code::Done => Ok(reply.value),
            Code::ScriptFailed => Err(EvalError::ScriptFailed(reply.value)),
            Code::Lost => {
                self.hold().lose(LossReason::Gone);
                Err(EvalError::Request(RequestError::Lost(LossReason::Gone)))
            }
            _ => Err(EvalError::Request(RequestError::Unreachable(FailureKind::NO_ANSWER))),
        }
    }

    /// Whether it may still be used, by the holder's own clocks.
    fn check(&self) -> Result<(), LossReason> {
        self.hold().look(self.client().host().now());
        match self.hold().end() {
            None => Ok(()),
            Some(LeaseEnd::Lost(reason)) => Err(reason),
            Some(LeaseEnd::Released) => Err(LossReason::Gone),
        }
    }
}
