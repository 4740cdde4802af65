//! A conversation with a machine, and its log.

use std::collections::BTreeSet;
use std::fmt::Debug;

use edgelatch_proto::error::{FailureKind, Refusal};
use edgelatch_proto::machine::{CallId, Endpoint, Input, Machine, Output, TimeoutReason};
use edgelatch_proto::protocol::reply::{Reply, ServerClock};
use edgelatch_proto::protocol::script::ScriptCall;
use edgelatch_proto::time::Instant;

/// One call, and the response that came in time.
pub(super) struct Called {
    id: CallId,
    pub(super) place: usize,
    pub(super) script: ScriptCall,
    pub(super) sent_at: Instant,
    pub(super) response: Option<Received>,
}

/// The response to a pending call.
#[derive(Debug)]
pub(super) enum Received {
    Reply(Reply),
    Refused,
    /// Whether the call may have been executed all the same.
    Failed {
        unsure: bool,
    },
}

/// The conversation so far, and the clocks.
pub(super) struct Log {
    pub(super) calls: Vec<Called>,
    pub(super) now: Instant,
    pub(super) server_ms: u64,
    pub(super) cancelled: bool,
    /// When the machine ended.
    pub(super) ended_at: Option<Instant>,
    clocks: [u64; 2],
}

impl Log {
    pub(super) fn new() -> Self {
        let clocks = [5_000, 9_000_000];
        let now = Instant::from_millis(clocks[0], clocks[1]);
        Self {
            calls: Vec::new(),
            now,
            server_ms: 1_700_000_000_000,
            cancelled: false,
            ended_at: None,
            clocks,
        }
    }

    /// Redis' clock as the machine knows it at the start.
    pub(super) const fn clock(&self) -> ServerClock {
        ServerClock::new(self.server_ms, self.now)
    }

    /// The scripts of all calls, with their responses.
    pub(super) fn responses(&self) -> Vec<(&'static str, &Option<Received>)> {
        self.calls.iter().map(|call| (call.script.script().name, &call.response)).collect()
    }

    /// The replies that came in time, with their calls.
    pub(super) fn replies(&self) -> impl Iterator<Item = (&Called, &Reply)> {
        self.calls.iter().filter_map(|call| match &call.response {
            Some(Received::Reply(reply)) => Some((call, reply)),
            _ => None,
        })
    }

    /// Whether the call has no response, and no newer call was sent to the same gateway.
    fn is_under_way(&self, call: usize) -> bool {
        let Called { place, response, .. } = &self.calls[call];
        response.is_none() && self.calls[call + 1..].iter().all(|later| later.place != *place)
    }
}

/// A machine and its driver.
pub(super) struct Conversation<M: Machine> {
    pub(super) machine: M,
    pub(super) log: Log,
    pub(super) wait: Option<(Instant, TimeoutReason)>,
    pub(super) outcome: Option<M::Outcome>,
    ids: BTreeSet<CallId>,
}

impl<M> Conversation<M>
where
    M: Machine + Clone + Debug + PartialEq,
    M::Outcome: Clone + Debug + PartialEq,
{
    pub(super) fn begin(machine: M, log: Log) -> Self {
        let mut conversation =
            Self { machine, log, wait: None, outcome: None, ids: BTreeSet::new() };
        conversation.poll();
        conversation
    }

    /// Advances the two clocks of the host by different amounts.
    pub(super) fn passes(&mut self, monotonic_ms: u64, wall_ms: u64) {
        self.log.clocks[0] += monotonic_ms;
        self.log.clocks[1] += wall_ms;
        self.log.server_ms += monotonic_ms;
        self.log.now = Instant::from_millis(self.log.clocks[0], self.log.clocks[1]);
    }

    /// Advances time to the end of the machine's wait.
    pub(super) fn passes_to_its_wait(&mut self) {
        let Some((until, _)) = self.wait else { return };
        let ms = u64::try_from(self.log.now.until(until).as_millis()).expect("an end");
        self.passes(ms, ms);
    }

    pub(super) fn reply_to(&mut self, call: usize, reply: Reply) {
        let input = Input::Reply { call: self.log.calls[call].id, reply: reply.clone() };
        self.of(call, Received::Reply(reply), input);
    }

    pub(super) fn fails(&mut self, call: usize, kind: FailureKind) {
        let unsure = kind != FailureKind::NotSent;
        self.of(
            call,
            Received::Failed { unsure },
            Input::Failed { call: self.log.calls[call].id, kind },
        );
    }

    pub(super) fn is_refused(&mut self, call: usize, refusal: Refusal) {
        self.of(call, Received::Refused, Input::Refused { call: self.log.calls[call].id, refusal });
    }

    /// A late or repeated response must have the same effect as a wake-up.
    fn of(&mut self, call: usize, response: Received, input: Input) {
        if self.outcome.is_none() && self.log.is_under_way(call) {
            self.log.calls[call].response = Some(response);
            return self.handle(input);
        }
        let mut woken = self.machine.clone();
        woken.handle(Input::Timeout, self.log.now);
        self.machine.handle(input, self.log.now);
        // After the end only the outcome matters.
        let is_same = self.outcome.is_some() || self.machine == woken;
        assert!(is_same, "a late response has an effect:\n{:?}\n{woken:?}", self.machine);
        self.poll();
    }

    /// Handles one input, and polls the machine until it waits or ends.
    pub(super) fn handle(&mut self, input: Input) {
        self.log.cancelled |= matches!(input, Input::Cancelled) && self.outcome.is_none();
        self.machine.handle(input, self.log.now);
        self.poll();
        // A driver wakes the machine at once if it waits for a time that has passed. This must not
        // repeat for ever.
        for _ in 0..100 {
            let Some((until, _)) = self.wait.filter(|_| self.outcome.is_none()) else { return };
            if !self.log.now.has_reached(until) {
                return self.sleeps_well();
            }
            self.machine.handle(Input::Timeout, self.log.now);
            self.poll();
        }
        panic!("it waits for what is over: {:?}", self.wait);
    }

    /// An early wake-up changes nothing.
    fn sleeps_well(&mut self) {
        let mut woken = self.machine.clone();
        woken.handle(Input::Timeout, self.log.now);
        assert!(woken == self.machine, "woken early it changes:\n{woken:?}\n{:?}", self.machine);
    }

    fn poll(&mut self) {
        for _ in 0..100 {
            match self.machine.poll(self.log.now) {
                Output::Call { call, to: Endpoint(place), script } => {
                    assert!(self.outcome.is_none(), "a call after the end");
                    assert!(self.ids.insert(call), "two calls of one number");
                    let (sent_at, response) = (self.log.now, None);
                    self.log.calls.push(Called { id: call, place, script, sent_at, response });
                }
                Output::Subscribe { .. } => {
                    assert!(self.outcome.is_none(), "it listens after the end")
                }
                Output::Timeout { until, why } => {
                    assert!(self.outcome.is_none(), "a wait after the end");
                    self.wait = Some((until, why));
                    return;
                }
                Output::Done(outcome) => {
                    self.log.ended_at.get_or_insert(self.log.now);
                    let first = self.outcome.get_or_insert_with(|| outcome.clone());
                    assert_eq!(*first, outcome, "the outcome changes");
                    return;
                }
            }
        }
        panic!("it never waits")
    }
}
