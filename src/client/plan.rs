//! The specification of a lock: its members, its quorum and its lease policy.

use alloc::vec::Vec;
use core::time::Duration;

use super::options::HoldTime;
use edgelatch_proto::machine::Pacing;
use edgelatch_proto::protocol::calls::{LockCalls, Target};
use edgelatch_proto::timing::LeaseTime;

/// The members of a lock, and how many of them make a hold.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The only member, or the first of several in the order that all clients use.
    pub(super) first: Target,
    pub(super) rule: Rule,
    /// The pauses between retries, if there is one member.
    pub(super) pacing: Pacing,
    /// The longest lease of one request to Redis: a longer hold is renewed until its end.
    pub(super) lease_max: Option<LeaseTime>,
}

/// How many members make a hold.
#[derive(Clone, Debug)]
pub(super) enum Rule {
    /// The only member.
    One,
    /// All members.
    All(Vec<Share>),
    /// More than half of the members, each with the place of its client.
    Majority(Vec<(usize, LockCalls)>),
}

/// One of several members, or a part that combines members for one script.
#[derive(Clone, Debug)]
pub(super) struct Share {
    /// The place of its client in the lock's list of clients.
    pub(super) place: usize,
    pub(super) target: Target,
    /// The pauses between retries while it is busy.
    pub(super) pacing: Pacing,
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
}

impl Plan {
    /// Creates the specification of a lock with one member.
    pub(super) const fn one(target: Target, pacing: Pacing) -> Self {
        Self { first: target, rule: Rule::One, pacing, lease_max: None }
    }

    /// Returns the lease policy that the caller's `hold` results in for this kind of lock.
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
