//! The scripts of the lock.

use std::collections::BTreeMap;
use std::iter;

use super::kind::other_kind;
use super::{Latches, Out, Run, ScriptModel, Value, is_tombstone, out};

/// A rule that a test may leave out: a token is not below the clock, so tokens rise even after the
/// last one was lost.
const FOLLOWS: &str = "tokens follow the clock";

impl ScriptModel {
    pub(super) fn lock_acquire(&mut self, run: &Run<'_>) -> Out {
        let (field, lease) = (run.args[4].as_str(), run.args[5].parse().unwrap());
        let locks: Vec<&[String]> = run.keys[1..].chunks(2).collect();
        let latch = self.latch(&run.keys[0]);
        if latch.as_deref().is_some_and(is_tombstone) {
            self.prolong_tombstone(run);
            return out(-2, "0", 0);
        }
        let (mut mine, mut busy, mut wait) = (0, 0, 0);
        for (place, lock) in (1..).zip(&locks) {
            if self.has_field(&lock[0], field) {
                mine += 1;
                continue;
            }
            let ms = self.pttl(&lock[0], run.now);
            if ms != -2 {
                busy = if busy == 0 { place } else { busy };
                wait = if ms == -1 || wait == -1 { -1 } else { ms.max(wait) };
            }
        }
        let again = match (&latch, self.latches) {
            (Some(token), _) => Some(token.clone()),
            (None, Latches::On | Latches::Brief) => None,
            // Without a latch only the fields show that this owner was granted.
            (None, Latches::Off) => {
                (mine == locks.len()).then(|| self.text(&locks[0][1]).unwrap_or_default())
            }
        };
        if let Some(token) = again {
            if mine < locks.len() {
                return out(-3, &token, 0);
            }
            if run.is_late() {
                return out(-1, "0", 0);
            }
            let left = locks.iter().map(|lock| self.extend_ttl(&lock[0], lease, run.now)).min();
            self.extend_ttl(&run.keys[0], run.record_ttl(lease), run.now);
            return out(2, &token, left.unwrap());
        }
        if mine > 0 {
            return out(-3, "0", 0);
        }
        if run.is_late() {
            return out(-1, "0", 0);
        }
        if busy > 0 {
            if self.is_group(&locks[busy - 1][0]) {
                return other_kind();
            }
            if run.args[6] == "1" {
                self.set_latch(&run.keys[0], "x0", run.record_ttl(0), run.now);
            }
            return out(0, &busy.to_string(), wait);
        }
        self.grant(run, &locks, field, lease)
    }

    fn grant(&mut self, run: &Run<'_>, locks: &[&[String]], field: &str, lease: u64) -> Out {
        let mut token = 0;
        for lock in locks {
            if let Some(last) = self.text(&lock[1]) {
                let Some(last) = last.parse::<u64>().ok().filter(|last| *last < (1 << 53) - 1)
                else {
                    return out(-6, "0", 0);
                };
                token = token.max(last + 1);
            }
        }
        // The model has always been up, so it is never too young to vote (argument 10).
        let proposal = run.args.get(9).and_then(|proposal| proposal.parse().ok());
        token = proposal
            .filter(|proposal| (token..=run.micros + 1_000_000).contains(proposal))
            .unwrap_or_else(|| {
                if self.leaves_out(FOLLOWS) { token.max(1) } else { token.max(run.micros) }
            });
        let kept: u64 = run.args[7].parse().unwrap();
        let kinds = run.args.get(8).map_or("", String::as_str).chars().chain(iter::repeat('x'));
        for (lock, kind) in locks.iter().zip(kinds) {
            self.store_token(run, &lock[1], token, kept, kind == 'f');
            let hash = BTreeMap::from([(field.to_owned(), "1".to_owned())]);
            self.put(&lock[0], Value::Hash(hash), Some(run.now + lease));
        }
        self.set_latch(&run.keys[0], &token.to_string(), run.record_ttl(lease), run.now);
        for channel in run.args.iter().skip(11) {
            self.publish_acquired(run, channel, lease);
        }
        out(1, &token.to_string(), i64::try_from(lease).unwrap())
    }

    pub(super) fn lock_raise(&mut self, run: &Run<'_>) -> Out {
        let (field, token) = (run.args[4].as_str(), run.args[5].parse::<u64>().unwrap());
        if run.is_late() {
            return out(-1, "0", 0);
        }
        let locks: Vec<&[String]> = run.keys[1..].chunks(2).collect();
        let Some(latch) = self.latch(&run.keys[0]).filter(|latch| !is_tombstone(latch)) else {
            return out(-3, "0", 0);
        };
        let mut last: u64 = latch.parse().unwrap();
        for lock in &locks {
            if !self.has_field(&lock[0], field) {
                return out(-3, "0", 0);
            }
            last = last.max(self.text(&lock[1]).map_or(0, |stored| stored.parse().unwrap()));
        }
        if last > token {
            return out(1, &last.to_string(), 0);
        }
        let newest = run.micros + 60_000_000;
        if token > last.max(newest) {
            return out(-9, &newest.to_string(), 0);
        }
        let kept: u64 = run.args[6].parse().unwrap();
        for lock in &locks {
            self.store_token(run, &lock[1], token, kept, false);
        }
        let ends_at = self.keys[&run.keys[0]].expires_at;
        self.put(&run.keys[0], Value::Text(token.to_string()), ends_at);
        out(1, &token.to_string(), 0)
    }

    pub(super) fn lock_renew(&mut self, run: &Run<'_>) -> Out {
        let (field, lease, token) =
            (run.args[4].as_str(), run.args[5].parse().unwrap(), run.args[6].as_str());
        if run.is_late() {
            return out(-1, "0", 0);
        }
        if self.latches != Latches::Off && self.latch(&run.keys[0]).as_deref() != Some(token) {
            return out(-3, "0", 0);
        }
        if !run.keys[1..].iter().all(|lock| self.has_field(lock, field)) {
            return out(-3, "0", 0);
        }
        let left = run.keys[1..].iter().map(|lock| self.extend_ttl(lock, lease, run.now)).min();
        self.extend_ttl(&run.keys[0], run.record_ttl(lease), run.now);
        out(1, token, left.unwrap())
    }

    pub(super) fn lock_release(&mut self, run: &Run<'_>) -> Out {
        let field = run.args[4].as_str();
        let locks: Vec<&[String]> = run.keys[1..].chunks(2).collect();
        if let Some(latch) = self.latch(&run.keys[0]).filter(|latch| is_tombstone(latch)) {
            self.prolong_tombstone(run);
            return out(latch[1..].parse().unwrap(), "0", 0);
        }
        let mut held = 0;
        for lock in &locks {
            if self.remove_field(&lock[0], field) {
                held += 1;
                self.publish_to_both(run, &lock[1], "0");
            }
        }
        let code = i64::from(held == locks.len());
        self.set_latch(&run.keys[0], &format!("x{code}"), run.record_ttl(0), run.now);
        out(code, "0", 0)
    }

    pub(super) fn lock_force_release(&mut self, run: &Run<'_>) -> Out {
        self.once(run, |model| {
            if model.is_group(&run.keys[1]) {
                let (code, error, _) = other_kind();
                return (code, error);
            }
            let held = model.delete(&run.keys[1]);
            if held {
                model.publish_to_both(run, &run.keys[2], "0");
            }
            (i64::from(held), "0".into())
        })
    }

    pub(super) fn lock_inspect(&self, run: &Run<'_>) -> Out {
        let (lock, field) = (&run.keys[0], run.args[4].as_str());
        let count: i64 = match self.keys.get(lock).map(|entry| &entry.value) {
            Some(Value::Hash(hash)) => {
                hash.values().filter_map(|count| count.parse::<i64>().ok()).sum()
            }
            _ => 0,
        };
        let ms = self.pttl(lock, run.now);
        let mine = i64::from(self.has_field(lock, field));
        let last = self.text(&run.keys[1]).unwrap_or_else(|| "0".into());
        out(i64::from(ms != -2), &format!("{last},{count},{mine}"), ms)
    }
}
