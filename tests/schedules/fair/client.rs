//! A client of this library at a fair lock: a simplified version of its machines.

use std::time::Duration;

use edgelatch_proto::protocol::calls::{FairSettings, Try};
use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::{Bound, ScriptCall};

use super::super::runner::Request;
use super::{ABANDON_REQUEST, Fair, Refusal, Timer, calls, new_try, target};
use test_support::calls::{field, numbered_owner, request};

/// The timeout of one attempt, in milliseconds.
const ATTEMPT_MS: u64 = 2_000;
/// The lease, in milliseconds.
const LEASE_MS: u64 = 8_000;
/// The shortest time for which Redis remembers an owner.
const OWNER_MEMORY: Duration = Duration::from_secs(90);
/// How many attempts of a last try are sent before the client gives up.
const LAST_TRY_ATTEMPTS: u32 = 3;

/// One client, which waits, holds, and begins again.
#[derive(Clone, Debug)]
pub(super) struct Client {
    stage: Stage,
    owner: u32,
    /// The channel on which scripts notify this owner that it may retry.
    pub(super) channel: String,
    /// The owner whose place this owner takes over, until a reply confirms that it has.
    previous: Option<u32>,
    /// The number of the owner's newest try.
    number: u32,
    bound: Bound,
    wait_until: u64,
    is_streaming: bool,
    settings: FairSettings,
    /// How often the newest try was sent.
    attempts: u32,
}

/// The stage of a client. `sent` is the number of the request whose reply counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    Trying {
        sent: usize,
        last: bool,
    },
    Pausing,
    Holding,
    /// The client abandons its owner. With `restart`, it then begins a new wait at once.
    Ending {
        sent: usize,
        restart: bool,
    },
    Dead,
}

impl Client {
    pub(super) fn new() -> Self {
        Self {
            stage: Stage::Idle,
            owner: 0,
            channel: String::new(),
            previous: None,
            number: 0,
            bound: Bound { not_after: None, keep: OWNER_MEMORY },
            wait_until: 0,
            is_streaming: false,
            settings: FairSettings::default(),
            attempts: 0,
        }
    }

    pub(super) const fn is_subscribed(&self) -> bool {
        self.is_streaming && matches!(self.stage, Stage::Pausing | Stage::Trying { .. })
    }

    pub(super) fn waits_on(&self, channel: &str) -> bool {
        self.is_streaming && self.stage == Stage::Pausing && self.channel == channel
    }

    fn try_call(&self, last: bool) -> ScriptCall {
        let previous = self.previous.map(numbered_owner);
        let newest = new_try(self.owner, self.number, LEASE_MS);
        target(self.settings).acquire(&Try { bound: self.bound, last, previous, ..newest })
    }

    fn abandon_call(&self) -> ScriptCall {
        let (owner, previous) = (numbered_owner(self.owner), self.previous.map(numbered_owner));
        target(self.settings).abandon(request(ABANDON_REQUEST), self.bound, owner, previous)
    }

    fn field(&self) -> String {
        field(&numbered_owner(self.owner))
    }
}

impl Fair {
    pub(super) fn on_client_timer(&mut self, index: usize) {
        let Client { stage, attempts, .. } = self.clients[index];
        match stage {
            // A new client takes the place of a dead one.
            Stage::Idle | Stage::Dead => self.start(index),
            Stage::Trying { last: true, .. } if attempts >= LAST_TRY_ATTEMPTS => {
                self.abandon(index, false)
            }
            Stage::Trying { last: true, .. } => self.send_try(index, true),
            Stage::Trying { .. } if self.env.chance(self.settings.give_up_percent) => {
                self.abandon(index, false);
            }
            Stage::Trying { .. } if self.env.chance(self.settings.rollover_percent) => {
                self.roll_over(index);
            }
            Stage::Trying { .. } => self.try_again(index),
            Stage::Pausing => self.poll(index),
            Stage::Holding if self.env.chance(self.settings.holder_death_percent) => {
                self.die(index)
            }
            Stage::Holding => self.abandon(index, false),
            Stage::Ending { restart, .. } => self.abandon(index, restart),
        }
    }

    fn start(&mut self, index: usize) {
        let wait = self.env.rng.u64(1_000..60_000);
        let is_streaming = self.env.chance(self.settings.streaming_percent);
        let client = &mut self.clients[index];
        client.wait_until = self.env.now + wait;
        client.is_streaming = is_streaming;
        client.previous = None;
        self.begin_owner(index);
        self.try_again(index);
    }

    fn begin_owner(&mut self, index: usize) {
        let bounded = self.env.chance(self.settings.bounded_percent);
        let not_after = bounded.then(|| self.env.now + self.env.rng.u64(5_000..60_000));
        self.last_owner += 1;
        let client = &mut self.clients[index];
        client.bound = Bound { not_after, keep: OWNER_MEMORY };
        client.owner = self.last_owner;
        let owner = numbered_owner(client.owner);
        client.channel = calls(client.settings).topic(owner).channel().into();
        client.number = 0;
    }

    /// Sends a new try; it is the last one if the wait is over.
    fn try_again(&mut self, index: usize) {
        let client = &mut self.clients[index];
        client.number += 1;
        client.attempts = 0;
        let last = self.env.now >= client.wait_until;
        self.send_try(index, last);
    }

    /// Sends the newest try, for the first time or once more.
    fn send_try(&mut self, index: usize, last: bool) {
        self.clients[index].attempts += 1;
        let sent = self.env.send(index, self.clients[index].try_call(last));
        self.clients[index].stage = Stage::Trying { sent, last };
        self.env.set_timer(Timer::Client(index), ATTEMPT_MS);
    }

    /// Releases the hold, or leaves the queue, and prevents later grants to this owner.
    fn abandon(&mut self, index: usize, restart: bool) {
        self.drop_lease(index);
        let sent = self.env.send(index, self.clients[index].abandon_call());
        self.clients[index].stage = Stage::Ending { sent, restart };
        self.env.set_timer(Timer::Client(index), 1_000);
    }

    fn become_idle(&mut self, index: usize) {
        self.clients[index].stage = Stage::Idle;
        let pause = self.env.rng.u64(0..5_000);
        self.env.set_timer(Timer::Client(index), pause);
    }

    /// Continues under a new owner, which takes over from the old one. Abandons instead if the
    /// outcome of the last takeover is unknown.
    fn roll_over(&mut self, index: usize) {
        let Client { owner, previous, .. } = self.clients[index];
        if previous.is_some() && !self.settings.skips_owner {
            return self.abandon(index, true);
        }
        if previous.is_some() {
            // The client will neither name this owner again nor end it.
            self.checker.record_end(&self.clients[index].field());
        }
        self.clients[index].previous = previous.or(Some(owner));
        self.begin_owner(index);
        self.try_again(index);
    }

    fn poll(&mut self, index: usize) {
        let Self { env, settings, .. } = self;
        if env.chance(settings.death_percent) {
            self.die(index);
        } else if env.chance(settings.give_up_percent) {
            self.abandon(index, false);
        } else if env.chance(settings.pause_percent) {
            let pause = env.rng.u64(3_000..25_000);
            env.set_timer(Timer::Client(index), pause);
        } else if env.chance(settings.rollover_percent) {
            self.roll_over(index);
        } else {
            self.try_again(index);
        }
    }

    fn die(&mut self, index: usize) {
        self.drop_lease(index);
        self.clients[index].stage = Stage::Dead;
        let pause = self.env.rng.u64(1_000..20_000);
        self.env.set_timer(Timer::Client(index), pause);
    }

    fn drop_lease(&mut self, index: usize) {
        let field = self.clients[index].field();
        self.leases.retain(|holder| *holder != field);
    }

    /// Handles a reply; ignores replies to all but the newest request.
    pub(super) fn on_client_reply(&mut self, request: &Request, reply: &Reply) {
        let index = request.client;
        match self.clients[index].stage {
            Stage::Trying { sent, last } if sent == request.number => {
                self.on_try_reply(index, request.sent_at, last, reply);
            }
            Stage::Ending { sent, restart } if sent == request.number => {
                self.clients[index].previous = None;
                if restart { self.start(index) } else { self.become_idle(index) }
            }
            _ => {}
        }
    }

    fn on_try_reply(&mut self, index: usize, sent_at: u64, last: bool, reply: &Reply) {
        let client = &mut self.clients[index];
        match reply.code {
            Code::Done | Code::AlreadyYours => {
                client.previous = None;
                // The client allows for a drift of its clock of 1 % and 2 ms.
                let until = sent_at + LEASE_MS * 99 / 100 - 2;
                if until < self.env.now + LEASE_MS / 2 {
                    return self.roll_over(index);
                }
                client.stage = Stage::Holding;
                self.leases.extend(client.field(), until + 1);
                let hold = self.env.rng.u64(1..until - self.env.now);
                self.env.set_timer(Timer::Client(index), hold);
            }
            Code::No | Code::Gone if last => self.become_idle(index),
            Code::No => {
                let refusal = Refusal::parse(&reply.value);
                client.previous = None;
                if refusal.was_evicted {
                    // Redisson's clocks are further ahead than the settings allow for.
                    client.settings = client.settings.widened();
                }
                client.stage = Stage::Pausing;
                let retry = refusal.poll_after_ms.max(20);
                let left = client.wait_until.saturating_sub(self.env.now).max(1);
                let pause = self.env.rng.u64(retry * 4 / 5..=retry).min(left);
                self.env.set_timer(Timer::Client(index), pause);
            }
            Code::Late | Code::Lost => self.roll_over(index),
            other => panic!("an owner that has not ended gets {other:?}"),
        }
    }
}
