//! The specification of a lock of any kind.

use alloc::vec::Vec;

use super::plan::{Plan, Rule, Share};
use super::{EndpointId, Engine, OwnerKey, Side};
use crate::error::InvalidOption;
use crate::name::LockName;
use crate::protocol::calls::{LockCalls, Target};
use crate::timing::{LeaseTime, RejoinDelay};

/// The largest number of members.
const MEMBERS_MAX: usize = 100;

/// A lock of any kind, or a number of permits.
#[derive(Clone, Debug)]
pub struct LockSpec {
    pub(super) plan: Plan,
    pub(super) key: OwnerKey,
    /// Whether an owner that holds the lock may acquire it again.
    pub(super) reenters: bool,
}

impl Engine {
    /// Creates the specification of one lock. Each request to Redis has at most the lease
    /// `lease_max`; `side` is the part of the name that the lock takes.
    pub fn one_lock(
        &self,
        share: Share,
        lease_max: Option<LeaseTime>,
        side: Side,
        reenters: bool,
    ) -> LockSpec {
        let names = [(self.gateway_id(share.endpoint).into(), share.target.name().clone())].into();
        let plan = Plan { first: share.target.clone(), rule: Rule::One(share), lease_max };
        LockSpec { plan, key: OwnerKey { names, side }, reenters }
    }

    /// Creates the specification of one lock that holds all of `locks` or none.
    ///
    /// # Errors
    /// [`InvalidOption`] unless there are 1 to 100 locks, without redLocks and permits, and without
    /// two locks of one name and different kinds.
    pub fn multi_lock(
        &self,
        locks: impl IntoIterator<Item = LockSpec>,
    ) -> Result<LockSpec, InvalidOption> {
        let mut members: Vec<Share> = Vec::new();
        let mut lease_max = None;
        for LockSpec { plan, .. } in locks {
            let own = match plan.rule {
                Rule::One(share) => [share].into(),
                Rule::All(members) => members,
                Rule::Majority(_) => return Err(no("locks that are no redLock")),
            };
            lease_max = shorter(lease_max, plan.lease_max);
            for share in own {
                if share.target.holds_permits() {
                    return Err(no("locks, not permits"));
                }
                let is_it = |other: &Share| {
                    other.endpoint == share.endpoint && other.target == share.target
                };
                if !members.iter().any(is_it) {
                    members.push(share);
                }
            }
        }
        if members.len() > MEMBERS_MAX {
            return Err(no("at most 100 locks"));
        }
        if clash(&members) {
            return Err(no("no two locks of one name and different kinds"));
        }
        let ordered = self.parts(&members, false);
        let first = ordered.first().ok_or_else(|| no("at least one lock"))?.target.clone();
        let key = self.key_of(&mut ordered.iter().map(|part| (part.endpoint, &part.target)));
        Ok(LockSpec {
            plan: Plan { first, rule: Rule::All(members), lease_max },
            key,
            reenters: true,
        })
    }

    /// Creates the specification of a lock that a majority of several Redis nodes grants.
    ///
    /// # Errors
    /// [`InvalidOption`] unless there are 3, 5, 7 or 9 plain or fenced locks, each of a different
    /// gateway.
    pub fn red_lock(
        &self,
        locks: impl IntoIterator<Item = LockSpec>,
        rejoin_delay: Option<RejoinDelay>,
    ) -> Result<LockSpec, InvalidOption> {
        let mut members = Vec::new();
        for LockSpec { plan, .. } in locks {
            let Rule::One(Share { endpoint, target: Target::Lock(calls), .. }) = plan.rule else {
                return Err(no("plain or fenced locks"));
            };
            let calls = match rejoin_delay {
                Some(delay) => calls.not_before(delay),
                None => calls,
            };
            members.push((endpoint, calls));
        }
        let ids: Vec<&str> =
            members.iter().map(|(endpoint, _)| self.gateway_id(*endpoint)).collect();
        let distinct =
            (0..ids.len()).all(|one| (0..one).all(|other| ids.get(one) != ids.get(other)));
        if !matches!(members.len(), 3 | 5 | 7 | 9) || !distinct {
            return Err(no("3, 5, 7 or 9 locks, each of a gateway of its own"));
        }
        let targets: Vec<(EndpointId, Target)> = targets(&members).collect();
        let (_, first) = targets.first().ok_or_else(|| no("at least one lock"))?;
        let lease_max = rejoin_delay.map(RejoinDelay::lease_max);
        let key = self.key_of(&mut targets.iter().map(|(endpoint, target)| (*endpoint, target)));
        let plan = Plan { first: first.clone(), rule: Rule::Majority(members), lease_max };
        Ok(LockSpec { plan, key, reenters: true })
    }

    fn key_of(&self, targets: &mut dyn Iterator<Item = (EndpointId, &Target)>) -> OwnerKey {
        let mut names = Vec::new();
        for (endpoint, target) in targets {
            let id = self.gateway_id(endpoint);
            names.extend(target.names().into_iter().map(|name| (id.into(), name.clone())));
        }
        OwnerKey { names, side: Side::Whole }
    }

    pub(super) fn gateway_id(&self, endpoint: EndpointId) -> &str {
        self.endpoint(endpoint).map_or("", |endpoint| endpoint.gateway.id())
    }
}

impl LockSpec {
    /// The name; for several locks, that of the first in the order that all clients use.
    pub const fn name(&self) -> &LockName {
        self.plan.first.name()
    }

    /// The target of the first member.
    pub const fn first(&self) -> &Target {
        &self.plan.first
    }

    /// The names of all members.
    pub fn names(&self) -> impl Iterator<Item = &LockName> {
        self.key.names.iter().map(|(_, name)| name)
    }

    /// The only member; `None` for a lock of several members.
    pub const fn only(&self) -> Option<&Share> {
        match &self.plan.rule {
            Rule::One(share) => Some(share),
            Rule::All(_) | Rule::Majority(_) => None,
        }
    }

    /// The gateways of the members.
    pub fn endpoints(&self) -> Vec<EndpointId> {
        let mut endpoints = Vec::new();
        let all: Vec<EndpointId> = match &self.plan.rule {
            Rule::One(share) => [share.endpoint].into(),
            Rule::All(members) => members.iter().map(|share| share.endpoint).collect(),
            Rule::Majority(members) => members.iter().map(|(endpoint, _)| *endpoint).collect(),
        };
        for endpoint in all {
            if !endpoints.contains(&endpoint) {
                endpoints.push(endpoint);
            }
        }
        endpoints
    }

    /// Returns the same lock for a client whose gateways have other indices.
    #[must_use]
    pub fn moved(mut self, mut to: impl FnMut(EndpointId) -> EndpointId) -> Self {
        match &mut self.plan.rule {
            Rule::One(share) => share.endpoint = to(share.endpoint),
            Rule::All(members) => {
                members.iter_mut().for_each(|share| share.endpoint = to(share.endpoint));
            }
            Rule::Majority(members) => {
                members.iter_mut().for_each(|(endpoint, _)| *endpoint = to(*endpoint));
            }
        }
        self
    }
}

pub(super) fn targets(
    members: &[(EndpointId, LockCalls)],
) -> impl Iterator<Item = (EndpointId, Target)> {
    members.iter().map(|(endpoint, calls)| (*endpoint, Target::Lock(calls.clone())))
}

fn no(accepted: &str) -> InvalidOption {
    InvalidOption::new("locks", accepted)
}

fn shorter(one: Option<LeaseTime>, other: Option<LeaseTime>) -> Option<LeaseTime> {
    one.into_iter().chain(other).min()
}

/// Whether two different members have the same name on one gateway. Groups may: their values
/// differ.
fn clash(members: &[Share]) -> bool {
    members.iter().enumerate().any(|(at, Share { endpoint, target, .. })| {
        members.iter().skip(at + 1).any(
            |Share { endpoint: other_endpoint, target: other, .. }| {
                let both_groups = matches!((target, other), (Target::Group(_), Target::Group(_)));
                endpoint == other_endpoint && target.name() == other.name() && !both_groups
            },
        )
    })
}
