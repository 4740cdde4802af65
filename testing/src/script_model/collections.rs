//! Lists and sorted sets. As in Redis, an empty one has no key.

use std::collections::{BTreeMap, VecDeque};

use super::{Entry, ScriptModel, Value};

impl ScriptModel {
    /// The elements of a list; empty if there is no key.
    pub fn list(&self, key: &str) -> &VecDeque<String> {
        static EMPTY: VecDeque<String> = VecDeque::new();
        match self.keys.get(key).map(|entry| &entry.value) {
            Some(Value::List(elements)) => elements,
            None => &EMPTY,
            Some(_) => panic!("WRONGTYPE at {key}"),
        }
    }

    /// Changes a list and keeps its expiry.
    pub(super) fn change_list(&mut self, key: &str, change: impl FnOnce(&mut VecDeque<String>)) {
        let fresh = || Entry { value: Value::List(VecDeque::new()), expires_at: None };
        let Value::List(elements) = &mut self.keys.entry(key.into()).or_insert_with(fresh).value
        else {
            panic!("WRONGTYPE at {key}")
        };
        change(elements);
        if elements.is_empty() {
            self.keys.remove(key);
        }
    }

    /// The members of a sorted set and their scores; empty if there is no key.
    pub fn members(&self, key: &str) -> &BTreeMap<String, i64> {
        static EMPTY: BTreeMap<String, i64> = BTreeMap::new();
        match self.keys.get(key).map(|entry| &entry.value) {
            Some(Value::Sorted(members)) => members,
            None => &EMPTY,
            Some(_) => panic!("WRONGTYPE at {key}"),
        }
    }

    /// `ZSCORE`
    pub fn score(&self, key: &str, member: &str) -> Option<i64> {
        match self.keys.get(key).map(|entry| &entry.value) {
            Some(Value::Sorted(members)) => members.get(member).copied(),
            None => None,
            Some(_) => panic!("WRONGTYPE at {key}"),
        }
    }

    /// `ZADD`; a new key has no expiry.
    pub(super) fn set_score(&mut self, key: &str, member: &str, score: i64) {
        let fresh = || Entry { value: Value::Sorted(BTreeMap::new()), expires_at: None };
        match &mut self.keys.entry(key.into()).or_insert_with(fresh).value {
            Value::Sorted(members) => members.insert(member.into(), score),
            _ => panic!("WRONGTYPE at {key}"),
        };
    }

    /// `ZREM`
    pub(super) fn remove_member(&mut self, key: &str, member: &str) {
        if let Some(Value::Sorted(members)) = self.keys.get_mut(key).map(|entry| &mut entry.value) {
            members.remove(member);
            if members.is_empty() {
                self.keys.remove(key);
            }
        }
    }
}
