//! A read-write lock: readers and writers of this library and of Redisson, which may die or pause.
//! A *client* is one acquisition of this library: a reader or a writer with an owner of its own.
//!
//! A *nested read* is a read hold within the write hold of its *parent*; if the write is released
//! first, the nested read outlives it: a downgrade. Readers share one fencing token, the *epoch*. A
//! nested read has the token of its write. A downgrade mints a new epoch, to which the nested read
//! moves: at once if the release names it, else with its next call.
//!
//! The rules with a letter and a number are those of `proto/src/protocol/README.md`.

mod checker;
mod client;
mod java;
mod rules;

use std::collections::BTreeMap;

use edgelatch_proto::name::LockName;
use edgelatch_proto::protocol::calls::{ReadCalls, WriteCalls};
use edgelatch_proto::protocol::reply::Reply;
use edgelatch_proto::protocol::script::Publish;

use super::runner::{
    Check, Env, Leases, Network, Owners, Plan, Request, Scenario, assert_all_hold,
};
use client::Client;
use java::Java;

const NAME: &str = "job";
/// The field of the writer that waits and keeps new readers out.
const WANT_KEY: &str = "el:{job}:want";
/// The token that readers share.
const EPOCH_KEY: &str = "el:{job}:epoch";
/// The newest token.
const TOKEN_KEY: &str = "redisson_lock_token:{job}";
/// The lease of Redisson's holders that renew, in milliseconds. Each renewal sets the expiry
/// of the lock's hash to this time from now, even if a reader of this library has a longer lease.
const REDISSON_LEASE_MS: u64 = 1_500;
/// The longest delay of a copy of a request, in milliseconds.
const MAX_COPY_DELAY_MS: u64 = 12_000;
/// The number of schedules of each test that keeps all rules.
const SCHEDULES: u64 = 300;

/// The faults and sizes of one schedule. Numbers that end in `_percent` are probabilities.
#[derive(Clone, Debug)]
struct Settings {
    /// The probability that a holder dies without a release.
    death_percent: u32,
    /// The probability that a holder does nothing for a while after its grant.
    pause_percent: u32,
    /// The probability that a Java thread with a hold dies, at each of its actions.
    java_death_percent: u32,
    /// The probability that a client gives up after a refusal.
    abort_percent: u32,
    /// The probability that a client does not know Redis' clock, so that its requests have no
    /// bound.
    unbounded_percent: u32,
    /// The probability that a waiting writer keeps new readers out.
    prefers_writers_percent: u32,
    /// The number of concurrent clients of this library; nested reads are not counted.
    clients: usize,
    /// The number of Java threads.
    java: usize,
    /// Whether readers rely on their whole lease, even beyond `REDISSON_LEASE_MS`. Redisson's
    /// renewals may set an earlier expiry of the hash.
    trusts_whole_lease: bool,
    /// Whether Redis remembers requests without a bound for less time than their copies take, which
    /// rule C3 forbids.
    brief_memory: bool,
}

/// Draws the settings of one schedule.
fn plan(seed: u64) -> Plan<Settings> {
    let mut rng = fastrand::Rng::with_seed(seed);
    // Half of the schedules are without a given fault.
    let mut chance = |max: u32| if rng.bool() { rng.u32(..=max) } else { 0 };
    let network = Network {
        loss_percent: chance(15),
        reply_loss_percent: chance(20),
        copy_percent: chance(25),
        slow_percent: chance(15),
        max_delay_ms: 30,
        max_slow_delay_ms: 3_000,
        max_copy_delay_ms: MAX_COPY_DELAY_MS,
    };
    let settings = Settings {
        death_percent: chance(10),
        java_death_percent: chance(3),
        pause_percent: chance(15),
        abort_percent: chance(10),
        unbounded_percent: chance(30),
        prefers_writers_percent: chance(50),
        clients: rng.usize(2..5),
        java: rng.usize(0..3),
        trusts_whole_lease: false,
        brief_memory: false,
    };
    Plan::new(network, settings)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// A new client starts. The number only tells the timers apart.
    Begin(usize),
    /// An attempt times out, a pause ends, a hold needs a renewal, or its lease ends.
    Client(usize),
    /// A holder does not need its hold any more.
    Done(usize),
    Java(usize),
}

struct ReadWrite {
    env: Env<Timer>,
    settings: Settings,
    /// All clients so far, also those that are over.
    clients: Vec<Client>,
    java: Vec<Java>,
    /// The number of request ids used so far.
    requests: u64,
    /// The grants and ends of owners, as the checker has seen them, by their fields in the hash;
    /// those of writers end with `:write`.
    owners: Owners,
    /// Until when each holder, also a Java thread, relies on its hold, by its field.
    leases: Leases<String>,
    /// The largest token so far, of a grant or an epoch.
    last_token: u64,
    /// The token of the last write.
    last_write: u64,
    /// The nested reads whose write was released before them, and the token of that write.
    downgraded: BTreeMap<String, u64>,
}

impl Scenario for ReadWrite {
    type Settings = Settings;
    type Timer = Timer;

    const WORK_MS: u64 = 15_000;

    fn new(settings: Settings, mut env: Env<Timer>) -> Self {
        (0..settings.clients).for_each(|number| env.set_timer(Timer::Begin(number), 0));
        (0..settings.java).for_each(|index| env.set_timer(Timer::Java(index), 0));
        Self {
            env,
            clients: Vec::new(),
            java: (0..settings.java).map(Java::new).collect(),
            settings,
            requests: 0,
            owners: Owners::default(),
            leases: Leases::new(),
            last_token: 0,
            last_write: 0,
            downgraded: BTreeMap::new(),
        }
    }

    fn env(&mut self) -> &mut Env<Timer> {
        &mut self.env
    }

    fn on_executed(&mut self, request: &Request, reply: &Reply) -> Check {
        self.check_executed(request, reply)
    }

    fn on_reply(&mut self, request: &Request, reply: Option<Reply>) -> Check {
        // Without a reply, the timeout of the attempt follows.
        reply.map_or(Ok(()), |reply| self.on_client_reply(request, &reply))
    }

    fn on_timer(&mut self, timer: Timer) -> Check {
        match timer {
            Timer::Begin(_) => self.begin(None),
            Timer::Client(index) => self.on_client_timer(index),
            Timer::Done(index) => self.on_done(index),
            Timer::Java(index) => self.on_java_timer(index),
        }
        Ok(())
    }

    fn check(&mut self) -> Check {
        self.check_holds()
    }

    /// Checks that two minutes after the last event Redis stores only tokens: all else has expired.
    fn finish(&mut self) -> Check {
        let tokens = [EPOCH_KEY, TOKEN_KEY];
        let left = self.env.model.dump(self.env.now + 120_000);
        match left.iter().find(|(key, _)| !tokens.contains(&key.as_str())) {
            Some((key, entry)) => Err(format!("{key} is left: {entry:?}")),
            None => Ok(()),
        }
    }
}

fn read_calls() -> ReadCalls {
    ReadCalls::new(LockName::parse(NAME).unwrap(), Publish::Plain)
}

fn write_calls() -> WriteCalls {
    WriteCalls::new(LockName::parse(NAME).unwrap(), Publish::Plain)
}

// Slow: 300 schedules of 15 virtual seconds each, checked after every event.
#[test]
fn readers_and_writers_exclude_each_other_despite_lost_late_and_duplicated_messages() {
    let coverage = assert_all_hold::<ReadWrite>(SCHEDULES, plan);
    // On average, each occurs more than once in two schedules.
    let our_events = ["reads", "writes", "nested reads", "named downgrades"];
    coverage.assert_above(SCHEDULES / 2, &our_events);
    coverage.assert_above(SCHEDULES / 2, &["Java reads", "Java writes", "lost requests"]);
}

#[test]
fn without_java_programs_every_lease_is_valid_to_its_end() {
    assert_all_hold::<ReadWrite>(SCHEDULES, |seed| {
        plan(seed).with(|plan| (plan.settings.java, plan.settings.trusts_whole_lease) = (0, true))
    });
}
