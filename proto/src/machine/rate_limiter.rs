//! The rate limiter of retries that notifications cause.

use core::time::Duration;

use crate::time::Instant;

/// A rate limiter by the generic cell rate algorithm (GCRA, ITU-T I.371): one event per `interval`
/// in the long run, and `burst` events at once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct RateLimiter {
    /// The theoretical arrival time: when the events so far are paid off. `None` before the first.
    tat: Option<Instant>,
    interval: Duration,
    burst: u32,
}

impl RateLimiter {
    pub(super) const fn new(interval: Duration, burst: u32) -> Self {
        Self { tat: None, interval, burst }
    }

    /// Records an event.
    pub(super) fn record(&mut self, now: Instant) {
        let from = self.tat.filter(|tat| !now.has_reached(*tat)).unwrap_or(now);
        self.tat = Some(from + self.interval);
    }

    /// The time until the next event conforms; zero if it may happen now.
    pub(super) fn delay(&self, now: Instant) -> Duration {
        let ahead = self.tat.map_or(Duration::ZERO, |tat| now.until(tat));
        ahead.saturating_sub(self.interval * self.burst.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(50);

    const fn at(ms: u64) -> Instant {
        Instant::from_millis(ms, ms)
    }

    #[test]
    fn a_burst_passes_at_once_and_then_one_event_per_interval() {
        let mut limiter = RateLimiter::new(INTERVAL, 3);
        for _ in 0..3 {
            assert_eq!(limiter.delay(at(0)), Duration::ZERO);
            limiter.record(at(0));
        }
        assert_eq!(limiter.delay(at(0)), INTERVAL);
        assert_eq!(limiter.delay(at(20)), Duration::from_millis(30));
        assert_eq!(limiter.delay(at(50)), Duration::ZERO);
        limiter.record(at(50));
        assert_eq!(limiter.delay(at(50)), INTERVAL);
    }

    #[test]
    fn an_idle_limiter_allows_no_more_than_its_burst() {
        let mut limiter = RateLimiter::new(INTERVAL, 2);
        limiter.record(at(0));
        for _ in 0..2 {
            assert_eq!(limiter.delay(at(60_000)), Duration::ZERO);
            limiter.record(at(60_000));
        }
        assert_eq!(limiter.delay(at(60_000)), INTERVAL);
    }
}
