//! The specification of a lock of any kind.

use alloc::vec::Vec;
use core::slice;

use super::{EndpointId, Engine, OwnerKey, Side};
use crate::error::InvalidOption;
use crate::machine::Pacing;
use crate::name::LockName;
use crate::protocol::calls::{LockCalls, Target};
use crate::timing::{LeaseTime, RejoinDelay};

/// The largest number of members.
const MEMBERS_MAX: usize = 100;

/// A lock of any kind, or a number of permits.
#[derive(Clone, Debug)]
pub struct LockSpec {
    /// The only member, or the first of several in the order that all clients use.
    pub(super) first: Target,
    pub(super) members: Members,
    /// The longest lease of one request to Redis: a longer hold is renewed until its end.
    pub(super) lease_max: Option<LeaseTime>,
    pub(super) key: OwnerKey,
    /// Whether an owner that holds the lock may acquire it again.
    pub(super) reenters: bool,
}

/// The members of a lock, and how many of them make a hold.
#[derive(Clone, Debug)]
pub(super) enum Members {
    /// The only member.
    One(MemberSpec),
    /// All members.
    All(Vec<MemberSpec>),
    /// More than half of the members, each with its gateway.
    Majority(Vec<(EndpointId, LockCalls)>),
}

/// One member of a lock, or several of a multi-lock that one script acquires.
#[derive(Clone, Debug)]
pub struct MemberSpec {
    /// Its gateway.
    pub endpoint: EndpointId,
    /// The lock or permits to acquire there.
    pub target: Target,
    /// The pauses between retries while it is busy.
    pub pacing: Pacing,
}

impl Engine {
    /// Creates the specification of one lock. Each request to Redis has at most the lease
    /// `lease_max`; `side` is the part of the name that the lock takes.
    pub fn one_lock(
        &self,
        member: MemberSpec,
        lease_max: Option<LeaseTime>,
        side: Side,
        reenters: bool,
    ) -> LockSpec {
        let name = member.target.name().clone();
        let names = [(self.gateway_id(member.endpoint).into(), name)].into();
        let first = member.target.clone();
        let key = OwnerKey { names, side };
        LockSpec { first, members: Members::One(member), lease_max, key, reenters }
    }

    /// Creates the specification of one lock that holds all of `locks` or none.
    ///
    /// # Errors
    /// [`InvalidOption`] unless there are 1 to 100 locks, without redLocks and permits, and without
    /// two locks of one name and different kinds.
    pub fn multi_lock(&self, locks: &[&LockSpec]) -> Result<LockSpec, InvalidOption> {
        let mut members: Vec<MemberSpec> = Vec::new();
        let mut lease_max = None;
        for lock in locks {
            let own: &[MemberSpec] = match &lock.members {
                Members::One(member) => slice::from_ref(member),
                Members::All(members) => members,
                Members::Majority(_) => return Err(no("locks that are no redLock")),
            };
            lease_max = shorter(lease_max, lock.lease_max);
            for member in own {
                if member.target.holds_permits() {
                    return Err(no("locks, not permits"));
                }
                let is_same = |other: &MemberSpec| {
                    other.endpoint == member.endpoint && other.target == member.target
                };
                if !members.iter().any(is_same) {
                    members.push(member.clone());
                }
            }
        }
        if members.len() > MEMBERS_MAX {
            return Err(no("at most 100 locks"));
        }
        if clash(&members) {
            return Err(no("no two locks of one name and different kinds"));
        }
        let ordered = self.combine_into_parts(&members, false);
        let first = ordered.first().ok_or_else(|| no("at least one lock"))?.target.clone();
        let key = self.key_of(&mut ordered.iter().map(|part| (part.endpoint, &part.target)));
        Ok(LockSpec { first, members: Members::All(members), lease_max, key, reenters: true })
    }

    /// Creates the specification of a lock that a majority of several Redis nodes grants.
    ///
    /// # Errors
    /// [`InvalidOption`] unless there are 3, 5, 7 or 9 plain or fenced locks, each of a different
    /// gateway.
    pub fn red_lock(
        &self,
        locks: &[&LockSpec],
        rejoin_delay: Option<RejoinDelay>,
    ) -> Result<LockSpec, InvalidOption> {
        let mut members = Vec::new();
        for lock in locks {
            let Members::One(MemberSpec { endpoint, target: Target::Lock(calls), .. }) =
                &lock.members
            else {
                return Err(no("plain or fenced locks"));
            };
            let calls = match rejoin_delay {
                Some(delay) => calls.clone().not_before(delay),
                None => calls.clone(),
            };
            members.push((*endpoint, calls));
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
        let first = first.clone();
        let members = Members::Majority(members);
        Ok(LockSpec { first, members, lease_max, key, reenters: true })
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
        self.first.name()
    }

    /// The target of the first member.
    pub const fn first(&self) -> &Target {
        &self.first
    }

    /// The names of all members.
    pub fn names(&self) -> impl Iterator<Item = &LockName> {
        self.key.names.iter().map(|(_, name)| name)
    }

    /// The only member; `None` for a lock of several members.
    pub const fn only(&self) -> Option<&MemberSpec> {
        match &self.members {
            Members::One(member) => Some(member),
            Members::All(_) | Members::Majority(_) => None,
        }
    }

    /// Whether a majority of the members makes a hold.
    pub const fn is_majority(&self) -> bool {
        matches!(self.members, Members::Majority(_))
    }

    /// The gateways of the members.
    pub fn endpoints(&self) -> Vec<EndpointId> {
        let mut endpoints = Vec::new();
        let all: Vec<EndpointId> = match &self.members {
            Members::One(member) => [member.endpoint].into(),
            Members::All(members) => members.iter().map(|member| member.endpoint).collect(),
            Members::Majority(members) => members.iter().map(|(endpoint, _)| *endpoint).collect(),
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
    pub fn map_endpoints(mut self, mut to: impl FnMut(EndpointId) -> EndpointId) -> Self {
        match &mut self.members {
            Members::One(member) => member.endpoint = to(member.endpoint),
            Members::All(members) => {
                members.iter_mut().for_each(|member| member.endpoint = to(member.endpoint));
            }
            Members::Majority(members) => {
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
fn clash(members: &[MemberSpec]) -> bool {
    members.iter().enumerate().any(|(at, MemberSpec { endpoint, target, .. })| {
        members.iter().skip(at + 1).any(
            |MemberSpec { endpoint: other_endpoint, target: other, .. }| {
                let both_groups = matches!((target, other), (Target::Group(_), Target::Group(_)));
                endpoint == other_endpoint && target.name() == other.name() && !both_groups
            },
        )
    })
}

#[cfg(test)]
mod tests;
