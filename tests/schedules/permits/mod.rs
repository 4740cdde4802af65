//! Semaphores and permit-expirable semaphores that Redisson uses too: each acquisition, release and
//! change is counted exactly once, whatever the network does. Free and held permits together are
//! always the number that the object has.
//!
//! A number with S is that of a scenario in `docs/reliability.md`.

mod checker;
mod rules;

use edgelatch_proto::name::LockName;
use edgelatch_proto::protocol::calls::{
    BatchSize, IdempotentCall, PermitCalls, PermitCount, SemaphoreCalls, Target,
};
use edgelatch_proto::protocol::reply::Reply;
use edgelatch_proto::protocol::script::Publish;
use edgelatch_proto::timing::{LeaseTime, PeerSkew};
use fastrand::Rng;
use std::time::Duration;

use super::machines::{Machines, Progress, Timer};
use super::runner::{Check, Env, Network, Plan, Request, Scenario, assert_all_hold};
use checker::{Checker, SET_OF_PERMITS};
use test_support::calls::lease;
use test_support::script_model::Value;
use test_support::script_model::java_permits::JavaPermits;

const NAME: &str = "job";
/// The number of permits when a schedule begins.
const PERMITS: i64 = 4;
const CLIENTS: usize = 3;
/// The probabilities, after each event, that a latch is evicted and that Redisson does something.
const EVICTION_PERCENT: u32 = 5;
const JAVA_PERCENT: u32 = 25;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `RSemaphore`: Redisson's key has only the number of free permits. This library stores its
    /// holds in another key of Redis.
    Semaphore,
    /// `RPermitExpirableSemaphore`: each held permit has an id and an end.
    Permits,
}

const KINDS: [Kind; 2] = [Kind::Semaphore, Kind::Permits];

#[derive(Clone, Copy, Debug)]
struct Settings {
    kind: Kind,
    /// How many of ten acquisitions are without a lease time; such a hold has no end.
    endless_of_ten: u8,
    /// The largest skew of Redisson's clocks, in milliseconds; `None` without a Redisson client.
    max_java_skew: Option<i64>,
    /// The skew of Redisson's clocks that this library tolerates, in milliseconds.
    tolerated_skew: u64,
    /// Whether Redis evicts owners' latches. A client that repeats an acquisition may then learn
    /// that its hold is lost, and an owner may be granted again; but no permit is counted twice,
    /// and a hold stays if its client knows that it was granted.
    evicts_latches: bool,
}

const NETWORK: Network = Network {
    loss_percent: 15,
    reply_loss_percent: 15,
    copy_percent: 25,
    slow_percent: 30,
    max_delay_ms: 100,
    max_slow_delay_ms: 4_000,
    max_copy_delay_ms: 4_000,
};

fn plan(kind: Kind) -> Plan<Settings> {
    let settings = Settings {
        kind,
        endless_of_ten: 5,
        max_java_skew: Some(300),
        tolerated_skew: 300,
        evicts_latches: false,
    };
    Plan::new(NETWORK, settings)
}

/// A schedule of one semaphore of either kind.
struct PermitSchedule {
    machines: Machines,
    settings: Settings,
    checker: Checker,
    /// The skew of Redisson's clocks, in milliseconds. It is the same for all: otherwise
    /// Redisson's clients would take permits from each other, which is not what these schedules
    /// check.
    java_skew: i64,
}

impl Scenario for PermitSchedule {
    type Settings = Settings;
    type Timer = Timer;

    const WORK_MS: u64 = 100_000;

    fn new(settings: Settings, mut env: Env<Timer>) -> Self {
        env.model.put(NAME, Value::Text(PERMITS.to_string()), None);
        let max = settings.max_java_skew.unwrap_or(0);
        let java_skew = env.rng.i64(-max..=max);
        let (max_work_ms, max_pause_ms) = (30_000, 3_000);
        let machines = Machines::new(env, CLIENTS, max_work_ms, max_pause_ms);
        Self { machines, settings, checker: Checker::new(settings), java_skew }
    }

    fn env(&mut self) -> &mut Env<Timer> {
        &mut self.machines.env
    }

    fn on_executed(&mut self, request: &Request, reply: &Reply) -> Check {
        self.checker.on_executed(&request.call, reply, &mut self.machines.env.coverage)
    }

    fn on_reply(&mut self, request: &Request, reply: Option<Reply>) -> Check {
        let progress = self.machines.on_reply(request, reply);
        self.on_progress(progress)
    }

    fn on_timer(&mut self, timer: Timer) -> Check {
        let progress = self.machines.on_timer(timer);
        self.on_progress(progress)
    }

    fn interfere(&mut self) -> Check {
        let env = &mut self.machines.env;
        let evicts = self.settings.evicts_latches && env.chance(EVICTION_PERCENT);
        if let Some(latch) = env.rng.choice(self.checker.latches()).filter(|_| evicts) {
            env.model.delete(latch);
        }
        if self.settings.max_java_skew.is_some() && env.chance(JAVA_PERCENT) {
            self.run_java();
        }
        Ok(())
    }

    fn check(&mut self) -> Check {
        let env = &mut self.machines.env;
        env.model.expire(env.now);
        let valid = self.machines.valid_holds().map(|(_, hold)| hold.latch.as_str());
        self.checker.check(&self.machines.env.model, valid, self.machines.env.now)
    }
}

impl Settings {
    fn target(&self, count: u16) -> Target {
        match self.kind {
            Kind::Semaphore => Target::Semaphore(semaphore(count.into())),
            Kind::Permits => Target::Permits(permits(count, self.tolerated_skew)),
        }
    }
}

impl PermitSchedule {
    fn on_progress(&mut self, progress: Option<Progress>) -> Check {
        match progress {
            None => {}
            Some(Progress::Idle(client)) => self.begin(client),
            Some(Progress::Ended(latches)) => self.checker.record_end(&latches),
            Some(Progress::CallEnded(ids, outcome)) => {
                self.checker.requests.record_outcome(ids, outcome)?
            }
        }
        Ok(())
    }

    fn begin(&mut self, client: usize) {
        let rng = &mut self.machines.env.rng;
        if rng.u8(0..4) == 0 {
            let call = draw_change(self.settings.kind, rng);
            return self.machines.call_once(client, call);
        }
        let target = self.settings.target(rng.u16(1..4));
        let endless = rng.u8(0..10) < self.settings.endless_of_ten;
        let lease = if endless { LeaseTime::ENDLESS } else { lease(rng.u64(2_000..20_000)) };
        self.machines.acquire(client, target, lease);
    }

    /// Lets Redisson acquire or release one permit.
    fn run_java(&mut self) {
        let (env, checker) = (&mut self.machines.env, &mut self.checker);
        let acquires = env.rng.bool() && env.accepts_new_work();
        if self.settings.kind == Kind::Semaphore {
            if acquires && env.model.java_takes(NAME, 1) {
                checker.java_held += 1;
                env.coverage.count("Redisson permits");
            } else if !acquires && checker.java_held > 0 {
                env.model.java_gives(NAME, 1);
                checker.java_held -= 1;
            }
            return;
        }
        let now = i64::try_from(env.now).unwrap() + self.java_skew;
        let at = JavaPermits { name: NAME, held: SET_OF_PERMITS, now, server: env.now };
        if acquires {
            let id = format!("Redisson's {:016x}", env.rng.u64(..));
            let ends = now + env.rng.i64(1_000..20_000);
            if env.model.java_takes_ids(at, ends, std::slice::from_ref(&id)).is_ok() {
                env.coverage.count("Redisson permits");
                // The permit expires when Redisson's clock reaches `ends`: converted to Redis'
                // clock.
                let ends = (ends - self.java_skew).cast_unsigned();
                checker.java_ids.insert(id, ends);
            }
        } else if let Some((id, _)) = checker.java_ids.pop_first() {
            env.model.java_gives_one(at, &id);
        }
    }
}

fn semaphore(count: u32) -> SemaphoreCalls {
    let count = PermitCount::new(count).unwrap();
    SemaphoreCalls::new(LockName::parse(NAME).unwrap(), Publish::Plain, count)
}

fn permits(count: u16, skew: u64) -> PermitCalls {
    let (count, skew) = (BatchSize::new(count).unwrap(), Duration::from_millis(skew));
    let skew = PeerSkew::new(skew).unwrap();
    PermitCalls::new(LockName::parse(NAME).unwrap(), Publish::Plain, count, skew)
}

/// Draws an idempotent call that changes the number of permits. `drain` removes all free ones.
fn draw_change(kind: Kind, rng: &mut Rng) -> IdempotentCall {
    // These calls depend neither on the number of permits of an acquisition nor on the skew.
    let (semaphore, permits) = (semaphore(1), permits(1, 0));
    match (kind, rng.u8(0..5)) {
        (Kind::Permits, 0..2) => permits.add(1),
        (Kind::Permits, _) => permits.add(-1),
        (Kind::Semaphore, 0) => semaphore.add(2),
        (Kind::Semaphore, 1) => semaphore.add_if_exists(PermitCount::new(1).unwrap()),
        (Kind::Semaphore, 2) => semaphore.drain(),
        (Kind::Semaphore, _) => semaphore.add(-1),
    }
}

fn assert_counted_once(seeds: u64, plan: &Plan<Settings>) {
    let coverage = assert_all_hold::<PermitSchedule>(seeds, |_| plan.clone());
    let all = ["grants", "losses", "changes", "calls not executed", "refusals", "Redisson permits"];
    coverage.assert_above(0, &all);
}

/// S36.
#[test]
fn permits_of_a_semaphore_are_counted_once() {
    assert_counted_once(400, &plan(Kind::Semaphore));
}

/// S93.
#[test]
fn permits_with_ids_are_counted_once() {
    assert_counted_once(400, &plan(Kind::Permits));
}

#[test]
fn permits_are_counted_once_although_the_network_delays_requests_by_minutes() {
    let network = Network {
        loss_percent: 10,
        reply_loss_percent: 10,
        copy_percent: 30,
        slow_percent: 15,
        max_slow_delay_ms: 200_000,
        max_copy_delay_ms: 200_000,
        ..NETWORK
    };
    for kind in KINDS {
        assert_counted_once(200, &Plan { network, ..plan(kind) });
    }
}

/// S64.
#[test]
fn permits_are_counted_once_although_latches_are_evicted() {
    for kind in KINDS {
        let evicts_latches = |_| plan(kind).with(|plan| plan.settings.evicts_latches = true);
        assert_all_hold::<PermitSchedule>(200, evicts_latches).assert_above(500, &["grants"]);
    }
}
