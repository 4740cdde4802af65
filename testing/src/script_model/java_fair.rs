//! Redisson's scripts of the fair lock: the meaning of `tests/scripts/java/fair_*.lua`.

use std::collections::BTreeMap;

use super::{ScriptModel, Value};

/// The keys of a fair lock that Redisson uses.
pub struct JavaFair<'a> {
    pub name: &'a str,
    pub queue: &'a str,
    pub timeouts: &'a str,
    pub channel: &'a str,
}

/// The caller of a script of Redisson's, and its clock. Redis' own clock is `server`.
#[derive(Clone, Copy)]
pub struct JavaPoll<'a> {
    pub holder: &'a str,
    pub lease: u64,
    pub allowance: i64,
    pub now: i64,
    pub server: u64,
}

impl ScriptModel {
    /// `fair_acquire.lua`; `None` if the lock is acquired.
    pub fn java_acquire(&mut self, lock: &JavaFair<'_>, asks: JavaPoll<'_>) -> Option<i64> {
        if self.enters(lock, asks) {
            return None;
        }
        let ms = self.pttl(lock.name, asks.server);
        if self.score(lock.timeouts, asks.holder).is_some() {
            return Some(ms.max(0));
        }
        let last = self.list(lock.queue).back().filter(|last| *last != asks.holder);
        let score = last.and_then(|last| self.score(lock.timeouts, last));
        let park = score.map_or(ms, |score| score - asks.now);
        self.set_score(lock.timeouts, asks.holder, park + asks.allowance + asks.now);
        self.change_list(lock.queue, |list| list.push_back(asks.holder.into()));
        Some(park)
    }

    /// `fair_once.lua`
    pub fn java_once(&mut self, lock: &JavaFair<'_>, asks: JavaPoll<'_>) -> bool {
        self.enters(lock, asks)
    }

    /// `fair_give_up.lua`
    pub fn java_gives_up(&mut self, lock: &JavaFair<'_>, holder: &str, less: i64) {
        let list = self.list(lock.queue).clone();
        for other in list.iter().skip_while(|other| *other != holder).skip(1) {
            self.add_to_score(lock, other, -less);
        }
        self.remove_member(lock.timeouts, holder);
        self.change_list(lock.queue, |list| list.retain(|other| other != holder));
    }

    /// `fair_unlock.lua`, with the latch of the unlock.
    pub fn java_unlock(
        &mut self,
        lock: &JavaFair<'_>,
        asks: JavaPoll<'_>,
        latch: &str,
        latch_life: u64,
    ) -> Option<i64> {
        self.expire(asks.server);
        if let Some(known) = self.text(latch) {
            return known.parse().ok();
        }
        let head = self.sweep(lock, asks.now);
        if self.keys.contains_key(lock.name) {
            if !self.has_field(lock.name, asks.holder) {
                return None;
            }
            if self.count(lock, asks.holder, -1) > 0 {
                self.end_at(lock.name, asks.server + asks.lease);
                self.put(latch, Value::Text("0".into()), Some(asks.server + latch_life));
                return Some(0);
            }
            self.delete(lock.name);
        }
        self.put(latch, Value::Text("1".into()), Some(asks.server + latch_life));
        self.java_notify(lock, head);
        Some(1)
    }

    /// `fair_force_unlock.lua`
    pub fn java_force_unlock(&mut self, lock: &JavaFair<'_>, asks: JavaPoll<'_>) -> bool {
        self.expire(asks.server);
        let head = self.sweep(lock, asks.now);
        let held = self.delete(lock.name);
        if held {
            self.java_notify(lock, head);
        }
        held
    }

    fn java_notify(&mut self, lock: &JavaFair<'_>, head: Option<String>) {
        if let Some(head) = head {
            self.publish(&format!("{}:{head}", lock.channel), "0", false);
        }
    }

    fn sweep(&mut self, lock: &JavaFair<'_>, now: i64) -> Option<String> {
        loop {
            let head = self.list(lock.queue).front()?.clone();
            if self.score(lock.timeouts, &head).is_none_or(|score| score > now) {
                return Some(head);
            }
            self.remove_member(lock.timeouts, &head);
            self.change_list(lock.queue, |list| drop(list.pop_front()));
        }
    }

    fn enters(&mut self, lock: &JavaFair<'_>, asks: JavaPoll<'_>) -> bool {
        self.expire(asks.server);
        let head = self.sweep(lock, asks.now);
        let free = !self.keys.contains_key(lock.name);
        if free && head.is_none_or(|head| head == asks.holder) {
            self.change_list(lock.queue, |list| drop(list.pop_front()));
            self.remove_member(lock.timeouts, asks.holder);
            for other in self.members(lock.timeouts).clone().into_keys() {
                self.add_to_score(lock, &other, -asks.allowance);
            }
            let hash = BTreeMap::from([(asks.holder.to_owned(), "1".to_owned())]);
            self.put(lock.name, Value::Hash(hash), Some(asks.server + asks.lease));
            return true;
        }
        let mine = self.has_field(lock.name, asks.holder);
        if mine {
            self.count(lock, asks.holder, 1);
            self.end_at(lock.name, asks.server + asks.lease);
        }
        mine
    }

    fn add_to_score(&mut self, lock: &JavaFair<'_>, member: &str, more: i64) {
        let score = self.score(lock.timeouts, member).unwrap_or(0);
        self.set_score(lock.timeouts, member, score + more);
    }

    /// `HINCRBY`
    fn count(&mut self, lock: &JavaFair<'_>, holder: &str, more: i64) -> i64 {
        let Some(Value::Hash(hash)) = self.keys.get_mut(lock.name).map(|entry| &mut entry.value)
        else {
            panic!("WRONGTYPE at {}", lock.name)
        };
        let count = hash.get(holder).and_then(|count| count.parse().ok()).unwrap_or(0) + more;
        hash.insert(holder.into(), count.to_string());
        count
    }

    fn end_at(&mut self, key: &str, at: u64) {
        if let Some(entry) = self.keys.get_mut(key) {
            entry.expires_at = Some(at);
        }
    }
}
