//! A client of ours at one lock: as the machine does it, in short.

use std::time::Duration;

use edgelatch::protocol::calls::FairSettings;
use edgelatch::protocol::reply::{Code, Reply};
use edgelatch::protocol::script::Bound;

use super::super::kit::{Asks, Fair};
use super::world::World;
use crate::support::calls::numbered_owner;

/// How long one attempt may take, and how long a hold lasts.
const ATTEMPT: u64 = 2_000;
const LEASE: u64 = 8_000;

/// One client, which waits, holds, and waits again.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) stage: Stage,
    owner: u32,
    /// On which it is told that it is its turn.
    pub(crate) channel: String,
    previous: Option<u32>,
    number: u32,
    bound: Bound,
    wait_over: u64,
    pub(crate) streaming: bool,
    settings: FairSettings,
    /// Which timer is the newest.
    pub(crate) turn: u64,
    /// Attempts at what is being asked.
    attempts: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Idle,
    Asking {
        sent: u64,
        sent_at: u64,
        last: bool,
    },
    Pausing,
    Holding {
        until: u64,
    },
    /// Releases or abandons, until it is answered. `anew`: then it begins again at once.
    Ending {
        sent: u64,
        anew: bool,
    },
    Dead,
}

impl Client {
    pub(crate) fn new() -> Self {
        Self {
            stage: Stage::Idle,
            owner: 0,
            channel: String::new(),
            previous: None,
            number: 0,
            bound: Bound { not_after: None, keep: Duration::from_secs(90) },
            wait_over: 0,
            streaming: false,
            settings: FairSettings::default(),
            turn: 0,
            attempts: 0,
        }
    }

    /// Whether it listens on its owner's channel.
    pub(crate) const fn listens(&self) -> bool {
        self.streaming && matches!(self.stage, Stage::Pausing | Stage::Asking { .. })
    }

    fn lock(&self) -> Fair {
        Fair { settings: self.settings, ..Fair::new("job") }
    }
}

impl World {
    fn begins(&mut self, who: usize) {
        let (wait, streams) = (self.rng.u64(1_000..60_000), self.chance(self.law.streaming));
        let client = &mut self.clients[who];
        client.wait_over = self.now + wait;
        client.streaming = streams;
        client.previous = None;
        self.new_owner(who);
        self.asks(who);
    }

    fn new_owner(&mut self, who: usize) {
        let bounded = self.chance(self.law.bounded);
        let not_after = bounded.then(|| self.now + self.rng.u64(5_000..60_000));
        self.owners += 1;
        let client = &mut self.clients[who];
        client.bound = Bound { not_after, keep: Duration::from_secs(90) };
        client.owner = self.owners;
        client.channel = client.lock().channel(numbered_owner(self.owners));
        client.number = 0;
    }

    fn asks(&mut self, who: usize) {
        let now = self.now;
        let client = &mut self.clients[who];
        client.number += 1;
        client.attempts = 0;
        let last = now >= client.wait_over;
        self.sends_try(who, last);
    }

    fn sends_try(&mut self, who: usize, last: bool) {
        let client = &mut self.clients[who];
        client.attempts += 1;
        let Client { owner, number, bound, previous, .. } = *client;
        let call =
            client.lock().acquire(Asks { owner, number, last, lease_ms: LEASE, bound, previous });
        let sent = self.sends(who, call);
        self.clients[who].stage = Stage::Asking { sent, sent_at: self.now, last };
        self.wakes(who, ATTEMPT);
    }

    fn ends(&mut self, who: usize, anew: bool) {
        let client = &self.clients[who];
        let call = client.lock().abandon(client.owner, client.bound, client.previous);
        let sent = self.sends(who, call);
        self.clients[who].stage = Stage::Ending { sent, anew };
        self.wakes(who, 1_000);
    }

    fn rests(&mut self, who: usize) {
        self.clients[who].stage = Stage::Idle;
        let rest = self.rng.u64(0..5_000);
        self.wakes(who, rest);
    }

    /// Goes on under a new owner, which takes over; unless it is not known yet what the last takeover has come to.
    fn rolls_over(&mut self, who: usize) {
        let Client { owner, previous, .. } = self.clients[who];
        if previous.is_some() && !self.law.forgets {
            return self.ends(who, true);
        }
        if previous.is_some() {
            self.seen.forgets(owner);
        }
        self.clients[who].previous = previous.or(Some(owner));
        self.new_owner(who);
        self.asks(who);
    }

    /// Its newest timer has run out.
    pub(crate) fn woken(&mut self, who: usize) {
        let stage = self.clients[who].stage;
        match stage {
            Stage::Idle => self.begins(who),
            Stage::Asking { last: true, .. } if self.clients[who].attempts >= 3 => {
                self.ends(who, false);
            }
            Stage::Asking { last: true, .. } => self.sends_try(who, true),
            Stage::Asking { .. } if self.chance(self.law.gives_up) => self.ends(who, false),
            Stage::Asking { .. } if self.chance(self.law.rolls_over) => self.rolls_over(who),
            Stage::Asking { .. } => self.asks(who),
            Stage::Pausing => self.polls(who),
            Stage::Holding { .. } if self.chance(self.law.holder_dies) => self.dies(who),
            Stage::Holding { .. } => self.ends(who, false),
            Stage::Ending { anew, .. } => self.ends(who, anew),
            // Another takes its place.
            Stage::Dead => self.begins(who),
        }
    }

    fn polls(&mut self, who: usize) {
        if self.chance(self.law.dies) {
            self.dies(who);
        } else if self.chance(self.law.gives_up) {
            self.ends(who, false);
        } else if self.chance(self.law.pauses) {
            let pause = self.rng.u64(3_000..25_000);
            self.wakes(who, pause);
        } else if self.chance(self.law.rolls_over) {
            self.rolls_over(who);
        } else {
            self.asks(who);
        }
    }

    fn dies(&mut self, who: usize) {
        self.clients[who].stage = Stage::Dead;
        let gone = self.rng.u64(1_000..20_000);
        self.wakes(who, gone);
    }

    /// The answer to what it sent last.
    pub(crate) fn hears(&mut self, who: usize, sent: u64, reply: &Reply) {
        match self.clients[who].stage {
            Stage::Asking { sent: awaited, sent_at, last } if awaited == sent => {
                self.hears_of_try(who, sent_at, last, reply);
            }
            Stage::Ending { sent: awaited, anew } if awaited == sent => {
                self.clients[who].previous = None;
                if anew { self.begins(who) } else { self.rests(who) }
            }
            _ => {}
        }
    }

    fn hears_of_try(&mut self, who: usize, sent_at: u64, last: bool, reply: &Reply) {
        match reply.code {
            Code::Done | Code::AlreadyYours => {
                self.clients[who].previous = None;
                let until = sent_at + LEASE * 99 / 100 - 2;
                if until < self.now + LEASE / 2 {
                    return self.rolls_over(who);
                }
                self.clients[who].stage = Stage::Holding { until };
                let hold = self.rng.u64(1..until - self.now);
                self.wakes(who, hold);
            }
            Code::No if last => self.rests(who),
            Code::Gone if last => self.rests(who),
            Code::No => {
                let numbers: Vec<u64> =
                    reply.value.split(',').map(|number| number.parse().unwrap()).collect();
                let client = &mut self.clients[who];
                client.previous = None;
                if numbers[2] == 1 {
                    client.settings = client.settings.widened();
                }
                client.stage = Stage::Pausing;
                let told = numbers[1].max(20);
                let left = client.wait_over.saturating_sub(self.now).max(1);
                let pause = self.rng.u64(told * 4 / 5..=told).min(left);
                self.wakes(who, pause);
            }
            Code::Late | Code::Lost => self.rolls_over(who),
            other => panic!("an owner that has not ended is told {other:?}"),
        }
    }
}
