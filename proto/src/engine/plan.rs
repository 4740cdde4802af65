//! The members of a lock, how many of them make a hold, and how long a hold lasts.

use alloc::vec::Vec;
use core::time::Duration;

use super::EndpointId;
use crate::machine::{AcquireParams, Pacing};
use crate::protocol::calls::{LockCalls, Target};
use crate::timing::{AttemptTime, LeaseTime, Replicas, RequestBudget, WaitPolicy, WaitTime};

/// The members of a lock, and how many of them make a hold.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The only member, or the first of several in the order that all clients use.
    pub(super) first: Target,
    pub(super) rule: Rule,
    /// The longest lease of one request to Redis: a longer hold is renewed until its end.
    pub(super) lease_max: Option<LeaseTime>,
}

/// How many members make a hold.
#[derive(Clone, Debug)]
pub(super) enum Rule {
    /// The only member.
    One(Share),
    /// All members.
    All(Vec<Share>),
    /// More than half of the members, each with its gateway.
    Majority(Vec<(EndpointId, LockCalls)>),
}

/// One of several members, or a part that combines members for one script.
#[derive(Clone, Debug)]
pub struct Share {
    /// Its gateway.
    pub endpoint: EndpointId,
    /// The lock or permits to acquire there.
    pub target: Target,
    /// The pauses between retries while it is busy.
    pub pacing: Pacing,
}

/// How long a hold lasts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    /// The lease of each request to Redis.
    pub(super) lease: LeaseTime,
    pub(super) renews: bool,
    /// How long the hold is renewed, from the sending of the granted request; `None` for no limit,
    /// or without renewals.
    pub(super) lasts: Option<Duration>,
    /// The longest lease of one request to Redis.
    pub(super) lease_max: Option<LeaseTime>,
}

impl Plan {
    /// Returns the lease policy that the caller's `hold` results in for this kind of lock.
    pub(super) fn term(&self, hold: HoldTime) -> Term {
        let lease_max = self.lease_max;
        let capped = |lease: LeaseTime| lease_max.map_or(lease, |max| lease.min(max));
        match hold {
            HoldTime::AsUsual if self.first.holds_permits() => {
                Term { lease: LeaseTime::ENDLESS, renews: false, lasts: None, lease_max }
            }
            HoldTime::AsUsual | HoldTime::Renewed => {
                Term { lease: capped(LeaseTime::DEFAULT), renews: true, lasts: None, lease_max }
            }
            HoldTime::Fixed(whole) => {
                let lease = capped(whole);
                let renews = lease < whole;
                Term { lease, renews, lasts: renews.then_some(whole.get()), lease_max }
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
pub struct Terms {
    pub(super) hold: HoldTime,
    pub(super) wait: WaitPolicy,
    pub(super) budget: Option<RequestBudget>,
    pub(super) replicas: Option<Replicas>,
}

impl Terms {
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
    pub const fn replicated(mut self, replicas: Option<Replicas>) -> Self {
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
    pub(super) fn with_wait(self, left: Option<Duration>) -> Self {
        let wait = match (self.wait, left) {
            (WaitPolicy::UpTo(_), Some(left)) => {
                WaitTime::new(left).map_or(WaitPolicy::Once, WaitPolicy::UpTo)
            }
            (wait, _) => wait,
        };
        Self { wait, ..self }
    }
}
