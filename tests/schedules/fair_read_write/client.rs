//! A client of a fair read-write lock: a simplified version of its machines.

use std::time::Duration;

use edgelatch_proto::protocol::calls::{Extension, FairMode, Target, Try};
use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::Bound;

use super::super::runner::{Check, Request};
use super::{FairRw, NAMES, Timer, poll_after, target};
use test_support::calls::{field, lease, numbered_owner, request, token};

/// How far the bound of a request reaches beyond its wait, in milliseconds.
const HORIZON_MS: u64 = 1_500;
/// The shortest time for which Redis remembers a request with a bound.
const KEEP: Duration = Duration::from_millis(100);
/// How long before its bound an owner is replaced, in milliseconds.
const ROLL_OVER_MS: u64 = 400;
/// How many attempts of a last try are sent before the client gives up.
const LAST_TRIES: u32 = 20;

/// One client, which waits, holds, and begins again.
#[derive(Clone, Debug)]
pub(super) struct Client {
    stage: Stage,
    lock: usize,
    mode: FairMode,
    /// Whether it waits, rather than trying once.
    waits: bool,
    owner: u32,
    /// The owner whose place this one takes over, until a reply confirms that it has.
    previous: Option<u32>,
    /// The number of the owner's newest try.
    number: u32,
    bound: Bound,
    wait_until: u64,
    lease_ms: u64,
    token: u64,
    /// Until when the client relies on its hold.
    valid_until: u64,
    pub(super) renew_at: u64,
    release_at: u64,
    last_tries: u32,
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
    /// The client releases or abandons its owner. With `restart`, it then begins a new wait.
    Ending {
        sent: usize,
        restart: bool,
    },
    Dead,
}

impl Client {
    pub(super) const fn new() -> Self {
        Self {
            stage: Stage::Idle,
            lock: 0,
            mode: FairMode::Shared,
            waits: true,
            owner: 0,
            previous: None,
            number: 0,
            bound: Bound { not_after: None, keep: KEEP },
            wait_until: 0,
            lease_ms: 0,
            token: 0,
            valid_until: 0,
            renew_at: 0,
            release_at: 0,
            last_tries: 0,
        }
    }

    /// Whether a message makes this client send a request.
    pub(super) fn listens_to(&self, channel: &str, text: &str) -> bool {
        let expects = match self.stage {
            Stage::Pausing => text == "1",
            Stage::Holding => text == "0",
            _ => false,
        };
        let owner = field(&numbered_owner(self.owner));
        expects && channel == format!("el:{}:{owner}", NAMES[self.lock])
    }

    fn member(&self) -> String {
        let mode = if self.mode == FairMode::Shared { "s" } else { "x" };
        format!("{mode}{}|", field(&numbered_owner(self.owner)))
    }
}

impl FairRw {
    pub(super) fn on_client_timer(&mut self, index: usize) {
        let client = &self.clients[index];
        let now = self.env.now;
        match client.stage {
            // A new client takes the place of a dead one.
            Stage::Idle | Stage::Dead => self.start(index),
            Stage::Trying { last: true, .. } if client.last_tries > LAST_TRIES => {
                self.end(index, false);
            }
            Stage::Trying { .. } => self.try_again(index),
            Stage::Pausing => self.poll(index),
            Stage::Holding if now >= client.release_at || now >= client.valid_until => {
                self.end(index, false);
            }
            Stage::Holding => self.renew(index),
            Stage::Ending { restart, .. } => self.end(index, restart),
        }
    }

    fn target(&self, index: usize) -> Target {
        let Client { lock, mode, .. } = self.clients[index];
        target(&self.settings, lock, mode)
    }

    fn start(&mut self, index: usize) {
        let Self { env, settings, .. } = self;
        let (steals, once) =
            (env.chance(settings.steal_percent), env.chance(settings.once_percent));
        let is_shared = env.chance(settings.shared_percent);
        let mode = if is_shared { FairMode::Shared } else { FairMode::Exclusive };
        self.clients[index] = Client {
            lock: env.rng.usize(0..NAMES.len()),
            mode: if steals { FairMode::Steal } else { mode },
            waits: !steals && !once,
            wait_until: env.now + env.rng.u64(0..settings.max_wait),
            lease_ms: env.rng.u64(500..1_800),
            ..Client::new()
        };
        let has_bound =
            !(steals && settings.unbounded_steals) && env.chance(settings.bounded_percent);
        self.begin_owner(index, has_bound);
        self.try_again(index);
    }

    fn begin_owner(&mut self, index: usize, has_bound: bool) {
        self.last_owner += 1;
        let (client, now) = (&mut self.clients[index], self.env.now);
        let round = client.wait_until.max(now).min(now + self.settings.max_round);
        client.bound = if has_bound {
            Bound { not_after: Some(round + HORIZON_MS), keep: KEEP }
        } else {
            Bound { not_after: None, keep: self.settings.first_keep }
        };
        client.owner = self.last_owner;
        client.number = 0;
        client.last_tries = 0;
    }

    /// Sends a new try; it is the last one if the wait is over.
    fn try_again(&mut self, index: usize) {
        let (client, now) = (&mut self.clients[index], self.env.now);
        let last = !client.waits || now >= client.wait_until;
        let ends_soon = client.bound.not_after.is_some_and(|bound| now + ROLL_OVER_MS > bound);
        if ends_soon && !last {
            return self.roll_over(index);
        }
        client.number += 1;
        client.last_tries += u32::from(last);
        let Client { owner, number, bound, lease_ms, previous, .. } = *client;
        let call = self.target(index).acquire(&Try {
            request: request(u64::from(owner) * 1000 + u64::from(number)),
            bound,
            owner: numbered_owner(owner),
            lease: lease(lease_ms),
            last,
            number,
            previous: previous.map(numbered_owner),
            announces: false,
        });
        let sent = self.env.send(index, call);
        self.clients[index].stage = Stage::Trying { sent, last };
        self.wait_for_reply(index);
    }

    fn wait_for_reply(&mut self, index: usize) {
        let timeout = self.env.rng.u64(150..300);
        self.env.set_timer(Timer::Client(index), timeout);
    }

    /// Continues under a new owner, which takes over from the old one. Abandons both instead if the
    /// outcome of the last takeover is unknown.
    fn roll_over(&mut self, index: usize) {
        let Client { owner, previous, .. } = self.clients[index];
        if previous.is_some() {
            return self.end(index, true);
        }
        self.env.coverage.count("takeovers");
        self.clients[index].previous = Some(owner);
        self.begin_owner(index, true);
        self.try_again(index);
    }

    fn poll(&mut self, index: usize) {
        let Self { env, settings, .. } = self;
        if env.chance(settings.death_percent) {
            self.die(index);
        } else if env.chance(settings.give_up_percent) {
            self.end(index, false);
        } else if env.chance(settings.pause_percent) {
            let pause = env.rng.u64(100..3_000);
            env.set_timer(Timer::Client(index), pause);
        } else {
            self.try_again(index);
        }
    }

    fn renew(&mut self, index: usize) {
        if self.env.chance(self.settings.death_percent) {
            return self.die(index);
        }
        let (now, client) = (self.env.now, &self.clients[index]);
        let call = self.target(index).renew(&Extension {
            request: request(u64::from(client.owner) * 1000 + 998),
            bound: Bound { not_after: Some(now + HORIZON_MS), keep: KEEP },
            owner: numbered_owner(client.owner),
            lease: lease(client.lease_ms),
            token: token(client.token),
        });
        self.env.send(index, call);
        self.clients[index].renew_at = now + self.clients[index].lease_ms / 3;
        self.sleep_in_hold(index);
    }

    fn sleep_in_hold(&mut self, index: usize) {
        let Client { renew_at, release_at, valid_until, .. } = self.clients[index];
        let next = renew_at.min(release_at).min(valid_until);
        self.env.set_timer(Timer::Client(index), next.saturating_sub(self.env.now).max(1));
    }

    fn force_release(&mut self, index: usize) {
        let (id, now) = (request(u64::from(self.clients[index].owner) * 1000 + 997), self.env.now);
        let bound = Bound { not_after: Some(now + HORIZON_MS), keep: KEEP };
        let call = self.target(index).force_release().call(id, bound);
        self.env.send(index, call);
    }

    /// Releases the hold, or leaves the queue, and prevents later grants to this owner.
    fn end(&mut self, index: usize, restart: bool) {
        self.drop_lease(index);
        let Client { owner, previous, bound, .. } = self.clients[index];
        let id = request(u64::from(owner) * 1000 + 999);
        let previous = previous.map(numbered_owner);
        let call = self.target(index).abandon(id, bound, numbered_owner(owner), previous);
        let sent = self.env.send(index, call);
        self.clients[index].stage = Stage::Ending { sent, restart };
        self.wait_for_reply(index);
    }

    fn become_idle(&mut self, index: usize) {
        self.clients[index].stage = Stage::Idle;
        let pause = self.env.rng.u64(0..150);
        self.env.set_timer(Timer::Client(index), pause);
    }

    fn die(&mut self, index: usize) {
        self.drop_lease(index);
        self.env.coverage.count("deaths");
        self.clients[index].stage = Stage::Dead;
        let pause = self.env.rng.u64(100..1_500);
        self.env.set_timer(Timer::Client(index), pause);
    }

    fn drop_lease(&mut self, index: usize) {
        let member = self.clients[index].member();
        self.leases.retain(|(_, holder)| *holder != member);
    }

    /// Handles a reply; ignores replies to all but the newest request, except renewals.
    pub(super) fn on_client_reply(&mut self, request: &Request, reply: &Reply) -> Check {
        let (index, now) = (request.client, self.env.now);
        let client = &mut self.clients[index];
        match client.stage {
            Stage::Trying { sent, last } if sent == request.number => {
                self.on_try_reply(index, request.sent_at, last, reply);
            }
            Stage::Ending { sent, restart } if sent == request.number => {
                client.previous = None;
                if restart { self.start(index) } else { self.become_idle(index) }
            }
            Stage::Holding
                if request.script() == "fair_rw_renew"
                    && request.call.args()[4] == client.member() =>
            {
                match reply.code {
                    Code::Done => {
                        client.valid_until =
                            client.valid_until.max(request.sent_at + client.lease_ms);
                        let holder = (client.lock, client.member());
                        self.leases.extend(holder, self.clients[index].valid_until);
                    }
                    Code::Lost => {
                        let owner = field(&numbered_owner(client.owner));
                        let is_over = self.checkers[client.lock].is_over(&owner);
                        if now < client.valid_until && !is_over {
                            return Err(format!("the valid hold of {owner} is reported as lost"));
                        }
                        self.env.coverage.count("losses");
                        self.end(index, false);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn on_try_reply(&mut self, index: usize, sent_at: u64, last: bool, reply: &Reply) {
        let (client, now) = (&mut self.clients[index], self.env.now);
        let waits = client.waits;
        match reply.code {
            Code::Done | Code::AlreadyYours => {
                client.previous = None;
                client.valid_until = sent_at + client.lease_ms;
                if client.valid_until <= now {
                    return self.end(index, waits);
                }
                client.stage = Stage::Holding;
                client.token = reply.value.parse().unwrap();
                client.renew_at = now + client.lease_ms / 3;
                client.release_at = now + self.env.rng.u64(5..900);
                self.leases.extend((client.lock, client.member()), client.valid_until);
                self.sleep_in_hold(index);
                if self.env.chance(self.settings.force_percent) {
                    self.force_release(index);
                }
            }
            Code::No | Code::Gone if last => self.become_idle(index),
            Code::No => {
                client.previous = None;
                client.stage = Stage::Pausing;
                let retry = poll_after(&reply.value).max(5);
                let pause = self.env.rng.u64(retry * 4 / 5..=retry);
                self.env.set_timer(Timer::Client(index), pause);
            }
            Code::BoundRequired => {
                self.begin_owner(index, true);
                self.try_again(index);
            }
            Code::Late | Code::Lost => self.end(index, waits),
            other => panic!("an owner that has not ended gets {other:?}"),
        }
    }
}
