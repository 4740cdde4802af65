//! The fair read-write lock, which Redisson does not have.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::error::{Error, Object};
use super::lock::Lock;
use super::options::AcquireOptions;
use super::requests::{ONLY_ENDPOINT, is_done};
use super::{Client, Lease};
use crate::error::{AcquireError, InvalidOption, RequestError};
use crate::host::Host;
use crate::transport::Transport;
use edgelatch_proto::error::FailureKind;
use edgelatch_proto::machine::FairReadWriteState;
use edgelatch_proto::name::{ClientId, LockName};
use edgelatch_proto::protocol::calls::{
    FairMode, FairReadWriteCalls, FairReadWriteQuery, FairReadWriteSettings, QueryEntry,
    QuerySlice, Target,
};
use edgelatch_proto::protocol::reply::Reply;

/// Two locks of one name, one for readers and one for a writer, with one queue: waiters of both are
/// served in the order of arrival. Redisson has no such object, and no other object of the same
/// name excludes it.
///
/// No later request of an incompatible mode passes a live waiter, except a [`steal`](Self::steal).
/// A waiter that stays silent for longer than its [life](FairReadWriteSettings::life) lets others
/// pass and keeps its place. If the queue is full, an acquisition fails with
/// [`AcquireError::QueueFull`].
///
/// The token of a reader is above that of every earlier writer, below that of every later one, and
/// equal for readers between the same two writers. Use it to raise a fence before or while reading
/// ([`GuardedWrite::claim`](super::GuardedWrite::claim)), not for writes.
///
/// [`Lease::eval`] fails for a lease of this lock.
///
/// Through one [`owner`](Client::owner) each side is re-entrant. While it holds one side, the other
/// one fails: with [`AcquireError::SelfDeadlock`] for a reader that wants to write, and with
/// [`AcquireError::HeldAlready`] for a writer that wants to read.
pub struct FairReadWriteLock<T: Transport, H: Host> {
    client: Client<T, H>,
    name: LockName,
    settings: FairReadWriteSettings,
    client_id: ClientId,
    read: Lock<T, H>,
    write: Lock<T, H>,
}

impl<T: Transport, H: Host> Clone for FairReadWriteLock<T, H> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            name: self.name.clone(),
            settings: self.settings,
            client_id: self.client_id.clone(),
            read: self.read.clone(),
            write: self.write.clone(),
        }
    }
}

impl<T: Transport, H: Host> fmt::Debug for FairReadWriteLock<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FairReadWriteLock").field("name", self.name()).finish_non_exhaustive()
    }
}

impl<T: Transport, H: Host> Client<T, H> {
    /// Returns two locks of one name, for readers and for a writer, with one queue for both.
    /// Redisson has no such object.
    ///
    /// # Errors
    /// [`InvalidOption`] if `name` is not a valid [`LockName`].
    pub fn fair_read_write_lock(
        &self,
        name: &str,
        settings: FairReadWriteSettings,
    ) -> Result<FairReadWriteLock<T, H>, InvalidOption> {
        let name = LockName::parse(name)?;
        Ok(FairReadWriteLock::new(self.clone(), name, settings, ClientId::default()))
    }
}

impl<T: Transport, H: Host> FairReadWriteLock<T, H> {
    fn new(
        client: Client<T, H>,
        name: LockName,
        settings: FairReadWriteSettings,
        client_id: ClientId,
    ) -> Self {
        let side = |mode| {
            let (name, id, publish) = (name.clone(), client_id.clone(), client.announces());
            let calls = FairReadWriteCalls::new(name, mode, settings, id, publish);
            client.create(|engine| engine.fair_read_write_lock(ONLY_ENDPOINT, calls))
        };
        let (read, write) = (side(FairMode::Shared), side(FairMode::Exclusive));
        Self { client, name, settings, client_id, read, write }
    }

    /// Sets the text that identifies this client in each [`query`](Self::query) of the namespace:
    /// up to 64 bytes of UTF-8 without control characters; empty by default. Each client that may
    /// query the namespace can read it.
    ///
    /// # Errors
    /// [`InvalidOption`] if it is too long or has a control character.
    pub fn client_id(self, id: &str) -> Result<Self, InvalidOption> {
        let Self { client, name, settings, .. } = self;
        Ok(Self::new(client, name, settings, ClientId::parse(id)?))
    }

    fn calls(&self, mode: FairMode) -> FairReadWriteCalls {
        let (name, id) = (self.name.clone(), self.client_id.clone());
        FairReadWriteCalls::new(name, mode, self.settings, id, self.client.announces())
    }

    /// Returns the lock's name.
    pub const fn name(&self) -> &LockName {
        &self.name
    }

    /// Returns the side that readers share. [`Lock::force_release`] ends the holds of both sides,
    /// and [`Lock::inspect`] counts them.
    pub const fn read(&self) -> &Lock<T, H> {
        &self.read
    }

    /// Returns the side that one writer holds while no other client reads or writes.
    /// [`Lock::force_release`] ends the holds of both sides, and [`Lock::inspect`] counts them.
    pub const fn write(&self) -> &Lock<T, H> {
        &self.write
    }

    /// Acquires the write side at once from the present holders, with the lease of
    /// [`AcquireOptions::new`]: see [`steal_with`](Self::steal_with).
    ///
    /// # Errors
    /// [`AcquireError`]; never `Busy`.
    pub async fn steal(&self) -> Result<Lease<T, H>, Error<AcquireError>> {
        self.steal_with(AcquireOptions::new()).await
    }

    /// Acquires the write side at once from the present holders, with the lease and the replicas of
    /// `options`: ends all holds, and passes all waiters, which keep their places.
    ///
    /// The leases that it ends are lost with
    /// [`LossReason::Stolen`](crate::error::LossReason::Stolen) at their next renewal; the release
    /// of a lease that is not [kept](Lease::keep) returns
    /// [`Released::WasLost`](super::Released::WasLost). Of two steals the later one wins. Redis
    /// does not grant it while its memory is full; [`force_release`](Self::force_release) works
    /// then.
    ///
    /// # Errors
    /// [`AcquireError`]; never `Busy`.
    pub async fn steal_with(
        &self,
        options: AcquireOptions,
    ) -> Result<Lease<T, H>, Error<AcquireError>> {
        let calls = self.calls(FairMode::Steal);
        let stealing =
            self.client.create(|engine| engine.fair_read_write_lock(ONLY_ENDPOINT, calls));
        stealing.acquire_once(options).await
    }

    /// Returns the present state of the lock in Redis.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn inspect(&self) -> Result<FairReadWriteState, Error<RequestError>> {
        let target = Target::FairReadWrite(self.calls(FairMode::Exclusive));
        let call = |request| target.inspect(request, None);
        self.client.query_about((Object::Lock, self.name()), call, FairReadWriteState::read).await
    }

    /// Returns all live holds and waits of the lock's namespace: of all fair read-write locks whose
    /// name has the same `{tag}`, or of this lock alone if its name has none. They are in the order
    /// of the names; of each name first the holds come, then the waits in the order of the queue.
    ///
    /// Each request returns up to 256 entries of one moment; a longer list is the union of several
    /// moments. With a scoped token it needs the right to the whole namespace.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn query(&self) -> Result<Vec<QueryEntry>, Error<RequestError>> {
        let query = FairReadWriteQuery::new(self.name.clone(), self.client.announces());
        let read = |reply: &Reply| {
            let no_reply = RequestError::Unreachable(FailureKind::NO_ANSWER);
            QuerySlice::read(reply).ok_or(no_reply)
        };
        let (mut entries, mut cursor) = (Vec::<QueryEntry>::new(), String::new());
        loop {
            let call = |request| query.slice(request, &cursor);
            let slice = self.client.query_about((Object::Lock, &self.name), call, read).await?;
            // A renewal can move a hold to a later slice, which then has it again.
            let is_new = |entry: &QueryEntry| !entries.iter().any(|other| other.id == entry.id);
            let new: Vec<_> = slice.entries.into_iter().filter(is_new).collect();
            entries.extend(new);
            let Some(next) = slice.cursor else { return Ok(entries) };
            cursor = next;
        }
    }

    /// Ends the holds of all clients on both sides; waiters keep their places. Returns whether
    /// there were any.
    ///
    /// # Errors
    /// [`RequestError`]; with `Unreachable` the holds may have been ended.
    pub async fn force_release(&self) -> Result<bool, Error<RequestError>> {
        let call = Target::FairReadWrite(self.calls(FairMode::Exclusive)).force_release();
        self.client.execute_about((Object::Lock, self.name()), call, is_done).await
    }
}
