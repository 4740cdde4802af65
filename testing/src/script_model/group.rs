//! The scripts of a group of values.

use std::collections::BTreeSet;

use super::kind::other_kind;
use super::{Latches, Out, Run, ScriptModel, Value, is_tombstone, out};

/// The largest group that is searched for entries of earlier owners, in fields.
const SWEPT: usize = 1024;

/// How long a group is kept for a hold, in milliseconds.
const fn kept(lease: u64, pad: u64) -> u64 {
    lease + 2 * pad + 1_000
}

impl ScriptModel {
    pub(super) fn group(&mut self, name: &str, run: &Run<'_>) -> Out {
        match name {
            "group_acquire" => self.group_acquire(run),
            "group_renew" => self.group_renew(run),
            "group_release" => self.group_release(run),
            "group_force_release" => self.group_force_release(run),
            "group_inspect" => self.group_inspect(run),
            other => panic!("the model does not know `{other}`"),
        }
    }

    fn group_acquire(&mut self, run: &Run<'_>) -> Out {
        let (group, owner, fields) = (&run.keys[1], run.args[4].as_str(), &run.args[9..]);
        let (lease, pad) = (number(run, 5), number(run, 8));
        let latch = self.latch(&run.keys[0]);
        if latch.as_deref().is_some_and(is_tombstone) {
            self.prolong_tombstone(run);
            return out(-2, "0", 0);
        }
        let mine = fields.iter().filter(|field| self.field(group, field) == Some(owner)).count();
        let taken: Vec<(usize, u64)> = (1..)
            .zip(fields)
            .filter(|(_, field)| self.field(group, field) != Some(owner))
            .filter_map(|(place, field)| {
                Some((place, self.group_left(group, field, pad, run.now)?))
            })
            .collect();
        // Without latches only the fields show that this owner was granted.
        let again = if self.latches == Latches::Off && mine == fields.len() {
            self.text(&run.keys[2])
        } else {
            latch
        };
        if let Some(token) = again {
            if mine < fields.len() && !self.leaves_out("a repeat needs all values") {
                return out(-3, &token, 0);
            }
            if run.is_late() {
                return out(-1, "0", 0);
            }
            let left = self.extend_values(run, fields, lease, pad);
            return out(2, &token, left);
        }
        if mine > 0 {
            return out(-3, "0", 0);
        }
        if run.is_late() {
            return out(-1, "0", 0);
        }
        if let Some((place, _)) = taken.first() {
            if run.args[6] == "1" {
                self.set_latch(&run.keys[0], "x0", run.record_ttl(0), run.now);
            }
            let left = taken.iter().map(|(_, left)| *left).max().unwrap();
            return out(0, &place.to_string(), self.within(group, left, run.now));
        }
        self.group_grant(run, lease, pad)
    }

    fn group_grant(&mut self, run: &Run<'_>, lease: u64, pad: u64) -> Out {
        let (group, owner, fields) = (&run.keys[1], run.args[4].as_str(), &run.args[9..]);
        let wanted: BTreeSet<&str> = fields.iter().map(String::as_str).collect();
        if self.is_lock(group) {
            return other_kind();
        }
        let all = self.hash(group).cloned().unwrap_or_default();
        let last_owners: BTreeSet<String> = fields
            .iter()
            .filter_map(|field| Some(format!("{field}:{}:", all.get(field)?)))
            .collect();
        let old: Vec<String> = all
            .keys()
            .filter(|key| key.len() > 22 && wanted.contains(&key[..22]))
            .filter(|key| !key[23..].starts_with(owner))
            .filter(|key| {
                all.len() <= SWEPT || last_owners.iter().any(|owner| key.starts_with(owner))
            })
            .filter(|_| !self.leaves_out("fields of earlier owners are removed"))
            .cloned()
            .collect();
        let Some(token) = self.mint(run, &run.keys[2], number(run, 7)) else {
            return out(-6, "0", 0);
        };
        self.set_latch(&run.keys[0], &token, run.record_ttl(lease), run.now);
        let has_end = self.pttl(group, run.now) != -1;
        for field in fields {
            self.set_field(group, field, owner);
            let ends_at = run.now + lease + self.group_pad(pad);
            self.set_field(group, &format!("{field}:{owner}:expire_time"), &ends_at.to_string());
            self.set_field(group, &format!("{field}:{owner}:lock_count"), "1");
        }
        for field in &old {
            self.remove_field(group, field);
        }
        if has_end {
            self.extend_ttl(group, kept(lease, pad), run.now);
        }
        out(1, &token, i64::try_from(lease).unwrap())
    }

    fn group_renew(&mut self, run: &Run<'_>) -> Out {
        let (group, owner, fields) = (&run.keys[1], run.args[4].as_str(), &run.args[8..]);
        if run.is_late() {
            return out(-1, "0", 0);
        }
        if self.latches != Latches::Off && self.latch(&run.keys[0]).as_deref() != Some(&run.args[6])
        {
            return out(-3, "0", 0);
        }
        let lost = fields.iter().position(|field| self.field(group, field) != Some(owner));
        if let Some(place) = lost.filter(|_| !self.leaves_out("a renewal needs all values")) {
            return out(-3, &(place + 1).to_string(), 0);
        }
        let left = self.extend_values(run, fields, number(run, 5), number(run, 7));
        out(1, &run.args[6], left)
    }

    fn group_release(&mut self, run: &Run<'_>) -> Out {
        let (group, owner, fields) = (&run.keys[1], run.args[4].as_str(), &run.args[5..]);
        if let Some(latch) = self.latch(&run.keys[0]).filter(|latch| is_tombstone(latch)) {
            self.prolong_tombstone(run);
            return out(latch[1..].parse().unwrap(), "0", 0);
        }
        let mut held = 0;
        for field in fields {
            let mine = self.field(group, field) == Some(owner);
            held += usize::from(mine);
            if mine || self.leaves_out("a release leaves others' values alone") {
                self.remove_field(group, field);
            }
            self.remove_field(group, &format!("{field}:{owner}:expire_time"));
            self.remove_field(group, &format!("{field}:{owner}:lock_count"));
        }
        if held > 0 {
            self.publish_to_both(run, &run.keys[2], "0");
        }
        let code = i64::from(held == fields.len());
        self.set_latch(&run.keys[0], &format!("x{code}"), run.record_ttl(0), run.now);
        out(code, "0", 0)
    }

    fn group_force_release(&mut self, run: &Run<'_>) -> Out {
        self.once(run, |model| {
            let (group, mut freed) = (&run.keys[1], 0);
            for field in &run.args[5..] {
                let Some(owner) = model.field(group, field).map(ToOwned::to_owned) else {
                    continue;
                };
                freed += 1;
                model.remove_field(group, field);
                model.remove_field(group, &format!("{field}:{owner}:expire_time"));
                model.remove_field(group, &format!("{field}:{owner}:lock_count"));
            }
            if freed > 0 {
                model.publish_to_both(run, &run.keys[2], "0");
            }
            (i64::from(freed > 0), freed.to_string())
        })
    }

    fn group_inspect(&self, run: &Run<'_>) -> Out {
        let (group, owner, fields) = (&run.keys[1], run.args[4].as_str(), &run.args[6..]);
        let taken: Vec<(&String, u64)> = fields
            .iter()
            .filter_map(|field| {
                Some((field, self.group_left(group, field, number(run, 5), run.now)?))
            })
            .collect();
        let count = |field: &str| {
            let holder = self.field(group, field)?;
            self.field(group, &format!("{field}:{holder}:lock_count"))?.parse::<u64>().ok()
        };
        let largest = taken.iter().filter_map(|(field, _)| count(field)).max().unwrap_or(0);
        let mine =
            taken.iter().filter(|(field, _)| self.field(group, field) == Some(owner)).count();
        let last = self.text(&run.keys[0]).unwrap_or_else(|| "0".into());
        let value = format!("{last},{largest},{},{}", i64::from(mine == fields.len()), taken.len());
        let left = taken.iter().map(|(_, left)| *left).max();
        let ms = left.map_or(-2, |left| self.within(group, left, run.now));
        out(i64::from(!taken.is_empty()), &value, ms)
    }

    /// `remaining` of `parts/group.lua`, for any owner.
    fn group_left(&self, group: &str, field: &str, pad: u64, now: u64) -> Option<u64> {
        let owner = self.field(group, field)?;
        let ends_at: u64 =
            self.field(group, &format!("{field}:{owner}:expire_time"))?.parse().ok()?;
        let ours = owner.as_bytes().get(14) == Some(&b'8');
        let pad = if ours || self.leaves_out("a clock of Java's may be behind") { 0 } else { pad };
        (ends_at + pad > now).then(|| ends_at + pad - now)
    }

    fn group_pad(&self, pad: u64) -> u64 {
        if self.leaves_out("a clock of Java's may be ahead") { 0 } else { pad }
    }

    fn within(&self, group: &str, left: u64, now: u64) -> i64 {
        let (all, left) = (self.pttl(group, now), i64::try_from(left).unwrap());
        if all >= 0 { all.min(left) } else { left }
    }

    /// `parts/extend_values.lua`
    fn extend_values(&mut self, run: &Run<'_>, fields: &[String], lease: u64, pad: u64) -> i64 {
        let (group, owner) = (&run.keys[1], run.args[4].as_str());
        self.extend_ttl(&run.keys[0], run.record_ttl(lease), run.now);
        let mut least = u64::MAX;
        for field in fields {
            let key = format!("{field}:{owner}:expire_time");
            let ends_at = self.field(group, &key).and_then(|at| at.parse().ok()).unwrap_or(0);
            let ends_at = ends_at.max(run.now + lease + self.group_pad(pad));
            self.set_field(group, &key, &ends_at.to_string());
            least = least.min(ends_at);
        }
        if self.pttl(group, run.now) != -1 {
            self.extend_ttl(group, kept(lease, pad), run.now);
        }
        i64::try_from(least).unwrap() - i64::try_from(run.now + pad).unwrap()
    }

    /// The recorded owner of a value.
    pub fn holder(&self, group: &str, field: &str, server_ms: u64) -> Option<&str> {
        let entry = self.keys.get(group).filter(|entry| !entry.is_over(server_ms))?;
        match &entry.value {
            Value::Hash(hash) => hash.get(field).map(String::as_str),
            _ => None,
        }
    }
}

fn number(run: &Run<'_>, place: usize) -> u64 {
    run.args[place].parse().unwrap()
}
