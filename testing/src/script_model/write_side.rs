//! The scripts of the write side of a read-write lock.

use super::kind::other_kind;
use super::read_write::{Mode, number, rules, whole};
use super::{Out, Run, ScriptModel, Value, is_tombstone, out};

impl ScriptModel {
    pub(super) fn write_acquire(&mut self, run: &Run<'_>) -> Out {
        let [latch_key, name, token_key, want, channel] = run.keys else { panic!("too few keys") };
        let (field, lease, kept) =
            (run.args[4].as_str(), number(&run.args[5]), number(&run.args[7]));
        let mine = self.has_field(name, field);
        if let Some(answer) = self.asked_before(run, mine, mine) {
            return answer.unwrap_or_else(|token| {
                if !self.leaves_out(rules::REPEAT_EXTENDS) {
                    self.extend_ttl(name, lease, run.now);
                    self.extend_ttl(latch_key, run.record_ttl(lease), run.now);
                }
                out(2, &token, self.pttl(name, run.now))
            });
        }
        let mut ms = self.pttl(name, run.now);
        let free = match self.mode(name) {
            Mode::Absent => true,
            Mode::Read if self.leaves_out(rules::ALIVE) => true,
            Mode::Read => {
                let alive = self.alive(name, &run.args[8], "", run.now);
                if alive > 0 && (ms < 0 || alive < ms) {
                    ms = alive;
                }
                alive == 0 && !self.leaves_out(rules::DEAD_READERS)
            }
            Mode::Group => return other_kind(),
            Mode::Write | Mode::Other => false,
        };
        if !free {
            self.refused(run);
            if run.args[6] == "1" {
                if self.want_no_more(want, field) {
                    self.publish_to_both(run, channel, "1");
                }
            } else if !run.args[9].is_empty() {
                let until = run.now + number(&run.args[9]);
                self.put(want, Value::Text(field.into()), Some(until));
            }
            return out(0, "1", ms);
        }
        let Some(token) = self.mint(run, token_key, kept) else { return out(-6, "0", 0) };
        self.set_latch(latch_key, &token, run.record_ttl(lease), run.now);
        self.delete(name);
        self.set_field(name, "mode", "write");
        self.set_field(name, field, "1");
        self.pexpire(name, lease, run.now);
        self.want_no_more(want, field);
        if run.args.len() > 10 {
            self.publish_acquired(run, channel, lease);
        }
        out(1, &token, whole(lease))
    }

    pub(super) fn write_release(&mut self, run: &Run<'_>) -> Out {
        let [latch_key, name, channel, token_key, epoch_key, want, inner @ ..] = run.keys else {
            panic!("too few keys")
        };
        let (field, kept) = (run.args[4].as_str(), number(&run.args[6]));
        if let Some(latch) = self.latch(latch_key).filter(|latch| is_tombstone(latch)) {
            self.prolong_tombstone(run);
            let epoch = if latch.len() > 2 { &latch[2..] } else { "0" };
            return out(number(&latch[1..2]).cast_signed(), epoch, 0);
        }
        let alive = self.alive(name, &run.args[5], "", run.now);
        let held = self.remove_field(name, field);
        let wanted = self.want_no_more(want, field);
        let mut epoch = None;
        if held && alive == 0 {
            self.delete(name);
        } else if held {
            self.set_field(name, "mode", "read");
            if alive > 0 {
                self.pexpire(name, alive.unsigned_abs(), run.now);
            }
            let mints = !self.leaves_out(rules::DOWNGRADE);
            epoch = mints.then(|| self.mint(run, token_key, kept)).flatten();
        }
        if let Some(epoch) = &epoch {
            self.put(epoch_key, Value::Text(epoch.clone()), Some(run.now + kept));
            let granted = inner
                .first()
                .filter(|key| self.latch(key).is_some_and(|latch| latch.parse::<u64>().is_ok()));
            if let Some(key) = granted {
                let life = run.record_ttl(0).max(self.pttl(key, run.now).max(0).unsigned_abs());
                self.set_latch(key, epoch, life, run.now);
            }
        }
        if held || wanted {
            self.publish_to_both(run, channel, "1");
        }
        let (code, epoch) = (i64::from(held), epoch.unwrap_or_default());
        self.set_latch(latch_key, &format!("x{code}{epoch}"), run.record_ttl(0), run.now);
        out(code, if epoch.is_empty() { "0" } else { &epoch }, 0)
    }

    fn want_no_more(&mut self, want: &str, field: &str) -> bool {
        let wanted = self.text(want).as_deref() == Some(field);
        wanted && !self.leaves_out(rules::WANT_ENDS) && self.delete(want)
    }
}
