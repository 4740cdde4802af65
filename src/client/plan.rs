//! What a lock takes: one part or several, how many of them make a hold, and for how long.

use alloc::vec::Vec;
use core::time::Duration;

use super::options::HoldTime;
use crate::machine::Pacing;
use crate::protocol::calls::{LockCalls, Target};
use crate::timing::LeaseTime;

/// What is taken, and by which rule.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The only member; of several, the first in the order that everybody keeps to.
    pub(super) first: Target,
    pub(super) rule: Rule,
    /// How a wait for the only part is paced.
    pub(super) pacing: Pacing,
    /// The longest lease that Redis is asked for at a time: a longer one is renewed until its end.
    pub(super) lease_max: Option<LeaseTime>,
}

/// How many members make a hold.
#[derive(Clone, Debug)]
pub(super) enum Rule {
    /// There is only one.
    One,
    /// All of these.
    All(Vec<Share>),
    /// More than half of these. Each stands with the place of its client.
    Majority(Vec<(usize, LockCalls)>),
}

/// One of several that are taken, or what one script takes of them.
#[derive(Clone, Debug)]
pub(super) struct Share {
    /// The place of its client.
    pub(super) place: usize,
    pub(super) target: Target,
    /// How a wait for it is paced.
    pub(super) pacing: Pacing,
}

/// How long a hold is to last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    /// What Redis is asked for.
    pub(super) lease: LeaseTime,
    pub(super) renews: bool,
    /// When renewing is to end, counted from the request.
    pub(super) lasts: Option<Duration>,
}

impl Plan {
    /// One part.
    pub(super) const fn one(target: Target, pacing: Pacing) -> Self {
        Self { first: target, rule: Rule::One, pacing, lease_max: None }
    }

    /// What the caller's wish comes to for this kind.
    pub(super) fn term(&self, hold: HoldTime) -> Term {
        let capped = |lease: LeaseTime| self.lease_max.map_or(lease, |most| lease.min(most));
        match hold {
            HoldTime::AsUsual if self.first.holds_permits() => {
                Term { lease: LeaseTime::ENDLESS, renews: false, lasts: None }
            }
            HoldTime::AsUsual | HoldTime::Renewed => {
                Term { lease: capped(LeaseTime::DEFAULT), renews: true, lasts: None }
            }
            HoldTime::Fixed(whole) => {
                let lease = capped(whole);
                let renews = lease < whole;
                Term { lease, renews, lasts: renews.then_some(whole.get()) }
            }
        }
    }
}
