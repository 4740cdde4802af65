//! The scripts of the fair lock.

use std::collections::BTreeMap;

use super::fair_head::{Queue, Rule};
use super::kind::other_kind;
use super::{Out, Run, ScriptModel, Value, is_tombstone, out};

/// How long the queue is kept after the last poll of an edgelatch waiter, in milliseconds.
const QUEUE_KEPT: u64 = 86_400_000;

/// The arguments of `fair_acquire`.
struct Poll<'a> {
    field: &'a str,
    send: u64,
    lease: u64,
    last: bool,
    allowance: i64,
    previous: Option<&'a str>,
    previous_kept: u64,
}

impl<'a> Poll<'a> {
    fn read(run: &Run<'a>) -> Self {
        let number = |place: usize| run.args[place].parse().unwrap();
        Self {
            field: &run.args[4],
            send: number(9),
            lease: number(10),
            last: run.args[11] == "1",
            allowance: i64::try_from(number(12)).unwrap(),
            previous: Some(run.args[14].as_str()).filter(|field| !field.is_empty()),
            previous_kept: number(15),
        }
    }
}

impl ScriptModel {
    pub(super) fn fair_acquire(&mut self, run: &Run<'_>) -> Out {
        let (poll, queue) = (Poll::read(run), Queue::read(run));
        let latch = self.text(&run.keys[0]);
        if latch.as_deref().is_some_and(is_tombstone) {
            self.extend_ttl(&run.keys[0], run.record_ttl(0), run.now);
            return out(-2, "0", 0);
        }
        let seen = latch.as_deref().and_then(|latch| latch.strip_prefix('w')?.parse().ok());
        let mine = self.has_field(queue.name, poll.field);
        let latched = latch.filter(|_| seen.is_none());
        // Without a latch only the field shows that this owner was granted.
        let granted = match latched {
            None if self.is_off(Rule::GrantLatch) && mine => self.text(&run.keys[8]),
            latched => latched,
        };
        if granted.is_some() != mine {
            return out(-3, &granted.unwrap_or_else(|| "0".into()), 0);
        }
        if run.is_late() {
            return out(-1, "0", 0);
        }
        if let Some(token) = granted {
            let left = self.extend_ttl(queue.name, poll.lease, run.now);
            self.extend_ttl(&run.keys[0], run.record_ttl(poll.lease), run.now);
            return out(2, &token, left);
        }
        if seen.is_some_and(|seen| poll.send <= seen) && !self.is_off(Rule::SendNumber) {
            return self.fair_busy(&queue, self.place(&queue, poll.field), queue.alive / 3, false);
        }
        if let Some(granted) = self.hand_over(&poll, &queue) {
            return granted;
        }
        self.queue_up(&poll, &queue)
    }

    /// F11. Returns the reply if a hold was handed over.
    fn hand_over(&mut self, poll: &Poll<'_>, queue: &Queue<'_>) -> Option<Out> {
        let (run, previous) = (queue.run, poll.previous?);
        if self.text(&run.keys[9]).as_deref().is_some_and(is_tombstone) {
            return None;
        }
        let held = !self.is_off(Rule::HandOverHold) && self.remove_field(queue.name, previous);
        let (at, place) = (self.place(queue, previous), self.place(queue, poll.field));
        let keeps_place = !self.is_off(Rule::HandOverPlace);
        let arrival =
            self.score(queue.arrivals, poll.field).or_else(|| self.score(queue.arrivals, previous));
        if let Some(arrival) = arrival.filter(|_| keeps_place) {
            self.put_score(queue, queue.arrivals, poll.field, arrival);
        }
        if let (Some(at), None, true) = (at, place, keeps_place) {
            self.change_list(queue.queue, |list| list[at] = poll.field.into());
        }
        self.leave(queue, previous);
        if !self.is_off(Rule::HandOverTombstone) {
            let life = run.record_ttl(0).max(poll.previous_kept);
            self.set_latch(&run.keys[9], &format!("x{}", i64::from(held)), life, run.now);
        }
        (held && self.is_free(queue)).then(|| self.fair_grant(poll, queue))
    }

    /// The part of `fair_acquire` from the place in the queue on: keeps it, takes it, or does
    /// without.
    fn queue_up(&mut self, poll: &Poll<'_>, queue: &Queue<'_>) -> Out {
        let run = queue.run;
        let place = self.place(queue, poll.field);
        if place.is_none() && self.is_free(queue) && self.list(queue.queue).is_empty() {
            return self.fair_grant(poll, queue);
        }
        let arrival =
            self.score(queue.arrivals, poll.field).filter(|_| !self.is_off(Rule::Arrival));
        if place.is_none() && arrival.is_none() && !self.is_free(queue) && self.is_group(queue.name)
        {
            return other_kind();
        }
        if place.is_some() || arrival.is_some() || poll.last {
            self.delete(&run.keys[0]);
        }
        if !poll.last {
            self.set_latch(&run.keys[0], &format!("w{}", poll.send), run.record_ttl(0), run.now);
        }
        let back = place.is_none() && arrival.is_some();
        match (place, arrival) {
            (None, Some(arrival)) => self.restore_place(queue, poll.field, arrival),
            (None, None) if !poll.last => {
                let newest = self.members(queue.arrivals).values().copied().max().unwrap_or(0);
                let arrival = i64::try_from(run.micros).unwrap().max(newest + 1);
                self.put_score(queue, queue.arrivals, poll.field, arrival);
                self.change_list(queue.queue, |list| list.push_back(poll.field.into()));
            }
            _ => {}
        }
        if !poll.last {
            self.put_score(queue, queue.beats, poll.field, queue.now + queue.alive);
        }
        let (head, more) = self.fair_head(queue, Some(poll.field), false);
        if self.is_free(queue) && head.as_deref().is_none_or(|head| head == poll.field) {
            return self.fair_grant(poll, queue);
        }
        if poll.last {
            self.leave(queue, poll.field);
            self.fair_tombstone(&run.keys[0], "x0", run.record_ttl(0), run.now);
            return self.fair_busy(queue, None, 0, false);
        }
        let after = self.wait_on(poll, queue, &head.unwrap());
        let after = if more { 10 } else { after };
        self.fair_busy(queue, self.place(queue, poll.field), after, back)
    }

    fn restore_place(&mut self, queue: &Queue<'_>, field: &str, arrival: i64) {
        let list = self.list(queue.queue);
        let before = |other: &String| {
            Queue::is_ours(other)
                && self.score(queue.arrivals, other).is_some_and(|its| its <= arrival)
        };
        let at = list.iter().take_while(|other| before(other)).count();
        self.change_list(queue.queue, |list| list.insert(at, field.into()));
    }

    /// Everything that a poll writes; returns when to poll again.
    fn wait_on(&mut self, poll: &Poll<'_>, queue: &Queue<'_>, head: &str) -> i64 {
        let place = self.place(queue, poll.field).unwrap();
        let (mut foreign, mut before, mut nearest) = (place.saturating_sub(256), None, None);
        for other in self.list(queue.queue).clone().into_iter().take(place.min(256)) {
            let mut score = self.score(queue.timeouts, &other);
            if !Queue::is_ours(&other) {
                foreign += 1;
                let least = before.map(|before: i64| before + queue.short);
                if least.is_some_and(|least| score.is_none_or(|score| score < least)) {
                    score = least;
                    self.set_score(queue.timeouts, &other, score.unwrap());
                }
                nearest = score.or(nearest);
            }
            before = score;
        }
        let room = i64::try_from(foreign).unwrap() * poll.allowance;
        let room = nearest
            .map_or(room, |nearest: i64| room.max((nearest - queue.now).min(room + 3_600_000)));
        let room = if self.is_off(Rule::Room) { 0 } else { room };
        let score = queue.now + queue.alive + queue.skew + room;
        self.set_score(queue.timeouts, poll.field, score);
        for key in [queue.queue, queue.timeouts, queue.beats, queue.arrivals] {
            self.pexpire(key, QUEUE_KEPT, queue.run.now);
        }
        self.collect_garbage(queue);
        let (ms, mut after) = (self.pttl(queue.name, queue.run.now), queue.alive / 3);
        if place == 0 {
            after = if ms >= 0 { after.min(ms + 1) } else { after };
        } else if ms == -2 && !Queue::is_ours(head) {
            after = after.min(1000);
        } else if place == 1 && Queue::is_ours(head) {
            let ends = self.score(queue.beats, head).unwrap_or(queue.now);
            after = after.min((ends - queue.now + 1).max(1));
        }
        after
    }

    fn collect_garbage(&mut self, queue: &Queue<'_>) {
        let keep = i64::try_from(queue.run.keep).unwrap();
        let mut old: Vec<(i64, String)> = self
            .members(queue.beats)
            .iter()
            .filter(|(_, ends)| **ends <= queue.now - keep)
            .map(|(field, ends)| (*ends, field.clone()))
            .collect();
        old.sort();
        for (_, field) in old.into_iter().take(16) {
            if self.place(queue, &field).is_none() {
                self.leave(queue, &field);
            }
        }
    }

    fn fair_busy(&self, queue: &Queue<'_>, place: Option<usize>, after: i64, back: bool) -> Out {
        let ms = self.pttl(queue.name, queue.run.now);
        let place = place.unwrap_or_else(|| self.list(queue.queue).len());
        out(0, &format!("{place},{after},{}", i64::from(back)), if ms == -2 { 0 } else { ms })
    }

    fn fair_grant(&mut self, poll: &Poll<'_>, queue: &Queue<'_>) -> Out {
        let run = queue.run;
        let Some(token) = self.mint(run, &run.keys[8], run.args[13].parse().unwrap()) else {
            return out(-6, "0", 0);
        };
        self.leave(queue, poll.field);
        self.delete(queue.watch);
        if self.is_off(Rule::GrantLatch) {
            self.delete(&run.keys[0]);
        } else {
            self.set_latch(&run.keys[0], &token, run.record_ttl(poll.lease), run.now);
        }
        let hash = BTreeMap::from([(poll.field.to_owned(), "1".to_owned())]);
        self.put(queue.name, Value::Hash(hash), Some(run.now + poll.lease));
        out(1, &token, i64::try_from(poll.lease).unwrap())
    }

    pub(super) fn fair_release(&mut self, run: &Run<'_>) -> Out {
        let queue = Queue::read(run);
        if let Some(latch) = self.text(&run.keys[0]).filter(|latch| is_tombstone(latch)) {
            self.extend_ttl(&run.keys[0], run.record_ttl(0), run.now);
            return out(latch[1..].parse().unwrap(), "0", 0);
        }
        let previous = run.keys.get(8).filter(|_| !self.is_off(Rule::AbandonPrevious));
        let mut held = false;
        for field in [Some(&run.args[4]), previous.map(|_| &run.args[9])].into_iter().flatten() {
            held |= self.remove_field(queue.name, field);
            self.leave(&queue, field);
        }
        let code = i64::from(held);
        self.fair_tombstone(&run.keys[0], &format!("x{code}"), run.record_ttl(0), run.now);
        if let Some(latch) = previous {
            let life = run.record_ttl(0).max(run.args[10].parse().unwrap());
            self.fair_tombstone(latch, &format!("x{code}"), life, run.now);
        }
        if self.is_free(&queue) {
            self.fair_head(&queue, None, true);
        }
        out(code, "0", 0)
    }

    fn fair_tombstone(&mut self, latch: &str, value: &str, life: u64, now: u64) {
        if self.is_off(Rule::Tombstone) {
            self.delete(latch);
        } else {
            self.set_latch(latch, value, life, now);
        }
    }

    pub(super) fn fair_force_release(&mut self, run: &Run<'_>) -> Out {
        self.once(run, |model| {
            if model.is_group(&run.keys[1]) {
                let (code, error, _) = other_kind();
                return (code, error);
            }
            let queue = Queue::read(run);
            let held = i64::from(model.delete(queue.name));
            model.fair_head(&queue, None, true);
            (held, "0".into())
        })
    }

    pub(super) fn fair_queue(&self, run: &Run<'_>) -> Out {
        let [name, queue, timeouts, beats] = run.keys else { panic!("four keys") };
        let list = self.list(queue);
        let place = list.iter().position(|other| *other == run.args[4]).map_or(0, |at| at + 1);
        let mut value = format!("{},{place}", list.len());
        for other in list.iter().take(run.args[5].parse().unwrap()) {
            let ours = Queue::is_ours(other);
            let ends = self.score(if ours { beats } else { timeouts }, other).unwrap_or(0);
            let left = (ends - i64::try_from(run.now).unwrap()).max(0);
            value += &format!(",{},{left}", i64::from(ours));
        }
        let ms = self.pttl(name, run.now);
        out(i64::from(ms != -2), &value, ms)
    }
}
