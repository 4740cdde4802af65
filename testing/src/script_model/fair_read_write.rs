//! The scripts that acquire and end holds of a fair read-write lock.
//!
//! A test may leave out one of the rules that are named as texts, to show its purpose.

use super::fair_read_write_state::{Lock, is_exclusive};
use super::{Out, Run, ScriptModel, is_tombstone, out};

/// The arguments of `fair_rw_acquire`.
struct Attempt<'a> {
    member: &'a str,
    kind: &'a str,
    life: u64,
    max_holders: i64,
    max_waiters: i64,
    send: u64,
    lease: u64,
    kept: u64,
    previous: Option<&'a str>,
    previous_kept: u64,
}

impl<'a> Attempt<'a> {
    fn read(run: &Run<'a>) -> Self {
        let number = |place: usize| -> u64 { run.args[place].parse().unwrap() };
        Self {
            member: &run.args[4],
            kind: &run.args[5],
            life: number(6),
            max_holders: run.args[7].parse().unwrap(),
            max_waiters: run.args[8].parse().unwrap(),
            send: number(9),
            lease: number(10),
            kept: number(11),
            previous: Some(run.args[12].as_str()).filter(|member| !member.is_empty()),
            previous_kept: number(13),
        }
    }
}

/// Reads the latch of an owner that waits: the last send number, and the ticket.
fn waiting(latch: &str) -> Option<(u64, Option<i64>)> {
    let (send, ticket) = latch.strip_prefix('w')?.split_once(',')?;
    Some((send.parse().ok()?, ticket.parse().ok()))
}

impl ScriptModel {
    pub(super) fn fair_rw(&mut self, name: &str, run: &Run<'_>) -> Out {
        match name {
            "fair_rw_acquire" => self.fair_rw_acquire(run),
            "fair_rw_release" => Lock::of(self, run).release(),
            "fair_rw_renew" => Lock::of(self, run).renew(),
            "fair_rw_force_release" if self.leaves_out("a forced release is recorded") => {
                let (code, value) = Lock::of(self, run).force_release();
                (code, value, 0)
            }
            "fair_rw_force_release" => self.once(run, |model| Lock::of(model, run).force_release()),
            "fair_rw_inspect" => self.fair_rw_inspect(run),
            "fair_rw_query" => self.fair_rw_query(run),
            other => panic!("the model does not know `{other}`"),
        }
    }

    fn fair_rw_acquire(&mut self, run: &Run<'_>) -> Out {
        let attempt = Attempt::read(run);
        let latch = self.text(&run.keys[0]);
        if latch.as_deref().is_some_and(is_tombstone) {
            self.extend_ttl(&run.keys[0], run.record_ttl(0), run.now);
            return out(-2, "0", 0);
        }
        let seen = latch.as_deref().and_then(waiting);
        let mut grant = latch.filter(|_| seen.is_none());
        let mut lock = Lock::of(self, run);
        let ends = lock.model.score(lock.holders, attempt.member);
        let is_live = ends.is_some_and(|ends| ends > lock.now);
        if lock.leaves_out("an owner is granted once") {
            grant = grant.filter(|_| is_live);
        } else if grant.is_some() != ends.is_some() || grant.is_some() && !is_live {
            return out(-3, lock.is_stolen(grant.as_deref()), 0);
        }
        if run.is_late() {
            return out(-1, "0", 0);
        }
        if let Some(token) = grant {
            return lock.repeat(&attempt, &token);
        }
        if let Some((sent, _)) = seen
            && attempt.send <= sent
            && !lock.leaves_out("a copy of a poll only reads")
        {
            return lock.busy(&attempt, attempt.life / 3, false);
        }
        let may_steal = run.not_after.is_some() || lock.leaves_out("a steal needs a bound");
        if attempt.kind == "steal" && !may_steal {
            return out(-4, "0", 0);
        }
        lock.attempt(&attempt, seen.is_some(), seen.and_then(|(_, ticket)| ticket))
    }
}

impl Lock<'_, '_> {
    fn repeat(&mut self, attempt: &Attempt<'_>, token: &str) -> Out {
        let run = self.run;
        self.model.extend_ttl(&run.keys[0], run.record_ttl(attempt.lease), run.now);
        let mut ends = self.model.score(self.holders, attempt.member).unwrap();
        let until = self.after(attempt.lease);
        if ends < until && !self.leaves_out("a repeat extends the hold") {
            ends = until;
            self.set_score(self.holders, attempt.member, ends, attempt.lease + 1000);
        }
        self.register(ends, attempt.life);
        out(2, token, ends - self.now)
    }

    fn busy(&self, attempt: &Attempt<'_>, after: u64, restored: bool) -> Out {
        let place = self.place(attempt.member);
        let place = place.unwrap_or_else(|| self.model.members(self.queue).len());
        let value = format!("{place},{after},{}", u8::from(restored));
        (0, value, self.last_end().map_or(0, |ends| (ends - self.now).max(0)))
    }

    fn attempt(&mut self, attempt: &Attempt<'_>, is_known: bool, ticket: Option<i64>) -> Out {
        let was_queued = self.place(attempt.member).is_some();
        let mut vacated = self.remove_dead();
        let mut ticket = ticket;
        let is_handed = self.take_over(attempt, &mut ticket, &mut vacated);
        let (ahead, writers) = self.in_front(ticket);
        let can_enter = if is_handed || attempt.kind == "steal" {
            true
        } else if is_exclusive(attempt.member) {
            ahead == 0 && self.live_holder().is_none()
        } else {
            let max = attempt.max_holders;
            let places =
                self.places(if self.leaves_out("a limit on holders") { 1000 } else { max });
            let ahead = if self.leaves_out("places for those in front") { 0 } else { ahead };
            (writers == 0 || self.leaves_out("readers stay behind writers")) && ahead < places
        };
        if can_enter {
            return self.enter(attempt, vacated);
        }
        let run = self.run;
        if attempt.kind != "wait" {
            self.leave(attempt.member, attempt.max_holders);
            if self.leaves_out("a refused last try leaves a tombstone") {
                self.model.delete(&run.keys[0]);
            } else {
                self.model.set_latch(&run.keys[0], "x0", run.record_ttl(0), run.now);
            }
            if vacated {
                self.wake(attempt.max_holders, None);
            }
            self.unregister();
            return self.busy(attempt, 0, false);
        }
        let Some(ticket) = ticket.or_else(|| self.new_ticket(attempt)) else {
            self.model.delete(&run.keys[0]);
            if vacated {
                self.wake(attempt.max_holders, None);
            }
            return (super::ERROR, "LIMIT too many wait for the lock".into(), 0);
        };
        self.queue_up(attempt, ticket, vacated);
        let after = self.next_poll(attempt, writers);
        self.busy(attempt, after, is_known && !was_queued)
    }

    /// W15. Returns whether the previous owner's hold passed to this one.
    fn take_over(
        &mut self,
        attempt: &Attempt<'_>,
        ticket: &mut Option<i64>,
        vacated: &mut bool,
    ) -> bool {
        let Some(previous) = attempt.previous else { return false };
        let run = self.run;
        let latch = self.model.text(&run.keys[8]);
        if latch.as_deref().is_some_and(is_tombstone) {
            return false;
        }
        let theirs = latch.as_deref().and_then(waiting).and_then(|(_, ticket)| ticket);
        let theirs = theirs.or_else(|| self.model.score(self.queue, previous));
        if !self.leaves_out("the previous owner's place passes over") {
            *ticket = ticket.or(theirs);
        }
        let ends = self.model.score(self.holders, previous);
        let is_handed = ends.is_some_and(|ends| ends > self.now);
        if !self.leaves_out("the previous owner's hold passes over") {
            self.model.remove_member(self.holders, previous);
        }
        *vacated |= self.dequeue(previous);
        if !self.leaves_out("the previous owner gets a tombstone") {
            let ended = if is_handed { "x1" } else { "x0" };
            let life = run.record_ttl(0).max(attempt.previous_kept);
            self.model.set_latch(&run.keys[8], ended, life, run.now);
        }
        is_handed
    }

    fn enter(&mut self, attempt: &Attempt<'_>, vacated: bool) -> Out {
        let (run, member, max) = (self.run, attempt.member, attempt.max_holders);
        let Some(token) = self.next_token(member) else {
            self.leave(member, max);
            self.model.delete(&run.keys[0]);
            return out(-6, "0", 0);
        };
        if attempt.kind == "steal"
            && self.live_holder().is_some()
            && !self.leaves_out("a steal ends all holds")
        {
            self.end_holds();
        }
        let was_queued = self.dequeue(member);
        self.model.set_field(self.last, "t", &token.to_string());
        self.model.set_field(self.last, "k", &member[..1]);
        if attempt.kind == "steal" {
            self.model.set_field(self.last, "st", &token.to_string());
        }
        self.model.extend_ttl(self.last, attempt.kept, run.now);
        let until = self.after(attempt.lease);
        self.register(until, attempt.life);
        self.set_score(self.holders, member, until, attempt.lease + 1000);
        let token = token.to_string();
        self.model.set_latch(&run.keys[0], &token, run.record_ttl(attempt.lease), run.now);
        if !is_exclusive(member) {
            if vacated {
                self.wake(max, Some(member));
            } else if was_queued {
                self.wake_next(max, Some(member));
            }
        }
        out(1, &token, i64::try_from(attempt.lease).unwrap())
    }

    /// W12
    fn next_token(&self, member: &str) -> Option<u64> {
        let last = self.model.field(self.last, "t");
        let may_share = if self.leaves_out("the first shared grant mints a token") {
            last.is_some()
        } else {
            self.model.field(self.last, "k") == Some("s")
        };
        let last: u64 = last.map_or(Some(0), |last| last.parse().ok())?;
        if !is_exclusive(member) && may_share {
            return Some(last);
        }
        (last < (1 << 53) - 1).then(|| self.run.micros.max(last + 1))
    }

    /// A ticket behind all others; `None` if the queue is full.
    fn new_ticket(&mut self, attempt: &Attempt<'_>) -> Option<i64> {
        if self.count_live(self.beats) >= attempt.max_waiters {
            return None;
        }
        let last = self.model.field(self.last, "q").map_or(0, |last| last.parse().unwrap());
        let ticket = i64::try_from(self.run.micros).unwrap().max(last + 1);
        self.model.set_field(self.last, "q", &ticket.to_string());
        self.model.extend_ttl(self.last, attempt.kept, self.run.now);
        Some(ticket)
    }

    fn queue_up(&mut self, attempt: &Attempt<'_>, ticket: i64, vacated: bool) {
        let (run, member, life) = (self.run, attempt.member, attempt.life);
        self.set_score(self.queue, member, ticket, life + 1000);
        if is_exclusive(member) {
            self.set_score(self.writers, member, ticket, life + 1000);
        }
        self.set_score(self.beats, member, self.after(life), life + 1000);
        let keeps = !self.leaves_out("the ticket is in the latch");
        let ticket = if keeps { ticket.to_string() } else { String::new() };
        let latch = format!("w{},{ticket}", attempt.send);
        self.model.set_latch(&run.keys[0], &latch, run.record_ttl(0), run.now);
        self.register(self.after(life), life);
        if vacated && !self.leaves_out("the removal of dead waiters notifies") {
            self.wake(attempt.max_holders, Some(member));
        }
    }

    /// When the waiter should poll again, in milliseconds.
    fn next_poll(&mut self, attempt: &Attempt<'_>, writers: i64) -> u64 {
        let (life, third) = (attempt.life, (attempt.life / 3).max(1));
        let place = self.place(attempt.member).unwrap();
        let first = |ranked: Vec<String>| ranked.into_iter().next();
        let blocker = if is_exclusive(attempt.member) {
            first(self.ranked(self.queue)).filter(|_| place > 0)
        } else {
            first(self.ranked(self.writers)).filter(|_| writers > 0)
        };
        let now = self.now;
        let until = |at: i64| u64::try_from(at - now + 1).unwrap_or(0).max(1);
        let after = match blocker {
            Some(blocker) => {
                let ends = match self.model.score(self.beats, &blocker) {
                    Some(ends) => ends,
                    // W16
                    None => {
                        let ends = self.after(life);
                        self.set_score(self.beats, &blocker, ends, life + 1000);
                        ends
                    }
                };
                let is_next = self.place(&blocker).is_some_and(|at| at + 1 == place);
                if is_next { third.min(until(ends)) } else { third }
            }
            None => match self.live_holder() {
                Some(holder) if is_exclusive(attempt.member) || is_exclusive(&holder) => {
                    third.min(until(self.last_end().unwrap()))
                }
                _ => third,
            },
        };
        if self.dead(self.beats).is_empty() { after } else { 1 }
    }

    fn release(&mut self) -> Out {
        let run = self.run;
        let max = run.args[5].parse().unwrap();
        if let Some(latch) = self.model.text(&run.keys[0]).filter(|latch| is_tombstone(latch)) {
            self.model.extend_ttl(&run.keys[0], run.record_ttl(0), run.now);
            return out(latch[1..].parse().unwrap(), "0", 0);
        }
        let mut held = 0;
        let previous = run.keys.get(8).map(|_| run.args[6].as_str());
        for member in [Some(run.args[4].as_str()), previous].into_iter().flatten() {
            if let Some(ends) = self.model.score(self.holders, member) {
                self.model.remove_member(self.holders, member);
                held |= i64::from(ends > self.now);
                if self.live_holder().is_some() {
                    self.wake_next(max, None);
                } else {
                    self.wake(max, None);
                }
            }
            self.leave(member, max);
        }
        let ended = format!("x{held}");
        if self.leaves_out("a release leaves a tombstone") {
            self.model.delete(&run.keys[0]);
        } else {
            self.model.set_latch(&run.keys[0], &ended, run.record_ttl(0), run.now);
        }
        if let Some(latch) = run.keys.get(8) {
            let life = run.record_ttl(0).max(run.args[7].parse().unwrap());
            self.model.set_latch(latch, &ended, life, run.now);
        }
        self.unregister();
        out(held, "0", 0)
    }

    fn renew(&mut self) -> Out {
        let run = self.run;
        let (member, token) = (run.args[4].as_str(), run.args[6].as_str());
        let lease: u64 = run.args[5].parse().unwrap();
        if run.is_late() {
            return out(-1, "0", 0);
        }
        let ends = self.model.score(self.holders, member).filter(|ends| *ends > self.now);
        let is_granted = self.model.text(&run.keys[0]).as_deref() == Some(token);
        let is_lost = ends.is_none() || !is_granted;
        if is_lost && !self.leaves_out("a renewal needs hold and token") {
            return out(-3, self.is_stolen(Some(token)), 0);
        }
        self.model.extend_ttl(&run.keys[0], run.record_ttl(lease), run.now);
        let ends = ends.unwrap_or(0).max(self.after(lease));
        if self.model.score(self.holders, member) != Some(ends) {
            self.set_score(self.holders, member, ends, lease + 1000);
        }
        self.register(ends, lease / 3);
        out(1, token, ends - self.now)
    }

    fn force_release(&mut self) -> (i64, String) {
        let held = self.count_live(self.holders);
        self.end_holds();
        self.wake(self.run.args[5].parse().unwrap(), None);
        self.unregister();
        (i64::from(held > 0), held.to_string())
    }
}
