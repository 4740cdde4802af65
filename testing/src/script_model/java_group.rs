//! Redisson's scripts of a group of values: the meaning of `tests/scripts/java/group_*.lua`.

use super::ScriptModel;

/// One run of a script of Redisson's.
#[derive(Clone, Debug)]
pub struct JavaGroup<'a> {
    /// The group's name.
    pub group: &'a str,
    /// The caller.
    pub holder: &'a str,
    /// The clock of the caller's machine.
    pub clock: u64,
    /// The fields of the values.
    pub fields: &'a [String],
}

impl ScriptModel {
    /// Acquires the values; returns the remaining milliseconds of the longest hold that excludes
    /// it.
    pub fn java_group_acquire(&mut self, run: &JavaGroup<'_>, lease: u64, now: u64) -> Option<u64> {
        self.expire(now);
        let taken = run.fields.iter().filter_map(|field| {
            let owner = self.field(run.group, field).filter(|owner| *owner != run.holder)?;
            self.ends_at(run.group, field, owner).filter(|ends_at| *ends_at > run.clock)
        });
        if let Some(ends_at) = taken.max() {
            return Some(ends_at - run.clock);
        }
        let had = self.hash(run.group).is_some();
        for field in run.fields {
            let old = self.ends_at(run.group, field, run.holder).unwrap_or(0);
            let count = self.java_count(run, field).unwrap_or(0) + 1;
            self.set_field(run.group, field, run.holder);
            self.put_helper(run, field, "expire_time", old.max(run.clock + lease));
            self.put_helper(run, field, "lock_count", count);
        }
        if !had {
            self.pexpire(run.group, lease, now);
        } else if self.pttl(run.group, now) > 0 {
            self.extend_ttl(run.group, lease, now);
        }
        None
    }

    /// Extends the hold; returns whether all values are held.
    pub fn java_group_renew(&mut self, run: &JavaGroup<'_>, lease: u64, now: u64) -> bool {
        self.expire(now);
        for field in run.fields {
            if self.field(run.group, field) != Some(run.holder) {
                return false;
            }
            let old = self.ends_at(run.group, field, run.holder).unwrap_or(0);
            self.put_helper(run, field, "expire_time", old.max(run.clock + lease));
        }
        self.extend_ttl(run.group, lease, now);
        true
    }

    /// Ends one entry. Returns `None` if not all values were held. The latch of the unlock is not
    /// modelled, since each call is made once here.
    pub fn java_group_unlock(&mut self, run: &JavaGroup<'_>, lease: u64, now: u64) -> Option<bool> {
        self.expire(now);
        let (mut failed, mut all) = (self.hash(run.group).is_none(), true);
        for field in run.fields {
            let ends_at = self.ends_at(run.group, field, run.holder);
            if ends_at.is_none_or(|ends_at| ends_at < run.clock) {
                failed = true;
                continue;
            }
            let left = self.java_count(run, field).unwrap_or(0) - 1;
            if left > 0 {
                self.put_helper(run, field, "lock_count", left);
                self.put_helper(run, field, "expire_time", run.clock + lease);
                all = false;
                continue;
            }
            let helper = format!("{field}:{}", run.holder);
            for gone in [field.clone(), helper.clone() + ":expire_time", helper + ":lock_count"] {
                self.remove_field(run.group, &gone);
            }
        }
        if !failed && !all {
            self.extend_ttl(run.group, lease, now);
        }
        (!failed).then_some(all)
    }

    fn ends_at(&self, group: &str, field: &str, owner: &str) -> Option<u64> {
        self.field(group, &format!("{field}:{owner}:expire_time"))?.parse().ok()
    }

    fn java_count(&self, run: &JavaGroup<'_>, field: &str) -> Option<u64> {
        self.field(run.group, &format!("{field}:{}:lock_count", run.holder))?.parse().ok()
    }

    fn put_helper(&mut self, run: &JavaGroup<'_>, field: &str, what: &str, value: u64) {
        let key = format!("{field}:{}:{what}", run.holder);
        self.set_field(run.group, &key, &value.to_string());
    }
}
