//! One schedule: a Redis, a network, clients, and the time.

use std::collections::BTreeMap;

use edgelatch::protocol::reply::Reply;
use edgelatch::protocol::script::ScriptCall;
use fastrand::Rng;

use super::super::kit::{Asks, Fair, asks, field_of};
use super::java::{Java, JavaStage};
use super::law::Law;
use super::ours::{Client, Stage};
use super::seen::{By, Seen, Snapshot};
use crate::support::script_model::audience::{Audience, Message};
use crate::support::script_model::fair_head::Rule;
use crate::support::script_model::{Latches, ScriptModel};

/// When a schedule begins, by Redis' clock, and how long it is.
const START: u64 = 1_700_000_000_000;
const LENGTH: u64 = 120_000;
/// In percent.
const LOST_MESSAGES: u32 = 10;

pub(crate) struct World {
    pub(crate) model: ScriptModel,
    pub(crate) now: u64,
    pub(crate) rng: Rng,
    pub(crate) law: Law,
    pub(crate) clients: Vec<Client>,
    pub(crate) java: Vec<Java>,
    /// How many there have been.
    pub(crate) owners: u32,
    pub(crate) holders: u32,
    pub(crate) seen: Seen,
    events: BTreeMap<(u64, u64), Event>,
    events_made: u64,
}

enum Event {
    /// A request reaches Redis. The answer to it, if there is one, is on its way for so long.
    Executes {
        who: usize,
        sent: u64,
        call: ScriptCall,
        answered_in: Option<u64>,
    },
    Hears {
        who: usize,
        sent: u64,
        reply: Reply,
    },
    Wakes {
        who: usize,
        turn: u64,
    },
    JavaWakes {
        who: usize,
        turn: u64,
    },
}

impl World {
    pub(crate) fn new(seed: u64, law: Law) -> Self {
        Self {
            model: ScriptModel::new(Latches::On),
            now: START,
            rng: Rng::with_seed(seed),
            law,
            clients: vec![Client::new(); law.ours],
            java: vec![Java::new(); law.java],
            owners: 0,
            holders: 0,
            seen: Seen::new(law.wild_clocks),
            events: BTreeMap::new(),
            events_made: 0,
        }
    }

    /// With a rule taken away.
    pub(crate) fn without(mut self, rule: Rule) -> Self {
        self.model.unfair = Some(rule);
        self
    }

    /// Runs it; answers what went wrong first.
    pub(crate) fn run(&mut self) -> Result<(), String> {
        for who in 0..self.clients.len() {
            let begins = self.rng.u64(0..5_000);
            self.wakes(who, begins);
        }
        for who in 0..self.java.len() {
            let begins = self.rng.u64(0..5_000);
            self.java_wakes(who, begins);
        }
        while let Some(((at, _), event)) =
            self.events.pop_first().filter(|((at, _), _)| *at < START + LENGTH)
        {
            self.now = at;
            self.happens(event);
            self.seen.believers(self.believers());
            if let Some(wrong) = self.seen.wrong() {
                return Err(format!("{wrong} after {} ms", at - START));
            }
        }
        self.all_fall_silent()
    }

    pub(crate) fn chance(&mut self, percent: u32) -> bool {
        self.rng.u32(0..100) < percent
    }

    pub(crate) fn wakes(&mut self, who: usize, later: u64) {
        self.clients[who].turn += 1;
        let turn = self.clients[who].turn;
        self.later(later, Event::Wakes { who, turn });
    }

    pub(crate) fn java_wakes(&mut self, who: usize, later: u64) {
        self.java[who].turn += 1;
        let turn = self.java[who].turn;
        self.later(later, Event::JavaWakes { who, turn });
    }

    fn later(&mut self, later: u64, event: Event) {
        self.events_made += 1;
        self.events.insert((self.now + later, self.events_made), event);
    }

    /// Sends a request, which is lost, slow or doubled as it comes.
    pub(crate) fn sends(&mut self, who: usize, call: ScriptCall) -> u64 {
        let sent = self.events_made;
        if self.chance(self.law.copied) {
            for _ in 0..self.rng.u32(1..=2) {
                let late = self.rng.u64(1..60_000);
                let call = call.clone();
                self.later(late, Event::Executes { who, sent, call, answered_in: None });
            }
        }
        if !self.chance(self.law.lost) {
            let slow = self.chance(self.law.slow);
            let way = self.rng.u64(1..if slow { 4_000 } else { 50 });
            let answered_in = (!self.chance(self.law.reply_lost)).then(|| self.rng.u64(1..50));
            self.later(way, Event::Executes { who, sent, call, answered_in });
        }
        sent
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Executes { who, sent, call, answered_in } => {
                let reply = self.executes(&call);
                if let Some(way) = answered_in {
                    self.later(way, Event::Hears { who, sent, reply });
                }
            }
            Event::Hears { who, sent, reply } => self.hears(who, sent, &reply),
            Event::Wakes { who, turn } if self.clients[who].turn == turn => self.woken(who),
            Event::JavaWakes { who, turn } if self.java[who].turn == turn => self.java_woken(who),
            Event::Wakes { .. } | Event::JavaWakes { .. } => {}
        }
    }

    fn executes(&mut self, call: &ScriptCall) -> Reply {
        let before = self.look();
        let latch = self.model.text(&call.keys()[0]);
        // So that no two scripts run in one microsecond.
        let micros = self.now * 1000 + self.events_made % 1000;
        let reply = Reply::read(&self.model.run_at(call, micros), call.request).unwrap();
        let after = self.look();
        self.seen.ran(
            &By::ours(call, latch, &reply),
            &before,
            &after,
            &self.model.published,
            self.now,
        );
        self.tells();
        reply
    }

    /// Runs a script of Redisson's.
    pub(crate) fn watched<T>(
        &mut self,
        holder: &str,
        script: impl FnOnce(&mut ScriptModel) -> T,
    ) -> T {
        let before = self.look();
        let answer = script(&mut self.model);
        let after = self.look();
        self.seen.ran(&By::Java { holder }, &before, &after, &self.model.published, self.now);
        self.tells();
        answer
    }

    /// What is there, once the time and who listens are told to Redis.
    fn look(&mut self) -> Snapshot {
        let lock = Fair::new("job");
        let ours = self.clients.iter().filter(|client| client.listens());
        let java = self.java.iter().filter(|java| java.listens());
        let ours = ours.map(|client| client.channel.clone());
        let java =
            java.map(|java| format!("{}:{}", lock.key("redisson_lock__channel"), java.holder));
        self.model.audience = Audience::These(ours.chain(java).collect());
        self.model.expire(self.now);
        Snapshot::of(&self.model, &lock, self.now)
    }

    /// Messages reach those who listen, or get lost.
    fn tells(&mut self) {
        for Message { channel, .. } in std::mem::take(&mut self.model.published) {
            for who in 0..self.clients.len() {
                let client = &self.clients[who];
                let pauses = client.streaming && client.stage == Stage::Pausing;
                if pauses && client.channel == channel && !self.chance(LOST_MESSAGES) {
                    let way = self.rng.u64(1..50);
                    self.wakes(who, way);
                }
            }
            for who in 0..self.java.len() {
                let java = &self.java[who];
                let parks = java.stage == JavaStage::Parked;
                if parks && channel.ends_with(&java.holder) && !self.chance(LOST_MESSAGES) {
                    let way = self.rng.u64(1..50);
                    self.java_wakes(who, way);
                }
            }
        }
    }

    fn believers(&self) -> usize {
        let ours = self
            .clients
            .iter()
            .filter(|client| matches!(client.stage, Stage::Holding { until } if self.now <= until));
        let java = self
            .java
            .iter()
            .filter(|java| matches!(java.stage, JavaStage::Holding { until } if self.now < until));
        ours.count() + java.count()
    }

    /// From any state, if all fall silent: one who is new gets in within what the silent are given, and leaves nothing behind.
    fn all_fall_silent(&mut self) -> Result<(), String> {
        self.clients.clear();
        self.java.clear();
        let (lock, owner) = (Fair::new("job"), self.owners + 1);
        let at_most = self.look().silence_costs();
        let begun = self.now;
        for number in 1.. {
            let reply =
                self.executes(&lock.acquire(Asks { lease_ms: 10_000, ..asks(owner, number) }));
            if let Some(wrong) = self.seen.wrong() {
                return Err(format!("{wrong} in the silence"));
            }
            if reply.value.parse::<u64>().is_ok() {
                break;
            }
            if self.now > begun + at_most {
                return Err(format!("no way in after {at_most} ms"));
            }
            let after: u64 = reply.value.split(',').nth(1).unwrap().parse().unwrap();
            self.now += after;
        }
        self.executes(&lock.release(owner));
        let left = self.look();
        let is_clean = left.holders.is_empty() && !left.names(&field_of(owner));
        if is_clean { Ok(()) } else { Err(format!("left behind: {left:?}")) }
    }
}
