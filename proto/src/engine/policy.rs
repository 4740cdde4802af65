//! The options of an acquisition, and the lease policy that follows from them.

use core::time::Duration;

use super::LockSpec;
use crate::machine::AcquireParams;
use crate::timing::{AttemptTime, LeaseTime, Replicas, RequestBudget, WaitPolicy, WaitTime};

/// How long a hold lasts.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeasePolicy {
    /// The lease of each request to Redis.
    pub(super) lease: LeaseTime,
    /// The lease of the acquisition. If it is longer than that of a request, the hold is renewed
    /// until this time after the sending of the granted request.
    pub(super) whole: LeaseTime,
    pub(super) renews: bool,
    /// The longest lease of one request to Redis.
    pub(super) lease_max: Option<LeaseTime>,
}

impl LockSpec {
    /// Returns the lease policy of a hold of this lock for the caller's option `hold`.
    pub(super) fn lease_policy(&self, hold: HoldTime) -> LeasePolicy {
        let lease_max = self.lease_max;
        let capped = |lease: LeaseTime| lease_max.map_or(lease, |max| lease.min(max));
        match hold {
            HoldTime::AsUsual if self.first.holds_permits() => {
                let lease = LeaseTime::ENDLESS;
                LeasePolicy { lease, whole: lease, renews: false, lease_max }
            }
            HoldTime::AsUsual | HoldTime::Renewed => {
                let lease = capped(LeaseTime::DEFAULT);
                LeasePolicy { lease, whole: lease, renews: true, lease_max }
            }
            HoldTime::Fixed(whole) => {
                let lease = capped(whole);
                LeasePolicy { lease, whole, renews: lease < whole, lease_max }
            }
        }
    }
}

/// How long a hold lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldTime {
    /// The default of the object: renewed for locks, without an end for permits.
    AsUsual,
    /// As long as the lease is kept.
    Renewed,
    /// Exactly this time.
    Fixed(LeaseTime),
}

/// The options of an acquisition.
#[derive(Clone, Copy, Debug)]
pub struct AcquirePolicy {
    pub(super) hold: HoldTime,
    pub(super) wait: WaitPolicy,
    pub(super) budget: Option<RequestBudget>,
    pub(super) replicas: Option<Replicas>,
}

impl AcquirePolicy {
    /// Creates the options without replicas. A timed wait without a budget has
    /// [`RequestBudget::DEFAULT`].
    pub fn new(hold: HoldTime, wait: WaitPolicy, budget: Option<RequestBudget>) -> Self {
        let budget = match wait {
            WaitPolicy::UpTo(_) => budget.or(Some(RequestBudget::DEFAULT)),
            WaitPolicy::Once | WaitPolicy::UntilCancelled => budget,
        };
        Self { hold, wait, budget, replicas: None }
    }

    /// Requires that `replicas` replicas have a grant before it is accepted.
    #[must_use]
    pub const fn with_replicas(mut self, replicas: Option<Replicas>) -> Self {
        self.replicas = replicas;
        self
    }

    /// Returns the parameters of an acquisition of `targets`.
    pub(super) const fn params<T>(
        self,
        targets: T,
        lease: LeaseTime,
        attempt_time: AttemptTime,
        is_contended: bool,
    ) -> AcquireParams<T> {
        let Self { wait, budget, replicas, .. } = self;
        AcquireParams { targets, lease, wait, budget, attempt_time, replicas, is_contended }
    }

    /// Shortens a timed wait to `left`. A rest below 1 ms leaves a single try.
    pub(super) fn with_wait_left(self, left: Option<Duration>) -> Self {
        let wait = match (self.wait, left) {
            (WaitPolicy::UpTo(_), Some(left)) => {
                WaitTime::new(left).map_or(WaitPolicy::Once, WaitPolicy::UpTo)
            }
            (wait, _) => wait,
        };
        Self { wait, ..self }
    }
}
