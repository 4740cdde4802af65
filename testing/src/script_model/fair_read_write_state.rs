//! The state of a fair read-write lock, as `parts/fair_rw.lua` reads and changes it.

use super::{Run, ScriptModel};

/// How many waiters and holders one call notifies, and how many dead entries it removes at once.
const WINDOW: usize = 64;
const DEAD_MAX: usize = 4 * 64;
/// How many names whose time is over one call removes from the registry.
const NAMES_MAX: usize = 4;

/// One execution of a script about one lock.
pub(super) struct Lock<'m, 'a> {
    pub(super) model: &'m mut ScriptModel,
    pub(super) run: &'a Run<'a>,
    pub(super) holders: &'a str,
    pub(super) queue: &'a str,
    pub(super) writers: &'a str,
    pub(super) beats: &'a str,
    pub(super) last: &'a str,
    names: &'a str,
    ends: &'a str,
    pub(super) now: i64,
}

pub(super) fn is_exclusive(member: &str) -> bool {
    member.starts_with('x')
}

impl<'m, 'a> Lock<'m, 'a> {
    pub(super) fn of(model: &'m mut ScriptModel, run: &'a Run<'a>) -> Self {
        let [_, holders, queue, writers, beats, last, names, ends, ..] = run.keys else {
            panic!("{:?}", run.keys)
        };
        let now = i64::try_from(run.now).unwrap();
        Self { model, run, holders, queue, writers, beats, last, names, ends, now }
    }

    pub(super) fn leaves_out(&self, rule: &str) -> bool {
        self.model.leaves_out(rule)
    }

    /// The time that is `ms` after now.
    pub(super) fn after(&self, ms: u64) -> i64 {
        self.now + i64::try_from(ms).unwrap()
    }

    /// The members of a sorted set in its order.
    pub(super) fn ranked(&self, key: &str) -> Vec<String> {
        let mut members: Vec<_> = self.model.members(key).iter().collect();
        members.sort_by(|(one, a), (other, b)| (a, one).cmp(&(b, other)));
        members.into_iter().map(|(member, _)| member.clone()).collect()
    }

    /// The members whose time is over, in the order of the set.
    pub(super) fn dead(&self, key: &str) -> Vec<String> {
        let is_over = |member: &String| self.model.score(key, member).unwrap() <= self.now;
        let mut members = self.ranked(key);
        members.retain(is_over);
        members
    }

    pub(super) fn count_live(&self, key: &str) -> i64 {
        let live = self.model.members(key).values().filter(|score| **score > self.now).count();
        i64::try_from(live).unwrap()
    }

    /// A holder whose lease has not ended.
    pub(super) fn live_holder(&self) -> Option<String> {
        let counts_dead = self.leaves_out("dead holders do not count");
        let is_live = |member: &String| {
            counts_dead || self.model.score(self.holders, member).unwrap() > self.now
        };
        self.ranked(self.holders).into_iter().find(is_live)
    }

    pub(super) fn last_end(&self) -> Option<i64> {
        self.model.members(self.holders).values().copied().max()
    }

    pub(super) fn place(&self, member: &str) -> Option<usize> {
        self.ranked(self.queue).iter().position(|other| other == member)
    }

    pub(super) fn set_score(&mut self, key: &str, member: &str, score: i64, ms: u64) {
        let is_new = self.model.members(key).is_empty();
        self.model.set_score(key, member, score);
        if is_new {
            self.model.pexpire(key, ms, self.run.now);
        } else {
            self.model.extend_ttl(key, ms, self.run.now);
        }
    }

    pub(super) fn dequeue(&mut self, member: &str) -> bool {
        let was_queued = self.model.score(self.queue, member).is_some();
        for key in [self.queue, self.writers, self.beats] {
            self.model.remove_member(key, member);
        }
        was_queued
    }

    fn notify(&mut self, member: &str, text: &str) {
        let base = self.holders.strip_suffix(":frw:holders").unwrap();
        let owner = member[1..].split('|').next().unwrap();
        self.model.publish_to_both(self.run, &format!("{base}:{owner}"), text);
    }

    pub(super) fn end_holds(&mut self) {
        let dead = self.dead(self.holders);
        let live: Vec<String> =
            self.ranked(self.holders).into_iter().filter(|member| !dead.contains(member)).collect();
        for member in live.iter().take(WINDOW) {
            self.notify(member, "0");
        }
        self.model.delete(self.holders);
    }

    pub(super) fn places(&self, max: i64) -> i64 {
        match self.live_holder() {
            None => max,
            Some(holder) if is_exclusive(&holder) => 0,
            Some(_) => (max - self.count_live(self.holders)).max(0),
        }
    }

    /// W10
    pub(super) fn wake(&mut self, max: i64, this: Option<&str>) {
        let count = usize::try_from(self.places(max)).unwrap().min(WINDOW);
        for (place, member) in self.ranked(self.queue).into_iter().take(count).enumerate() {
            let is_this = Some(member.as_str()) == this;
            if is_exclusive(&member) {
                if place == 0 && !is_this && self.live_holder().is_none() {
                    self.notify(&member, "1");
                }
                return;
            }
            if !is_this {
                self.notify(&member, "1");
            }
        }
    }

    pub(super) fn wake_next(&mut self, max: i64, this: Option<&str>) {
        let count = usize::try_from(self.places(max)).unwrap().min(WINDOW);
        let Some(place) = count.checked_sub(1) else { return };
        let Some(member) = self.ranked(self.queue).into_iter().nth(place) else { return };
        if Some(member.as_str()) == this || is_exclusive(&member) {
            return;
        }
        let ticket = self.model.score(self.queue, &member).unwrap();
        if self.model.members(self.writers).values().all(|writer| *writer > ticket) {
            self.notify(&member, "1");
        }
    }

    pub(super) fn leave(&mut self, member: &str, max: i64) {
        let place = self.place(member);
        if !self.dequeue(member) || self.leaves_out("leaving the queue notifies") {
            return;
        }
        if place == Some(0) || is_exclusive(member) {
            self.wake(max, None);
        } else {
            self.wake_next(max, None);
        }
    }

    /// W7, and the removal of holders whose lease has ended. Returns whether one was removed.
    pub(super) fn remove_dead(&mut self) -> bool {
        let mut has_vacated = false;
        if !self.leaves_out("dead waiters leave the queue") {
            for member in self.dead(self.beats).iter().take(DEAD_MAX) {
                self.dequeue(member);
                has_vacated = true;
            }
        }
        let mut over = self.dead(self.holders);
        over.truncate(if self.leaves_out("dead holders do not count") { 1 } else { WINDOW });
        for member in &over {
            self.model.remove_member(self.holders, member);
        }
        has_vacated || !over.is_empty()
    }

    /// The waiters in front of a ticket, and the exclusive ones among them; for a new owner (W5)
    /// all of them.
    pub(super) fn in_front(&self, ticket: Option<i64>) -> (i64, i64) {
        if ticket.is_none() && self.leaves_out("new owners look at the queue") {
            return (0, 0);
        }
        let in_front = |key| {
            let tickets = self.model.members(key).values();
            let in_front = tickets.filter(|other| ticket.is_none_or(|ticket| **other < ticket));
            i64::try_from(in_front.count()).unwrap()
        };
        (in_front(self.queue), in_front(self.writers))
    }

    /// W17
    pub(super) fn register(&mut self, to: i64, slack: u64) {
        for name in self.dead(self.ends).iter().take(NAMES_MAX) {
            self.forget(name);
        }
        let name = self.name();
        let ends = self.model.score(self.ends, &name);
        let is_named = self.model.score(self.names, &name).is_some();
        let keeps = self.leaves_out("every call extends the registered end");
        if is_named && ends.is_some_and(|ends| ends >= to || keeps) {
            return;
        }
        let until = to + i64::try_from(slack).unwrap();
        let ms = u64::try_from(until - self.now + 1000).unwrap();
        self.set_score(self.names, &name, 0, ms);
        self.set_score(self.ends, &name, ends.unwrap_or(0).max(until), ms);
    }

    pub(super) fn unregister(&mut self) {
        if self.live_holder().is_none() && self.count_live(self.beats) == 0 {
            self.forget(&self.name());
        }
    }

    fn forget(&mut self, name: &str) {
        self.model.remove_member(self.names, name);
        self.model.remove_member(self.ends, name);
    }

    fn name(&self) -> String {
        let form = self.holders.strip_suffix(":frw:holders").unwrap();
        form.strip_prefix("el:").unwrap().to_owned()
    }

    /// The value of a reply -3.
    pub(super) fn is_stolen(&self, token: Option<&str>) -> &'static str {
        let number = |text: Option<&str>| text.and_then(|text| text.parse::<u64>().ok());
        let steal = number(self.model.field(self.last, "st"));
        match (number(token), steal) {
            (Some(token), Some(steal)) if token < steal => "1",
            _ => "0",
        }
    }
}
