//! Durations with a meaning: one that exists is valid. Defaults and relations stand here and nowhere else.

use core::time::Duration;

use crate::error::InvalidOption;

/// How far the bound of a request reaches beyond the wait that it belongs to: so late may a copy still be done. Every id is remembered
/// in Redis for at least so long.
pub(crate) const HORIZON: Duration = Duration::from_secs(90);

/// The same for an id whose first request was sent before the client had seen Redis' clock (rule C3 of the protocol).
pub(crate) const FIRST_HORIZON: Duration = Duration::from_secs(600);

/// The longest time for which one id is polled with; a longer wait goes on under a new one (rule C8).
pub(crate) const ROUND_MAX: Duration = Duration::from_secs(600);

/// For how long a name's last fencing token is kept after a grant. Losing it is harmless: tokens follow the clock.
pub(crate) const TOKEN_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// For how long beyond its bound the answer of a request that is done once is kept: so long can be told what became of it.
pub(crate) const ONCE_WINDOW: Duration = Duration::from_secs(60);

/// How long a hold lasts if nobody renews it.
///
/// From 100 ms to 24 h in whole milliseconds; 30 s unless set. Longer means fewer renewals and a longer wait for
/// everybody else when a holder dies; shorter means the reverse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseTime(Duration);

impl LeaseTime {
    /// Redisson's lease for an acquisition that names none.
    pub const DEFAULT: Self = Self(Duration::from_secs(30));

    /// A hold that lasts until it is released: what Redisson's semaphores give. For permits only; nothing renews it, and those of
    /// a program that dies come back only by force.
    pub const ENDLESS: Self = Self(Duration::from_secs(100 * 365 * 24 * 60 * 60));

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

    /// Whether it is the one without an end.
    pub fn is_endless(self) -> bool {
        self == Self::ENDLESS
    }

    /// What is taken off for clocks that run at different speeds, and for reading them in whole milliseconds: 1 % + 2 ms.
    pub(crate) fn drift(self) -> Duration {
        drift(self.0)
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

/// For how long a writer that was refused keeps new readers out, unless it asks again.
///
/// From 100 ms to 5 s in whole milliseconds; 5 s unless set. It has to outlast the pause between two tries, which is 2 s at
/// the most; shorter lets readers in sooner when a writer that waited has died.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WantTime(Duration);

impl WantTime {
    /// The time unless set.
    pub const DEFAULT: Self = Self(Duration::from_secs(5));

    /// Checks the time.
    ///
    /// # Errors
    /// [`InvalidOption`] outside of the range above.
    pub fn new(time: Duration) -> Result<Self, InvalidOption> {
        let range = Duration::from_millis(100)..=Duration::from_secs(5);
        whole(time, range)
            .map(Self)
            .ok_or_else(|| InvalidOption::new("preferWriters", "100 to 5000 whole milliseconds"))
    }

    /// The time as a duration.
    pub const fn get(self) -> Duration {
        self.0
    }
}

/// For how long a Redis that has just started does not vote for a redLock, since it may have forgotten holds.
///
/// From 1 s to 24 h in whole milliseconds; none unless set. It also is the longest lease that Redis is then asked for. Longer
/// costs votes after a restart, shorter costs renewals. The nodes' clocks may differ by less than it without tokens that fall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RejoinDelay(Duration);

impl RejoinDelay {
    /// Checks a delay.
    ///
    /// # Errors
    /// [`InvalidOption`] outside of the range above.
    pub fn new(time: Duration) -> Result<Self, InvalidOption> {
        let range = Duration::from_secs(1)..=DAY;
        whole(time, range)
            .map(Self)
            .ok_or_else(|| InvalidOption::new("rejoinDelay", "1000 to 86400000 whole milliseconds"))
    }

    /// The delay as a duration.
    pub const fn get(self) -> Duration {
        self.0
    }

    /// The longest lease that is over when the delay is.
    pub(crate) const fn lease_max(self) -> LeaseTime {
        LeaseTime(self.0)
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

/// How many replicas must have a grant before it counts.
///
/// From 1 to 8; none unless set. Each acquisition then takes a round to the replicas longer, and while fewer of them are there,
/// nothing is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Replicas(u8);

impl Replicas {
    /// Checks a number of replicas.
    ///
    /// # Errors
    /// [`InvalidOption`] outside of the range above.
    pub fn new(replicas: u8) -> Result<Self, InvalidOption> {
        if (1..=8).contains(&replicas) {
            Ok(Self(replicas))
        } else {
            Err(InvalidOption::new("replicas", "1 to 8"))
        }
    }

    /// The number of replicas.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// For how long Redis waits for them: half of an attempt, so that its answer still comes in time, and a second at most.
    pub(crate) fn within(attempt: Duration) -> Duration {
        (attempt / 2).min(Duration::from_secs(1))
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

/// How far the clocks of Java's machines may be off Redis' own: for a permit-expirable semaphore that is shared with Redisson,
/// which reads the clock of its machine to tell whether a permit has run out.
///
/// From 0 to 60 s in whole milliseconds; 1 s unless set. Nobody takes a permit that still is held while they are off by less;
/// permits of those who die come back later by up to twice as much. 0 where no Java shares the semaphore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerSkew(Duration);

impl PeerSkew {
    /// The allowance unless set.
    pub const DEFAULT: Self = Self(Duration::from_secs(1));

    /// Checks an allowance.
    ///
    /// # Errors
    /// [`InvalidOption`] outside of the range above.
    pub fn new(time: Duration) -> Result<Self, InvalidOption> {
        let range = Duration::ZERO..=Duration::from_secs(60);
        whole(time, range)
            .map(Self)
            .ok_or_else(|| InvalidOption::new("peerSkew", "0 to 60000 whole milliseconds"))
    }

    /// The allowance as a duration.
    pub const fn get(self) -> Duration {
        self.0
    }
}

/// How long a semaphore lasts that is set for a time.
///
/// From 1 ms to 10 years in whole milliseconds; without one it lasts for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LifeTime(Duration);

impl LifeTime {
    /// Checks a time.
    ///
    /// # Errors
    /// [`InvalidOption`] outside of the range above.
    pub fn new(time: Duration) -> Result<Self, InvalidOption> {
        let range = Duration::from_millis(1)..=DAY * 3650;
        whole(time, range)
            .map(Self)
            .ok_or_else(|| InvalidOption::new("life", "1 to 315360000000 whole milliseconds"))
    }

    /// The time as a duration.
    pub const fn get(self) -> Duration {
        self.0
    }
}

/// For how long a guard remembers the newest token that it has seen, counted from the last write.
///
/// From 1 min to 10 years in whole milliseconds, or for ever; 24 h unless set. No lease may live longer than that: a write with
/// a token that is older than the memory is refused where nothing newer is remembered. All who write to one key have to agree
/// on it. Only with one that lasts for ever may tokens be other numbers than those of our locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GuardMemory(Duration);

impl GuardMemory {
    /// The memory unless set.
    pub const DEFAULT: Self = Self(DAY);

    /// The shortest memory: one minute.
    pub(crate) const MIN: Duration = Duration::from_secs(60);

    /// Nothing is ever forgotten, and each key that was guarded leaves a small one behind.
    pub const FOR_EVER: Self = Self(Duration::ZERO);

    /// Checks a memory.
    ///
    /// # Errors
    /// [`InvalidOption`] outside of the range above.
    pub fn new(time: Duration) -> Result<Self, InvalidOption> {
        let range = Self::MIN..=DAY * 3650;
        whole(time, range)
            .map(Self)
            .ok_or_else(|| InvalidOption::new("memory", "60000 to 315360000000 whole milliseconds"))
    }

    /// The memory as a duration; zero is for ever.
    pub(crate) const fn get(self) -> Duration {
        self.0
    }
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// By how much a clock may be wrong that measures this time: 1 %, for clocks that run at different speeds, and 2 ms, for reading
/// them in whole milliseconds.
pub(crate) fn drift(time: Duration) -> Duration {
    time / 100 + Duration::from_millis(2)
}

fn whole(time: Duration, range: core::ops::RangeInclusive<Duration>) -> Option<Duration> {
    (range.contains(&time) && time.subsec_nanos().is_multiple_of(1_000_000)).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// S30.
    #[test]
    fn a_range_holds_at_both_ends_and_refuses_fractions() {
        assert!(LeaseTime::new(ms(100)).is_ok() && LeaseTime::new(ms(86_400_000)).is_ok());
        assert!(WaitTime::new(ms(1)).is_ok() && AttemptTime::new(ms(60_000)).is_ok());
        for bad in [ms(0), ms(99), ms(86_400_001), Duration::MAX, Duration::from_micros(100_500)] {
            assert_eq!(LeaseTime::new(bad).unwrap_err().option(), "lease", "{bad:?}");
        }
        assert!(WaitTime::new(ms(0)).is_err() && WaitTime::new(Duration::from_nanos(1)).is_err());
        assert!(WantTime::new(ms(5_000)).is_ok() && WantTime::new(ms(5_001)).is_err());
        assert!(PeerSkew::new(ms(0)).is_ok() && PeerSkew::new(ms(60_001)).is_err());
        assert!(LifeTime::new(ms(0)).is_err() && LifeTime::new(DAY * 3650).is_ok());
        assert!(LeaseTime::ENDLESS.is_endless() && !LeaseTime::DEFAULT.is_endless());
        assert!(GuardMemory::new(ms(60_000)).is_ok() && GuardMemory::new(ms(0)).is_err());
        assert!(RequestBudget::new(2).is_err() && RequestBudget::new(10_001).is_err());
        assert!(Replicas::new(0).is_err() && Replicas::new(8).is_ok() && Replicas::new(9).is_err());
    }

    /// S19.
    #[test]
    fn an_attempt_never_outlasts_a_third_of_the_lease() {
        let lease = LeaseTime::new(ms(300)).unwrap();
        assert_eq!(AttemptTime::DEFAULT.within(lease), ms(100));
        assert_eq!(AttemptTime::DEFAULT.within(LeaseTime::DEFAULT), ms(5_000));
    }
}
