//! Redisson's scripts of its semaphores and its count-down latch: the meaning of
//! `tests/scripts/java/{semaphore,permits,latch}_*.lua`.

use super::holds::NEVER;
use super::{ScriptModel, Value};

/// The keys of a permit-expirable semaphore that Redisson uses, and its machine's clock.
#[derive(Clone, Copy)]
pub struct JavaPermits<'a> {
    pub name: &'a str,
    pub held: &'a str,
    pub now: i64,
    /// Redis' own clock.
    pub server: u64,
}

impl ScriptModel {
    /// `semaphore_acquire.lua`
    pub fn java_takes(&mut self, name: &str, permits: i64) -> bool {
        let enough = self.number(name).is_some_and(|there| there >= permits);
        if enough {
            self.add_to(name, -permits);
        }
        enough
    }

    /// `semaphore_release.lua`
    pub fn java_gives(&mut self, name: &str, permits: i64) {
        self.add_to(name, permits);
    }

    /// `semaphore_drain.lua`
    pub fn java_drains(&mut self, name: &str) -> i64 {
        let there = self.number(name);
        if there.is_some() {
            self.put(name, Value::Text("0".into()), None);
        }
        there.unwrap_or(0)
    }

    /// `semaphore_set.lua` without an expiry.
    pub fn java_begins(&mut self, name: &str, permits: i64) -> bool {
        let free = self.number(name).is_none();
        if free {
            self.put(name, Value::Text(permits.to_string()), None);
        }
        free
    }

    /// `semaphore_add.lua`, and `permits_set.lua` with `more`.
    pub fn java_adds(&mut self, name: &str, permits: i64) {
        let sum = self.number(name).unwrap_or(0) + permits;
        self.put(name, Value::Text(sum.to_string()), None);
    }

    fn java_evicts(&mut self, at: JavaPermits<'_>, most: usize) {
        let mut over: Vec<(i64, String)> =
            self.members(at.held).iter().map(|(id, ends)| (*ends, id.clone())).collect();
        over.retain(|(ends, _)| (0..=at.now).contains(ends));
        over.sort_unstable();
        over.truncate(most);
        over.iter().for_each(|(_, id)| self.remove_member(at.held, id));
        if !over.is_empty() {
            self.add_to(at.name, i64::try_from(over.len()).unwrap());
        }
    }

    /// `permits_acquire.lua`, with the time at which the permits end. Returns whether they were
    /// taken, or when the next one ends.
    pub fn java_takes_ids(
        &mut self,
        at: JavaPermits<'_>,
        ends: i64,
        ids: &[String],
    ) -> Result<(), Option<i64>> {
        self.java_evicts(at, ids.len());
        if self.java_takes(at.name, i64::try_from(ids.len()).unwrap()) {
            ids.iter().for_each(|id| self.set_score(at.held, id, ends));
            let ms = self.pttl(at.name, at.server);
            if ms > 0 {
                self.pexpire(at.held, ms.unsigned_abs(), at.server);
            }
            return Ok(());
        }
        Err(self.members(at.held).values().copied().min().filter(|ends| *ends != NEVER))
    }

    /// `permits_release.lua`
    pub fn java_gives_one(&mut self, at: JavaPermits<'_>, id: &str) -> bool {
        let Some(ends) = self.score(at.held, id) else { return false };
        self.remove_member(at.held, id);
        self.add_to(at.name, 1);
        ends > at.now
    }

    /// `permits_release_all.lua`
    pub fn java_gives_all(&mut self, at: JavaPermits<'_>, ids: &[String]) -> i64 {
        if !ids.iter().all(|id| self.score(at.held, id).is_some_and(|ends| ends > at.now)) {
            return 0;
        }
        self.java_evicts(at, usize::MAX);
        let held: Vec<&String> =
            ids.iter().filter(|id| self.score(at.held, id).is_some()).collect();
        held.iter().for_each(|id| self.remove_member(at.held, id));
        let given = i64::try_from(held.len()).unwrap();
        self.add_to(at.name, given);
        given
    }

    /// `permits_ask.lua` with `update`.
    pub fn java_updates(&mut self, at: JavaPermits<'_>, id: &str, ends: i64) -> bool {
        self.java_evicts(at, usize::MAX);
        let held = self.score(at.held, id).is_some();
        if held {
            self.set_score(at.held, id, ends);
        }
        held
    }

    /// `permits_ask.lua` with `total`.
    pub fn java_counts(&mut self, at: JavaPermits<'_>) -> i64 {
        self.java_evicts(at, usize::MAX);
        let held = i64::try_from(self.members(at.held).len()).unwrap();
        self.number(at.name).map_or(0, |there| there + held)
    }

    /// `permits_set.lua` with `all`.
    pub fn java_sets(&mut self, at: JavaPermits<'_>, permits: i64) {
        let held = i64::try_from(self.members(at.held).len()).unwrap();
        match self.number(at.name) {
            Some(there) => drop(self.add_to(at.name, permits - there - held)),
            None => self.put(at.name, Value::Text(permits.to_string()), None),
        }
    }

    /// `latch_count_down.lua`
    pub fn java_counts_down(&mut self, name: &str) {
        if self.add_to(name, -1) <= 0 {
            self.delete(name);
        }
    }
}
