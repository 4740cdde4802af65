//! A thread of a Redisson client, which runs its scripts in Redis directly, without a network. It
//! re-enters locks, renews all of its holds or none, and may die.

use super::{NAME, REDISSON_LEASE_MS, ReadWrite, Timer};
use test_support::script_model::ScriptModel;
use test_support::script_model::java_read_write::JavaRw;

/// How long Redis keeps the result of an unlock for a repeat (Redisson's *unlock latch*, not a
/// latch of this library), in milliseconds.
const UNLOCK_LATCH_MS: u64 = 20_000;

/// One thread of a Java program.
#[derive(Clone, Debug)]
pub(super) struct Java {
    holder: String,
    /// When the lease of each of its acquisitions ends, by [`Side`]. A thread may acquire a side
    /// several times, and unlocks as often.
    acquired: [Vec<u64>; 2],
    /// Whether it renews its holds.
    renews: bool,
    /// When it last renewed its holds, or acquired the first of them.
    renewed_at: u64,
    /// Its lease in milliseconds: `REDISSON_LEASE_MS` with renewals, otherwise shorter.
    lease: u64,
    /// How many unlocks it has sent.
    unlocks: u64,
    /// How many earlier threads with this index have died.
    dead_predecessors: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Read = 0,
    Write = 1,
}

impl Java {
    /// Creates the thread with this number.
    pub(super) fn new(number: usize) -> Self {
        Self {
            holder: format!("1f1d3b8e-5a0a-4d2f-9f0e-0a6b7c8d9e0f:{number}"),
            acquired: [Vec::new(), Vec::new()],
            renews: false,
            renewed_at: 0,
            lease: REDISSON_LEASE_MS,
            unlocks: 0,
            dead_predecessors: 0,
        }
    }

    fn holds(&self) -> bool {
        self.acquired.iter().any(|side| !side.is_empty())
    }
}

impl ReadWrite {
    pub(super) fn on_java_timer(&mut self, index: usize) {
        let Java { dead_predecessors, renews, renewed_at, .. } = self.java[index];
        let holds = self.java[index].holds();
        if !holds && !self.env.accepts_new_work() {
            return;
        }
        if holds && self.env.chance(self.settings.java_death_percent) {
            let dead_predecessors = dead_predecessors + 1;
            self.drop_java_leases(index);
            // There are fewer than ten threads, so the number is unique.
            self.java[index] =
                Java { dead_predecessors, ..Java::new(index + 10 * dead_predecessors) };
        } else {
            if holds && renews && self.env.now >= renewed_at + REDISSON_LEASE_MS / 3 {
                self.renew_java(index);
            }
            self.act_as_java(index);
        }
        let pause = self.env.rng.u64(20..250);
        self.env.set_timer(Timer::Java(index), pause);
    }

    fn act_as_java(&mut self, index: usize) {
        let draw = self.env.rng.u8(0..10);
        let [reads, writes] = self.java[index].acquired.each_ref().map(Vec::len);
        match (reads, writes, draw) {
            (0, 0, 0..2) => self.enter_java(index, Side::Read),
            (0, 0, 2..7) => self.enter_java(index, Side::Write),
            // The thread re-enters. It reads within its write at most once: with two reads,
            // the unlock of one would shorten the write, a flaw of Redisson.
            (1, 0, 0) | (0, 1.., 0) => self.enter_java(index, Side::Read),
            (0, 1, 1) => self.enter_java(index, Side::Write),
            (1.., _, 2..4) => self.unlock_java(index, Side::Read),
            (_, 1.., 4..6) => self.unlock_java(index, Side::Write),
            _ => {}
        }
    }

    /// Acquires or re-enters one side.
    fn enter_java(&mut self, index: usize, side: Side) {
        if !self.java[index].holds() {
            // A thread renews all of its holds, or none.
            let (renews, short) = (self.env.rng.bool(), self.env.rng.u64(300..REDISSON_LEASE_MS));
            let (java, renewed_at) = (&mut self.java[index], self.env.now);
            (java.renews, java.renewed_at) = (renews, renewed_at);
            java.lease = if renews { REDISSON_LEASE_MS } else { short };
        }
        let (lease, now) = (self.java[index].lease, self.env.now);
        let holds = self.run_java(index, |model, thread| match side {
            Side::Read => model.java_read_acquire(thread, lease, now),
            Side::Write => model.java_write_acquire(thread, lease, now),
        });
        if holds {
            self.java[index].acquired[side as usize].push(now + lease);
            let is_read = side == Side::Read;
            self.env.coverage.count(if is_read { "Java reads" } else { "Java writes" });
        }
        self.record_java_leases(index);
    }

    /// Releases the newest acquisition of a side. If the thread's hold of that side is gone from
    /// Redis, for which the script returns `None`, the thread relies on that side no more.
    fn unlock_java(&mut self, index: usize, side: Side) {
        let java = &mut self.java[index];
        java.unlocks += 1;
        let id = java.unlocks * 1_000 + java.dead_predecessors as u64 * 10 + index as u64;
        let (latch, now) = (format!("redisson_unlock_latch:{{job}}:{id:032x}"), self.env.now);
        let latch = (latch.as_str(), UNLOCK_LATCH_MS);
        let held = self.run_java(index, |model, thread| match side {
            Side::Read => model.java_read_unlock(thread, latch, now),
            // If the thread has acquired the side more than once, the hash gets this expiry.
            Side::Write => model.java_write_unlock(thread, REDISSON_LEASE_MS, latch, now),
        });
        let acquired = &mut self.java[index].acquired[side as usize];
        acquired.pop();
        if held.is_none() {
            acquired.clear();
        }
        self.record_java_leases(index);
    }

    /// Renews both sides. If the thread's hold of a side is gone from Redis, the thread relies on
    /// that side no more.
    fn renew_java(&mut self, index: usize) {
        let now = self.env.now;
        self.java[index].renewed_at = now;
        for side in [Side::Read, Side::Write] {
            if self.java[index].acquired[side as usize].is_empty() {
                continue;
            }
            let held = self.run_java(index, |model, thread| match side {
                Side::Read => model.java_read_renew(thread, REDISSON_LEASE_MS, now),
                Side::Write => model.java_write_renew(thread, REDISSON_LEASE_MS, now),
            });
            let acquired = &mut self.java[index].acquired[side as usize];
            acquired.retain(|_| held);
            acquired.iter_mut().for_each(|until| *until = now + REDISSON_LEASE_MS);
        }
        self.record_java_leases(index);
    }

    fn run_java<T>(
        &mut self,
        index: usize,
        script: impl FnOnce(&mut ScriptModel, &JavaRw<'_>) -> T,
    ) -> T {
        let holder = &self.java[index].holder;
        script(&mut self.env.model, &JavaRw { name: NAME, prefix: "{job}", holder })
    }

    fn drop_java_leases(&mut self, index: usize) {
        let holder = &self.java[index].holder;
        self.leases.retain(|field| field.trim_end_matches(":write") != holder);
    }

    /// Records that the thread relies on a side until its latest lease ends.
    fn record_java_leases(&mut self, index: usize) {
        self.drop_java_leases(index);
        let Java { holder, acquired: [reads, writes], .. } = &self.java[index];
        for (field, ends) in [(holder.clone(), reads), (format!("{holder}:write"), writes)] {
            if let Some(until) = ends.iter().max() {
                self.leases.extend(field, *until);
            }
        }
    }
}
