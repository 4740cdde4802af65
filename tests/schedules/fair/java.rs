//! A Redisson waiter: its scripts, and its loop around them. It uses Redis without a network.

use super::super::runner::Check;
use super::checker::Script;
use super::{Fair, JAVA, Timer};
use test_support::script_model::ScriptModel;
use test_support::script_model::java_fair::JavaPoll;

/// The lease of Redisson's renewed locks, in milliseconds. Holds here are shorter, so none is
/// renewed.
const LEASE_MS: u64 = 30_000;
/// The time that a Redisson waiter without a time limit adds to its score (`threadWaitTime`), in
/// milliseconds.
const ALLOWANCE_MS: u64 = 300_000;

/// How long Redis keeps the latch of an unlock, in milliseconds.
const UNLOCK_LATCH_MS: u64 = 17_500;

/// One Java thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Java {
    pub(super) holder: String,
    stage: Stage,
    /// By how many milliseconds its clock is ahead.
    ahead: i64,
    /// The longest wait, in milliseconds; `None` without a time limit.
    wait: Option<u64>,
    /// When the wait began, by Redis' clock.
    began: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Idle,
    Parked,
    Holding,
    /// The thread is subscribed, but does nothing.
    Stuck,
    Dead,
}

impl Java {
    pub(super) const fn is_subscribed(&self) -> bool {
        matches!(self.stage, Stage::Parked | Stage::Stuck)
    }

    pub(super) fn waits_on(&self, channel: &str) -> bool {
        self.stage == Stage::Parked && channel.ends_with(&self.holder)
    }
}

impl Fair {
    pub(super) fn on_java_timer(&mut self, index: usize) -> Check {
        match self.java[index].stage {
            Stage::Idle | Stage::Dead => return self.start_java(index),
            Stage::Parked if self.env.chance(self.settings.java_stuck_percent) => {
                self.suspend_java(index, Stage::Stuck, 1_000..40_000);
            }
            Stage::Parked if self.env.chance(self.settings.java_death_percent) => {
                self.kill_java(index)
            }
            Stage::Parked | Stage::Stuck => return self.try_java(index),
            Stage::Holding if self.env.chance(self.settings.holder_death_percent) => {
                self.kill_java(index)
            }
            Stage::Holding => return self.unlock_java(index),
        }
        Ok(())
    }

    /// Starts a new thread in the place of one that is idle or dead.
    fn start_java(&mut self, index: usize) -> Check {
        self.last_holder += 1;
        let holder = format!("{:08x}-0000-4000-8000-000000000000:{index}", self.last_holder);
        let ahead = self.settings.draw_skew(&mut self.env.rng);
        let wait = self.env.rng.choice([Some(5_000), Some(20_000), None]).unwrap();
        self.java[index] = Java { holder, stage: Stage::Parked, ahead, wait, began: self.env.now };
        self.try_java(index)
    }

    fn kill_java(&mut self, index: usize) {
        self.suspend_java(index, Stage::Dead, 1_000..40_000);
    }

    /// Lets the thread do nothing for a random time. It relies on no hold any more.
    fn suspend_java(&mut self, index: usize, stage: Stage, ms: std::ops::Range<u64>) {
        self.java[index].stage = stage;
        let holder = &self.java[index].holder;
        self.leases.retain(|other| other != holder);
        let pause = self.env.rng.u64(ms);
        self.env.set_timer(Timer::Java(index), pause);
    }

    /// Runs the acquisition. A thread that is refused parks until a message, the time that the
    /// script returned, or the end of its wait.
    fn try_java(&mut self, index: usize) -> Check {
        let park = self.run_java(index, |model, request| model.java_acquire(&JAVA, request))?;
        let (now, java) = (self.env.now, &mut self.java[index]);
        let left = java.wait.map(|wait| (java.began + wait).saturating_sub(now));
        match (park, left) {
            (None, _) => {
                java.stage = Stage::Holding;
                self.leases.extend(java.holder.clone(), now + LEASE_MS);
                let hold = self.env.rng.u64(1..6_000);
                self.env.set_timer(Timer::Java(index), hold);
            }
            (Some(_), Some(0)) => return self.give_up_java(index),
            (Some(park), left) => {
                java.stage = Stage::Parked;
                let park = u64::try_from(park).ok().map(|park| park.max(10));
                match [park, left].into_iter().flatten().min() {
                    Some(pause) => self.env.set_timer(Timer::Java(index), pause),
                    None => self.env.cancel_timer(Timer::Java(index)),
                }
            }
        }
        Ok(())
    }

    /// Leaves the queue at the end of the wait.
    fn give_up_java(&mut self, index: usize) -> Check {
        // A waiter that gives up lowers the scores of those behind it. Redisson's asynchronous
        // waiters lower them by the default instead of by their own wait.
        let is_async = self.env.chance(self.settings.java_async_percent);
        let wait = self.java[index].wait.filter(|_| !is_async).unwrap_or(ALLOWANCE_MS);
        let wait = i64::try_from(wait).unwrap();
        self.run_java(index, |model, request| model.java_gives_up(&JAVA, request.holder, wait))?;
        self.suspend_java(index, Stage::Idle, 0..10_000);
        Ok(())
    }

    fn unlock_java(&mut self, index: usize) -> Check {
        let latch = format!("redisson_unlock_latch:{{job}}:{}", self.java[index].holder);
        self.run_java(index, |model, request| {
            model.java_unlock(&JAVA, request, &latch, UNLOCK_LATCH_MS)
        })?;
        self.suspend_java(index, Stage::Idle, 0..10_000);
        Ok(())
    }

    /// Runs one of Redisson's scripts, and checks what it did.
    fn run_java<T>(
        &mut self,
        index: usize,
        call: impl FnOnce(&mut ScriptModel, JavaPoll<'_>) -> T,
    ) -> Result<T, String> {
        let before = self.take_snapshot();
        let Java { holder, ahead, wait, .. } = self.java[index].clone();
        let allowance = i64::try_from(wait.unwrap_or(ALLOWANCE_MS)).unwrap();
        let (server, now) = (self.env.now, i64::try_from(self.env.now).unwrap() + ahead);
        let request = JavaPoll { holder: &holder, lease: LEASE_MS, allowance, now, server };
        let result = call(&mut self.env.model, request);
        self.check_script(&Script::Java { holder: &holder }, &before)?;
        Ok(result)
    }
}
