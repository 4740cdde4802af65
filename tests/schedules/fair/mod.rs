//! A fair lock: waiters of this library and of Redisson, which may die, pause, give up, or continue
//! under a new owner. No waiter of this library is overtaken while it polls in time, and after all
//! have become silent, the lock is free again within a bounded time.

mod checker;
mod client;
mod java;
mod settings;

use edgelatch_proto::name::LockName;
use edgelatch_proto::protocol::calls::{FairCalls, FairSettings, Target, Try};
use edgelatch_proto::protocol::reply::Reply;
use edgelatch_proto::protocol::script::{Publish, ScriptCall};

use super::runner::{
    Check, Env, Leases, Request, Scenario, assert_all_hold, assert_violated, execute,
};
use checker::{Checker, Script, Snapshot};
use client::Client;
use java::Java;
use settings::{Settings, plan};
use test_support::calls::{UNBOUND, field, lease, numbered_owner, request};
use test_support::script_model::fair_head::Rule;
use test_support::script_model::java_fair::JavaFair;
use test_support::script_model::subscribers::{Message, Subscribers};

const SCHEDULES: u64 = 250;
/// The number of clients of this library.
const CLIENTS: usize = 3;
/// The probability that a message is lost, in per cent.
const MESSAGE_LOSS_PERCENT: u32 = 10;
/// The length of a schedule, in milliseconds.
const WORK_MS: u64 = 120_000;

const JAVA: JavaFair<'static> = JavaFair {
    name: "job",
    queue: "redisson_lock_queue:{job}",
    timeouts: "redisson_lock_timeout:{job}",
    channel: "redisson_lock__channel:{job}",
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Client(usize),
    Java(usize),
    /// All clients become silent, and the schedule ends with [`finish`](Scenario::finish).
    Silence,
}

struct Fair {
    env: Env<Timer>,
    settings: Settings,
    clients: Vec<Client>,
    java: Vec<Java>,
    /// The numbers of the newest owner of this library and the newest holder of Redisson.
    last_owner: u32,
    last_holder: u32,
    /// Redis' state before it executed the current request, and the text in the owner's latch.
    before: (Snapshot, Option<String>),
    checker: Checker,
    /// The leases on which clients rely, by their fields.
    leases: Leases<String>,
}

impl Scenario for Fair {
    type Settings = Settings;
    type Timer = Timer;

    const WORK_MS: u64 = WORK_MS;

    fn new(settings: Settings, mut env: Env<Timer>) -> Self {
        env.model.without_fair = settings.without_rule;
        env.set_timer(Timer::Silence, WORK_MS);
        let clients = (0..CLIENTS).map(Timer::Client);
        for timer in clients.chain((0..settings.java).map(Timer::Java)) {
            let delay = env.rng.u64(0..5_000);
            env.set_timer(timer, delay);
        }
        Self {
            env,
            clients: vec![Client::new(); CLIENTS],
            java: vec![Java::default(); settings.java],
            last_owner: 0,
            last_holder: 0,
            before: Default::default(),
            checker: Checker::new(settings.wild_clocks),
            leases: Leases::new(),
            settings,
        }
    }

    fn env(&mut self) -> &mut Env<Timer> {
        &mut self.env
    }

    fn on_arrival(&mut self, request: &Request) {
        self.before = (self.take_snapshot(), self.env.model.text(&request.call.keys()[0]));
    }

    fn on_executed(&mut self, request: &Request, reply: &Reply) -> Check {
        let (before, latch) = std::mem::take(&mut self.before);
        self.check_script(&Script::of_call(&request.call, latch.as_deref(), reply), &before)
    }

    fn on_reply(&mut self, request: &Request, reply: Option<Reply>) -> Check {
        if let Some(reply) = reply {
            self.on_client_reply(request, &reply);
        }
        Ok(())
    }

    fn on_timer(&mut self, timer: Timer) -> Check {
        match timer {
            Timer::Client(index) => self.on_client_timer(index),
            Timer::Java(index) => return self.on_java_timer(index),
            Timer::Silence => self.env.stop(),
        }
        Ok(())
    }

    fn check(&mut self) -> Check {
        match self.leases.valid(self.env.now).collect::<Vec<_>>()[..] {
            [one, other, ..] => Err(format!("{one} and {other} both rely on the lock")),
            _ => Ok(()),
        }
    }

    /// Checks that after all clients have become silent, a new owner acquires the lock within
    /// [`Snapshot::max_blocked_ms`], and that its release leaves nothing of it behind.
    fn finish(&mut self) -> Check {
        self.clients.clear();
        self.java.clear();
        let (owner, begun) = (self.last_owner + 1, self.env.now);
        let (max_blocked_ms, calls) =
            (self.take_snapshot().max_blocked_ms(), target(FairSettings::default()));
        let run = |fair: &mut Self, call: ScriptCall| {
            let request = Request { client: 0, number: 0, sent_at: fair.env.now, call };
            execute(fair, &request)
                .map_err(|error| format!("{error}, after all clients became silent"))
        };
        for number in 1.. {
            let reply = run(self, calls.acquire(&new_try(owner, number, 10_000)))?;
            if reply.value.parse::<u64>().is_ok() {
                break;
            }
            if self.env.now > begun + max_blocked_ms {
                return Err(format!("a new owner did not acquire the lock in {max_blocked_ms} ms"));
            }
            self.env.now += Refusal::parse(&reply.value).poll_after_ms;
        }
        let owner = numbered_owner(owner);
        run(self, calls.abandon(request(ABANDON_REQUEST), UNBOUND, owner, None))?;
        let left = self.take_snapshot();
        let is_clean = left.holders.is_empty() && !left.contains(&field(&owner));
        if is_clean { Ok(()) } else { Err(format!("after the release Redis stores {left:?}")) }
    }
}

impl Fair {
    /// Checks the effect of a script, and delivers its messages.
    fn check_script(&mut self, script: &Script<'_>, before: &Snapshot) -> Check {
        let after = self.take_snapshot();
        let published = std::mem::take(&mut self.env.model.published);
        let (now, coverage) = (self.env.now, &mut self.env.coverage);
        self.checker.on_script(script, before, &after, &published, now, coverage)?;
        self.deliver(&published);
        Ok(())
    }

    /// Removes expired keys, tells the model which channels have a subscriber, and returns Redis'
    /// state. The scripts count subscribers to see which Redisson waiters would receive a message.
    fn take_snapshot(&mut self) -> Snapshot {
        let ours = self.clients.iter().filter(|client| client.is_subscribed());
        let java = self.java.iter().filter(|java| java.is_subscribed());
        let ours = ours.map(|client| client.channel.clone());
        let java = java.map(|java| format!("{}:{}", JAVA.channel, java.holder));
        self.env.model.subscribers = Subscribers::Channels(ours.chain(java).collect());
        self.env.model.expire(self.env.now);
        Snapshot::of(&self.env.model, self.env.now)
    }

    /// Wakes the waiters on the messages' channels, unless a message is lost.
    fn deliver(&mut self, published: &[Message]) {
        for Message { channel, .. } in published {
            let ours = self.clients.iter().enumerate().filter(|(_, one)| one.waits_on(channel));
            let java = self.java.iter().enumerate().filter(|(_, one)| one.waits_on(channel));
            let timers = ours.map(|(index, _)| Timer::Client(index));
            for timer in Vec::from_iter(timers.chain(java.map(|(index, _)| Timer::Java(index)))) {
                if !self.env.chance(MESSAGE_LOSS_PERCENT) {
                    let delay = self.env.rng.u64(1..50);
                    self.env.set_timer(timer, delay);
                }
            }
        }
    }
}

/// The number in the id of every request that abandons an owner; [`new_try`] never uses it.
const ABANDON_REQUEST: u64 = 999;

/// The value of a refusal: `<place>,<ms until the next poll>,<1 if the place was restored>`.
struct Refusal {
    poll_after_ms: u64,
    /// Whether a Redisson client had evicted this waiter.
    was_evicted: bool,
}

impl Refusal {
    fn parse(value: &str) -> Self {
        let [_, poll_after_ms, evicted] = *Vec::from_iter(value.split(',')) else {
            panic!("not a refusal: {value}")
        };
        Self { poll_after_ms: poll_after_ms.parse().unwrap(), was_evicted: evicted == "1" }
    }
}

fn calls(settings: FairSettings) -> FairCalls {
    FairCalls::new(LockName::parse("job").unwrap(), settings, Publish::Plain)
}

fn target(settings: FairSettings) -> Target {
    Target::Fair(calls(settings))
}

/// Returns the try of an owner with this send number, which orders its tries in Redis (F3).
fn new_try(owner: u32, number: u32, lease_ms: u64) -> Try {
    Try {
        request: request(u64::from(owner) * 1000 + u64::from(number)),
        bound: UNBOUND,
        owner: numbered_owner(owner),
        lease: lease(lease_ms),
        last: false,
        number,
        previous: None,
        announces: false,
    }
}

/// S36, S90.
// Slow: 250 schedules of two virtual minutes each, checked after every event.
#[test]
fn no_waiter_is_overtaken_or_granted_twice_despite_lost_late_and_duplicated_messages() {
    let coverage = assert_all_hold::<Fair>(SCHEDULES, plan);
    coverage.assert_above(8 * SCHEDULES, &["grants"]);
    coverage.assert_above(3 * SCHEDULES, &["grants of Java's"]);
    coverage.assert_above(4 * SCHEDULES, &["copies", "takeovers"]);
}

/// S89.
#[test]
fn with_java_clocks_minutes_or_hours_off_every_invariant_but_the_order_holds() {
    let wild_clocks = |seed| plan(seed).with(|plan| plan.settings.wild_clocks = true);
    assert_all_hold::<Fair>(SCHEDULES / 4, wild_clocks);
}

#[test]
fn without_any_one_of_its_rules_the_queue_breaks_an_invariant() {
    let (overtaken, not_removed) = ("is overtaken", "has ended but is still stored");
    let rules = [
        (Rule::SendNumber, "a copy has an effect"),
        (Rule::Arrival, overtaken),
        (Rule::Room, "Java evicts"),
        (Rule::Grace, "did not acquire the lock"),
        (Rule::Notify, "gets no message"),
        (Rule::Tombstone, not_removed),
        (Rule::GrantLatch, overtaken),
        (Rule::HandOverHold, not_removed),
        (Rule::HandOverPlace, overtaken),
        (Rule::HandOverTombstone, not_removed),
        (Rule::AbandonPrevious, not_removed),
    ];
    for (rule, expected) in rules {
        let without_rule = |seed| plan(seed).with(|plan| plan.settings.without_rule = Some(rule));
        assert_violated::<Fair>(&format!("{rule:?}"), SCHEDULES, without_rule, &[expected]);
    }
}

#[test]
fn a_client_that_forgets_an_owner_with_an_unknown_takeover_leaves_it_in_the_queue() {
    let skips_owner = |seed| plan(seed).with(|plan| plan.settings.skips_owner = true);
    let expected = ["has ended but is still stored"];
    assert_violated::<Fair>("remembering an owner", SCHEDULES, skips_owner, &expected);
}
