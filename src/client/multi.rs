//! Several locks as one: Redisson's `RedissonMultiLock`.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::pin::Pin;
use core::time::Duration;

use super::Client;
use super::clients::Clients;
use super::drive::drive_acquisition;
use super::hold::{Hold, Part};
use super::lock::{Inner, Lock};
use super::options::Terms;
use super::owner::{Key, Side};
use super::plan::{Plan, Rule, Share, Term};
use crate::error::{AcquireError, InvalidOption};
use crate::host::Host;
use crate::transport::Transport;
use edgelatch_proto::machine::{AcquireAll, AllTargets, MultiGrant, Pacing};
use edgelatch_proto::protocol::calls::{LockCalls, Member, Target};
use edgelatch_proto::protocol::slot::slot;
use edgelatch_proto::timing::LeaseTime;

/// The longest time for which granted members are kept while another member is busy: the lesser of
/// this and a quarter of the lease.
pub(super) const KEPT_MAX: Duration = Duration::from_secs(1);
/// The largest number of members.
const MEMBERS_MAX: usize = 100;

impl<T: Transport, H: Host> Client<T, H> {
    /// Returns one lock that holds all of `locks` or none: Redisson's `getMultiLock(locks)`. The
    /// members can be of any kind, and of other clients.
    ///
    /// The members of one gateway are acquired with one request, in one atomic step. Each fair
    /// lock, each side of a read-write lock and each group has a request of its own, as has each
    /// slot of a Redis Cluster. A wait for a busy spin lock polls at the intervals of that lock;
    /// members in the same request must be spin locks with the same intervals, or the pauses are
    /// jittered. The order of `locks` is not significant: two multi-locks of the same locks in a
    /// different order do not deadlock.
    ///
    /// # Errors
    /// [`InvalidOption`] unless there are 1 to 100 locks, without redLocks and permits, and without
    /// two locks of one name and different kinds.
    pub fn multi_lock(
        &self,
        locks: impl IntoIterator<Item = Lock<T, H>>,
    ) -> Result<Lock<T, H>, InvalidOption> {
        let mut clients = Vec::new();
        let mut members: Vec<Share> = Vec::new();
        let mut lease_max = None;
        for lock in locks {
            let Inner { plan, clients: own_clients, .. } = lock.inner();
            let Plan { first, rule, pacing, lease_max: most } = plan.clone();
            let own = match rule {
                Rule::One => [Share { place: 0, target: first, pacing }].into(),
                Rule::All(members) => members,
                Rule::Majority(_) => return Err(no("locks that are no redLock")),
            };
            lease_max = shorter(lease_max, most);
            for share in own {
                if share.target.holds_permits() {
                    return Err(no("locks, not permits"));
                }
                let place = place_of(&mut clients, own_clients.at(share.place));
                let is_it = |other: &Share| other.place == place && other.target == share.target;
                if !members.iter().any(is_it) {
                    members.push(Share { place, ..share });
                }
            }
        }
        if members.len() > MEMBERS_MAX {
            return Err(no("at most 100 locks"));
        }
        if clash(&members) {
            return Err(no("no two locks of one name and different kinds"));
        }
        let clients = Clients::new(clients).ok_or_else(|| no("at least one lock"))?;
        let ordered = clients.parts(&members, false);
        let first = ordered.first().ok_or_else(|| no("at least one lock"))?.target.clone();
        let plan = Plan { first, rule: Rule::All(members), pacing: Pacing::Jittered, lease_max };
        let targets: Vec<_> = ordered.into_iter().map(|part| (part.place, part.target)).collect();
        Ok(self.several(clients, plan, &targets))
    }

    pub(super) fn several(
        &self,
        clients: Clients<T, H>,
        plan: Plan,
        targets: &[(usize, Target)],
    ) -> Lock<T, H> {
        let id = |place: usize| clients.at(place).link().gateway().id().into();
        let names = targets
            .iter()
            .flat_map(|(place, target)| {
                target.names().into_iter().map(move |name| (*place, name.clone()))
            })
            .map(|(place, name)| (id(place), name))
            .collect();
        let (key, holds) = (Key { names, side: Side::Whole }, self.holds.clone());
        Lock::new(Inner { clients, plan, key, holds, reenters: true })
    }
}

pub(super) fn no(accepted: &str) -> InvalidOption {
    InvalidOption::new("locks", accepted)
}

fn shorter(one: Option<LeaseTime>, other: Option<LeaseTime>) -> Option<LeaseTime> {
    one.into_iter().chain(other).min()
}

/// Returns the place of `client` in `clients`, and appends it if it is missing.
fn place_of<T: Transport, H>(clients: &mut Vec<Client<T, H>>, client: &Client<T, H>) -> usize {
    let place = clients.iter().position(|other| Arc::ptr_eq(&other.inner, &client.inner));
    place.unwrap_or_else(|| {
        clients.push(client.clone());
        clients.len() - 1
    })
}

/// Whether two different members have the same name on one gateway. Groups may: their values
/// differ.
fn clash(members: &[Share]) -> bool {
    members.iter().enumerate().any(|(at, Share { place, target, .. })| {
        members.iter().skip(at + 1).any(|Share { place: other_place, target: other, .. }| {
            let both_groups = matches!((target, other), (Target::Group(_), Target::Group(_)));
            place == other_place && target.name() == other.name() && !both_groups
        })
    })
}

impl<T: Transport, H: Host> Clients<T, H> {
    /// Combines members that one script can acquire into parts, with `by_slot` for each slot of a
    /// cluster. All clients order their parts in the same way, so that they do not deadlock: fair
    /// locks first, then by gateway, slot and name.
    fn parts(&self, members: &[Share], by_slot: bool) -> Vec<Share> {
        let mut parts: Vec<(Rank<'_>, usize, Pacing, Found<'_>)> = Vec::new();
        for Share { place, target, pacing } in members {
            let client = self.at(*place);
            let (id, name) = (client.link().gateway().id(), target.name().as_str());
            let slot = if by_slot { slot(name) } else { 0 };
            let (rank, found) = match target {
                Target::Lock(calls) => {
                    ((1, id, slot, ""), Found::Members(calls.members().collect()))
                }
                other => ((u8::from(!other.has_queue()), id, slot, name), Found::Other(other)),
            };
            match (parts.iter_mut().find(|(other, ..)| *other == rank), found) {
                (Some((.., common, Found::Members(there))), Found::Members(more)) => {
                    there.extend(more);
                    if common != pacing {
                        *common = Pacing::Jittered;
                    }
                }
                (_, found) => {
                    let at = parts.iter().position(|(other, ..)| *other > rank);
                    parts.insert(at.unwrap_or(parts.len()), (rank, *place, *pacing, found));
                }
            }
        }
        let share = |(_, place, pacing, found): (_, _, _, Found<'_>)| {
            let target = match found {
                Found::Other(target) => target.clone(),
                Found::Members(members) => {
                    let publish = self.at(place).announces();
                    Target::Lock(LockCalls::of_set(members.into_iter().cloned(), publish)?)
                }
            };
            Some(Share { place, target, pacing })
        };
        parts.into_iter().filter_map(share).collect()
    }

    /// Acquires all members or none.
    pub(super) async fn gather(
        &self,
        members: &[Share],
        terms: Terms,
        term: Term,
        mut cancel: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Hold, AcquireError> {
        let mut by_slot = members.iter().any(|share| self.at(share.place).link().is_cluster());
        loop {
            let parts = self.parts(members, by_slot);
            let places: Vec<usize> = parts.iter().map(|part| part.place).collect();
            let (client, lease, now) = (self.first(), term.lease, self.first().host().now());
            let newest = |part: &Share| self.at(part.place).link().newest(&part.target);
            let targets = AllTargets {
                parts: parts.iter().map(|part| part.target.clone()).collect(),
                keep_time: KEPT_MAX.min(lease.get() / 4),
                pacing: parts.iter().map(|part| part.pacing).collect(),
                newest: parts.iter().map(newest).collect(),
            };
            let is_contended = parts.iter().any(|Share { place, target, .. }| {
                self.at(*place).link().is_contended(target, now)
            });
            let spec = terms.params(targets, lease, client.attempt(), is_contended);
            let entropy = client.entropy().ok_or(AcquireError::NoEntropy)?;
            let clocks = places.iter().map(|place| self.at(*place).link().clock()).collect();
            let machine = AcquireAll::new(spec, entropy, clocks, now);
            match drive_acquisition(machine, self, places.clone(), cancel.as_mut()).await {
                Ok(gathered) => {
                    for (Share { place, target, .. }, part) in parts.iter().zip(&gathered.parts) {
                        self.at(*place).link().granted(target, part.grant.token);
                    }
                    let (all, parts) = (parts.len(), parts.into_iter());
                    let targets = parts.map(|part| (part.place, part.target));
                    return held(targets, gathered, all, term);
                }
                // Redis has executed nothing: it is a cluster, so the members of each slot form a
                // part of their own.
                Err(AcquireError::Refused(refusal))
                    if refusal.code() == "CROSSSLOT" && !by_slot =>
                {
                    by_slot = true;
                    self.links(places.into_iter()).iter().for_each(|link| link.note_cluster());
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// The sort key of a part: fair locks first, then gateway, slot and name.
type Rank<'a> = (u8, &'a str, u16, &'a str);

/// The contents of a part: plain or fenced locks that share a script, or one lock of another kind.
enum Found<'a> {
    Members(Vec<&'a Member>),
    Other(&'a Target),
}

pub(super) fn held(
    parts: impl Iterator<Item = (usize, Target)>,
    gathered: MultiGrant,
    quorum: usize,
    term: Term,
) -> Result<Hold, AcquireError> {
    let parts = parts.zip(gathered.parts).map(|((place, target), part)| Part {
        place,
        target,
        grant: part.grant,
        counts: part.counts,
    });
    Hold::new(parts.collect(), quorum, term)
}
