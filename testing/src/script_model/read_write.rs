//! The scripts of the read-write lock, except for the writer's own.

use super::kind::other_kind;
use super::{Out, Run, ScriptModel, Value, is_tombstone, out};

/// The rules that a test may leave out.
pub mod rules {
    /// C6: code 2 extends the hold.
    pub const REPEAT_EXTENDS: &str = "a repeat extends";
    /// C4: a refused last try leaves the tombstone.
    pub const LAST_TRY: &str = "a last try leaves the tombstone";
    /// R1: an edgelatch read hold has a timeout key, like one of Redisson's.
    pub const TIMEOUT_KEYS: &str = "a read hold has a timeout key";
    /// R2: a writer ignores readers only once their timeout keys have expired.
    pub const ALIVE: &str = "a read hold lives as long as its timeout key";
    /// R3: a timeout key without an expiry counts as alive.
    pub const NO_END: &str = "what has no end is alive";
    /// R4: the end of a read inside a write leaves the expiry of the hash alone.
    pub const WRITER_S_END: &str = "in mode write the end of the hash is the writer's";
    /// R4: the end of the last live reader removes the entries of dead readers; otherwise the hash
    /// lasts as long as the longest remaining read hold.
    pub const READERS_END: &str = "the hash lasts as long as its longest read hold";
    /// R2: dead readers do not delay a writer.
    pub const DEAD_READERS: &str = "dead readers do not hold a writer up";
    /// R5: readers share a token.
    pub const EPOCH: &str = "readers share a token";
    /// R6: a downgrade mints a new token for the reads inside the write.
    pub const DOWNGRADE: &str = "a downgrade mints an epoch";
    /// R6: a read inside a write that was not notified of the downgrade takes the new token in its
    /// next call.
    pub const RISES: &str = "a read that outlives its write takes the epoch";
    /// R7: only the writer's own owner may read inside a write.
    pub const PARENT: &str = "only the writer reads inside its write";
    /// R8: a writer that leaves removes its want.
    pub const WANT_ENDS: &str = "a want ends with its writer";
}

/// The mode of the hash, for a call about it.
pub(super) enum Mode {
    Absent,
    Read,
    Write,
    Group,
    /// The hash is not a read-write lock's.
    Other,
}

impl ScriptModel {
    pub(super) fn read_write(&mut self, script: &str, run: &Run<'_>) -> Out {
        match script {
            "read_acquire" => self.read_acquire(run),
            "read_renew" => self.read_renew(run),
            "read_release" => self.read_release(run),
            "write_acquire" => self.write_acquire(run),
            "write_release" => self.write_release(run),
            "rw_force_release" => self.rw_force_release(run),
            "rw_inspect" => self.rw_inspect(run),
            other => panic!("the model does not know `{other}`"),
        }
    }

    pub(super) fn mode(&self, name: &str) -> Mode {
        match (self.field(name, "mode"), self.hash(name)) {
            (_, None) => Mode::Absent,
            (Some("read"), _) => Mode::Read,
            (Some("write"), _) => Mode::Write,
            _ if self.is_group(name) => Mode::Group,
            _ => Mode::Other,
        }
    }

    fn read_acquire(&mut self, run: &Run<'_>) -> Out {
        let [latch_key, name, timeout, token_key, epoch, want, parents @ ..] = run.keys else {
            panic!("too few keys")
        };
        let (field, lease, kept) =
            (run.args[4].as_str(), number(&run.args[5]), number(&run.args[7]));
        let mine = self.has_field(name, field);
        let holds = mine && (self.leaves_out(rules::TIMEOUT_KEYS) || self.has(timeout));
        if let Some(answer) = self.asked_before(run, mine, holds) {
            return answer.unwrap_or_else(|latch| {
                let token = self.current_token(run, &latch, epoch);
                self.raise(run, &latch, &token, lease);
                let extends = !self.leaves_out(rules::REPEAT_EXTENDS);
                let left = if extends {
                    self.prolong_read(run, lease)
                } else {
                    self.pttl(timeout, run.now)
                };
                out(2, &token, left)
            });
        }
        let (mode, mut ms) = (self.mode(name), self.pttl(name, run.now));
        let parent = &run.args[8];
        let inside = matches!(mode, Mode::Write)
            && (self.leaves_out(rules::PARENT)
                || !parent.is_empty() && self.has_field(name, parent));
        let wanted = self.pttl(want, run.now);
        let open = match mode {
            Mode::Absent | Mode::Read => {
                ms = if wanted > 0 { wanted } else { ms };
                wanted <= 0
            }
            Mode::Write => inside,
            Mode::Group => return other_kind(),
            Mode::Other => false,
        };
        if !open {
            self.refused(run);
            return out(0, "1", ms);
        }
        let source = parents.first().filter(|_| inside).unwrap_or(epoch);
        let shared =
            self.text(source).filter(|token| token.parse::<u64>().is_ok()).filter(|token| {
                inside
                    || Some(token) == self.text(token_key).as_ref()
                        && !self.leaves_out(rules::EPOCH)
            });
        let token = match shared {
            Some(token) => {
                if !inside && self.pttl(token_key, run.now) >= 0 {
                    self.extend_ttl(token_key, kept, run.now);
                }
                token
            }
            None => match self.mint(run, token_key, kept) {
                Some(token) => token,
                None => return out(-6, "0", 0),
            },
        };
        if !inside {
            self.put(epoch, Value::Text(token.clone()), Some(run.now + kept));
        }
        self.set_latch(latch_key, &token, run.record_ttl(lease), run.now);
        if !self.leaves_out(rules::TIMEOUT_KEYS) {
            self.put(timeout, Value::Text("1".into()), Some(run.now + lease));
        }
        self.set_field(name, "mode", if inside { "write" } else { "read" });
        self.set_field(name, field, "1");
        self.extend_ttl(name, lease, run.now);
        out(1, &token, whole(lease))
    }

    /// The start of every acquisition: the final reply, or `Err` with the token that was granted
    /// already, or `None` for a new acquisition.
    pub(super) fn asked_before(
        &mut self,
        run: &Run<'_>,
        mine: bool,
        holds: bool,
    ) -> Option<Result<Out, String>> {
        let latch = self.latch(&run.keys[0]);
        Some(match latch {
            Some(latch) if is_tombstone(&latch) => {
                self.prolong_tombstone(run);
                Ok(out(-2, "0", 0))
            }
            Some(latch) if !holds => Ok(out(-3, &latch, 0)),
            Some(_) if run.is_late() => Ok(out(-1, "0", 0)),
            Some(latch) => Err(latch),
            None if mine => Ok(out(-3, "0", 0)),
            None if run.is_late() => Ok(out(-1, "0", 0)),
            None => return None,
        })
    }

    fn prolong_read(&mut self, run: &Run<'_>, lease: u64) -> i64 {
        let left = self.extend_ttl(&run.keys[2], lease, run.now);
        let least = if self.has(&run.keys[2]) { left.unsigned_abs() } else { lease };
        self.extend_ttl(&run.keys[1], least, run.now);
        self.extend_ttl(&run.keys[0], run.record_ttl(lease), run.now);
        left
    }

    /// Busy: a last try leaves the tombstone.
    pub(super) fn refused(&mut self, run: &Run<'_>) {
        if run.args[6] == "1" && !self.leaves_out(rules::LAST_TRY) {
            self.set_latch(&run.keys[0], "x0", run.record_ttl(0), run.now);
        }
    }

    fn read_renew(&mut self, run: &Run<'_>) -> Out {
        let (field, lease, token) =
            (run.args[4].as_str(), number(&run.args[5]), number(&run.args[6]));
        if run.is_late() {
            return out(-1, "0", 0);
        }
        let latch = self.latch(&run.keys[0]).filter(|latch| latch.parse::<u64>().is_ok());
        let timed = self.leaves_out(rules::TIMEOUT_KEYS) || self.has(&run.keys[2]);
        let held = self.has_field(&run.keys[1], field) && timed;
        let Some(latch) = latch.filter(|_| held) else { return out(-3, "0", 0) };
        let current_token = self.current_token(run, &latch, &run.keys[3]);
        if number(&current_token) < token {
            return out(-3, "0", 0);
        }
        self.raise(run, &latch, &current_token, lease);
        out(1, &current_token, self.prolong_read(run, lease))
    }

    /// `parts/current_token.lua`: the token of an existing read hold.
    fn current_token(&self, run: &Run<'_>, latch: &str, epoch: &str) -> String {
        let reads = matches!(self.mode(&run.keys[1]), Mode::Read);
        let newer = |token: &String| token.parse::<u64>().is_ok_and(|token| token > number(latch));
        let epoch = self.text(epoch).filter(|_| reads && !self.leaves_out(rules::RISES));
        epoch.filter(newer).unwrap_or_else(|| latch.to_owned())
    }

    /// Writes the token of `parts/current_token.lua` to the latch.
    fn raise(&mut self, run: &Run<'_>, latch: &str, token: &str, lease: u64) {
        if token != latch {
            let life =
                run.record_ttl(lease).max(self.pttl(&run.keys[0], run.now).max(0).unsigned_abs());
            self.set_latch(&run.keys[0], token, life, run.now);
        }
    }

    fn read_release(&mut self, run: &Run<'_>) -> Out {
        let (name, field) = (&run.keys[1], run.args[4].as_str());
        if let Some(latch) = self.latch(&run.keys[0]).filter(|latch| is_tombstone(latch)) {
            self.prolong_tombstone(run);
            return out(number(&latch[1..]).cast_signed(), "0", 0);
        }
        let reads = matches!(self.mode(name), Mode::Read)
            || self.leaves_out(rules::WRITER_S_END) && matches!(self.mode(name), Mode::Write);
        let has_mode = self.field(name, "mode").is_some();
        let alive = (reads && self.has_field(name, field))
            .then(|| self.alive(name, &run.args[5], field, run.now));
        let timed = self.delete(&run.keys[2]) || self.leaves_out(rules::TIMEOUT_KEYS);
        let held = self.remove_field(name, field);
        if held {
            let only_mode = has_mode && self.hash(name).is_some_and(|hash| hash.len() == 1);
            let ends = alive == Some(0) && matches!(self.mode(name), Mode::Read);
            match alive {
                _ if ends || only_mode => {
                    self.delete(name);
                    self.publish_to_both(run, &run.keys[3], "0");
                }
                Some(ms @ 1..) if !self.leaves_out(rules::READERS_END) => {
                    self.pexpire(name, ms.unsigned_abs(), run.now);
                }
                _ => {}
            }
        }
        let code = i64::from(held && timed);
        self.set_latch(&run.keys[0], &format!("x{code}"), run.record_ttl(0), run.now);
        out(code, "0", 0)
    }

    fn rw_force_release(&mut self, run: &Run<'_>) -> Out {
        self.once(run, |model| {
            let (name, side) = (&run.keys[1], run.args[5].as_str());
            let held = model.field(name, "mode") == Some(side) && model.delete(name);
            if held {
                model.publish_to_both(run, &run.keys[2], if side == "read" { "0" } else { "1" });
            }
            (i64::from(held), "0".into())
        })
    }

    fn rw_inspect(&self, run: &Run<'_>) -> Out {
        let (name, field, side) = (&run.keys[0], run.args[4].as_str(), run.args[5].as_str());
        let (mode, writes) = (self.field(name, "mode"), side == "write");
        let hash = self.hash(name).filter(|_| mode.is_some());
        let of_this_side = |field: &str| field != "mode" && field.ends_with(":write") == writes;
        let count: u64 = hash
            .into_iter()
            .flatten()
            .filter(|(field, _)| of_this_side(field))
            .filter_map(|(_, count)| count.parse::<u64>().ok())
            .sum();
        let inside = !writes && mode == Some("write") && hash.is_some_and(|hash| hash.len() > 2);
        let locked = mode == Some(side) || inside;
        let timed = run.keys.get(2).is_none_or(|key| self.has(key));
        let mine = i64::from(self.has_field(name, field) && timed);
        let last = self.text(&run.keys[1]).unwrap_or_else(|| "0".into());
        let ms = if locked { self.pttl(name, run.now) } else { -2 };
        out(i64::from(locked), &format!("{last},{count},{mine}"), ms)
    }

    /// `parts/readers_ttl.lua`
    pub(super) fn alive(&self, name: &str, prefix: &str, but: &str, now: u64) -> i64 {
        let Some(hash) = self.hash(name) else { return 0 };
        if hash.len() > 128 {
            return -1;
        }
        let (mut longest, mut keys) = (0, 0);
        for (field, count) in hash {
            let skipped = field == "mode" || field == but || field.ends_with(":write");
            let Some(count) = count.parse::<u64>().ok().filter(|count| !skipped && *count > 0)
            else {
                continue;
            };
            keys += count;
            if keys > 256 {
                return -1;
            }
            for entry in 1..=count {
                match self.pttl(&timeout_key(prefix, field, entry), now) {
                    -1 if !self.leaves_out(rules::NO_END) => return -1,
                    ms => longest = longest.max(ms),
                }
            }
        }
        longest
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.keys.contains_key(key)
    }
}

pub(super) fn timeout_key(prefix: &str, field: &str, entry: u64) -> String {
    format!("{prefix}:{field}:rwlock_timeout:{entry}")
}

pub(super) fn number(text: &str) -> u64 {
    text.parse().unwrap()
}

pub(super) fn whole(ms: u64) -> i64 {
    i64::try_from(ms).unwrap()
}
