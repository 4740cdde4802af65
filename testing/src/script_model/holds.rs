//! Holds of permits: the common part of the scripts of both kinds of semaphore. Keys as in
//! `parts/holds.lua`.

use super::{ERROR, Out, Run, ScriptModel, Value, is_tombstone, out};

/// The rules that a test may leave out.
pub mod rules {
    /// C6: code 2 extends the hold.
    pub const REPEAT_EXTENDS: &str = "a repeat extends";
    /// C4: a refused last try leaves the tombstone.
    pub const LAST_TRY: &str = "a last try leaves the tombstone";
    /// C3: an operation that no lease heals is not executed without a bound.
    pub const BOUND: &str = "no hold without an end without a bound";
    /// C7: a renewal never shortens a hold.
    pub const EXTENDS_ONLY: &str = "a renewal only extends";
    /// A renewal requires that all holds of its grant exist.
    pub const ALL_ARE_THERE: &str = "only what is held is prolonged";
    /// A release returns only holds that are in the set.
    pub const RELEASES_HELD: &str = "only what is held is given back";
    /// An acquisition that finds its holds in the set is not granted again, even if its latch is
    /// lost.
    pub const HELD_WITHOUT_LATCH: &str = "what is held is not granted again";
    /// Permits of expired holds are returned.
    pub const RETURNS_EXPIRED: &str = "what has ended is given back";
    /// A release creates no semaphore, and a missing semaphore has no holds.
    pub const NOT_THERE: &str = "a semaphore that is not there is not made";
    /// Every reply of an idempotent call is recorded.
    pub const RECORDED: &str = "a no is recorded";
}

/// Redisson's score of a hold without an end.
pub const NEVER: i64 = 922_337_203_685_477;
/// How many expired holds one call removes at most.
pub const EVICTED_MAX: usize = 500;

/// The kind of semaphore: how many permits a member stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `<permits>|<owner>`
    Semaphore,
    /// One permit per member.
    Permits,
}

impl Kind {
    pub(super) fn weight(self, member: &str) -> i64 {
        match self {
            Self::Semaphore => member.split('|').next().unwrap().parse().unwrap(),
            Self::Permits => 1,
        }
    }

    /// The index of the argument that makes an acquisition publish that no permit is left.
    const fn announces_arg(self) -> usize {
        match self {
            Self::Semaphore => 9,
            Self::Permits => 8,
        }
    }
}

/// How a dump of Redis shows the bytes of these hexadecimal digits.
pub fn raw(hex: &str) -> String {
    let bytes: Vec<u8> =
        (0..16).map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).unwrap()).collect();
    String::from_utf8(bytes).unwrap_or_else(|_| hex.into())
}

pub(super) fn raws(args: &[String]) -> Vec<String> {
    args.iter().map(|hex| raw(hex)).collect()
}

impl ScriptModel {
    /// The number under a key, if there is one.
    pub fn number(&self, key: &str) -> Option<i64> {
        self.text(key).map(|number| number.parse().unwrap())
    }

    /// `INCRBY`
    pub(super) fn add_to(&mut self, key: &str, more: i64) -> i64 {
        let sum = self.number(key).unwrap_or(0) + more;
        let expires_at = self.keys.get(key).and_then(|entry| entry.expires_at);
        self.put(key, Value::Text(sum.to_string()), expires_at);
        sum
    }

    fn give(&mut self, run: &Run<'_>, permits: i64) -> Option<i64> {
        let there = self.number(&run.keys[1]);
        if (there.is_some() || self.leaves_out(rules::NOT_THERE)) && permits > 0 {
            let available = self.add_to(&run.keys[1], permits);
            self.publish_available(run, permits, available);
            return Some(available);
        }
        there
    }

    /// A number below one is not published: it could wake no waiter.
    pub(super) fn publish_available(&mut self, run: &Run<'_>, more: i64, available: i64) {
        if more > 0 && available > 0 {
            self.publish_to_both(run, &run.keys[3], &available.to_string());
        }
    }

    /// `parts/evict.lua`
    pub(super) fn evict(&mut self, run: &Run<'_>, over: i64, kind: Kind) -> Option<i64> {
        let mut found: Vec<(i64, String)> = self
            .members(&run.keys[2])
            .iter()
            .filter(|(_, at)| (0..=over).contains(*at))
            .map(|(member, at)| (*at, member.clone()))
            .collect();
        found.sort_unstable();
        found.truncate(EVICTED_MAX);
        found.iter().for_each(|(_, member)| self.remove_member(&run.keys[2], member));
        let permits = found.iter().map(|(_, member)| kind.weight(member)).sum();
        self.give(run, if self.leaves_out(rules::RETURNS_EXPIRED) { 0 } else { permits })
    }

    /// `parts/remove_holds.lua`
    pub(super) fn free(&mut self, run: &Run<'_>, members: &[String], each: i64) -> usize {
        let held: Vec<&String> =
            members.iter().filter(|member| self.score(&run.keys[2], member).is_some()).collect();
        held.iter().for_each(|member| self.remove_member(&run.keys[2], member));
        let freed = if self.leaves_out(rules::RELEASES_HELD) { members.len() } else { held.len() };
        self.give(run, i64::try_from(freed).unwrap() * each);
        freed
    }

    /// `parts/permit_range.lua`: adds permits, which may be negative, unless the number would leave
    /// the range of a Java `int`.
    pub(super) fn change(
        &mut self,
        run: &Run<'_>,
        permits: i64,
        kind: Kind,
    ) -> Result<i64, (i64, String)> {
        let sum = self.number(&run.keys[1]).unwrap_or(0) + permits;
        let members = self.members(&run.keys[2]);
        let held: i64 = members.keys().map(|member| kind.weight(member)).sum();
        let is_high = permits > 0 && sum + held > i64::from(i32::MAX);
        if is_high || permits < 0 && sum < i64::from(i32::MIN) {
            return Err((ERROR, "LIMIT".into()));
        }
        Ok(self.add_to(&run.keys[1], permits))
    }

    /// Lets the lease of every hold that has one end at `at`.
    pub fn run_out(&mut self, set: &str, at: i64) {
        for (member, _) in self.members(set).clone().into_iter().filter(|(_, at)| *at < NEVER) {
            self.set_score(set, &member, at);
        }
    }

    /// `op == 'clear'`
    pub(super) fn clear(&mut self, run: &Run<'_>, kind: Kind) -> i64 {
        let permits = self.members(&run.keys[2]).keys().map(|member| kind.weight(member)).sum();
        self.delete(&run.keys[2]);
        self.give(run, permits);
        permits
    }

    /// `parts/lease.lua`
    fn extend(
        &mut self,
        run: &Run<'_>,
        set: &str,
        members: &[String],
        lease: Option<u64>,
        skew: i64,
    ) -> Option<i64> {
        let now = i64::try_from(run.now).unwrap();
        let scores: Option<Vec<i64>> =
            members.iter().map(|member| self.score(set, member)).collect();
        let scores = match scores {
            Some(scores) => scores,
            None if self.leaves_out(rules::ALL_ARE_THERE) => vec![0; members.len()],
            None => return None,
        };
        self.extend_ttl(&run.keys[0], run.record_ttl(lease.unwrap_or(0)), run.now);
        let to = ends(run, lease, skew);
        for (member, at) in members.iter().zip(&scores) {
            if *at < to || self.leaves_out(rules::EXTENDS_ONLY) {
                self.set_score(set, member, to);
            }
        }
        let first = scores.into_iter().map(|at| at.max(to)).min().unwrap();
        Some(if first < NEVER { first - skew - now } else { -1 })
    }

    /// `parts/acquire_permits.lua`
    pub(super) fn take(
        &mut self,
        run: &Run<'_>,
        members: &[String],
        permits: i64,
        skew: i64,
        kind: Kind,
    ) -> Out {
        let (latch, lease): (_, Option<u64>) = (self.latch(&run.keys[0]), run.args[5].parse().ok());
        let (now, set) = (i64::try_from(run.now).unwrap(), &run.keys[2]);
        if latch.as_deref().is_some_and(is_tombstone) {
            self.prolong_tombstone(run);
            return out(-2, "0", 0);
        }
        if run.is_late() {
            return out(-1, "0", 0);
        }
        if run.not_after.is_none() && lease.is_none() && !self.leaves_out(rules::BOUND) {
            return out(-4, "0", 0);
        }
        if let Some(token) = latch {
            let there = members.iter().all(|member| self.score(set, member).is_some());
            if there && self.leaves_out(rules::REPEAT_EXTENDS) {
                return out(2, &token, lease.map_or(-1, |lease| i64::try_from(lease).unwrap()));
            }
            return match self.extend(run, set, members, lease, skew) {
                Some(ms) => out(2, &token, ms),
                None => out(-3, &token, 0),
            };
        }
        let held = members.iter().any(|member| self.score(set, member).is_some());
        if held && !self.leaves_out(rules::HELD_WITHOUT_LATCH) {
            return out(-3, "0", 0);
        }
        let available = self.evict(run, now - skew, kind);
        if available.is_none() && kind == Kind::Semaphore && !self.leaves_out(rules::NOT_THERE) {
            self.delete(set);
        }
        if available.is_none_or(|available| available < permits) {
            if run.args[6] == "1" && !self.leaves_out(rules::LAST_TRY) {
                self.set_latch(&run.keys[0], "x0", run.record_ttl(0), run.now);
            }
            let first = self.members(set).values().copied().min().filter(|at| *at < NEVER);
            let ms = first.map_or(-1, |at| (at + skew - now).max(0));
            let value = available.map_or_else(String::new, |available| available.to_string());
            return out(0, &value, ms);
        }
        let kept = run.args[7].parse().unwrap();
        let Some(token) = self.mint(run, &run.keys[4], kept) else { return out(-6, "0", 0) };
        self.set_latch(&run.keys[0], &token, run.record_ttl(lease.unwrap_or(0)), run.now);
        members.iter().for_each(|member| self.set_score(set, member, ends(run, lease, skew)));
        let ms = self.pttl(&run.keys[1], run.now);
        if ms > 0 {
            self.pexpire(set, ms.unsigned_abs(), run.now);
        }
        self.add_to(&run.keys[1], -permits);
        let announces_arg = run.args.get(kind.announces_arg()).is_some_and(|flag| flag == "1");
        if announces_arg && available == Some(permits) {
            let zeros = self.listeners(&run.keys[3]).clamp(1, 20);
            self.publish_to_both(run, &run.keys[3], &"0".repeat(zeros));
        }
        out(1, &token, lease.map_or(-1, |lease| i64::try_from(lease).unwrap()))
    }

    /// `parts/renew.lua`
    pub(super) fn renew(&mut self, run: &Run<'_>, members: &[String], skew: i64) -> Out {
        if run.is_late() {
            return out(-1, "0", 0);
        }
        let token = &run.args[4];
        let granted = self.latch(&run.keys[0]).is_none_or(|latch| latch == *token)
            || self.leaves_out(rules::ALL_ARE_THERE);
        let extended = granted
            .then(|| self.extend(run, &run.keys[1], members, run.args[5].parse().ok(), skew))
            .flatten();
        extended.map_or_else(|| out(-3, "0", 0), |ms| out(1, token, ms))
    }

    /// `parts/release_holds.lua`
    pub(super) fn give_back(&mut self, run: &Run<'_>, members: &[String], each: i64) -> Out {
        let recorded = self.latch(&run.keys[0]).filter(|latch| is_tombstone(latch));
        let freed = match recorded {
            Some(latch) => {
                self.prolong_tombstone(run);
                latch[1..].parse().unwrap()
            }
            None => {
                let freed = self.free(run, members, each);
                self.set_latch(&run.keys[0], &format!("x{freed}"), run.record_ttl(0), run.now);
                freed
            }
        };
        out(i64::from(freed == members.len()), &freed.to_string(), 0)
    }

    /// `parts/once.lua`, unless the rule to record refusals is left out.
    pub(super) fn recorded(
        &mut self,
        run: &Run<'_>,
        act: impl FnOnce(&mut Self) -> (i64, String),
    ) -> Out {
        let answer = self.once(run, act);
        if answer.0 != 1 && self.leaves_out(rules::RECORDED) {
            self.delete(&run.keys[0]);
        }
        answer
    }
}

pub(super) fn ends(run: &Run<'_>, lease: Option<u64>, skew: i64) -> i64 {
    lease.map_or(NEVER, |lease| i64::try_from(run.now + lease).unwrap() + skew)
}
