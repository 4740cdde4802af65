//! Guarded writes, which Redis rejects for a stale lease, and scripts that run only while a lease
//! is held.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use std::sync::OnceLock;

use super::error::{Error, Kind, Object};
use super::lease::HoldRef;
use super::requests::{ONLY_ENDPOINT, replied};
use super::shared::Source;
use super::{Client, Lease};
use crate::error::{EvalError, GuardError, InvalidOption, RequestError};
use crate::host::Host;
use crate::transport::Transport;
use edgelatch_proto::engine::Engine;
use edgelatch_proto::machine::{check_protecting_lock, newest_token, write_result};
use edgelatch_proto::name::{GuardKey, LockName};
use edgelatch_proto::protocol::calls::{GuardCalls, GuardedWrite, Stamp, UserScript};
use edgelatch_proto::protocol::script::Bound;
use edgelatch_proto::timing::GuardMemory;

/// A key in Redis that fencing tokens protect: Redis keeps beside the key the newest token of a
/// write, and rejects writes with an older one.
///
/// The key may be on another Redis than the lock. All leases that write to it must be of one lock
/// name, since the tokens of different names are independent. [`of_lock`](Self::of_lock) sets that
/// name; otherwise the first write sets it for this guard and its clones, even if the write fails.
pub struct Guard<T: Transport, H: Host> {
    client: Client<T, H>,
    calls: GuardCalls,
    /// The name of the lock that protects the key; empty until it is set.
    lock: Arc<OnceLock<String>>,
}

impl<T: Transport, H: Host> Clone for Guard<T, H> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            calls: self.calls.clone(),
            lock: Arc::clone(&self.lock),
        }
    }
}

impl<T: Transport, H: Host> fmt::Debug for Guard<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("key", self.calls.key()).finish_non_exhaustive()
    }
}

impl<T: Transport, H: Host> Client<T, H> {
    /// Returns a guard of this key. Redis remembers the newest token for `memory` after the last
    /// write, and from then on rejects tokens that are older than `memory`. Sends nothing.
    ///
    /// # Errors
    /// [`InvalidOption`] if `key` is not a valid [`GuardKey`].
    pub fn guard(&self, key: &str, memory: GuardMemory) -> Result<Guard<T, H>, InvalidOption> {
        let calls = GuardCalls::new(GuardKey::parse(key)?, memory);
        Ok(Guard { client: self.clone(), calls, lock: Arc::default() })
    }
}

impl<T: Transport, H: Host> Guard<T, H> {
    /// Returns the guarded key.
    pub const fn key(&self) -> &GuardKey {
        self.calls.key()
    }

    /// Returns a guard of the same key that accepts only leases of the lock `name`. Earlier clones
    /// stay as they are.
    ///
    /// # Errors
    /// [`InvalidOption`] if `name` is not a valid [`LockName`].
    pub fn of_lock(self, name: &str) -> Result<Self, InvalidOption> {
        let name = LockName::parse(name)?;
        Ok(Self { lock: Arc::new(OnceLock::from(String::from(name.as_str()))), ..self })
    }

    /// Creates an error about this key.
    fn error<K: Kind>(&self, kind: K) -> Error<K> {
        self.client.shared().error(kind, Object::Key, [self.key().as_str()], self.client.redacts)
    }

    /// Makes the lock `name` the one that protects the key, unless one is set already.
    ///
    /// # Errors
    /// [`InvalidOption`] about the lease if another lock protects the key.
    fn bind_lock(&self, name: &str) -> Result<(), InvalidOption> {
        let protecting = self.lock.get_or_init(|| name.into());
        check_protecting_lock(protecting, name, self.client.redacts)
    }

    /// Executes `write` on the key, unless the lease has ended or Redis has seen a newer token.
    /// Writes of one lease to one key are executed one after the other.
    ///
    /// Sends one request, repeatedly if no reply comes. The write has a bound on the clock of this
    /// Redis: a client that does not know that clock yet sends a query first.
    ///
    /// `lease` may be of another client. `name` selects the lock that protects the key, among those
    /// of a multi-lock or redLock; `None` selects the lock of [`Lease::name`]. Pass it for a
    /// redLock of several names: the lock of [`Lease::name`] differs between its leases, and the
    /// guard accepts only one.
    ///
    /// # Errors
    /// [`GuardError`]; [`InvalidOption`] with the option `lease` for a lease of any lock but the
    /// one that protects the key, and with the option `name` if the lease holds no lock of that
    /// name. After a write without a usable reply, or with a temporary refusal ([`OutOfMemory`],
    /// [`Unavailable`], or [`TokenAhead`], until Redis' clock catches up with the token), a copy of
    /// the request that is still in the network can execute it for up to 90 s, unless a newer write
    /// comes first. A retry of the caller is a newer write.
    ///
    /// [`TokenAhead`]: GuardError::TokenAhead
    /// [`OutOfMemory`]: crate::error::RefusalKind::OutOfMemory
    /// [`Unavailable`]: crate::error::RefusalKind::Unavailable
    pub async fn write<T2: Transport, H2: Host>(
        &self,
        lease: &Lease<T2, H2>,
        name: Option<&str>,
        write: &GuardedWrite,
    ) -> Result<(), Error<GuardError>> {
        self.send(lease, name, write).await.map_err(|kind| self.error(kind))
    }

    /// Executes `write`, with an error that names neither key nor host.
    async fn send<T2: Transport, H2: Host>(
        &self,
        lease: &Lease<T2, H2>,
        name: Option<&str>,
        write: &GuardedWrite,
    ) -> Result<(), GuardError> {
        let token = match name {
            Some(name) => lease.token_of(name),
            None => Some(lease.token()),
        };
        // A hold always has a counting part, and it never changes. Its owner distinguishes leases
        // with equal tokens, such as those of readers, so it need not be that of the lock `name`.
        let owner = lease.first_counting_part(|_, _, grant| grant.owner);
        let (Some(token), Some(owner)) = (token, owner) else {
            let accepted = "the name of a lock that the lease holds";
            return Err(GuardError::InvalidOption(InvalidOption::new("name", accepted)));
        };
        let lock_name = name.unwrap_or_else(|| lease.name().as_str());
        self.bind_lock(lock_name).map_err(GuardError::InvalidOption)?;
        let ongoing = OngoingWrite::begin(lease.hold(), self.key()).await;
        let bound = self.bound().await.map_err(GuardError::Request)?;
        // Checked only now: the lease may have ended while this write waited for an earlier one.
        let HoldRef { shared, id, .. } = lease.hold();
        shared.change(|engine, cx| engine.check_lasts(*id, cx)).map_err(GuardError::Lost)?;
        let stamp = Stamp { token, owner, number: ongoing.number };
        // Sent like a query, since Redis recognizes a copy by its stamp. `is_unsure`: an earlier
        // attempt may have been executed, with another reply.
        let call = self.client.query_with_history(|id| self.calls.write(id, bound, stamp, write));
        let (reply, is_unsure) = call.await.map_err(GuardError::Request)?;
        write_result(&reply, is_unsure)
    }

    /// The bound of a write that is sent now. If Redis' clock is not known yet, a query is sent
    /// first: every reply has the clock.
    async fn bound(&self) -> Result<Bound, RequestError> {
        let shared = self.client.shared();
        if shared.read(|engine| engine.clock(ONLY_ENDPOINT)).is_none() {
            self.query_newest().await?;
        }
        Ok(shared.change(|engine, cx| engine.write_bound(ONLY_ENDPOINT, cx)))
    }

    /// Returns the newest token of a write to the key; `None` if Redis remembers none.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn newest(&self) -> Result<Option<u64>, Error<RequestError>> {
        self.query_newest().await.map_err(|kind| self.error(kind))
    }

    /// Queries the newest token, with an error that names neither key nor host.
    async fn query_newest(&self) -> Result<Option<u64>, RequestError> {
        let reply = self.client.query(|request| self.calls.newest(request)).await?;
        Ok(newest_token(&reply))
    }
}

impl<T: Transport, H: Host> Lease<T, H> {
    /// Runs a script of the caller in Redis, atomically with the check that the lease is still
    /// held. Returns its result as JSON. Redis executes the script once, however often the request
    /// is sent; a [`repeatable`](UserScript::repeatable) script may run once for each attempt.
    ///
    /// # Errors
    /// [`EvalError`]; `InvalidOption` for a lease of permits or of a fair read-write lock, for a
    /// lease that is held on several gateways or in several slots of a cluster, and for a key in
    /// another slot than the lock's. The writes of a script before its failure remain, since Redis
    /// undoes nothing.
    pub async fn eval(&self, script: &UserScript) -> Result<String, Error<EvalError>> {
        self.run_script(script).await.map_err(|kind| self.error(kind))
    }

    /// Runs a script, with an error that names neither lock nor host.
    async fn run_script(&self, script: &UserScript) -> Result<String, EvalError> {
        let HoldRef { shared, id, .. } = self.hold();
        let (to, call) = shared.change(|engine, cx| engine.script_call(*id, script, cx))?;
        let outcome = shared.perform(|engine, scope, cx| engine.execute_once(scope, to, call, cx));
        let (reply, _) = replied(outcome.await)?;
        shared.change(|engine, cx| engine.script_result(*id, reply, cx))
    }
}

/// A write to a guarded key under a hold, until it is dropped. One at a time is under way.
struct OngoingWrite<'a, T: Transport, H: Host> {
    hold: &'a HoldRef<T, H>,
    key: &'a GuardKey,
    /// The number of this write among those of this hold to this key.
    number: u64,
}

impl<'a, T: Transport, H: Host> OngoingWrite<'a, T, H> {
    /// Waits until no other write of this hold to this key is under way.
    async fn begin(hold: &'a HoldRef<T, H>, key: &'a GuardKey) -> Self {
        let begin = |engine: &mut Engine| engine.begin_write(hold.id, key);
        let number = hold.shared.until(Source::Hold(hold.id), begin).await;
        Self { hold, key, number }
    }
}

impl<T: Transport, H: Host> Drop for OngoingWrite<'_, T, H> {
    fn drop(&mut self) {
        self.hold.shared.change(|engine, _| engine.end_write(self.hold.id, self.key));
    }
}
