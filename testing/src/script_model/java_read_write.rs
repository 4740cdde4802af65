//! Redisson's scripts of the read-write lock: the meaning of `tests/scripts/java/rw_*.lua`.

use super::read_write::timeout_key;
use super::{ScriptModel, Value};

/// One run of a script of Redisson's.
#[derive(Clone, Debug)]
pub struct JavaRw<'a> {
    /// The lock's name.
    pub name: &'a str,
    /// The prefix of its readers' timeout keys.
    pub prefix: &'a str,
    /// The caller: the holder, without `:write`.
    pub holder: &'a str,
}

impl ScriptModel {
    /// Acquires the read side; returns whether it is held now.
    pub fn java_read_acquire(&mut self, run: &JavaRw<'_>, lease: u64, now: u64) -> bool {
        self.expire(now);
        let mode = self.field(run.name, "mode").map(ToOwned::to_owned);
        let inside = format!("{}:write", run.holder);
        let joins = match mode.as_deref() {
            None => true,
            Some("read") => true,
            Some("write") => self.has_field(run.name, &inside),
            Some(_) => false,
        };
        if !joins {
            return false;
        }
        let entry = if mode.is_none() { 1 } else { self.entries(run.name, run.holder) + 1 };
        if mode.is_none() {
            self.set_field(run.name, "mode", "read");
        }
        self.set_field(run.name, run.holder, &entry.to_string());
        let timeout = timeout_key(run.prefix, run.holder, entry);
        self.put(&timeout, Value::Text("1".into()), Some(now + lease));
        let left = if mode.is_none() { 0 } else { self.pttl(run.name, now).max(0) };
        self.pexpire(run.name, lease.max(left.unsigned_abs()), now);
        true
    }

    /// Ends one entry of a read hold; `None` if there is none.
    pub fn java_read_unlock(
        &mut self,
        run: &JavaRw<'_>,
        unlock_latch: (&str, u64),
        now: u64,
    ) -> Option<i64> {
        self.expire(now);
        let (latch, life) = unlock_latch;
        if let Some(known) = self.text(latch) {
            return known.parse().ok();
        }
        let publish = |model: &mut Self, code: i64| {
            model.put(latch, Value::Text(code.to_string()), Some(now + life));
        };
        let Some(mode) = self.field(run.name, "mode").map(ToOwned::to_owned) else {
            publish(self, 1);
            return None;
        };
        if !self.has_field(run.name, run.holder) {
            return None;
        }
        let entries = self.entries(run.name, run.holder);
        match entries.saturating_sub(1) {
            0 => drop(self.remove_field(run.name, run.holder)),
            left => self.set_field(run.name, run.holder, &left.to_string()),
        }
        self.delete(&timeout_key(run.prefix, run.holder, entries));
        if self.hash(run.name).is_some_and(|hash| hash.len() > 1) {
            let longest = self.longest_read(run, now);
            if longest > 0 {
                self.pexpire(run.name, longest.unsigned_abs(), now);
            }
            if longest > 0 || mode == "write" {
                publish(self, 0);
                return Some(0);
            }
        }
        self.delete(run.name);
        publish(self, 1);
        Some(1)
    }

    /// Acquires the write side; returns whether it is held now.
    pub fn java_write_acquire(&mut self, run: &JavaRw<'_>, lease: u64, now: u64) -> bool {
        self.expire(now);
        let field = format!("{}:write", run.holder);
        match self.field(run.name, "mode") {
            None => {
                self.set_field(run.name, "mode", "write");
                self.set_field(run.name, &field, "1");
                self.pexpire(run.name, lease, now);
                true
            }
            Some("write") if self.has_field(run.name, &field) => {
                let entries = self.entries(run.name, &field) + 1;
                self.set_field(run.name, &field, &entries.to_string());
                let left = self.pttl(run.name, now).max(-1);
                self.pexpire(run.name, lease.saturating_add_signed(left), now);
                true
            }
            Some(_) => false,
        }
    }

    /// Ends one entry of a write hold; `None` if there is none.
    pub fn java_write_unlock(
        &mut self,
        run: &JavaRw<'_>,
        lease: u64,
        unlock_latch: (&str, u64),
        now: u64,
    ) -> Option<i64> {
        self.expire(now);
        let (latch, life) = unlock_latch;
        if let Some(known) = self.text(latch) {
            return known.parse().ok();
        }
        let field = format!("{}:write", run.holder);
        let code = match self.field(run.name, "mode") {
            None => None,
            Some("write") if self.has_field(run.name, &field) => {
                let left = self.entries(run.name, &field) - 1;
                if left > 0 {
                    self.set_field(run.name, &field, &left.to_string());
                    self.pexpire(run.name, lease, now);
                } else {
                    self.remove_field(run.name, &field);
                    if self.hash(run.name).is_some_and(|hash| hash.len() == 1) {
                        self.delete(run.name);
                    } else {
                        self.set_field(run.name, "mode", "read");
                    }
                }
                Some(i64::from(left == 0))
            }
            Some(_) => return None,
        };
        let known = code.unwrap_or(1).to_string();
        self.put(latch, Value::Text(known), Some(now + life));
        code
    }

    /// Renews the read holds of one holder; returns whether it had any.
    pub fn java_read_renew(&mut self, run: &JavaRw<'_>, lease: u64, now: u64) -> bool {
        self.expire(now);
        if !self.has_field(run.name, run.holder) {
            return false;
        }
        for entry in 1..=self.entries(run.name, run.holder) {
            self.pexpire(&timeout_key(run.prefix, run.holder, entry), lease, now);
        }
        self.pexpire(run.name, lease, now);
        true
    }

    /// Renews a write hold; returns whether there is one.
    pub fn java_write_renew(&mut self, run: &JavaRw<'_>, lease: u64, now: u64) -> bool {
        self.expire(now);
        let held = self.has_field(run.name, &format!("{}:write", run.holder));
        if held {
            self.pexpire(run.name, lease, now);
        }
        held
    }

    /// Ends all holds of one side.
    pub fn java_rw_force_unlock(&mut self, name: &str, side: &str, now: u64) -> bool {
        self.expire(now);
        self.field(name, "mode") == Some(side) && self.delete(name)
    }

    fn entries(&self, name: &str, field: &str) -> u64 {
        self.field(name, field).map_or(0, |count| count.parse().unwrap())
    }

    /// The longest remaining time of all timeout keys, as Redisson computes it: a key without an
    /// expiry does not count.
    fn longest_read(&self, run: &JavaRw<'_>, now: u64) -> i64 {
        let hash = self.hash(run.name);
        let counts = hash
            .into_iter()
            .flatten()
            .filter_map(|(field, count)| count.parse::<u64>().ok().map(|count| (field, count)));
        let keys = counts.flat_map(|(field, count)| {
            (1..=count).map(move |entry| timeout_key(run.prefix, field, entry))
        });
        keys.map(|key| self.pttl(&key, now)).max().unwrap_or(-3)
    }
}
