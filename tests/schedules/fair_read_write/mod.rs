//! A fair read-write lock: clients that wait for either mode, hold, steal, end holds by force, die,
//! pause, give up, or continue under a new owner. Two locks of one namespace share a registry.

mod checker;
mod client;
mod order;
mod rules;
mod settings;
mod snapshot;

use std::collections::BTreeSet;

use edgelatch_proto::name::{ClientId, LockName};
use edgelatch_proto::protocol::calls::{
    FairMode, FairReadWriteCalls, FairReadWriteQuery, Target, Try,
};
use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::{Bound, Publish};

use super::runner::{Check, Env, Leases, Request, Scenario, execute};
use checker::{Checker, Script};
use client::Client;
use settings::Settings;
use snapshot::{Snapshot, is_exclusive, owner_of};
use test_support::calls::{lease, numbered_owner, request};
use test_support::script_model::subscribers::Message;

const NAMES: [&str; 2] = ["{ns}a", "{ns}b"];
/// The probability that a message is lost, in per cent.
const MESSAGE_LOSS_PERCENT: u32 = 20;
/// How long clients act, in milliseconds.
const LENGTH_MS: u64 = 8_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Client(usize),
    /// A query of the namespace.
    Query,
    /// All clients become silent, and the schedule ends with [`finish`](Scenario::finish).
    Silence,
}

struct FairRw {
    env: Env<Timer>,
    settings: Settings,
    clients: Vec<Client>,
    last_owner: u32,
    /// The state of the request's lock before Redis executed it.
    before: Snapshot,
    checkers: [Checker; NAMES.len()],
    /// The leases on which clients rely, by the index of the lock and the member.
    leases: Leases<(usize, String)>,
}

impl Scenario for FairRw {
    type Settings = Settings;
    type Timer = Timer;

    const WORK_MS: u64 = LENGTH_MS;

    fn new(settings: Settings, mut env: Env<Timer>) -> Self {
        env.set_timer(Timer::Silence, LENGTH_MS);
        env.set_timer(Timer::Query, 500);
        for client in 0..settings.clients {
            let delay = env.rng.u64(0..200);
            env.set_timer(Timer::Client(client), delay);
        }
        Self {
            env,
            clients: vec![Client::new(); settings.clients],
            last_owner: 0,
            before: Snapshot::default(),
            checkers: NAMES.map(|_| Checker::new(settings.max_holders)),
            leases: Leases::new(),
            settings,
        }
    }

    fn env(&mut self) -> &mut Env<Timer> {
        &mut self.env
    }

    fn on_arrival(&mut self, request: &Request) {
        self.env.model.expire(self.env.now);
        self.before = Snapshot::of(&self.env.model, NAMES[lock_of(request)]);
    }

    fn on_executed(&mut self, request: &Request, reply: &Reply) -> Check {
        let (lock, now) = (lock_of(request), self.env.now);
        let (before, published) =
            (std::mem::take(&mut self.before), std::mem::take(&mut self.env.model.published));
        let after = Snapshot::of(&self.env.model, NAMES[lock]);
        let script = Script::of_call(&request.call, reply, now);
        let checker = &mut self.checkers[lock];
        checker.on_script(&script, &before, &after, &published, now, &mut self.env.coverage)?;
        self.deliver(&published);
        Ok(())
    }

    fn on_reply(&mut self, request: &Request, reply: Option<Reply>) -> Check {
        match reply {
            Some(reply) => self.on_client_reply(request, &reply),
            None => Ok(()),
        }
    }

    fn on_timer(&mut self, timer: Timer) -> Check {
        match timer {
            Timer::Client(index) => self.on_client_timer(index),
            Timer::Query => {
                self.env.set_timer(Timer::Query, 700);
                return self.check_query();
            }
            Timer::Silence => self.env.stop(),
        }
        Ok(())
    }

    /// Checks that no client relies on a hold that Redis does not store, or beside an incompatible
    /// one.
    fn check(&mut self) -> Check {
        for (lock, checker) in self.checkers.iter().enumerate() {
            let members = self.leases.valid(self.env.now).filter(|(of, _)| *of == lock);
            let relying: Vec<&String> = members
                .map(|(_, member)| member)
                .filter(|member| !checker.is_over(owner_of(member)))
                .collect();
            if relying.len() > 1 && relying.iter().any(|member| is_exclusive(member)) {
                return Err(format!("{relying:?} all rely on the lock"));
            }
            let stored = Snapshot::of(&self.env.model, NAMES[lock]);
            if let Some(member) = relying.iter().find(|member| !stored.holds(member, self.env.now))
            {
                return Err(format!("{member} relies on a hold that Redis does not store"));
            }
        }
        Ok(())
    }

    /// Checks that after all clients have become silent, a new exclusive owner acquires each lock
    /// when the last lease and the last life have ended, and that nothing is stored two days later.
    fn finish(&mut self) -> Check {
        self.clients.clear();
        self.leases.retain(|_| false);
        for (lock, name) in NAMES.into_iter().enumerate() {
            let state = Snapshot::of(&self.env.model, name);
            let deadline = state.last_end().max(self.env.now) + 100;
            self.last_owner += 1;
            for number in 1.. {
                let call = target(&self.settings, lock, FairMode::Exclusive).acquire(&Try {
                    request: request(u64::from(number)),
                    bound: Bound { not_after: None, keep: self.settings.first_keep },
                    owner: numbered_owner(self.last_owner),
                    lease: lease(500),
                    last: false,
                    number,
                    previous: None,
                    announces: false,
                });
                let request = Request { client: 0, number: 0, sent_at: self.env.now, call };
                let reply = execute(self, &request)?;
                if reply.code == Code::Done {
                    break;
                }
                if self.env.now > deadline {
                    return Err(format!("a new owner did not acquire the lock: {state:?}"));
                }
                self.env.now += poll_after(&reply.value);
            }
        }
        self.env.now += 2 * 24 * 60 * 60 * 1000;
        let left = self.env.model.dump(self.env.now);
        if left.is_empty() { Ok(()) } else { Err(format!("Redis stores for ever: {left:?}")) }
    }
}

impl FairRw {
    /// Checks that a query lists all live holds and waits of the namespace, and no others.
    fn check_query(&mut self) -> Check {
        let now = self.env.now;
        let name = LockName::parse(NAMES[0]).unwrap();
        let call = FairReadWriteQuery::new(name, Publish::Plain).slice(request(1), "");
        let cells = self.env.model.run(&call, now);
        let reply = Reply::read(&cells, call.request).unwrap();
        let listed = reply.value.lines().skip(1).map(|line| line.split('\t').take(3).collect());
        let listed: Vec<Vec<&str>> = listed.collect();
        let mut stored = Vec::new();
        let states = NAMES.map(|name| (name, Snapshot::of(&self.env.model, name)));
        for (name, state) in &states {
            let kinds = [("h", state.live_holders(now)), ("w", state.live_waiters(now))];
            for (kind, members) in kinds {
                stored.extend(members.iter().map(|member| vec![*name, &member[..1], kind]));
            }
        }
        self.env.coverage.count("queries");
        if listed == stored {
            Ok(())
        } else {
            Err(format!("a query lists {listed:?} instead of {stored:?}"))
        }
    }

    /// Wakes the clients on the messages' channels, unless a message is lost.
    fn deliver(&mut self, published: &[Message]) {
        for Message { channel, text, .. } in published {
            let woken: BTreeSet<usize> = (0..self.clients.len())
                .filter(|index| self.clients[*index].listens_to(channel, text))
                .collect();
            for index in woken {
                if !self.env.chance(MESSAGE_LOSS_PERCENT) {
                    let delay = self.env.rng.u64(1..15);
                    self.clients[index].renew_at = self.env.now;
                    self.env.set_timer(Timer::Client(index), delay);
                }
            }
        }
    }
}

/// The index of the lock that a request is about.
fn lock_of(request: &Request) -> usize {
    let holders = &request.call.keys()[1];
    NAMES.iter().position(|name| *holders == format!("el:{name}:frw:holders")).unwrap()
}

/// When to poll again, in milliseconds: the second number of a refusal.
fn poll_after(value: &str) -> u64 {
    value.split(',').nth(1).unwrap().parse().unwrap()
}

fn target(settings: &Settings, lock: usize, mode: FairMode) -> Target {
    let (name, client) = (LockName::parse(NAMES[lock]).unwrap(), ClientId::default());
    Target::FairReadWrite(FairReadWriteCalls::new(
        name,
        mode,
        settings.limits(),
        client,
        Publish::Plain,
    ))
}
