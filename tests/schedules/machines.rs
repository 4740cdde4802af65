//! Clients that run the library's own state machines, unlike the simplified clients of `fair`,
//! `group` and `read_write`. Each acquires, holds and releases in a loop, or makes idempotent
//! calls.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use edgelatch_proto::error::{AcquireError, FailureKind, RequestError};
use edgelatch_proto::machine::{
    Acquire, AcquireSpec, CallId, Entropy, ExecuteOnce, Grant, Input, Machine, Release, Renewal,
};
use edgelatch_proto::protocol::calls::{IdempotentCall, Target};
use edgelatch_proto::protocol::reply::{Reply, ServerClock};
use edgelatch_proto::protocol::script::ScriptCall;
use edgelatch_proto::time::Instant;
use edgelatch_proto::timing::{AttemptTime, LeaseTime, WaitPolicy, WaitTime};

use super::network::arg;
use super::runner::{Env, Request, START_MS};
use test_support::calls::request;
use test_support::machines::poll_to_wait;

/// A timer of the client with this index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// The client may begin a new job.
    Idle(usize),
    /// The client's machine has a timeout.
    Machine(usize),
    /// The client does not need its hold any more.
    Work(usize),
}

/// The consequence of a client's progress for the scenario.
pub(crate) enum Progress {
    /// This client is idle: the scenario gives it a new job.
    Idle(usize),
    /// The client knows that the owners with these latches hold nothing, and never will.
    Ended(BTreeSet<String>),
    /// An idempotent call has ended: the ids under which it was sent, and the code and value of its
    /// reply, or `None` if it was not executed and never will be.
    CallEnded(BTreeSet<String>, Option<(i64, String)>),
}

/// A hold that its client knows.
pub(crate) struct Hold {
    grant: Grant,
    /// The machine that renews the lease, or only watches it.
    watch: Renewal,
    /// The key of its owner's latch, under which Redis remembers that the owner was granted (C1).
    pub(crate) latch: String,
}

/// The current work of a client, and its machine.
enum Job {
    Acquire(Acquire),
    Hold(Hold),
    Release(Release),
    Once(ExecuteOnce),
}

/// How a job ended.
enum End {
    Granted(Grant),
    Lost(Grant),
    /// Nothing is held any more; without `certain`, that is unknown.
    Over {
        certain: bool,
    },
    /// An idempotent call: the reply, or `None` if the call was not executed.
    Once(Option<Reply>),
}

#[derive(Default)]
struct Client {
    job: Option<Job>,
    /// Whether the machine is new. It is then polled without an input: there is nothing to handle.
    is_new: bool,
    /// The target of its last acquisition.
    target: Option<Target>,
    /// Its knowledge of Redis' clock.
    clock: Option<ServerClock>,
    /// The calls of the job, by the numbers of their requests. Replies to earlier jobs find no call
    /// here, and are dropped.
    calls: BTreeMap<usize, CallId>,
    /// The request ids of the job.
    ids: BTreeSet<String>,
    /// The first keys of the job's calls: the latches of its owners, or the records of its ids.
    latches: BTreeSet<String>,
}

/// The clients of one schedule, in their environment.
pub(crate) struct Machines {
    pub(crate) env: Env<Timer>,
    clients: Vec<Client>,
    /// The longest work with a hold, and the longest pause between two jobs, in milliseconds.
    max_work_ms: u64,
    max_pause_ms: u64,
}

impl Machines {
    /// Creates idle clients.
    pub(crate) fn new(
        mut env: Env<Timer>,
        clients: usize,
        max_work_ms: u64,
        max_pause_ms: u64,
    ) -> Self {
        (0..clients).for_each(|client| env.set_timer(Timer::Idle(client), 0));
        let clients = (0..clients).map(|_| Client::default()).collect();
        Self { env, clients, max_work_ms, max_pause_ms }
    }

    /// Starts an acquisition. The client then holds, with or without renewal, and releases or
    /// crashes.
    pub(crate) fn acquire(&mut self, client: usize, target: Target, lease: LeaseTime) {
        let wait_policy = match self.env.rng.u8(0..3) {
            0 => WaitPolicy::Once,
            _ => {
                let wait = Duration::from_millis(self.env.rng.u64(200..20_000));
                WaitPolicy::UpTo(WaitTime::new(wait).unwrap())
            }
        };
        self.clients[client].target = Some(target.clone());
        let spec = AcquireSpec { lease, ..AcquireSpec::new(target, wait_policy) };
        let (entropy, now) = (self.draw_entropy(), self.instant());
        let machine = Acquire::new(spec, entropy, self.clients[client].clock, now);
        self.begin(client, Job::Acquire(machine));
    }

    /// Starts an idempotent call.
    pub(crate) fn call_once(&mut self, client: usize, call: IdempotentCall) {
        let (entropy, now) = (self.draw_entropy(), self.instant());
        let clock = self.clients[client].clock;
        let machine = ExecuteOnce::new(call, AttemptTime::DEFAULT, entropy, clock, now);
        self.begin(client, Job::Once(machine));
    }

    /// The clients that rely on a hold, by their own clocks, and that hold.
    pub(crate) fn valid_holds(&self) -> impl Iterator<Item = (usize, &Hold)> {
        let now = self.instant();
        self.clients.iter().enumerate().filter_map(move |(place, client)| match &client.job {
            Some(Job::Hold(hold)) => {
                let is_over = now.has_reached(hold.watch.lease().expires_at());
                (!is_over).then_some((place, hold))
            }
            _ => None,
        })
    }

    pub(crate) fn on_timer(&mut self, timer: Timer) -> Option<Progress> {
        match timer {
            Timer::Idle(client) => self.env.accepts_new_work().then_some(Progress::Idle(client)),
            Timer::Machine(client) => self.step(client, Input::Timeout),
            Timer::Work(client) => {
                self.end_work(client);
                None
            }
        }
    }

    pub(crate) fn on_reply(&mut self, request: &Request, reply: Option<Reply>) -> Option<Progress> {
        let (seen_at, client) = (self.instant(), &mut self.clients[request.client]);
        let call = *client.calls.get(&request.number)?;
        if let Some(reply) = &reply {
            client.clock = Some(ServerClock::new(reply.server_ms, seen_at));
        }
        let broken = Input::Failed { call, kind: FailureKind::Broken };
        let input = reply.map_or(broken, |reply| Input::Reply { call, reply });
        self.step(request.client, input)
    }

    fn begin(&mut self, client: usize, job: Job) {
        let one = &mut self.clients[client];
        one.job = Some(job);
        one.is_new = true;
        one.calls.clear();
        one.ids.clear();
        one.latches.clear();
        self.env.cancel_timer(Timer::Work(client));
        self.env.set_timer(Timer::Machine(client), 0);
    }

    /// The client drops its job, whatever it may still hold, and becomes idle after a pause.
    fn become_idle(&mut self, client: usize) {
        self.clients[client].job = None;
        self.env.cancel_timer(Timer::Machine(client));
        let pause = self.env.rng.u64(0..self.max_pause_ms);
        self.env.set_timer(Timer::Idle(client), pause);
    }

    fn begin_hold(&mut self, client: usize, grant: Grant) {
        let renews = !grant.lease.time().is_endless() && self.env.rng.u8(0..4) > 0;
        let (entropy, one) = (self.draw_entropy(), &self.clients[client]);
        let (target, held) = (one.target.clone().unwrap(), grant.clone());
        let latch = target.release(request(1), grant.bound, grant.owner).keys()[0].clone();
        let watch = Renewal::new(target, held, renews, AttemptTime::DEFAULT, entropy, one.clock);
        self.begin(client, Job::Hold(Hold { grant, watch, latch }));
        let work = self.env.rng.u64(0..self.max_work_ms);
        self.env.set_timer(Timer::Work(client), work);
    }

    /// Ends a hold: one client in ten crashes instead of releasing. A client with an endless hold
    /// never crashes, since its hold would never end.
    fn end_work(&mut self, client: usize) {
        let Some(Job::Hold(hold)) = &self.clients[client].job else { return };
        let grant = hold.grant.clone();
        if !grant.lease.time().is_endless() && self.env.rng.u8(0..10) == 0 {
            self.become_idle(client);
        } else {
            self.release(client, &grant);
        }
    }

    fn release(&mut self, client: usize, grant: &Grant) {
        let (one, attempt) = (&self.clients[client], AttemptTime::DEFAULT);
        let machine = Release::new(
            one.target.as_ref().unwrap(),
            grant,
            grant.outstanding(),
            attempt,
            one.clock,
        );
        self.begin(client, Job::Release(machine));
    }

    fn step(&mut self, client: usize, input: Input) -> Option<Progress> {
        let (now, one) = (self.instant(), &mut self.clients[client]);
        let input = (!std::mem::take(&mut one.is_new)).then_some(input);
        let mut calls = Vec::new();
        let state = one.job.as_mut()?.drive(input, now, &mut calls);
        for (id, call) in calls {
            one.ids.insert(call.args()[arg::REQUEST_ID].clone());
            one.latches.insert(call.keys()[0].clone());
            one.calls.insert(self.env.send(client, call), id);
        }
        match state {
            Ok(end) => self.on_end(client, end),
            Err(until) => {
                let ms = u64::try_from(now.until(until).as_millis()).unwrap();
                self.env.set_timer(Timer::Machine(client), ms.max(1));
                None
            }
        }
    }

    fn on_end(&mut self, client: usize, end: End) -> Option<Progress> {
        let one = &mut self.clients[client];
        let (ids, latches) = (std::mem::take(&mut one.ids), std::mem::take(&mut one.latches));
        match end {
            End::Granted(grant) => {
                self.begin_hold(client, grant);
                return None;
            }
            End::Lost(grant) => {
                self.env.coverage.count("losses");
                self.release(client, &grant);
                return None;
            }
            End::Over { .. } | End::Once(_) => self.become_idle(client),
        }
        match end {
            End::Over { certain: true } => Some(Progress::Ended(latches)),
            End::Once(reply) => {
                if reply.is_none() {
                    self.env.coverage.count("calls not executed");
                }
                Some(Progress::CallEnded(ids, reply.map(|reply| (reply.code as i64, reply.value))))
            }
            _ => None,
        }
    }

    /// The time on the clients' clocks, which start at 0.
    fn instant(&self) -> Instant {
        let ms = self.env.now - START_MS;
        Instant::from_millis(ms, ms)
    }

    fn draw_entropy(&mut self) -> Entropy {
        let mut bytes = [0; 32];
        self.env.rng.fill(&mut bytes);
        Entropy::new(bytes)
    }
}

impl Job {
    /// Drives the machine until it is done, or until it waits: the error is the time of its
    /// timeout.
    fn drive(
        &mut self,
        input: Option<Input>,
        now: Instant,
        calls: &mut Vec<(CallId, ScriptCall)>,
    ) -> Result<End, Instant> {
        Ok(match self {
            Self::Acquire(machine) => match drive(machine, input, now, calls)? {
                Ok(grant) => End::Granted(grant),
                Err(error) => End::Over { certain: !matches!(error, AcquireError::Unknown { .. }) },
            },
            Self::Hold(hold) => {
                drive(&mut hold.watch, input, now, calls)?;
                End::Lost(hold.grant.clone())
            }
            Self::Release(machine) => {
                End::Over { certain: drive(machine, input, now, calls)?.is_ok() }
            }
            Self::Once(machine) => match drive(machine, input, now, calls)? {
                Ok(reply) => End::Once(Some(reply)),
                Err(RequestError::NotExecuted(_)) => End::Once(None),
                Err(_) => End::Over { certain: false },
            },
        })
    }
}

fn drive<M: Machine>(
    machine: &mut M,
    input: Option<Input>,
    now: Instant,
    calls: &mut Vec<(CallId, ScriptCall)>,
) -> Result<M::Outcome, Instant> {
    if let Some(input) = input {
        machine.handle(input, now);
    }
    poll_to_wait(machine, now, |_, call, script| calls.push((call, script)))
}
