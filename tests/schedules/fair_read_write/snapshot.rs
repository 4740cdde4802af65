//! Redis' state of one lock.

use std::collections::{BTreeMap, BTreeSet};

use test_support::script_model::ScriptModel;

/// The sorted sets of one lock.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Snapshot {
    /// The end of each hold.
    pub(super) holders: BTreeMap<String, i64>,
    /// The ticket of each waiter.
    pub(super) queue: BTreeMap<String, i64>,
    pub(super) writers: BTreeMap<String, i64>,
    /// Until when each waiter counts as alive.
    pub(super) beats: BTreeMap<String, i64>,
}

impl Snapshot {
    pub(super) fn of(model: &ScriptModel, name: &str) -> Self {
        let set = |suffix: &str| model.members(&format!("el:{name}:frw:{suffix}")).clone();
        Self {
            holders: set("holders"),
            queue: set("queue"),
            writers: set("writers"),
            beats: set("beats"),
        }
    }

    pub(super) fn holds(&self, member: &str, now: u64) -> bool {
        self.holders.get(member).is_some_and(|ends| *ends > now.cast_signed())
    }

    pub(super) fn is_alive(&self, member: &str, now: u64) -> bool {
        self.beats.get(member).is_some_and(|ends| *ends > now.cast_signed())
    }

    /// The members whose lease has not ended, by the end of their leases.
    pub(super) fn live_holders(&self, now: u64) -> Vec<&String> {
        let mut live = in_order(&self.holders);
        live.retain(|member| self.holds(member, now));
        live
    }

    /// The waiters whose life has not ended, in the order of the queue.
    pub(super) fn live_waiters(&self, now: u64) -> Vec<&String> {
        let mut live = self.in_queue();
        live.retain(|member| self.is_alive(member, now));
        live
    }

    /// All waiters, in the order of the queue.
    pub(super) fn in_queue(&self) -> Vec<&String> {
        in_order(&self.queue)
    }

    /// The live waiters that a script would grant the lock now.
    pub(super) fn can_enter(&self, max_holders: usize, now: u64) -> BTreeSet<String> {
        let holders = self.live_holders(now);
        if holders.iter().any(|member| is_exclusive(member)) {
            return BTreeSet::new();
        }
        let waiters = self.live_waiters(now);
        match waiters.first() {
            Some(first) if is_exclusive(first) => {
                holders.is_empty().then(|| (*first).clone()).into_iter().collect()
            }
            _ => {
                let shared = waiters.into_iter().take_while(|member| !is_exclusive(member));
                shared.take(max_holders.saturating_sub(holders.len())).cloned().collect()
            }
        }
    }

    /// When the last lease and the last life have ended.
    pub(super) fn last_end(&self) -> u64 {
        let ends = self.holders.values().chain(self.beats.values());
        ends.max().map_or(0, |ends| ends.cast_unsigned())
    }
}

fn in_order(members: &BTreeMap<String, i64>) -> Vec<&String> {
    let mut ranked: Vec<_> = members.iter().map(|(member, score)| (score, member)).collect();
    ranked.sort();
    ranked.into_iter().map(|(_, member)| member).collect()
}

pub(super) fn is_exclusive(member: &str) -> bool {
    member.starts_with('x')
}

/// The owner of a member.
pub(super) fn owner_of(member: &str) -> &str {
    member[1..].split('|').next().unwrap()
}
