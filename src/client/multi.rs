//! Several locks as one: Redisson's `RedissonMultiLock` and `RedissonRedLock`.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Client;
use super::lock::Lock;
use super::shared::Shared;
use crate::error::InvalidOption;
use crate::host::Host;
use crate::transport::Transport;
use edgelatch_proto::engine::{EndpointId, Engine, LockSpec};
use edgelatch_proto::timing::RejoinDelay;

/// Settings of a redLock that Redisson does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct RedLockSettings {
    rejoin_delay: Option<RejoinDelay>,
}

impl RedLockSettings {
    /// Excludes a node from the vote if its Redis was started less than `delay` ago: the *delayed
    /// restarts* of the Redlock algorithm.
    ///
    /// By default a restarted node votes at once. That is safe if each write is on disk before
    /// Redis replies (`appendonly yes`, `appendfsync always`), or if the operator keeps a node that
    /// has lost its data out of service for as long as the longest lease. Otherwise a node that has
    /// forgotten a hold forms a majority with a node that never had it: two clients then believe
    /// that they hold the lock, and fencing tokens can fall by as much as the nodes' clocks differ.
    ///
    /// All clients of the lock should set the same delay. The lease of each request to Redis is
    /// then at most the delay: a longer hold is renewed until its end, while it is
    /// [kept](super::Lease::keep). A longer delay costs a node's vote for a longer time after each
    /// restart, with or without its data: after a restart of two of three nodes no client acquires
    /// the lock before the delay is over. A shorter delay costs more renewals.
    ///
    /// Each node must allow scripts to run `INFO`; a node that does not rejects the acquisition.
    /// The delay detects only a start of the Redis process. It detects neither `FLUSHALL` nor a
    /// failover to a replica: [`replicas`](super::AcquireOptions::replicas) is for the latter.
    pub const fn rejoin_delay(mut self, delay: RejoinDelay) -> Self {
        self.rejoin_delay = Some(delay);
        self
    }
}

impl<T: Transport, H: Host> Client<T, H> {
    /// Returns one lock that holds all of `locks` or none: Redisson's `getMultiLock(locks)`. The
    /// members can be of any kind, and of other clients.
    ///
    /// The members of one gateway are acquired with one request, in one atomic step. Each fair
    /// lock, each side of a read-write lock and each group has a request of its own, as has each
    /// slot of a Redis Cluster. A wait for a busy spin lock polls at the intervals of that lock;
    /// members in the same request must be spin locks with the same intervals, or the pauses are
    /// jittered. The order of `locks` is not significant: two multi-locks of the same locks in a
    /// different order do not deadlock.
    ///
    /// # Errors
    /// [`InvalidOption`] unless there are 1 to 100 different locks, without redLocks and permits,
    /// and without two locks of one name whose kinds or settings exclude each other.
    pub fn multi_lock(
        &self,
        locks: impl IntoIterator<Item = Lock<T, H>>,
    ) -> Result<Lock<T, H>, InvalidOption> {
        self.combine(locks, |engine, specs| engine.multi_lock(specs))
    }

    /// Returns one lock on several independent Redis nodes, held by the client that a majority of
    /// them grants it to: Redisson's `getRedLock(locks)`.
    ///
    /// Unlike Redisson's, it checks that enough of the lease is left, and releases the members that
    /// it was granted if they are no majority. After a majority has granted, it waits for the other
    /// members as long again, at least 10 ms: those that have granted by then count until the
    /// release, so that a minority of them may stop.
    ///
    /// The members are plain, non-reentrant, spin or fenced locks of clients of different Redis
    /// nodes; do not include one Redis twice through two gateways. Pauses between retries are
    /// jittered, even if a member is a spin lock. [`RedLockSettings::rejoin_delay`] describes the
    /// effect of a node that restarts without its data.
    ///
    /// # Errors
    /// [`InvalidOption`] unless there are 3, 5, 7 or 9 such locks, each of a different gateway.
    pub fn red_lock(
        &self,
        locks: impl IntoIterator<Item = Lock<T, H>>,
    ) -> Result<Lock<T, H>, InvalidOption> {
        self.red_lock_with(locks, RedLockSettings::default())
    }

    /// Returns one lock on several independent Redis nodes with these settings; see
    /// [`red_lock`](Self::red_lock).
    ///
    /// # Errors
    /// [`InvalidOption`] as for [`red_lock`](Self::red_lock).
    pub fn red_lock_with(
        &self,
        locks: impl IntoIterator<Item = Lock<T, H>>,
        settings: RedLockSettings,
    ) -> Result<Lock<T, H>, InvalidOption> {
        self.combine(locks, |engine, specs| engine.red_lock(specs, settings.rejoin_delay))
    }

    /// Creates a lock of several in an engine that has the gateways of all of them.
    fn combine(
        &self,
        locks: impl IntoIterator<Item = Lock<T, H>>,
        create_spec: impl FnOnce(&Engine, &[&LockSpec]) -> Result<LockSpec, InvalidOption>,
    ) -> Result<Lock<T, H>, InvalidOption> {
        // The clients of the locks, with one gateway each. A client's index becomes the id of its
        // gateway in the joint engine.
        let mut clients: Vec<Arc<Shared<T, H>>> = Vec::new();
        let (mut specs, mut redacts) = (Vec::new(), false);
        for lock in locks {
            redacts |= lock.redacts;
            let spec = LockSpec::clone(&lock.spec);
            specs.push(spec.map_endpoints(|endpoint| {
                let client = lock.shared.member(endpoint);
                let known = clients.iter().position(|other| Arc::ptr_eq(other, &client));
                let index = known.unwrap_or_else(|| {
                    clients.push(client);
                    clients.len() - 1
                });
                EndpointId(u32::try_from(index).unwrap_or(u32::MAX))
            }));
        }
        let shared = Shared::join(&clients);
        let shared = shared.ok_or_else(|| InvalidOption::new("locks", "at least one lock"))?;
        let spec = shared.read(|engine| create_spec(engine, &specs.iter().collect::<Vec<_>>()))?;
        Ok(Lock { shared, spec: Arc::new(spec), owner: self.owner.clone(), redacts })
    }
}
