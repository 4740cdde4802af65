//! Clients and a network in virtual time: the real machines, the model of the scripts, and everything that may happen to a message.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use edgelatch::error::{AcquireError, FailureKind, RequestError};
use edgelatch::machine::{
    Acquire, AcquireSpec, CallId, Entropy, Grant, Input, Machine, Once, Output, Release, Renewal,
};
use edgelatch::protocol::calls::{OnceCall, Target};
use edgelatch::protocol::reply::{Cell, Reply, ServerClock};
use edgelatch::protocol::script::ScriptCall;
use edgelatch::time::Instant;
use edgelatch::timing::{AttemptTime, LeaseTime, Patience, WaitTime};

use super::verdict;
use crate::support::script_model::{Latches, ScriptModel};

/// Redis' clock when a schedule begins, in ms; the clients' begin at 0.
pub(super) const START: u64 = 1_700_000_000_000;
/// How long after its sending a request ends whose bound is its own.
const MOVING: u64 = 90_000;

/// What may happen to a message.
#[derive(Clone, Copy)]
pub(super) struct Network {
    /// Of a hundred messages: how many are lost on each way, and how many requests come twice.
    pub(super) lost: u64,
    pub(super) doubled: u64,
    /// The longest that one is under way, in ms, and of a hundred how many may be that long; the others take at most 100 ms.
    pub(super) longest: u64,
    pub(super) late: u64,
}

/// What a client does.
pub(super) enum Job {
    Acquire(Acquire),
    Hold { grant: Grant, watch: Renewal, until: u64 },
    Release(Release),
    Once(Once),
}

/// What became of a job.
pub(super) enum End {
    Granted(Grant),
    /// Whether it is certain that nothing is held.
    NotGranted(bool),
    Lost(Grant),
    Released(bool),
    /// What the script answered, or that it was not done; nothing when that cannot be told.
    Once(Option<Result<Reply, ()>>),
}

pub(super) struct Client {
    pub(super) job: Option<Job>,
    pub(super) idle_until: u64,
    clock: Option<ServerClock>,
    /// Which job it is: replies to others are not heard.
    number: u64,
    /// A new machine is polled before it is told anything.
    is_new: bool,
    wake_at: u64,
}

/// A request on its way to Redis.
struct Flight {
    at: u64,
    /// By Redis' clock.
    sent_at: u64,
    from: Option<(usize, u64, CallId)>,
    call: ScriptCall,
}

/// A reply on its way back.
struct Answer {
    at: u64,
    client: usize,
    job: u64,
    input: Input,
    clock: Option<u64>,
}

/// A script was executed.
pub(super) struct Executed<'a> {
    pub(super) call: &'a ScriptCall,
    pub(super) code: i64,
    pub(super) value: String,
    pub(super) ms: i64,
}

pub(super) struct Schedule {
    pub(super) random: fastrand::Rng,
    pub(super) model: ScriptModel,
    pub(super) now: u64,
    pub(super) clients: Vec<Client>,
    network: Network,
    /// Each attempt carries a bound of its own: what rule C8 forbids.
    pub(super) moving_bound: bool,
    flights: Vec<Flight>,
    answers: Vec<Answer>,
    jobs: u64,
    /// The ids of the requests of each job, and the keys by which they are remembered.
    sent: BTreeMap<u64, BTreeSet<(String, String)>>,
}

impl Schedule {
    pub(super) fn new(seed: u64, clients: usize, network: Network) -> Self {
        let client = |_| Client {
            job: None,
            idle_until: 0,
            clock: None,
            number: 0,
            is_new: false,
            wake_at: u64::MAX,
        };
        Self {
            random: fastrand::Rng::with_seed(seed),
            model: ScriptModel::new(Latches::On),
            now: 0,
            clients: (0..clients).map(client).collect(),
            network,
            moving_bound: false,
            flights: Vec::new(),
            answers: Vec::new(),
            jobs: 0,
            sent: BTreeMap::new(),
        }
    }

    pub(super) fn server_ms(&self) -> u64 {
        START + self.now
    }

    fn instant(&self) -> Instant {
        Instant::from_millis(self.now, self.now)
    }

    fn entropy(&mut self) -> Entropy {
        let mut bytes = [0; 32];
        self.random.fill(&mut bytes);
        Entropy::new(bytes)
    }

    pub(super) fn acquires(&mut self, client: usize, target: Target, lease: LeaseTime) {
        let patience = match self.random.u8(0..3) {
            0 => Patience::Once,
            _ => Patience::UpTo(WaitTime::new(ms(self.random.u64(200..20_000))).unwrap()),
        };
        let spec = AcquireSpec { lease, ..AcquireSpec::new(target, patience) };
        let machine =
            Acquire::new(spec, self.entropy(), self.clients[client].clock, self.instant());
        self.begin(client, Job::Acquire(machine));
    }

    pub(super) fn does_once(&mut self, client: usize, call: OnceCall) {
        let clock = self.clients[client].clock;
        let machine = Once::new(call, AttemptTime::DEFAULT, self.entropy(), clock, self.instant());
        self.begin(client, Job::Once(machine));
    }

    pub(super) fn holds(&mut self, client: usize, target: Target, grant: Grant, until: u64) {
        let renews = !grant.lease.time().is_endless() && self.random.u8(0..4) > 0;
        let (entropy, clock) = (self.entropy(), self.clients[client].clock);
        let watch =
            Renewal::new(target, grant.clone(), renews, AttemptTime::DEFAULT, entropy, clock);
        self.begin(client, Job::Hold { grant, watch, until });
    }

    pub(super) fn releases(&mut self, client: usize, target: &Target, grant: &Grant) {
        let clock = self.clients[client].clock;
        let machine = Release::new(target, grant, grant.reach(), AttemptTime::DEFAULT, clock);
        self.begin(client, Job::Release(machine));
    }

    /// The client forgets everything.
    pub(super) fn crashes(&mut self, client: usize) {
        self.clients[client].job = None;
        self.clients[client].wake_at = u64::MAX;
    }

    fn begin(&mut self, client: usize, job: Job) {
        self.jobs += 1;
        self.clients[client].number = self.jobs;
        self.clients[client].job = Some(job);
        self.clients[client].is_new = true;
        self.clients[client].wake_at = self.now;
    }

    /// The hold in which a client believes now.
    pub(super) fn believes(&self, client: usize) -> Option<&Grant> {
        match &self.clients[client].job {
            Some(Job::Hold { grant, watch, .. })
                if !self.instant().has_reached(watch.lease().expires_at()) =>
            {
                Some(grant)
            }
            _ => None,
        }
    }

    /// What the newest job of a client has sent: request ids, and the keys by which they are remembered.
    pub(super) fn last_sent(&self, client: usize) -> BTreeSet<(String, String)> {
        self.sent.get(&self.clients[client].number).cloned().unwrap_or_default()
    }

    /// When something happens next.
    pub(super) fn next(&self) -> Option<u64> {
        let clients = self.clients.iter().map(|client| {
            let over =
                if let Some(Job::Hold { until, .. }) = &client.job { *until } else { u64::MAX };
            client.wake_at.min(over)
        });
        let flights = self.flights.iter().map(|flight| flight.at);
        clients.chain(flights).chain(self.answers.iter().map(|answer| answer.at)).min()
    }

    /// Requests that have arrived are executed one by one, each told to `seen`.
    pub(super) fn executes(&mut self, seen: &mut impl FnMut(&Executed<'_>)) {
        self.flights.sort_by_key(|flight| flight.at);
        while self.flights.first().is_some_and(|flight| flight.at <= self.now) {
            let Flight { sent_at: at, from, call, .. } = self.flights.remove(0);
            let bound = if self.moving_bound {
                at.checked_add(MOVING)
            } else {
                call.args()[1].parse().ok()
            };
            let micros = self.server_ms() * 1000 + self.random.u64(0..1000);
            let cells = self.model.run_until(&call, bound, micros);
            let (code, value, ms) = verdict(&cells);
            seen(&Executed { call: &call, code, value, ms });
            if let Some((client, job, id)) = from {
                self.answer(client, job, id, &call, &cells);
            }
        }
    }

    fn answer(&mut self, client: usize, job: u64, id: CallId, call: &ScriptCall, cells: &[Cell]) {
        let lost = self.random.u64(0..100) < self.network.lost;
        let reply = Reply::read(cells, call.request).unwrap();
        let clock = (!lost).then_some(reply.server_ms);
        let kind = FailureKind::Broken;
        let input =
            if lost { Input::Failed { call: id, kind } } else { Input::Reply { call: id, reply } };
        let at = self.now + self.delay();
        self.answers.push(Answer { at, client, job, input, clock });
    }

    fn delay(&mut self) -> u64 {
        let late = self.random.u64(0..100) < self.network.late;
        self.random.u64(1..=if late { self.network.longest } else { 100 })
    }

    /// Replies are heard and clients wake; answers what ended.
    pub(super) fn goes_on(&mut self) -> Vec<(usize, End)> {
        let mut ends = Vec::new();
        while let Some(place) = self.answers.iter().position(|answer| answer.at <= self.now) {
            let Answer { client, job, input, clock, .. } = self.answers.swap_remove(place);
            if self.clients[client].number == job {
                let seen_at = self.instant();
                if let Some(ms) = clock {
                    self.clients[client].clock = Some(ServerClock::new(ms, seen_at));
                }
                ends.extend(self.step(client, input).map(|end| (client, end)));
            }
        }
        for client in 0..self.clients.len() {
            if self.clients[client].wake_at <= self.now {
                ends.extend(self.step(client, Input::Woken).map(|end| (client, end)));
            }
        }
        ends
    }

    fn step(&mut self, client: usize, input: Input) -> Option<End> {
        let now = self.instant();
        let is_new = std::mem::take(&mut self.clients[client].is_new);
        let input = (!is_new).then_some(input);
        let mut job = self.clients[client].job.take()?;
        let mut calls = Vec::new();
        let state = match &mut job {
            Job::Acquire(machine) => drive(machine, input, now, &mut calls).map(|outcome| {
                let certain = |error| !matches!(error, AcquireError::Unknown { .. });
                outcome.map_or_else(|error| End::NotGranted(certain(error)), End::Granted)
            }),
            Job::Hold { grant, watch, .. } => {
                drive(watch, input, now, &mut calls).map(|_| End::Lost(grant.clone()))
            }
            Job::Release(machine) => {
                drive(machine, input, now, &mut calls).map(|told| End::Released(told.is_ok()))
            }
            Job::Once(machine) => drive(machine, input, now, &mut calls).map(|outcome| {
                let told = match outcome {
                    Ok(reply) => Some(Ok(reply)),
                    Err(RequestError::NotDone(_)) => Some(Err(())),
                    Err(_) => None,
                };
                End::Once(told)
            }),
        };
        for (id, call) in calls {
            self.send(client, id, call);
        }
        match state {
            Ok(end) => {
                self.clients[client].wake_at = u64::MAX;
                Some(end)
            }
            Err(until) => {
                self.clients[client].wake_at = self.now + millis(until, now).max(1);
                self.clients[client].job = Some(job);
                None
            }
        }
    }

    fn send(&mut self, client: usize, id: CallId, call: ScriptCall) {
        let number = self.clients[client].number;
        self.sent
            .entry(number)
            .or_default()
            .insert((call.args()[0].clone(), call.keys()[0].clone()));
        let sent_at = self.server_ms();
        if self.random.u64(0..100) < self.network.doubled {
            let at = self.now + self.delay();
            self.flights.push(Flight { at, sent_at, from: None, call: call.clone() });
        }
        let at = self.now + self.delay();
        if self.random.u64(0..100) < self.network.lost {
            let input = Input::Failed { call: id, kind: FailureKind::Broken };
            self.answers.push(Answer { at, client, job: number, input, clock: None });
        } else {
            self.flights.push(Flight { at, sent_at, from: Some((client, number, id)), call });
        }
    }
}

/// Tells the machine, and polls it until it waits (`Err`) or is done.
fn drive<M: Machine>(
    machine: &mut M,
    input: Option<Input>,
    now: Instant,
    calls: &mut Vec<(CallId, ScriptCall)>,
) -> Result<M::Outcome, Instant> {
    if let Some(input) = input {
        machine.handle(input, now);
    }
    loop {
        match machine.poll(now) {
            Output::Call { call, script, .. } => calls.push((call, script)),
            Output::Listen { .. } => {}
            Output::Wait { until, .. } => return Err(until),
            Output::Done(outcome) => return Ok(outcome),
        }
    }
}

fn millis(until: Instant, now: Instant) -> u64 {
    u64::try_from(now.until(until).as_millis()).unwrap()
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
