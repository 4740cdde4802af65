//! What a client offers: one method for each object, by Redisson's names.

use alloc::sync::Arc;

use super::Client;
use super::clients::Clients;
use super::count_down_latch::CountDownLatch;
use super::lock::{Inner, Lock};
use super::owner::{Holds, Key, Side};
use super::permits::PermitExpirableSemaphore;
use super::plan::Plan;
use super::semaphore::Semaphore;
use crate::error::InvalidOption;
use crate::host::Host;
use crate::machine::{Pacing, SpinBackoff};
use crate::name::LockName;
use crate::protocol::calls::{
    CountDownLatchCalls, FairCalls, FairSettings, GroupCalls, LockCalls, Member, ReadCalls, Target,
    WriteCalls,
};
use crate::protocol::script::Publish;
use crate::timing::{LeaseTime, PeerSkew, WantTime};
use crate::transport::Transport;

impl<T: Transport, H: Host> Client<T, H> {
    /// The same client as one owner, that may hold a lock several times at once.
    ///
    /// Acquisitions of one lock through one owner (or its clones) share one hold: the first takes
    /// it, further ones ask nobody and have its token and its lease, and the last release ends it.
    /// Redisson's owner is a thread; there are no threads where this crate runs, so an owner is
    /// asked for. Make one for each task (in a Worker, for each request): it is not for sharing.
    #[must_use]
    pub fn owner(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), holds: Some(Arc::new(Holds::default())) }
    }

    /// The lock of this name: Redisson's `getLock(name)`.
    ///
    /// # Errors
    /// [`InvalidOption`] when it is no name for a lock, see [`LockName`].
    pub fn lock(&self, name: &str) -> Result<Lock<T, H>, InvalidOption> {
        self.bare_lock(name, true)
    }

    /// A lock that an owner cannot take again while holding it: Redisson's
    /// `getNonReentrantLock(name)`. A second acquisition through the same [`owner`](Self::owner) is
    /// refused with [`AcquireError::HeldAlready`](crate::error::AcquireError).
    ///
    /// # Errors
    /// [`InvalidOption`] when it is no name for a lock.
    pub fn non_reentrant_lock(&self, name: &str) -> Result<Lock<T, H>, InvalidOption> {
        self.bare_lock(name, false)
    }

    /// A lock whose waiters only poll, and at their own pace: Redisson's `getSpinLock(name,
    /// backoff)`.
    ///
    /// The wait is never overrun by a pause, and a budget of requests stretches the pauses, unlike
    /// Redisson's.
    ///
    /// # Errors
    /// [`InvalidOption`] when it is no name for a lock, or when the pauses are out of range.
    pub fn spin_lock(&self, name: &str, backoff: SpinBackoff) -> Result<Lock<T, H>, InvalidOption> {
        let calls = LockCalls::new(LockName::parse(name)?, self.announces());
        Ok(self.plain(Plan::one(Target::Lock(calls), Pacing::Spin(backoff.check()?))))
    }

    /// A lock whose last fencing token Redis keeps for ever: Redisson's `getFencedLock(name)`.
    ///
    /// Every kind has a fencing token; this one goes on counting where a Java `RFencedLock` has
    /// stopped, and the reverse.
    ///
    /// # Errors
    /// [`InvalidOption`] when it is no name for a lock.
    pub fn fenced_lock(&self, name: &str) -> Result<Lock<T, H>, InvalidOption> {
        let member = Member { name: LockName::parse(name)?, fenced: true };
        let calls = LockCalls::of_several(member, [].into(), self.announces());
        Ok(self.plain(Plan::one(Target::Lock(calls), Pacing::Jittered)))
    }

    /// A lock that serves those who wait in the order of their arrival: Redisson's
    /// `getFairLock(name)`.
    ///
    /// # Errors
    /// [`InvalidOption`] when it is no name for a lock, or when a setting is out of range.
    pub fn fair_lock(
        &self,
        name: &str,
        settings: FairSettings,
    ) -> Result<Lock<T, H>, InvalidOption> {
        self.queued_lock(name, settings, true)
    }

    /// The same for an owner that cannot take it again while holding it: Redisson's
    /// `getNonReentrantFairLock(name)`.
    ///
    /// # Errors
    /// [`InvalidOption`] when it is no name for a lock, or when a setting is out of range.
    pub fn non_reentrant_fair_lock(
        &self,
        name: &str,
        settings: FairSettings,
    ) -> Result<Lock<T, H>, InvalidOption> {
        self.queued_lock(name, settings, false)
    }

    /// Two locks of one name, one for readers and one for writers: Redisson's
    /// `getReadWriteLock(name)`.
    ///
    /// # Errors
    /// [`InvalidOption`] when it is no name for a lock.
    pub fn read_write_lock(
        &self,
        name: &str,
        settings: ReadWriteSettings,
    ) -> Result<ReadWriteLock<T, H>, InvalidOption> {
        let (name, publish) = (LockName::parse(name)?, self.announces());
        let read = Target::Read(ReadCalls::new(name.clone(), publish));
        let mut write = WriteCalls::new(name, publish);
        if let Some(want) = settings.prefers_writers {
            write = write.prefers_writers(want);
        }
        let read = Plan { lease_max: settings.lease_max, ..Plan::one(read, Pacing::Jittered) };
        let write = Plan::one(Target::Write(write), Pacing::Jittered);
        Ok(ReadWriteLock {
            read: self.sided(read, Side::Read, true),
            write: self.sided(write, Side::Write, true),
        })
    }

    /// A set of values of a group as one lock: Redisson's `getMultiLock(group, values)`, whose
    /// client uses `StringCodec`.
    ///
    /// # Errors
    /// [`InvalidOption`] when the group is no name for a lock, or unless the values are 1 to 1000.
    pub fn group_lock<V: AsRef<[u8]>>(
        &self,
        group: &str,
        values: impl IntoIterator<Item = V>,
        skew: PeerSkew,
    ) -> Result<Lock<T, H>, InvalidOption> {
        let calls = GroupCalls::new(LockName::parse(group)?, values, skew, self.announces())?;
        let side = Side::Values(calls.fields().to_vec());
        Ok(self.sided(Plan::one(Target::Group(calls), Pacing::Jittered), side, true))
    }

    /// A number of permits that many share: Redisson's `getSemaphore(name)`.
    ///
    /// # Errors
    /// [`InvalidOption`] when it is no name.
    pub fn semaphore(&self, name: &str) -> Result<Semaphore<T, H>, InvalidOption> {
        Ok(Semaphore::new(self.clone(), LockName::parse(name)?))
    }

    /// The same with an id and an end for each permit: Redisson's
    /// `getPermitExpirableSemaphore(name)`.
    ///
    /// # Errors
    /// [`InvalidOption`] when it is no name.
    pub fn permit_expirable_semaphore(
        &self,
        name: &str,
        skew: PeerSkew,
    ) -> Result<PermitExpirableSemaphore<T, H>, InvalidOption> {
        Ok(PermitExpirableSemaphore::new(self.clone(), LockName::parse(name)?, skew))
    }

    /// A gate that opens when it was counted down to nothing: Redisson's `getCountDownLatch(name)`.
    ///
    /// # Errors
    /// [`InvalidOption`] when it is no name.
    pub fn count_down_latch(&self, name: &str) -> Result<CountDownLatch<T, H>, InvalidOption> {
        let calls = CountDownLatchCalls::new(LockName::parse(name)?, self.announces());
        Ok(CountDownLatch::new(self.clone(), calls))
    }

    /// What takes permits: they are no lock that an owner could take again.
    pub(crate) fn taking(&self, target: Target) -> Lock<T, H> {
        let client = Self { inner: Arc::clone(&self.inner), holds: None };
        client.plain(Plan::one(target, Pacing::Jittered))
    }

    fn bare_lock(&self, name: &str, reenters: bool) -> Result<Lock<T, H>, InvalidOption> {
        let calls = LockCalls::new(LockName::parse(name)?, self.announces());
        let plan = Plan::one(Target::Lock(calls), Pacing::Jittered);
        Ok(self.sided(plan, Side::Whole, reenters))
    }

    fn queued_lock(
        &self,
        name: &str,
        settings: FairSettings,
        reenters: bool,
    ) -> Result<Lock<T, H>, InvalidOption> {
        let calls = FairCalls::new(LockName::parse(name)?, settings, self.announces());
        let plan = Plan::one(Target::Fair(calls), Pacing::Queue);
        Ok(self.sided(plan, Side::Whole, reenters))
    }

    fn plain(&self, plan: Plan) -> Lock<T, H> {
        self.sided(plan, Side::Whole, true)
    }

    fn sided(&self, plan: Plan, side: Side, reenters: bool) -> Lock<T, H> {
        let names = [(self.link().gateway().id().into(), plan.first.name().clone())].into();
        let (clients, key) = (Clients::one(self.clone()), Key { names, side });
        Lock::new(Inner { clients, plan, key, holds: self.holds.clone(), reenters })
    }

    pub(crate) fn announces(&self) -> Publish {
        self.link().gateway().announces()
    }
}

/// Two locks of one name: many may read, or one may write.
///
/// Through one [`owner`](Client::owner) a writer may read as well, and goes on reading when it has
/// released the writing side; a reader that asks for the writing side is refused with
/// [`AcquireError::SelfDeadlock`](crate::error::AcquireError::SelfDeadlock). A reader's fencing
/// token is above those of all writers before it, and the same for readers at the same time.
#[derive(Debug)]
pub struct ReadWriteLock<T: Transport, H> {
    read: Lock<T, H>,
    write: Lock<T, H>,
}

impl<T: Transport, H> ReadWriteLock<T, H> {
    /// The reading side: Redisson's `readLock()`.
    pub const fn read(&self) -> &Lock<T, H> {
        &self.read
    }

    /// The writing side: Redisson's `writeLock()`.
    pub const fn write(&self) -> &Lock<T, H> {
        &self.write
    }
}

impl<T: Transport, H> Clone for ReadWriteLock<T, H> {
    fn clone(&self) -> Self {
        Self { read: self.read.clone(), write: self.write.clone() }
    }
}

/// How a read-write lock behaves beyond what Redisson says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct ReadWriteSettings {
    prefers_writers: Option<WantTime>,
    lease_max: Option<LeaseTime>,
}

impl Default for ReadWriteSettings {
    /// Readers always join readers, and Java may share the lock with a watchdog of 30 s.
    fn default() -> Self {
        Self { prefers_writers: None, lease_max: Some(LeaseTime::DEFAULT) }
    }
}

impl ReadWriteSettings {
    /// A writer that was refused keeps new readers of ours out for so long, or until it asks again.
    /// Unless set, readers always join readers, so that writers can starve. Java's readers are not
    /// held back.
    pub const fn prefers_writers(mut self, want: WantTime) -> Self {
        self.prefers_writers = Some(want);
        self
    }

    /// The watchdog's time of the Java programs that read under this lock (`lockWatchdogTimeout`);
    /// `None` when there are none. 30 s unless set.
    ///
    /// A Java reader that renews sets the end of the whole lock to that time, also when ours should
    /// last for longer. So the reading side is taken for so long at the most, and a longer hold is
    /// renewed until its end, for as long as it is [kept](super::Lease::keep).
    pub const fn peer_watchdog(mut self, time: Option<LeaseTime>) -> Self {
        self.lease_max = time;
        self
    }
}
