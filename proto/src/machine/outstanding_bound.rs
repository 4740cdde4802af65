//! Upper bound on how long a hold with an unknown outcome can exist.

use core::time::Duration;

use crate::protocol::reply::ServerClock;
use crate::protocol::script::Bound;
use crate::time::Instant;
use crate::timing::{HORIZON, LeaseTime, ROUND_MAX, drift};

/// The remaining effect of requests that grant or extend a hold: until when their copies are
/// executed, and for how long a hold lasts then (rule C9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OutstandingBound {
    /// Redis' time in milliseconds after which no request with a bound is executed.
    not_after: Option<u64>,
    /// How long copies of requests without a bound count.
    unbounded: Option<Duration>,
    /// The longest lease of the requests.
    lease: LeaseTime,
}

impl OutstandingBound {
    /// The effect of a request with this bound and lease.
    pub(super) const fn of(bound: Bound, lease: LeaseTime) -> Self {
        let unbounded = if bound.not_after.is_none() { Some(bound.keep) } else { None };
        Self { not_after: bound.not_after, unbounded, lease }
    }

    /// The combined effect of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            not_after: self.not_after.max(other.not_after),
            unbounded: self.unbounded.max(other.unbounded),
            lease: self.lease.max(other.lease),
        }
    }

    /// The upper bound on the time from `now` until nothing is held any more. `clock` is the known
    /// time of Redis; `clock_allowance` is the time by which a hold may outlast its lease to
    /// tolerate Redisson's clocks.
    pub(super) fn held_at_most(
        self,
        clock_allowance: Duration,
        clock: Option<ServerClock>,
        now: Instant,
    ) -> Duration {
        // A bound needs a known clock, so without one its largest distance limits it.
        let farthest = ROUND_MAX + HORIZON;
        let bounded = self
            .not_after
            .map(|not_after| clock.map_or(farthest, |clock| clock.until(not_after, now)));
        // A request that is executed at its bound holds for a whole lease from then on.
        let done = bounded.max(self.unbounded).unwrap_or_default();
        let held = done.saturating_add(self.lease.get()).saturating_add(clock_allowance);
        // The caller's clock measures the time, and may be fast.
        held.saturating_add(drift(held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER_MS: u64 = 1_700_000_000_000;

    const fn at(monotonic: u64, wall: u64) -> Instant {
        Instant::from_millis(monotonic, wall)
    }

    /// A lease of 30 s with a bound this many seconds after the clock was seen.
    fn until(seconds: u64) -> OutstandingBound {
        let not_after = Some(SERVER_MS + seconds * 1000);
        OutstandingBound::of(Bound { not_after, keep: HORIZON }, LeaseTime::DEFAULT)
    }

    fn clock() -> Option<ServerClock> {
        Some(ServerClock::new(SERVER_MS, at(0, 0)))
    }

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn it_ends_a_lease_after_the_bound_by_redis_clock() {
        assert_eq!(
            until(690).held_at_most(Duration::ZERO, clock(), at(0, 0)),
            ms(720_000 + 7_200 + 2)
        );
        // 100 s later by a clock that may be fast: 98.998 s at least.
        let later = until(690).held_at_most(Duration::ZERO, clock(), at(100_000, 100_000));
        assert_eq!(later, Duration::from_micros((720_000_000 - 98_998_000) * 101 / 100 + 2_000));
        // Long after the bound at most a lease is left.
        let past = until(690).held_at_most(Duration::ZERO, clock(), at(900_000, 900_000));
        assert_eq!(past, ms(30_302));
    }

    /// S22.
    #[test]
    fn a_clock_that_jumps_ahead_does_not_shorten_it() {
        let slept = until(690).held_at_most(Duration::ZERO, clock(), at(0, 500_000));
        assert_eq!(slept, until(690).held_at_most(Duration::ZERO, clock(), at(0, 0)));
    }

    #[test]
    fn the_latest_bound_counts_and_the_longest_lease() {
        let other = OutstandingBound { lease: LeaseTime::new(ms(60_000)).unwrap(), ..until(95) };
        let both = until(690).and(other).held_at_most(Duration::ZERO, clock(), at(0, 0));
        assert_eq!(both, ms(750_000 + 7_500 + 2));
    }

    #[test]
    fn without_a_bound_it_lasts_as_long_as_copies_are_kept() {
        let unbounded =
            OutstandingBound::of(Bound { not_after: None, keep: ms(600_000) }, LeaseTime::DEFAULT);
        for outstanding in [unbounded, until(95).and(unbounded)] {
            let most = outstanding.held_at_most(Duration::ZERO, clock(), at(50_000, 50_000));
            assert_eq!(most, ms(630_000 + 6_300 + 2));
        }
    }

    #[test]
    fn without_a_clock_the_farthest_bound_is_taken() {
        let most = until(95).held_at_most(Duration::ZERO, None, at(0, 0));
        assert_eq!(most, ms(720_000 + 7_200 + 2));
    }

    #[test]
    fn a_lease_with_room_for_redissons_clocks_lasts_longer() {
        let most = until(90).held_at_most(ms(2_000), clock(), at(0, 0));
        assert_eq!(most, ms(122_000 + 1_220 + 2));
    }
}
