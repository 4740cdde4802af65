//! A waiter of Redisson's: its scripts, and its loop around them.

use super::super::kit::Fair;
use super::world::World;
use crate::support::script_model::java_fair::JavaAsks;

/// The lease of Redisson's watched locks; none is held for as long here.
pub(crate) const JAVA_LEASE: u64 = 30_000;
/// What is asked for by a waiter that names no wait.
const ALLOWANCE: u64 = 300_000;

/// One thread of Redisson's.
#[derive(Clone, Debug)]
pub(crate) struct Java {
    pub(crate) holder: String,
    pub(crate) stage: JavaStage,
    /// By how much its clock is ahead.
    ahead: i64,
    wait: Option<u64>,
    began: u64,
    pub(crate) turn: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JavaStage {
    Idle,
    Parked,
    Holding {
        until: u64,
    },
    /// It listens, but does nothing.
    Stuck,
    Dead,
}

impl Java {
    pub(crate) const fn new() -> Self {
        let stage = JavaStage::Idle;
        Self { holder: String::new(), stage, ahead: 0, wait: None, began: 0, turn: 0 }
    }

    pub(crate) const fn listens(&self) -> bool {
        matches!(self.stage, JavaStage::Parked | JavaStage::Stuck)
    }
}

impl World {
    fn java_asks(&self, who: usize) -> JavaAsks<'static> {
        let java = &self.java[who];
        JavaAsks {
            holder: "",
            lease: JAVA_LEASE,
            allowance: i64::try_from(java.wait.unwrap_or(ALLOWANCE)).unwrap(),
            now: i64::try_from(self.now).unwrap() + java.ahead,
            server: self.now,
        }
    }

    pub(crate) fn java_woken(&mut self, who: usize) {
        let stage = self.java[who].stage;
        match stage {
            JavaStage::Idle | JavaStage::Dead => self.java_begins(who),
            JavaStage::Parked if self.chance(self.law.java_stuck) => {
                self.java[who].stage = JavaStage::Stuck;
                let stuck = self.rng.u64(1_000..40_000);
                self.java_wakes(who, stuck);
            }
            JavaStage::Parked if self.chance(self.law.java_dies) => self.java_dies(who),
            JavaStage::Parked | JavaStage::Stuck => self.java_tries(who),
            JavaStage::Holding { .. } if self.chance(self.law.holder_dies) => self.java_dies(who),
            JavaStage::Holding { .. } => self.java_unlocks(who),
        }
    }

    fn java_begins(&mut self, who: usize) {
        self.holders += 1;
        let (ahead, holders) = (self.law.ahead(&mut self.rng), self.holders);
        let java = &mut self.java[who];
        java.holder = format!("{holders:08x}-0000-4000-8000-000000000000:{who}");
        java.ahead = ahead;
        java.wait = self.rng.choice([Some(5_000), Some(20_000), None]).unwrap();
        java.began = self.now;
        java.stage = JavaStage::Parked;
        self.java_tries(who);
    }

    fn java_dies(&mut self, who: usize) {
        self.java[who].stage = JavaStage::Dead;
        let gone = self.rng.u64(1_000..40_000);
        self.java_wakes(who, gone);
    }

    fn java_rests(&mut self, who: usize) {
        self.java[who].stage = JavaStage::Idle;
        let rest = self.rng.u64(0..10_000);
        self.java_wakes(who, rest);
    }

    fn java_tries(&mut self, who: usize) {
        let (holder, asks) = (self.java[who].holder.clone(), self.java_asks(who));
        let keys = Fair::new("job").java();
        let park = self.watched(&holder, |model| {
            model.java_acquire(&keys.model(), JavaAsks { holder: &holder, ..asks })
        });
        let java = &mut self.java[who];
        let left = java.wait.map(|wait| (java.began + wait).saturating_sub(self.now));
        match (park, left) {
            (None, _) => {
                java.stage = JavaStage::Holding { until: self.now + JAVA_LEASE };
                let hold = self.rng.u64(1..6_000);
                self.java_wakes(who, hold);
            }
            (Some(_), Some(0)) => self.java_gives_up(who),
            (Some(park), left) => {
                java.stage = JavaStage::Parked;
                java.turn += 1;
                let park = u64::try_from(park).ok().map(|park| park.max(10));
                let pause = [park, left].into_iter().flatten().min();
                if let Some(pause) = pause {
                    self.java_wakes(who, pause);
                }
            }
        }
    }

    fn java_gives_up(&mut self, who: usize) {
        let late = self.chance(self.law.java_async);
        let java = &self.java[who];
        let (holder, wait) = (java.holder.clone(), java.wait.unwrap_or(ALLOWANCE));
        let less = i64::try_from(if late { ALLOWANCE } else { wait }).unwrap();
        let keys = Fair::new("job").java();
        self.watched(&holder, |model| model.java_gives_up(&keys.model(), &holder, less));
        self.java_rests(who);
    }

    fn java_unlocks(&mut self, who: usize) {
        let (holder, asks) = (self.java[who].holder.clone(), self.java_asks(who));
        let keys = Fair::new("job").java();
        self.watched(&holder, |model| {
            let asks = JavaAsks { holder: &holder, ..asks };
            model.java_unlock(&keys.model(), asks, &keys.latch(&holder), 17_500)
        });
        self.java_rests(who);
    }
}
