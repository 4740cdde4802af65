//! The order of arrival: no owner is granted before a waiter of an incompatible mode that came
//! earlier and is alive.

use std::collections::BTreeMap;

use super::super::runner::Check;
use super::checker::ensure;
use super::snapshot::{Snapshot, is_exclusive};

/// The waiters of one lock, by their members.
#[derive(Default)]
pub(super) struct Arrivals {
    waiters: BTreeMap<String, Arrival>,
    count: u64,
}

#[derive(Clone, Copy)]
struct Arrival {
    /// Its place in the order of arrival.
    place: u64,
    /// Until when it counts as alive.
    alive_until: u64,
    /// Until when Redis remembers its place.
    remembered: u64,
}

impl Arrivals {
    /// Records a refusal that queues or keeps this waiter.
    pub(super) fn record(&mut self, member: &str, alive_until: u64, remembered: u64) {
        self.count += 1;
        let place = self.waiters.get(member).map_or(self.count, |arrival| arrival.place);
        self.waiters.insert(member.to_owned(), Arrival { place, alive_until, remembered });
    }

    pub(super) fn remove(&mut self, member: &str) {
        self.waiters.remove(member);
    }

    /// Records that a new owner takes the place of `previous`. Redis knows the place while that one
    /// is queued, and for as long as it remembers that owner.
    pub(super) fn take_over(&mut self, member: &str, previous: &str, is_queued: bool, now: u64) {
        if let Some(arrival) = self.waiters.remove(previous)
            && (now <= arrival.remembered || is_queued)
        {
            self.waiters.entry(member.to_owned()).or_insert(arrival);
        }
    }

    /// Checks that the grant to this member, beside this number of holders, overtakes no earlier
    /// waiter.
    pub(super) fn check_grant(
        &self,
        member: &str,
        holders: usize,
        max_holders: usize,
        now: u64,
    ) -> Check {
        let place = self.waiters.get(member).map_or(u64::MAX, |arrival| arrival.place);
        let ahead = self.waiters.iter().filter(|(other, arrival)| {
            other.as_str() != member && arrival.place < place && arrival.alive_until > now
        });
        let ahead: Vec<&String> = ahead.map(|(other, _)| other).collect();
        let passed = ahead.iter().find(|other| is_exclusive(other) || is_exclusive(member));
        if let Some(passed) = passed {
            return Err(format!("{passed} is overtaken by {member}"));
        }
        let has_place = is_exclusive(member) || holders + ahead.len() < max_holders;
        ensure(has_place, || format!("{ahead:?} are overtaken at the limit by {member}"))
    }

    /// Checks that the queue is in the order of arrival.
    pub(super) fn check_queue(&self, after: &Snapshot) -> Check {
        let places: Vec<u64> = after
            .in_queue()
            .into_iter()
            .filter_map(|member| self.waiters.get(member).map(|arrival| arrival.place))
            .collect();
        ensure(places.is_sorted(), || {
            format!("the queue is not in the order of arrival: {after:?}")
        })
    }
}
