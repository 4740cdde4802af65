//! Rate limits by GCRA, the generic cell rate algorithm: a leaky bucket without a timer.

use std::hash::Hash;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock, MonotonicClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};

/// The size of a burst: as much as the rate allows in this many seconds.
pub(super) const BURST_SECONDS: NonZeroU32 = NonZeroU32::new(4).unwrap();

/// A rate limiter for each key `K`, with bursts.
pub(super) struct Rate<K: Hash + Eq + Clone, C: Clock = MonotonicClock> {
    limiter: RateLimiter<K, HashMapStateStore<K>, C, NoOpMiddleware<C::Instant>>,
    clock: C,
}

impl<K: Hash + Eq + Clone, C: Clock + Clone> Rate<K, C> {
    /// Creates a limiter. A burst is never smaller than `min_burst`, the most that one request may
    /// take.
    pub(super) fn new(per_second: NonZeroU32, min_burst: NonZeroU32, clock: C) -> Self {
        let burst = per_second.saturating_mul(BURST_SECONDS).max(min_burst);
        let quota = Quota::per_second(per_second).allow_burst(burst);
        Self { limiter: RateLimiter::hashmap_with_clock(quota, clock.clone()), clock }
    }

    /// Takes `number` units, or takes nothing and returns the time after which they are available.
    pub(super) fn take(&self, key: &K, number: NonZeroU32) -> Result<(), Duration> {
        match self.limiter.check_key_n(key, number) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(until)) => Err(until.wait_time_from(self.clock.now())),
            // `number` is larger than a burst, which `min_burst` prevents.
            Err(_) => Err(Duration::MAX),
        }
    }

    /// Drops the keys whose whole burst is available again.
    pub(super) fn remove_idle(&self) {
        self.limiter.retain_recent();
    }
}

#[cfg(test)]
mod tests {
    use governor::clock::FakeRelativeClock;

    use super::*;

    const ONE: NonZeroU32 = NonZeroU32::MIN;

    #[test]
    fn after_a_burst_the_rate_holds_for_each_key() {
        let clock = FakeRelativeClock::default();
        let rate = Rate::new(ONE, ONE, clock.clone());
        for _ in 0..BURST_SECONDS.get() {
            rate.take(&"a", ONE).unwrap();
        }
        assert_eq!(rate.take(&"a", ONE), Err(Duration::from_secs(1)));
        assert_eq!(rate.take(&"b", ONE), Ok(()));
        clock.advance(Duration::from_millis(400));
        assert_eq!(rate.take(&"a", ONE), Err(Duration::from_millis(600)));
        clock.advance(Duration::from_millis(600));
        assert_eq!(rate.take(&"a", ONE), Ok(()));
        assert_eq!(rate.take(&"a", ONE), Err(Duration::from_secs(1)));
    }

    #[test]
    fn a_burst_allows_the_largest_request() {
        let thousand = NonZeroU32::new(1000).unwrap();
        let clock = FakeRelativeClock::default();
        let rate = Rate::new(ONE, thousand, clock.clone());
        assert_eq!(rate.take(&"a", thousand), Ok(()));
        assert_eq!(rate.take(&"a", thousand), Err(Duration::from_secs(1000)));
        clock.advance(Duration::from_secs(1000));
        assert_eq!(rate.take(&"a", thousand), Ok(()));
    }

    #[test]
    fn keys_are_removed_when_their_burst_is_available_again() {
        let clock = FakeRelativeClock::default();
        let rate = Rate::new(ONE, ONE, clock.clone());
        rate.take(&"a", ONE).unwrap();
        rate.remove_idle();
        assert_eq!(rate.limiter.len(), 1);
        clock.advance(Duration::from_secs(60));
        rate.remove_idle();
        assert!(rate.limiter.is_empty());
    }
}
