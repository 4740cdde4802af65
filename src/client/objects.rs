//! The constructors of the objects: one method each, by Redisson's names.

use alloc::sync::Arc;

use super::Client;
use super::count_down_latch::CountDownLatch;
use super::lock::Lock;
use super::owner::Owner;
use super::permits::PermitExpirableSemaphore;
use super::requests::ONLY_ENDPOINT;
use super::semaphore::Semaphore;
use crate::error::InvalidOption;
use crate::host::Host;
use crate::transport::Transport;
use edgelatch_proto::engine::{Engine, LockSpec};
use edgelatch_proto::machine::SpinBackoff;
use edgelatch_proto::name::LockName;
use edgelatch_proto::protocol::calls::{CountDownLatchCalls, FairSettings, Target};
use edgelatch_proto::protocol::script::Publish;
use edgelatch_proto::timing::{LeaseTime, PeerSkew, WantTime};

impl<T: Transport, H: Host> Client<T, H> {
    /// Returns a client of the same gateway that acts as one owner: an owner can acquire a lock
    /// again while it holds it.
    ///
    /// Acquisitions of one lock through one owner, or its clones, share one hold: the first
    /// acquires it, further ones send no request and have its token and lease, and the last release
    /// ends it. In Redisson the owner is a thread; asynchronous tasks have no such identity, so an
    /// owner is created explicitly. Create one for each task (in a Worker, for each request), and
    /// do not share it between tasks.
    #[must_use]
    pub fn owner(&self) -> Self {
        Self { owner: Some(Owner::new()), ..self.clone() }
    }

    /// Returns the lock of this name: Redisson's `getLock(name)`. Sends nothing.
    ///
    /// # Errors
    /// [`InvalidOption`] if `name` is not a valid [`LockName`].
    pub fn lock(&self, name: &str) -> Result<Lock<T, H>, InvalidOption> {
        let name = LockName::parse(name)?;
        Ok(self.create(|engine| engine.lock(ONLY_ENDPOINT, name, true)))
    }

    /// Returns a lock that an owner cannot acquire again while holding it: Redisson's
    /// `getNonReentrantLock(name)`. A second acquisition through the same [`owner`](Self::owner)
    /// fails with [`AcquireError::HeldAlready`](crate::error::AcquireError::HeldAlready).
    ///
    /// # Errors
    /// [`InvalidOption`] if `name` is not a valid [`LockName`].
    pub fn non_reentrant_lock(&self, name: &str) -> Result<Lock<T, H>, InvalidOption> {
        let name = LockName::parse(name)?;
        Ok(self.create(|engine| engine.lock(ONLY_ENDPOINT, name, false)))
    }

    /// Returns a lock whose waiters only poll, at the intervals of `backoff`: Redisson's
    /// `getSpinLock(name, backoff)`.
    ///
    /// Unlike in Redisson, no pause extends beyond the end of the wait, and a request budget
    /// lengthens the pauses.
    ///
    /// # Errors
    /// [`InvalidOption`] if `name` is not a valid [`LockName`], or if a pause is out of range.
    pub fn spin_lock(&self, name: &str, backoff: SpinBackoff) -> Result<Lock<T, H>, InvalidOption> {
        let name = LockName::parse(name)?;
        self.try_create(|engine| engine.spin_lock(ONLY_ENDPOINT, name, backoff))
    }

    /// Returns a lock whose last fencing token Redis keeps for ever: Redisson's
    /// `getFencedLock(name)`.
    ///
    /// Locks of every kind have a fencing token. This lock continues the tokens of a Java
    /// `RFencedLock` of the same name, and the reverse.
    ///
    /// # Errors
    /// [`InvalidOption`] if `name` is not a valid [`LockName`].
    pub fn fenced_lock(&self, name: &str) -> Result<Lock<T, H>, InvalidOption> {
        let name = LockName::parse(name)?;
        Ok(self.create(|engine| engine.fenced_lock(ONLY_ENDPOINT, name)))
    }

    /// Returns a lock that serves waiters in the order of their arrival: Redisson's
    /// `getFairLock(name)`.
    ///
    /// # Errors
    /// [`InvalidOption`] if `name` is not a valid [`LockName`], or if a setting is out of range.
    pub fn fair_lock(
        &self,
        name: &str,
        settings: FairSettings,
    ) -> Result<Lock<T, H>, InvalidOption> {
        let name = LockName::parse(name)?;
        Ok(self.create(|engine| engine.fair_lock(ONLY_ENDPOINT, name, settings, true)))
    }

    /// Returns a fair lock that an owner cannot acquire again while holding it: Redisson's
    /// `getNonReentrantFairLock(name)`. A second acquisition through the same
    /// [`owner`](Self::owner) fails with
    /// [`AcquireError::HeldAlready`](crate::error::AcquireError::HeldAlready).
    ///
    /// # Errors
    /// [`InvalidOption`] if `name` is not a valid [`LockName`], or if a setting is out of range.
    pub fn non_reentrant_fair_lock(
        &self,
        name: &str,
        settings: FairSettings,
    ) -> Result<Lock<T, H>, InvalidOption> {
        let name = LockName::parse(name)?;
        Ok(self.create(|engine| engine.fair_lock(ONLY_ENDPOINT, name, settings, false)))
    }

    /// Returns two locks of one name, one for readers and one for writers: Redisson's
    /// `getReadWriteLock(name)`.
    ///
    /// # Errors
    /// [`InvalidOption`] if `name` is not a valid [`LockName`].
    pub fn read_write_lock(
        &self,
        name: &str,
        settings: ReadWriteSettings,
    ) -> Result<ReadWriteLock<T, H>, InvalidOption> {
        let name = LockName::parse(name)?;
        let ReadWriteSettings { prefers_writers, lease_max } = settings;
        Ok(ReadWriteLock {
            read: self.create(|engine| engine.read_lock(ONLY_ENDPOINT, name.clone(), lease_max)),
            write: self
                .create(|engine| engine.write_lock(ONLY_ENDPOINT, name.clone(), prefers_writers)),
        })
    }

    /// Returns one lock on a set of values of a group: Redisson's `getMultiLock(group, values)` of
    /// a client with `StringCodec`. `skew` is the tolerated clock skew of Java programs that share
    /// the group.
    ///
    /// # Errors
    /// [`InvalidOption`] if `group` is not a valid [`LockName`], or unless there are 1 to 1000
    /// values.
    pub fn group_lock<V: AsRef<[u8]>>(
        &self,
        group: &str,
        values: impl IntoIterator<Item = V>,
        skew: PeerSkew,
    ) -> Result<Lock<T, H>, InvalidOption> {
        let group = LockName::parse(group)?;
        self.try_create(|engine| engine.group_lock(ONLY_ENDPOINT, group, values, skew))
    }

    /// Returns a semaphore, a number of permits shared by all clients: Redisson's
    /// `getSemaphore(name)`.
    ///
    /// # Errors
    /// [`InvalidOption`] if `name` is not a valid [`LockName`].
    pub fn semaphore(&self, name: &str) -> Result<Semaphore<T, H>, InvalidOption> {
        Ok(Semaphore::new(self.clone(), LockName::parse(name)?))
    }

    /// Returns a semaphore whose permits each have an id and can have an expiry: Redisson's
    /// `getPermitExpirableSemaphore(name)`. `skew` is the tolerated clock skew of Java programs
    /// that share the semaphore.
    ///
    /// # Errors
    /// [`InvalidOption`] if `name` is not a valid [`LockName`].
    pub fn permit_expirable_semaphore(
        &self,
        name: &str,
        skew: PeerSkew,
    ) -> Result<PermitExpirableSemaphore<T, H>, InvalidOption> {
        Ok(PermitExpirableSemaphore::new(self.clone(), LockName::parse(name)?, skew))
    }

    /// Returns a count-down latch, a gate that opens when its count reaches 0: Redisson's
    /// `getCountDownLatch(name)`.
    ///
    /// # Errors
    /// [`InvalidOption`] if `name` is not a valid [`LockName`].
    pub fn count_down_latch(&self, name: &str) -> Result<CountDownLatch<T, H>, InvalidOption> {
        let calls = CountDownLatchCalls::new(LockName::parse(name)?, self.announces());
        Ok(CountDownLatch::new(self.clone(), calls))
    }

    /// Returns a lock that acquires permits. It belongs to no owner, since permits are never
    /// re-entrant.
    pub(super) fn lock_for(&self, target: Target) -> Lock<T, H> {
        let client = Self { owner: None, ..self.clone() };
        client.create(|engine| engine.jittered(ONLY_ENDPOINT, target))
    }

    pub(super) fn create(&self, create: impl FnOnce(&Engine) -> LockSpec) -> Lock<T, H> {
        self.lock_of(self.shared().read(create))
    }

    fn try_create(
        &self,
        create: impl FnOnce(&Engine) -> Result<LockSpec, InvalidOption>,
    ) -> Result<Lock<T, H>, InvalidOption> {
        self.shared().read(create).map(|spec| self.lock_of(spec))
    }

    fn lock_of(&self, spec: LockSpec) -> Lock<T, H> {
        Lock {
            shared: Arc::clone(self.shared()),
            spec: Arc::new(spec),
            owner: self.owner.clone(),
            redacts: self.redacts,
        }
    }

    /// How the scripts for the gateway announce releases.
    pub(super) fn announces(&self) -> Publish {
        self.shared().read(|engine| engine.announces(ONLY_ENDPOINT))
    }
}

/// Two locks of one name: any number of readers, or one writer, can hold them.
///
/// Through one [`owner`](Client::owner), a writer can acquire the read side as well, and keeps it
/// after releasing the write side. A reader that acquires the write side is rejected with
/// [`AcquireError::SelfDeadlock`](crate::error::AcquireError::SelfDeadlock). A reader's fencing
/// token is above those of all earlier writers; readers at the same time have the same token.
#[derive(Debug)]
pub struct ReadWriteLock<T: Transport, H: Host> {
    read: Lock<T, H>,
    write: Lock<T, H>,
}

impl<T: Transport, H: Host> ReadWriteLock<T, H> {
    /// Returns the read side: Redisson's `readLock()`.
    pub const fn read(&self) -> &Lock<T, H> {
        &self.read
    }

    /// Returns the write side: Redisson's `writeLock()`.
    pub const fn write(&self) -> &Lock<T, H> {
        &self.write
    }
}

impl<T: Transport, H: Host> Clone for ReadWriteLock<T, H> {
    fn clone(&self) -> Self {
        Self { read: self.read.clone(), write: self.write.clone() }
    }
}

/// Settings of a read-write lock that Redisson does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct ReadWriteSettings {
    prefers_writers: Option<WantTime>,
    lease_max: Option<LeaseTime>,
}

impl Default for ReadWriteSettings {
    /// Returns the defaults: readers always join readers, and Java programs with a watchdog of 30 s
    /// may share the lock.
    fn default() -> Self {
        Self { prefers_writers: None, lease_max: Some(LeaseTime::DEFAULT) }
    }
}

impl ReadWriteSettings {
    /// Makes a refused writer block new readers of this library for `want` after its last try.
    ///
    /// By default readers always join readers, so writers can starve. Readers of Java programs are
    /// not blocked.
    pub const fn prefers_writers(mut self, want: WantTime) -> Self {
        self.prefers_writers = Some(want);
        self
    }

    /// Sets the watchdog time (`lockWatchdogTimeout`) of the Java programs that read under this
    /// lock; `None` if there are none. The default is 30 s.
    ///
    /// A Java reader that renews sets the expiry of the whole lock to that time, even if a hold of
    /// this library should last longer. The read side is therefore acquired, and
    /// [renewed](super::Lease::renew), for at most that time per request, and a longer hold is
    /// renewed until its end, while it is [kept](super::Lease::keep).
    ///
    /// A Java multi-lock with a lease that includes the read side sets the expiry of the whole lock
    /// to that lease. If there are such programs, use the shortest of their leases.
    pub const fn peer_watchdog(mut self, time: Option<LeaseTime>) -> Self {
        self.lease_max = time;
        self
    }
}
