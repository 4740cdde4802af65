//! Durations with a meaning, their defaults and ranges. A value that exists is valid.

use core::time::Duration;

use crate::error::InvalidOption;

/// How far a request's bound reaches beyond its wait. Redis remembers every id at least this long.
pub const HORIZON: Duration = Duration::from_secs(90);

/// How long Redis remembers a request whose client had not seen Redis' clock (rule C3 of the
/// protocol).
pub(crate) const FIRST_HORIZON: Duration = Duration::from_secs(600);

/// The longest time that a wait uses one owner field; then it takes a new one (rule C8).
pub(crate) const ROUND_MAX: Duration = Duration::from_secs(600);

/// How long a name's last token is kept. Losing it is harmless: tokens follow the clock.
pub(crate) const TOKEN_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// How long beyond its bound Redis keeps the result of an idempotent call.
pub(crate) const ONCE_WINDOW: Duration = Duration::from_secs(60);

/// The length of a hold without a renewal.
///
/// 100 ms to 24 h in whole milliseconds; 30 s by default. A longer lease costs fewer renewals, and
/// a longer wait after a holder has died.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseTime(Duration);

impl LeaseTime {
    /// The default: Redisson's lease for an acquisition without one.
    pub const DEFAULT: Self = Self(Duration::from_secs(30));

    /// A hold that lasts until its release, as in Redisson's semaphores. For permits only; it is
    /// never renewed, and only a forced release returns the permits of a program that died.
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

    /// Whether this is a lease without an end.
    pub fn is_endless(self) -> bool {
        self == Self::ENDLESS
    }

    /// The allowance for clocks of different speeds and for their resolution: 1 % + 2 ms.
    pub(crate) fn drift(self) -> Duration {
        drift(self.0)
    }

    /// The least rest of the lease with which a grant is accepted; with less it is given back.
    pub(crate) fn validity_min(self) -> Duration {
        self.0 / 2
    }

    /// When a renewal is due after the sending of the last confirmed request: a third of the lease.
    pub(crate) fn renewal_interval(self) -> Duration {
        self.0 / 3
    }
}

/// The longest time to wait for a lock.
///
/// 1 ms to 24 h in whole milliseconds; 30 s by default. Use a try to not wait at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WaitTime(Duration);

impl WaitTime {
    /// The default.
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

/// The longest time for one attempt of a request.
///
/// 50 ms to 60 s in whole milliseconds; 5 s by default, and never more than a third of the lease. A
/// shorter time detects a hanging gateway sooner; a longer one tolerates a slow gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttemptTime(Duration);

impl AttemptTime {
    /// The default.
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

    /// The time for one attempt of a request about a hold with this lease.
    pub(crate) fn within(self, lease: LeaseTime) -> Duration {
        self.0.min(lease.renewal_interval())
    }

    /// The time for one attempt of a request without a lease.
    pub(crate) const fn get(self) -> Duration {
        self.0
    }
}

/// How long a refused writer blocks new readers after its last try.
///
/// 100 ms to 5 s in whole milliseconds; 5 s by default. It must be longer than the pause between
/// two tries, which is at most 2 s. A shorter time admits readers sooner after a waiting writer has
/// died.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WantTime(Duration);

impl WantTime {
    /// The default.
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

/// How long a restarted Redis does not vote for a redLock, since it may have forgotten holds.
///
/// 1 s to 24 h in whole milliseconds; none by default. It also limits the lease of each request to
/// Redis. A longer delay costs votes after a restart, a shorter one more renewals. Tokens keep
/// rising while the nodes' clocks differ by less than it.
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

    /// The longest lease that has ended when the delay has.
    pub const fn lease_max(self) -> LeaseTime {
        LeaseTime(self.0)
    }
}

/// The largest number of requests of one acquisition.
///
/// 3 to 10 000; 40 by default for a wait with an end, else unlimited. A smaller budget lengthens
/// the pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestBudget(u32);

impl RequestBudget {
    /// The default of a wait with an end; leaves a Worker on the free plan some of its 50 requests.
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

/// The number of replicas that must have a grant before it counts.
///
/// 1 to 8; none by default. Costs a round trip to the replicas, and needs that many of them.
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

    /// How long Redis waits for the replicas: half of an attempt, and at most a second.
    pub(crate) fn within(attempt: Duration) -> Duration {
        (attempt / 2).min(Duration::from_secs(1))
    }
}

/// How long an acquisition waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitPolicy {
    /// It does not wait: one request decides.
    Once,
    /// It waits at most this long.
    UpTo(WaitTime),
    /// It waits until it is cancelled.
    UntilCancelled,
}

/// The tolerated difference between the clocks of Java's machines and that of Redis: Redisson
/// decides by its machine's clock whether a permit of a shared permit-expirable semaphore has
/// expired.
///
/// 0 to 60 s in whole milliseconds; 1 s by default. No client acquires a permit that is still held
/// while the clocks differ by less. Permits of dead holders come back up to twice as much later.
/// Use 0 if no Java program shares the semaphore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerSkew(Duration);

impl PeerSkew {
    /// The default.
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

/// The life of a semaphore.
///
/// 1 ms to 10 years in whole milliseconds; by default a semaphore lasts for ever.
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

/// How long a guard remembers the newest token that it has seen, from the last write on.
///
/// 1 min to 10 years in whole milliseconds, or for ever; 24 h by default. No lease may live longer:
/// if the guard remembers no token, it rejects a token that is older than this time. All writers of
/// a key must use the same memory. Tokens that are not from this crate's locks need a memory
/// without an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GuardMemory(Duration);

impl GuardMemory {
    /// The default.
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

    /// The memory as a duration; zero means for ever.
    pub(crate) const fn get(self) -> Duration {
        self.0
    }
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The largest error of a clock over this time: 1 % for its speed, 2 ms for its resolution.
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
