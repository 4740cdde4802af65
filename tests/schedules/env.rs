//! The environment of one schedule: virtual time, Redis, the network, and the events to come, all
//! drawn from one seed.

use std::collections::BTreeMap;
use std::rc::Rc;

use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::ScriptCall;
use fastrand::Rng;

use super::coverage::Coverage;
use super::network::{MAX_COPIES, Network, Request, arg};
use super::runner::{MovingBound, Plan};
use test_support::script_model::ScriptModel;

/// Redis' clock when a schedule begins, in milliseconds.
pub(crate) const START_MS: u64 = 1_700_000_000_000;

/// The number of scripts in the trace of a violation.
const TRACE_STEPS: usize = 15;

/// An event of a schedule. `T` identifies the scenario's timers.
pub(super) enum Event<T> {
    /// A request, or a copy of one, reaches Redis. A copy gets no reply.
    Request {
        request: Rc<Request>,
        is_copy: bool,
    },
    /// A reply reaches its client; `None` if the client learns that its connection broke instead.
    Reply {
        request: Rc<Request>,
        reply: Option<Reply>,
    },
    Timer(T),
}

/// A script that ran: Redis' clock, the client, the script's name, and the code of its reply.
type Step = (u64, usize, &'static str, Code);

/// The environment of one schedule.
pub(crate) struct Env<T> {
    /// Draws all random choices except those of the plan.
    pub(crate) rng: Rng,
    /// Redis with the scripts: the model that executes them.
    pub(crate) model: ScriptModel,
    /// Redis' clock, in milliseconds.
    pub(crate) now: u64,
    pub(crate) coverage: Coverage,
    network: Network,
    moving_bound: Option<MovingBound>,
    /// When clients stop beginning new work, so that the schedule ends.
    closes_at: u64,
    /// The events to come, by their time and, for events at one time, the order of scheduling.
    events: BTreeMap<(u64, usize), Event<T>>,
    /// The number of events scheduled so far.
    scheduled: usize,
    /// The key in `events` of each timer that is set.
    timers: BTreeMap<T, (u64, usize)>,
    /// The number of requests sent so far.
    requests: usize,
    /// The scripts that ran, for the trace of a violation.
    steps: Vec<Step>,
}

impl<T: Copy + Ord> Env<T> {
    /// Creates the environment of the schedule with this seed, in which clients begin new work for
    /// `length` milliseconds.
    pub(super) fn new<S>(plan: &Plan<S>, seed: u64, length: u64) -> Self {
        let mut model = ScriptModel::new(plan.latches);
        model.without = plan.without;
        Self {
            rng: Rng::with_seed(seed),
            model,
            now: START_MS,
            coverage: Coverage::default(),
            network: plan.network,
            moving_bound: plan.moving_bound,
            closes_at: START_MS + length,
            events: BTreeMap::new(),
            scheduled: 0,
            timers: BTreeMap::new(),
            requests: 0,
            steps: Vec::new(),
        }
    }

    /// Draws whether an event with this probability in per cent happens.
    pub(crate) fn chance(&mut self, per_cent: u32) -> bool {
        self.rng.u32(0..100) < per_cent
    }

    /// Whether clients still begin new work.
    pub(crate) const fn accepts_new_work(&self) -> bool {
        self.now < self.closes_at
    }

    /// Sets a timer to fire in `ms`, and cancels an earlier setting of it.
    pub(crate) fn set_timer(&mut self, timer: T, ms: u64) {
        self.cancel_timer(timer);
        let key = self.schedule(ms, Event::Timer(timer));
        self.timers.insert(timer, key);
    }

    pub(crate) fn cancel_timer(&mut self, timer: T) {
        if let Some(key) = self.timers.remove(&timer) {
            self.events.remove(&key);
        }
    }

    /// Sends a request, and returns its number. The network may lose it, delay it, and deliver
    /// copies of it. The client of a lost request learns that its connection broke.
    pub(crate) fn send(&mut self, client: usize, call: ScriptCall) -> usize {
        let (number, sent_at) = (self.requests, self.now);
        self.requests += 1;
        let request = Rc::new(Request { client, number, sent_at, call });
        for _ in 0..MAX_COPIES {
            if !self.chance(self.network.copy_percent) {
                break;
            }
            let delay = self.rng.u64(1..=self.network.max_copy_delay_ms);
            self.schedule(delay, Event::Request { request: Rc::clone(&request), is_copy: true });
        }
        let delay = self.network.delay(&mut self.rng);
        if self.chance(self.network.loss_percent) {
            self.coverage.count("lost requests");
            self.schedule(delay, Event::Reply { request, reply: None });
        } else {
            self.schedule(delay, Event::Request { request, is_copy: false });
        }
        number
    }

    /// Drops all events to come, and so ends the schedule.
    pub(crate) fn stop(&mut self) {
        self.events.clear();
        self.timers.clear();
    }

    /// Executes a request now. Its messages are in `model.published`.
    pub(super) fn execute(&mut self, request: &Request) -> Reply {
        let call = &request.call;
        // The argument of a request without a bound is empty.
        let not_after = call.args()[arg::NOT_AFTER].parse().ok();
        let not_after = self.moving_bound.map_or(not_after, |bound| bound(request, not_after));
        // Tokens are times in microseconds, so each script of one millisecond gets a microsecond of
        // its own: real scripts take time.
        let micros = self.now * 1000 + self.steps.len() as u64 % 1000;
        let cells = self.model.run_until(call, not_after, micros);
        let reply = Reply::read(&cells, call.request).unwrap();
        self.steps.push((self.now, request.client, request.script(), reply.code));
        reply
    }

    /// Sends the reply to a request. If the network loses it, the client learns that its connection
    /// broke.
    pub(super) fn send_reply(&mut self, request: Rc<Request>, reply: Reply) {
        let reply = (!self.chance(self.network.reply_loss_percent)).then_some(reply);
        let delay = self.network.delay(&mut self.rng);
        self.schedule(delay, Event::Reply { request, reply });
    }

    /// Moves the time on to the next event, and returns it.
    pub(super) fn next_event(&mut self) -> Option<Event<T>> {
        let ((at, _), event) = self.events.pop_first()?;
        if let Event::Timer(timer) = event {
            self.timers.remove(&timer);
        }
        self.now = at;
        Some(event)
    }

    /// The scripts that ran last, one per line.
    pub(super) fn trace(&self) -> String {
        let last = &self.steps[self.steps.len().saturating_sub(TRACE_STEPS)..];
        let line = |(at, client, script, code): &Step| {
            format!("{:>8} ms  client {client}  {script}: {code:?}\n", at - START_MS)
        };
        last.iter().map(line).collect()
    }

    /// Schedules an event in `ms`, and returns its key in `events`.
    fn schedule(&mut self, ms: u64, event: Event<T>) -> (u64, usize) {
        self.scheduled += 1;
        let key = (self.now + ms, self.scheduled);
        self.events.insert(key, event);
        key
    }
}
