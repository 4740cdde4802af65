//! One schedule: a Redis, a network, those who want the lock, and the time.

use std::collections::BTreeMap;

use edgelatch::name::RequestId;
use edgelatch::protocol::reply::Reply;
use edgelatch::protocol::script::ScriptCall;
use fastrand::Rng;

use super::java::Java;
use super::law::{COPY_MS, Law};
use super::ours::Taker;
use super::seen::Seen;
use crate::support::script_model::{Latches, ScriptModel};

pub(super) const JOB: &str = "job";
/// When a schedule begins, by Redis' clock; for how long new ones come; and after what all has ended.
const START: u64 = 1_700_000_000_000;
const LENGTH: u64 = 15_000;
const QUIET: u64 = 120_000;

pub(super) struct World {
    pub(super) model: ScriptModel,
    pub(super) now: u64,
    pub(super) rng: Rng,
    pub(super) law: Law,
    /// All of ours that there have been, by the number of their owner less one.
    pub(super) takers: Vec<Taker>,
    pub(super) java: Vec<Java>,
    pub(super) requests: u64,
    pub(super) seen: Seen,
    events: BTreeMap<(u64, u64), Event>,
    events_made: u64,
}

pub(super) enum Event {
    /// One more of ours comes.
    Begins,
    /// A request reaches Redis; the answer to it is on its way for so long, if it is heard.
    Executes {
        who: usize,
        sent: u64,
        call: Box<ScriptCall>,
        answered_in: Option<u64>,
    },
    Hears {
        who: usize,
        sent: u64,
        to: RequestId,
        reply: Reply,
    },
    /// What this one has been waiting for, unless it has been up to something else since.
    Wakes {
        who: usize,
        turn: u64,
    },
    /// A holder does not need it any more.
    HasDone {
        who: usize,
    },
    JavaActs {
        who: usize,
    },
}

impl World {
    pub(super) fn new(seed: u64, law: Law) -> Self {
        let mut world = Self {
            model: ScriptModel::new(Latches::On),
            now: START,
            rng: Rng::with_seed(seed),
            takers: Vec::new(),
            java: (0..law.java).map(Java::new).collect(),
            requests: 0,
            seen: Seen::default(),
            events: BTreeMap::new(),
            events_made: 0,
            law,
        };
        for _ in 0..world.law.ours {
            world.after(0, Event::Begins);
        }
        for who in 0..world.law.java {
            world.after(0, Event::JavaActs { who });
        }
        world
    }

    /// Until all is quiet. What is wrong is told at the first sight of it.
    pub(super) fn run(mut self) -> Result<Seen, String> {
        while let Some(((at, _), event)) = self.events.pop_first() {
            self.now = at;
            self.happens(event)?;
        }
        self.now += QUIET;
        self.nothing_is_left()?;
        Ok(self.seen)
    }

    fn happens(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Begins => {
                self.begins(None);
                Ok(())
            }
            Event::Executes { who, sent, call, answered_in } => {
                self.executes(who, sent, &call, answered_in)
            }
            Event::Hears { who, sent, to, reply } => self.hears(who, sent, to, &reply),
            Event::Wakes { who, turn } => {
                if self.takers[who].turn == turn {
                    self.wakes(who);
                }
                Ok(())
            }
            Event::HasDone { who } => {
                self.has_done(who);
                Ok(())
            }
            Event::JavaActs { who } => {
                self.java_acts(who);
                self.check("Java")
            }
        }
    }

    fn executes(
        &mut self,
        who: usize,
        sent: u64,
        call: &ScriptCall,
        answered_in: Option<u64>,
    ) -> Result<(), String> {
        let not_after = call.args()[1].parse().ok();
        // As if each attempt had a bound of its own.
        let moves = self.law.moving_bound && call.script().name.ends_with("_acquire");
        let not_after = if moves { not_after.map(|_| sent + 9_000) } else { not_after };
        let micros = self.now * 1000 + self.events_made % 1000;
        let cells = self.model.run_until(call, not_after, micros);
        let reply = Reply::read(&cells, call.request).unwrap();
        self.executed(who, call, &reply)?;
        self.check(call.script().name)?;
        if let Some(ms) = answered_in {
            self.after(ms, Event::Hears { who, sent, to: call.request, reply });
        }
        Ok(())
    }

    pub(super) fn after(&mut self, ms: u64, event: Event) {
        self.events_made += 1;
        self.events.insert((self.now + ms, self.events_made), event);
    }

    pub(super) fn chance(&mut self, per_cent: u8) -> bool {
        self.rng.u8(0..100) < per_cent
    }

    /// Sends a call, which may be lost, late or doubled, and its answer lost or late.
    pub(super) fn send(&mut self, who: usize, call: &ScriptCall) {
        let sent = self.now;
        let mut ways = Vec::new();
        if self.chance(self.law.lost) {
            self.seen.lost += 1;
        } else {
            ways.push(if self.chance(self.law.slow) { 3_000 } else { 30 });
        }
        while ways.len() < 4 && self.chance(self.law.copied) {
            ways.push(COPY_MS);
        }
        for (place, longest) in ways.into_iter().enumerate() {
            let delay = self.rng.u64(1..longest);
            let heard = place == 0 && !self.chance(self.law.unheard);
            let answered_in = heard.then(|| {
                let longest = if self.chance(self.law.slow) { 2_000 } else { 30 };
                self.rng.u64(1..longest)
            });
            let call = Box::new(call.clone());
            self.after(delay, Event::Executes { who, sent, call, answered_in });
        }
    }

    /// Whether new ones still come.
    pub(super) const fn is_open(&self) -> bool {
        self.now < START + LENGTH
    }
}
