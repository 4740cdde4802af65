//! Durations with a meaning: one that exists is valid. Defaults and relations stand here and nowhere else.

use core::time::Duration;

use crate::error::InvalidOption;

/// For how long a copy of a request may still be on its way: every id is remembered in Redis for at least so long.
pub(crate) const HORIZON: Duration = Duration::from_secs(90);

/// The same for an id whose first request was sent before the client had seen Redis' clock (rule C3 of the protocol).
pub(crate) const FIRST_HORIZON: Duration = Duration::from_secs(600);

/// The longest time for which one id is polled with; a longer wait goes on under a new one (rule C8).
pub(crate) const ROUND_MAX: Duration = Duration::from_secs(600);

/// For how long a name's last fencing token is kept after a grant. Losing it is harmless: tokens follow the clock.
pub(crate) const TOKEN_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a hold lasts if nobody renews it.
///
/// From 100 ms to 24 h in whole milliseconds; 30 s unless set. Longer means fewer renewals and a longer wait for
/// everybody else when a holder dies; shorter means the reverse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseTime(Duration);

impl LeaseTime {
    /// Redisson's lease for an acquisition that names none.
    pub const DEFAULT: Self = Self(Duration::from_secs(30));

    /// Checks a lease.
    ///
    /// # Errors
    /// [`InvalidOption`] outside of the range above.
    pub fn new(time: Duration) -> Result<Self, InvalidOption> {
        let range = Duration::from_millis(100)..=DAY;
        whole(time, range)
            .map(Self)
            .ok_or_else(|| InvalidOption::new("lease", "100 to 86400000 whole milliseconds"))
    }

    /// The lease as a duration.
    pub const fn get(self) -> Duration {
        self.0
    }

    /// What is taken off for clocks that run at different speeds, and for reading them in whole milliseconds: 1 % + 2 ms.
    pub(crate) fn drift(self) -> Duration {
        self.0 / 100 + Duration::from_millis(2)
    }

    /// How much of the lease must be left when a grant arrives; with less it is given back.
    pub(crate) fn validity_min(self) -> Duration {
        self.0 / 2
    }

    /// How long after the sending of the last confirmed request the next renewal is due: Redisson's third.
    pub(crate) fn renewal_interval(self) -> Duration {
        self.0 / 3
    }
}

/// How long one is ready to wait for a lock.
///
/// From 1 ms to 24 h in whole milliseconds; 30 s unless set. To not wait at all, try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WaitTime(Duration);

impl WaitTime {
    /// The wait of an acquisition that names none.
    pub const DEFAULT: Self = Self(Duration::from_secs(30));

    /// Checks a wait.
    ///
    /// # Errors
    /// [`InvalidOption`] outside of the range above.
    pub fn new(time: Duration) -> Result<Self, InvalidOption> {
        let range = Duration::from_millis(1)..=DAY;
        whole(time, range)
            .map(Self)
            .ok_or_else(|| InvalidOption::new("wait", "1 to 86400000 whole milliseconds"))
    }

    /// The wait as a duration.
    pub const fn get(self) -> Duration {
        self.0
    }
}

/// How long one attempt of one request may take.
///
/// From 50 ms to 60 s in whole milliseconds; 5 s unless set, and never more than a third of the lease it is about. Shorter
/// finds a hanging gateway sooner; longer lets a slow one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttemptTime(Duration);

impl AttemptTime {
    /// The time for one attempt unless set.
    pub const DEFAULT: Self = Self(Duration::from_secs(5));

    /// Checks the time for one attempt.
    ///
    /// # Errors
    /// [`InvalidOption`] outside of the range above.
    pub fn new(time: Duration) -> Result<Self, InvalidOption> {
        let range = Duration::from_millis(50)..=Duration::from_secs(60);
        whole(time, range)
            .map(Self)
            .ok_or_else(|| InvalidOption::new("requestTimeout", "50 to 60000 whole milliseconds"))
    }

    /// The time for one attempt at a request about a hold of this lease.
    pub(crate) fn within(self, lease: LeaseTime) -> Duration {
        self.0.min(lease.renewal_interval())
    }

    /// The time for one attempt at a request that is not about a lease.
    pub(crate) const fn get(self) -> Duration {
        self.0
    }
}

/// How many requests one acquisition may spend.
///
/// From 3 to 10 000; 40 unless set for a timed wait, without limit for one that lasts until it is cancelled. A smaller one
/// stretches the pauses between tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestBudget(u32);

impl RequestBudget {
    /// The budget of a timed wait. Leaves a Worker on the free plan (50 requests) some for its own work.
    pub const DEFAULT: Self = Self(40);

    /// Checks a budget.
    ///
    /// # Errors
    /// [`InvalidOption`] outside of the range above.
    pub fn new(requests: u32) -> Result<Self, InvalidOption> {
        if (3..=10_000).contains(&requests) {
            Ok(Self(requests))
        } else {
            Err(InvalidOption::new("maxRequests", "3 to 10000"))
        }
    }

    /// The number of requests.
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// How long an acquisition is ready to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Patience {
    /// Not at all: one request decides.
    Once,
    /// At most so long.
    UpTo(WaitTime),
    /// Until it is cancelled.
    UntilCancelled,
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn whole(time: Duration, range: core::ops::RangeInclusive<Duration>) -> Option<Duration> {
    (range.contains(&time) && time.subsec_nanos().is_multiple_of(1_000_000)).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_range_holds_at_both_ends_and_refuses_fractions() {
        assert!(LeaseTime::new(ms(100)).is_ok() && LeaseTime::new(ms(86_400_000)).is_ok());
        assert!(WaitTime::new(ms(1)).is_ok() && AttemptTime::new(ms(60_000)).is_ok());
        for bad in [ms(0), ms(99), ms(86_400_001), Duration::MAX, Duration::from_micros(100_500)] {
            assert_eq!(LeaseTime::new(bad).unwrap_err().option(), "lease", "{bad:?}");
        }
        assert!(WaitTime::new(ms(0)).is_err() && WaitTime::new(Duration::from_nanos(1)).is_err());
        assert!(RequestBudget::new(2).is_err() && RequestBudget::new(10_001).is_err());
    }

    #[test]
    fn an_attempt_never_outlasts_a_third_of_the_lease() {
        let lease = LeaseTime::new(ms(300)).unwrap();
        assert_eq!(AttemptTime::DEFAULT.within(lease), ms(100));
        assert_eq!(AttemptTime::DEFAULT.within(LeaseTime::DEFAULT), ms(5_000));
    }
}
