//! Random schedules in virtual time: clients acquire random sets of parts, or votes, in a loop. The
//! network delays, loses and duplicates messages, and delivers copies long after the lease has
//! ended.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use edgelatch_proto::machine::CallId;
use edgelatch_proto::protocol::reply::{Reply, RespValue, ServerClock};
use edgelatch_proto::protocol::script::ScriptCall;
use edgelatch_proto::time::Instant;
use edgelatch_proto::timing::{LeaseTime, WaitPolicy, WaitTime};

use super::client::{Client, Outbox, Outcome, owner_prefix};
use super::plan::{Calls, MAJORITY, Plan, Rule, name};
use crate::model_checking::hashed::Hashed;
use test_support::script_model::{Latches, ScriptModel};

const EPOCH: u64 = 1_700_000_000_000;
const LEASE_MS: u64 = 2_000;
const CLIENTS: usize = 3;
/// How many acquisitions each client makes, one after the other.
const ROUNDS: usize = 5;
const SETS: [&[usize]; 7] = [&[0], &[1], &[2], &[0, 1], &[0, 2], &[1, 2], &[0, 1, 2]];

/// The probability of each fault.
#[derive(Clone, Copy)]
struct Faults {
    /// Of a request or a reply that is lost.
    loss_percent: u64,
    /// Of a request with a copy that arrives up to two and a half leases later.
    copy_percent: u64,
    /// Of a message that takes up to 60 % of a lease, instead of 20 ms at most.
    slow_percent: u64,
    /// Of a holder that dies without a release.
    death_percent: u64,
    /// Of an acquisition that is cancelled.
    cancel_percent: u64,
}

const NO_FAULTS: Faults = Faults {
    loss_percent: 0,
    copy_percent: 0,
    slow_percent: 0,
    death_percent: 0,
    cancel_percent: 0,
};
const MANY_FAULTS: Faults = Faults {
    loss_percent: 5,
    copy_percent: 8,
    slow_percent: 5,
    death_percent: 5,
    cancel_percent: 5,
};

#[derive(Clone)]
enum Event {
    Begin(usize),
    Execute { from: usize, index: usize, call: CallId, script: Hashed<ScriptCall> },
    DeliverReply { to: usize, call: CallId, reply: Reply },
    Timeout(usize),
    Cancel(usize),
    Release(usize),
}

/// How often each event has happened in all schedules together.
#[derive(Debug, Default)]
struct Coverage {
    grants: usize,
    refused: usize,
    unknown: usize,
    lost: usize,
    released: usize,
    /// Grants whose client no longer waits for the reply, and must undo them.
    unawaited: usize,
}

struct Schedule {
    rng: fastrand::Rng,
    faults: Faults,
    now: u64,
    /// The events to come, by their time and then by the order of scheduling.
    events: BTreeMap<(u64, u64), Event>,
    /// The number of events scheduled so far.
    scheduled: u64,
    nodes: Vec<ScriptModel>,
    /// One client for each acquisition: a program makes `ROUNDS` of them, one after the other.
    clients: Vec<Client>,
    plans: Vec<Plan>,
    /// The newest token of each node.
    tokens: Vec<u64>,
    /// The tokens of the clients' holds, in the order of their grants.
    returned_tokens: Vec<u64>,
    /// The clients whose acquisition has ended without a hold, or whose hold was released.
    ended: BTreeSet<usize>,
    /// The clients whose lease has expired before their release.
    lost: BTreeSet<usize>,
}

impl Schedule {
    fn new(seed: u64, rule: Rule, faults: Faults) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let plans = (0..CLIENTS * ROUNDS).map(|_| Plan {
            rule,
            nodes: if rule == Rule::All { SETS[rng.usize(..SETS.len())] } else { SETS[6] },
            lease: LeaseTime::new(Duration::from_millis(LEASE_MS)).unwrap(),
            wait_policy: WaitPolicy::UpTo(WaitTime::new(Duration::from_secs(40)).unwrap()),
            cancels: faults.cancel_percent > 0,
            max_calls: Calls { acquire: u8::MAX, release: u8::MAX, renew: 0 },
        });
        let plans: Vec<Plan> = plans.collect();
        let clients = (0_u8..).take(plans.len()).map(Client::new).collect();
        let mut schedule = Self {
            rng,
            faults,
            now: 0,
            events: BTreeMap::new(),
            scheduled: 0,
            nodes: vec![ScriptModel::new(Latches::On); 3],
            clients,
            plans,
            tokens: vec![0; 3],
            returned_tokens: Vec::new(),
            ended: BTreeSet::new(),
            lost: BTreeSet::new(),
        };
        for client in 0..CLIENTS {
            let pause = schedule.rng.u64(..200);
            schedule.schedule_in(pause, Event::Begin(client * ROUNDS));
        }
        schedule
    }

    fn run(&mut self, coverage: &mut Coverage) {
        while let Some(((time, _), event)) = self.events.pop_first() {
            self.now = time;
            self.dispatch(event, coverage);
            self.check(coverage);
            assert!(self.scheduled < 100_000, "the schedule does not end");
        }
    }

    fn schedule_in(&mut self, ms: u64, event: Event) {
        self.scheduled += 1;
        self.events.insert((self.now + ms, self.scheduled), event);
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.rng.u64(..100) < percent
    }

    /// Draws how long a message is in flight, in milliseconds.
    fn draw_delay(&mut self) -> u64 {
        let slow = self.chance(self.faults.slow_percent);
        1 + self.rng.u64(..if slow { LEASE_MS * 6 / 10 } else { 20 })
    }

    /// The time on the clocks of a client's program.
    fn now_at(&self, number: usize) -> Instant {
        let client = u64::try_from(number / ROUNDS).unwrap();
        Instant::from_millis(5_000 * client + self.now, 900_000_000 + self.now)
    }

    fn dispatch(&mut self, event: Event, coverage: &mut Coverage) {
        match event {
            Event::Begin(number) => {
                let clock = ServerClock::new(EPOCH + self.now, self.now_at(number));
                self.act(number, coverage, |client, plan, now| client.begin(plan, clock, now));
                if self.chance(self.faults.cancel_percent) {
                    let pause = self.rng.u64(..3_000);
                    self.schedule_in(pause, Event::Cancel(number));
                }
            }
            Event::Execute { from, index, call, script } => {
                let node = self.plans[from].nodes[index];
                let cells = self.nodes[node].run(&script, EPOCH + self.now);
                let awaited = self.clients[from].awaits(index, call, script.request);
                self.record_script(node, &script, &cells, awaited, coverage);
                let reply = Reply::read(&cells, script.request).expect("a reply of five elements");
                if !self.chance(self.faults.loss_percent) {
                    let delay = self.draw_delay();
                    self.schedule_in(delay, Event::DeliverReply { to: from, call, reply });
                }
            }
            Event::DeliverReply { to, call, reply } => {
                self.act(to, coverage, |client, plan, now| client.on_reply(plan, call, reply, now));
            }
            Event::Timeout(number) => self.act(number, coverage, Client::on_timeout),
            Event::Cancel(number) if self.clients[number].is_acquiring() => {
                self.act(number, coverage, Client::cancel);
            }
            Event::Cancel(_) => {}
            Event::Release(number) => self.act(number, coverage, Client::release),
        }
    }

    fn act(
        &mut self,
        number: usize,
        coverage: &mut Coverage,
        act: impl FnOnce(&mut Client, &Plan, Instant) -> Outbox,
    ) {
        let now = self.now_at(number);
        let (client, plan) = (&mut self.clients[number], &self.plans[number]);
        let was_acquiring = client.is_acquiring() || client.is_idle();
        let outbox = act(client, plan, now);
        let wake = client.deadline().map(|until| now.until(until));
        let token = client.multi_grant().filter(|_| was_acquiring).map(|held| held.token.as_u64());
        if let Some(wake) = wake {
            self.schedule_in(u64::try_from(wake.as_millis()).unwrap(), Event::Timeout(number));
        }
        for (index, call, script) in outbox {
            let (delay, late) = (self.draw_delay(), self.rng.u64(..LEASE_MS * 5 / 2));
            let sent = Event::Execute { from: number, index, call, script };
            if self.chance(self.faults.copy_percent) {
                self.schedule_in(delay + late, sent.clone());
            }
            if !self.chance(self.faults.loss_percent) {
                self.schedule_in(delay, sent);
            }
        }
        if let Some(token) = token {
            coverage.grants += 1;
            self.returned_tokens.push(token);
            let longest = if self.chance(20) { LEASE_MS * 2 } else { LEASE_MS / 4 };
            let hold = self.rng.u64(..longest);
            let dies = self.chance(self.faults.death_percent);
            self.schedule_in(
                hold,
                if dies { Event::Timeout(number) } else { Event::Release(number) },
            );
            if dies {
                self.next(number);
            }
        }
        if self.clients[number].outcome().is_some() && self.ended.insert(number) {
            self.next(number);
        }
    }

    /// Schedules the next acquisition of the same program, if one is left.
    fn next(&mut self, number: usize) {
        if !(number + 1).is_multiple_of(ROUNDS) {
            let pause = self.rng.u64(..300);
            self.schedule_in(pause, Event::Begin(number + 1));
        }
    }

    fn record_script(
        &mut self,
        node: usize,
        script: &ScriptCall,
        cells: &[RespValue],
        awaited: bool,
        coverage: &mut Coverage,
    ) {
        let [RespValue::Int(code), RespValue::Text(value), ..] = cells else {
            panic!("a reply begins with a number and a text")
        };
        match (script.script().name, code) {
            ("lock_acquire", 1) => {
                let token: u64 = value.parse().unwrap();
                assert!(token > self.tokens[node], "a token of node {node} is not above the last");
                self.tokens[node] = token;
                coverage.unawaited += usize::from(!awaited);
            }
            ("lock_raise", 1) => self.tokens[node] = self.tokens[node].max(value.parse().unwrap()),
            ("lock_release", 1) => coverage.released += 1,
            _ => {}
        }
    }

    /// Checks that clients that rely on a hold exclude each other, and that Redis stores their
    /// holds.
    fn check(&mut self, coverage: &mut Coverage) {
        let mut taken = BTreeSet::new();
        for (number, (client, plan)) in self.clients.iter().zip(&self.plans).enumerate() {
            if client.multi_grant().is_none() {
                continue;
            }
            if !client.is_trusting(plan, self.now_at(number)) {
                coverage.lost += usize::from(self.lost.insert(number));
                continue;
            }
            let exclusive = if plan.rule == Rule::All { plan.nodes } else { &[MAJORITY] };
            let is_exclusive = exclusive.iter().all(|node| taken.insert(*node));
            assert!(is_exclusive, "two clients rely on a hold at {}", self.now);
            let prefix = owner_prefix(u8::try_from(number).unwrap());
            let is_held = |node: &&usize| {
                let mut fields = self.nodes[**node].fields(name(**node), EPOCH + self.now);
                fields.any(|field| field.starts_with(&prefix))
            };
            let held = plan.nodes.iter().filter(is_held).count();
            assert!(held >= plan.quorum(), "Redis does not store a hold at {}", self.now);
        }
    }

    /// Counts the outcomes of a schedule, and checks that tokens rise.
    fn tally(&self, rule: Rule, coverage: &mut Coverage) {
        for client in &self.clients {
            match client.outcome() {
                Some(Outcome::Busy | Outcome::ReleaseRefused) => coverage.refused += 1,
                Some(Outcome::HeldAtMost { .. }) => coverage.unknown += 1,
                _ => {}
            }
        }
        let rise = self.returned_tokens.windows(2).all(|pair| pair[0] < pair[1]);
        assert!(rise || rule == Rule::All, "tokens do not rise: {:?}", self.returned_tokens);
    }
}

fn simulate(rule: Rule, faults: Faults, schedules: u64) -> Coverage {
    let mut coverage = Coverage::default();
    for seed in 0..schedules {
        let mut schedule = Schedule::new(seed, rule, faults);
        schedule.run(&mut coverage);
        schedule.tally(rule, &mut coverage);
    }
    println!("{rule:?}, {schedules} schedules: {coverage:?}");
    coverage
}

#[test]
fn every_client_is_served_without_faults() {
    for rule in [Rule::All, Rule::Majority] {
        let coverage = simulate(rule, NO_FAULTS, 500);
        assert_eq!(
            (coverage.grants, coverage.refused, coverage.unknown),
            (500 * CLIENTS * ROUNDS, 0, 0)
        );
    }
}

/// S94.
#[test]
fn parts_exclude_despite_lost_duplicated_and_late_messages() {
    let coverage = simulate(Rule::All, MANY_FAULTS, 1_000);
    assert!(
        coverage.grants > 5_000
            && coverage.lost > 0
            && coverage.unknown > 0
            && coverage.unawaited > 0
    );
}

#[test]
fn majorities_exclude_despite_lost_duplicated_and_late_messages() {
    let coverage = simulate(Rule::Majority, MANY_FAULTS, 1_000);
    assert!(
        coverage.grants > 5_000
            && coverage.lost > 0
            && coverage.unknown > 0
            && coverage.unawaited > 0
    );
}
