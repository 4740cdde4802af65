//! A holder of Redisson's, which asks without a network in between, enters more than once, renews or not, and may die.

use super::super::given::{timeouts, unlock_latch};
use super::law::PEER_LEASE;
use super::world::{Event, JOB, World};
use crate::support::script_model::java_read_write::JavaRw;

/// One thread of a Java program.
#[derive(Clone, Debug)]
pub(super) struct Java {
    pub(super) holder: String,
    /// Until when it may rely on each of its entries.
    reads: Vec<u64>,
    writes: Vec<u64>,
    /// Whether it renews, and when it did last; it holds for so long if it does not.
    renews: bool,
    renewed_at: u64,
    lease: u64,
    /// How many unlocks it has asked for, and how many threads have died before it.
    unlocks: u64,
    dead: u64,
}

impl Java {
    pub(super) fn new(place: usize) -> Self {
        Self {
            holder: format!("1f1d3b8e-5a0a-4d2f-9f0e-0a6b7c8d9e0f:{place}"),
            reads: Vec::new(),
            writes: Vec::new(),
            renews: false,
            renewed_at: 0,
            lease: PEER_LEASE,
            unlocks: 0,
            dead: 0,
        }
    }

    pub(super) fn reads_validly(&self, now: u64) -> bool {
        self.reads.iter().any(|until| now < *until)
    }

    pub(super) fn writes_validly(&self, now: u64) -> bool {
        self.writes.iter().any(|until| now < *until)
    }
}

/// What it may do next.
enum Act {
    Read,
    Write,
    EndRead,
    EndWrite,
    Nothing,
}

impl World {
    pub(super) fn java_acts(&mut self, who: usize) {
        let java = self.java[who].clone();
        let holds = !java.reads.is_empty() || !java.writes.is_empty();
        if !holds && !self.is_open() {
            return;
        }
        if holds && self.chance(self.law.java_dies) {
            let dead = java.dead + 1;
            self.java[who] = Java { dead, ..Java::new(who + 10 * usize::try_from(dead).unwrap()) };
        } else {
            if holds && java.renews && self.now >= java.renewed_at + PEER_LEASE / 3 {
                self.java_renews(who);
            }
            match self.next_act(&java) {
                Act::Read => self.java_reads(who),
                Act::Write => self.java_writes(who),
                Act::EndRead => self.java_ends_read(who),
                Act::EndWrite => self.java_ends_write(who),
                Act::Nothing => {}
            }
        }
        let pause = self.rng.u64(20..250);
        self.after(pause, Event::JavaActs { who });
    }

    fn next_act(&mut self, java: &Java) -> Act {
        let draw = self.rng.u8(0..10);
        match (java.reads.len(), java.writes.len(), draw) {
            (0, 0, 0..2) => Act::Read,
            (0, 0, 2..7) => Act::Write,
            // Enters again: but reads inside a write only once, since its own unlock would cut the write short.
            (1, 0, 0) | (0, 1.., 0) => Act::Read,
            (0, 1, 1) => Act::Write,
            (1.., _, 2..4) => Act::EndRead,
            (_, 1.., 4..6) => Act::EndWrite,
            _ => Act::Nothing,
        }
    }

    fn java_runs(&mut self, who: usize, act: impl FnOnce(&mut Self, &JavaRw<'_>) -> bool) -> bool {
        let (holder, prefix) = (self.java[who].holder.clone(), timeouts(JOB));
        act(self, &JavaRw { name: JOB, prefix: &prefix, holder: &holder })
    }

    /// For how long an entry is to last. A thread renews all it has or nothing.
    fn java_lease(&mut self, who: usize) -> u64 {
        if self.java[who].reads.is_empty() && self.java[who].writes.is_empty() {
            self.java[who].renews = self.rng.bool();
            self.java[who].renewed_at = self.now;
            let short = self.rng.u64(300..PEER_LEASE);
            self.java[who].lease = if self.java[who].renews { PEER_LEASE } else { short };
        }
        self.java[who].lease
    }

    fn java_reads(&mut self, who: usize) {
        let (lease, now) = (self.java_lease(who), self.now);
        if self.java_runs(who, |world, run| world.model.java_read_acquire(run, lease, now)) {
            self.java[who].reads.push(now + lease);
            self.seen.java_reads += 1;
        }
    }

    fn java_writes(&mut self, who: usize) {
        let (lease, now) = (self.java_lease(who), self.now);
        if self.java_runs(who, |world, run| world.model.java_write_acquire(run, lease, now)) {
            self.java[who].writes.push(now + lease);
            self.seen.java_writes += 1;
        }
    }

    fn java_ends_read(&mut self, who: usize) {
        let (latch, now) = (self.java_latch(who), self.now);
        let held = self.java_runs(who, |world, run| {
            world.model.java_read_unlock(run, (&latch, 20_000), now).is_some()
        });
        self.java[who].reads.pop();
        if !held {
            self.java[who].reads.clear();
        }
    }

    fn java_ends_write(&mut self, who: usize) {
        let (latch, now) = (self.java_latch(who), self.now);
        let held = self.java_runs(who, |world, run| {
            world.model.java_write_unlock(run, PEER_LEASE, (&latch, 20_000), now).is_some()
        });
        self.java[who].writes.pop();
        if !held {
            self.java[who].writes.clear();
        }
    }

    /// What it holds no more it renews no more, and does not rely on.
    fn java_renews(&mut self, who: usize) {
        let now = self.now;
        self.java[who].renewed_at = now;
        let until = |held: bool, entries: &mut Vec<u64>| {
            entries.retain(|_| held);
            entries.iter_mut().for_each(|until| *until = now + PEER_LEASE);
        };
        if !self.java[who].reads.is_empty() {
            let held =
                self.java_runs(who, |world, run| world.model.java_read_renew(run, PEER_LEASE, now));
            until(held, &mut self.java[who].reads);
        }
        if !self.java[who].writes.is_empty() {
            let held = self
                .java_runs(who, |world, run| world.model.java_write_renew(run, PEER_LEASE, now));
            until(held, &mut self.java[who].writes);
        }
    }

    fn java_latch(&mut self, who: usize) -> String {
        self.java[who].unlocks += 1;
        unlock_latch(JOB, self.java[who].unlocks * 1_000 + self.java[who].dead * 10 + who as u64)
    }
}
