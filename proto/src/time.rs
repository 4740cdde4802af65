//! Points in time, without a clock.

use core::ops::Add;
use core::time::Duration;

/// A point in time as the caller read it: a monotonic and a wall clock, in milliseconds since an
/// epoch of each.
///
/// One clock is not enough to trust a lease. A monotonic clock may stand still while the machine
/// sleeps, and a wall clock may be set. So the time between two instants is the *larger* of the two
/// clocks' differences, and a deadline is reached as soon as *either* clock has reached it. A clock
/// that jumps ahead ends a lease early, which is safe; a clock that is set back is overruled by the
/// other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Instant {
    monotonic_ms: u64,
    wall_ms: u64,
}

impl Instant {
    /// Creates an instant from the readings of both clocks, in milliseconds.
    pub const fn from_millis(monotonic_ms: u64, wall_ms: u64) -> Self {
        Self { monotonic_ms, wall_ms }
    }

    /// The largest time that may have passed since `earlier`: the larger difference of the two
    /// clocks, never negative.
    #[inline(never)]
    pub fn max_elapsed(self, earlier: Self) -> Duration {
        let monotonic = self.monotonic_ms.saturating_sub(earlier.monotonic_ms);
        let wall = self.wall_ms.saturating_sub(earlier.wall_ms);
        Duration::from_millis(monotonic.max(wall))
    }

    /// The least time that has passed since `earlier`: the smaller difference of the two clocks, so
    /// that a clock that jumped ahead does not count.
    pub(crate) fn min_elapsed(self, earlier: Self) -> Duration {
        let monotonic = self.monotonic_ms.saturating_sub(earlier.monotonic_ms);
        let wall = self.wall_ms.saturating_sub(earlier.wall_ms);
        Duration::from_millis(monotonic.min(wall))
    }

    /// The time until `deadline`: the smaller difference of the two clocks, zero once it is
    /// reached.
    #[inline(never)]
    pub fn until(self, deadline: Self) -> Duration {
        let monotonic = deadline.monotonic_ms.saturating_sub(self.monotonic_ms);
        let wall = deadline.wall_ms.saturating_sub(self.wall_ms);
        Duration::from_millis(monotonic.min(wall))
    }

    /// Whether either clock has reached `deadline`.
    pub fn has_reached(self, deadline: Self) -> bool {
        self.until(deadline).is_zero()
    }

    /// Whether this instant is later than `other` by the monotonic clock.
    pub const fn is_later(self, than: Self) -> bool {
        self.monotonic_ms > than.monotonic_ms
    }

    /// Rounds down to a multiple of `step` by the monotonic clock, so that close deadlines
    /// coincide.
    pub(crate) fn align_down(self, step: Duration) -> Self {
        let over = self.monotonic_ms % millis(step).max(1);
        Self { monotonic_ms: self.monotonic_ms - over, wall_ms: self.wall_ms.saturating_sub(over) }
    }

    /// The sooner of two deadlines, clock by clock.
    #[must_use]
    pub fn sooner(self, other: Self) -> Self {
        Self {
            monotonic_ms: self.monotonic_ms.min(other.monotonic_ms),
            wall_ms: self.wall_ms.min(other.wall_ms),
        }
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    /// Saturates at the end of time.
    #[inline(never)]
    fn add(self, duration: Duration) -> Self {
        let ms = millis(duration);
        Self {
            monotonic_ms: self.monotonic_ms.saturating_add(ms),
            wall_ms: self.wall_ms.saturating_add(ms),
        }
    }
}

/// Whole milliseconds of a duration, saturating.
///
/// Not inlined, since it has many callers and 128-bit arithmetic is long.
#[inline(never)]
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(monotonic: u64, wall: u64) -> Instant {
        Instant::from_millis(monotonic, wall)
    }

    /// S24.
    #[test]
    fn a_sleeping_host_is_seen_by_the_wall_clock() {
        let before = at(1_000, 50_000);
        let after = at(1_000, 650_000);
        assert_eq!(after.max_elapsed(before), Duration::from_secs(600));
        assert!(after.has_reached(before + Duration::from_secs(30)));
    }

    /// S23.
    #[test]
    fn a_wall_clock_set_back_changes_nothing() {
        let before = at(1_000, 3_600_000);
        let after = at(2_000, 0);
        assert_eq!(after.max_elapsed(before), Duration::from_secs(1));
        assert_eq!(after.until(before + Duration::from_secs(3)), Duration::from_secs(2));
    }

    /// S30.
    #[test]
    fn the_end_of_time_is_no_overflow() {
        let end = at(u64::MAX, 5) + Duration::MAX;
        assert_eq!(end, at(u64::MAX, u64::MAX));
    }

    #[test]
    fn a_deadline_on_the_step_is_never_later() {
        let step = Duration::from_millis(2_500);
        assert_eq!(at(12_499, 99_000).align_down(step), at(10_000, 96_501));
        assert_eq!(at(12_500, 99_001).align_down(step), at(12_500, 99_001));
        assert_eq!(at(12_499, 1_000).align_down(step), at(10_000, 0));
        assert_eq!(at(7, 9).align_down(Duration::ZERO), at(7, 9));
    }

    #[test]
    fn the_earlier_deadline_is_chosen_for_each_clock() {
        assert_eq!(at(1, 9).sooner(at(2, 8)), at(1, 8));
    }
}
