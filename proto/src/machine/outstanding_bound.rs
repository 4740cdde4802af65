//! Upper bound on how long a hold with an unknown outcome can exist: `held_at_most` of errors.

use core::time::Duration;

use crate::protocol::reply::ServerClock;
use crate::protocol::script::Bound;
use crate::time::Instant;
use crate::timing::{HORIZON, LeaseTime, ROUND_MAX, drift};

/// Limits the remaining effect of requests that grant or extend a hold (rule C9 of the protocol).
///
/// A request without a reply, or a copy of it, may still be in flight. Redis executes it up to its
/// bound, and the hold that it grants lasts for one lease from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OutstandingBound {
    /// The latest bound: the time in milliseconds, by Redis' clock, after which Redis executes none
    /// of the requests that have a bound. `None` if none has one.
    not_after: Option<u64>,
    /// The time for which a copy of a request without a bound may still arrive; it counts in full,
    /// however long ago the request was sent. `None` if every request has a bound.
    unbounded: Option<Duration>,
    /// The longest lease of the requests.
    lease: LeaseTime,
}

impl OutstandingBound {
    /// Creates the limit for one request with this bound and lease.
    pub(super) const fn of(bound: Bound, lease: LeaseTime) -> Self {
        let unbounded = if bound.not_after.is_none() { Some(bound.keep) } else { None };
        Self { not_after: bound.not_after, unbounded, lease }
    }

    /// Returns the limit for the requests of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            not_after: self.not_after.max(other.not_after),
            unbounded: self.unbounded.max(other.unbounded),
            lease: self.lease.max(other.lease),
        }
    }

    /// Returns the upper bound on the time from `now` until no hold exists any more, by the
    /// caller's clock. `clock` is Redis' clock, as last known; `clock_allowance` is the time by
    /// which a hold may outlast its lease, to tolerate errors of Redisson's clocks.
    pub(super) fn held_at_most(
        self,
        clock_allowance: Duration,
        clock: Option<ServerClock>,
        now: Instant,
    ) -> Duration {
        // Without Redis' clock the time to the bound is unknown, but it is never longer than this.
        let farthest = ROUND_MAX + HORIZON;
        let bounded = self
            .not_after
            .map(|not_after| clock.map_or(farthest, |clock| clock.until(not_after, now)));
        // A request that Redis executes at its bound grants a hold for a whole lease from then on.
        let executed_within = bounded.max(self.unbounded).unwrap_or_default();
        let held = executed_within.saturating_add(self.lease.get()).saturating_add(clock_allowance);
        // The caller measures this time by its own clock, which may be fast.
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

    /// A lease of 30 s with a bound this many seconds after the reading of Redis' clock.
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
