//! Limits each client, or each address: its rates of requests and commands, and what it uses at
//! once.

use std::collections::HashMap;
use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use governor::clock::MonotonicClock;
use tokio::sync::Semaphore;

use super::rate::Rate;

/// The most that one client, or one address, may use at once.
#[derive(Clone, Copy)]
pub(super) struct Capacity {
    pub(super) requests: usize,
    pub(super) streams: usize,
    pub(super) waits: usize,
    pub(super) body_bytes: usize,
}

/// The unused part of the capacity, a permit for each unit.
pub(super) struct Share {
    pub(super) requests: Arc<Semaphore>,
    pub(super) streams: Arc<Semaphore>,
    pub(super) waits: Arc<Semaphore>,
    pub(super) bodies: Arc<Semaphore>,
    /// One permit: the request that holds it may send to Redis.
    pub(super) send_permit: Arc<Semaphore>,
}

/// The shares of all clients, or of all addresses, by their key `K`.
pub(super) struct Shares<K: Hash + Eq + Clone> {
    requests: Rate<K>,
    commands: Rate<K>,
    active: Mutex<HashMap<K, Arc<Share>>>,
    capacity: Capacity,
}

impl<K: Hash + Eq + Clone> Shares<K> {
    /// Creates the shares. Rates are per second. A burst has at least `max_commands` commands, so
    /// that the largest request is allowed at any rate.
    pub(super) fn new(
        requests: NonZeroU32,
        commands: NonZeroU32,
        max_commands: NonZeroU32,
        capacity: Capacity,
    ) -> Self {
        Self {
            requests: Rate::new(requests, NonZeroU32::MIN, MonotonicClock),
            commands: Rate::new(commands, max_commands, MonotonicClock),
            active: Mutex::default(),
            capacity,
        }
    }

    /// Counts a request, or returns the time after which it is allowed.
    pub(super) fn request(&self, key: &K) -> Result<(), Duration> {
        self.requests.take(key, NonZeroU32::MIN)
    }

    /// Counts commands, or returns the time after which they are allowed.
    pub(super) fn commands(&self, key: &K, number: NonZeroU32) -> Result<(), Duration> {
        self.commands.take(key, number)
    }

    pub(super) fn share(&self, key: &K) -> Arc<Share> {
        let mut active = self.active.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = active.get(key) {
            return Arc::clone(share);
        }
        let share = Arc::new(Share::new(self.capacity));
        active.insert(key.clone(), Arc::clone(&share));
        share
    }

    /// Drops the shares that are not in use, and the rates whose whole burst is available again.
    pub(super) fn remove_idle(&self) {
        self.requests.remove_idle();
        self.commands.remove_idle();
        let mut active = self.active.lock().unwrap_or_else(PoisonError::into_inner);
        active.retain(|_, share| !share.is_idle(self.capacity));
    }
}

impl Share {
    fn new(capacity: Capacity) -> Self {
        Self {
            requests: semaphore(capacity.requests),
            streams: semaphore(capacity.streams),
            waits: semaphore(capacity.waits),
            bodies: semaphore(capacity.body_bytes),
            send_permit: semaphore(1),
        }
    }

    /// Whether no request refers to this share, and none of its permits is taken.
    fn is_idle(self: &Arc<Self>, capacity: Capacity) -> bool {
        Arc::strong_count(self) == 1
            && self.streams.available_permits() == capacity.streams
            && self.requests.available_permits() == capacity.requests
            && self.waits.available_permits() == capacity.waits
            && self.bodies.available_permits() == capacity.body_bytes
            && self.send_permit.available_permits() == 1
    }
}

pub(super) fn semaphore(permits: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: NonZeroU32 = NonZeroU32::MIN;

    #[test]
    fn a_share_is_kept_while_any_part_of_it_is_in_use() {
        let capacity = Capacity { requests: 1, streams: 1, waits: 1, body_bytes: 1 };
        let shares = Shares::new(ONE, ONE, ONE, capacity);
        let permit = Arc::clone(&shares.share(&"a").streams).try_acquire_owned().unwrap();
        let share = shares.share(&"b");
        shares.remove_idle();
        assert_eq!(shares.share(&"a").streams.available_permits(), 0);
        assert_eq!(shares.active.lock().unwrap().len(), 2);
        drop((permit, share));
        shares.remove_idle();
        assert!(shares.active.lock().unwrap().is_empty());
    }
}
