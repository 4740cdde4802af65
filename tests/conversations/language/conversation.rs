//! The language of the tests: a [`Conversation`] plays gateways, Redis and the clocks for one
//! machine.
//!
//! ```text
//! Conversation::new(machine)
//!     .expect_call("lock_acquire")
//!     .reply(busy(3_000))
//!     .expect_timeout(TimeoutReason::BackOff)
//!     .advance_to_timeout()
//!     .expect_call("lock_acquire")
//!     .reply(granted(42))
//!     .expect_done()
//! ```
//!
//! After each input the conversation polls the machine until it waits or is done, as the client's
//! driver does. Expectations are in `expectations.rs`. The tests call a conversation `it`.

use std::time::Duration;

use edgelatch_proto::error::FailureKind;
use edgelatch_proto::machine::{Endpoint, Input, Machine, Output, TimeoutReason};
use edgelatch_proto::protocol::calls::Topic;
use edgelatch_proto::time::Instant;

use super::clock::{Clocks, ms};
use super::reply::{Call, ScriptReply};

/// A machine, its environment, and its outputs so far.
pub(crate) struct Conversation<M: Machine> {
    machine: M,
    clocks: Clocks,
    pub(super) calls: Vec<Call>,
    /// How many of `calls` an expectation has covered.
    pub(super) expected: usize,
    pub(super) timeout: Option<(Instant, TimeoutReason)>,
    /// The latest subscription that the machine has requested: a gateway and a topic there.
    pub(super) subscription: Option<(usize, Topic)>,
    pub(super) outcome: Option<M::Outcome>,
}

impl<M: Machine> Conversation<M> {
    /// Begins at [`START`](super::clock::START).
    pub(crate) fn new(machine: M) -> Self {
        Self::new_after(machine, 0)
    }

    /// Begins when all clocks have advanced by `elapsed_ms`.
    pub(crate) fn new_after(machine: M, elapsed_ms: u64) -> Self {
        let mut clocks = Clocks::default();
        clocks.advance(elapsed_ms);
        let (calls, expected) = (Vec::new(), 0);
        let (timeout, subscription, outcome) = (None, None, None);
        Self { machine, clocks, calls, expected, timeout, subscription, outcome }.poll()
    }

    /// Redis replies to the newest call.
    #[track_caller]
    pub(crate) fn reply(self, reply: impl Into<ScriptReply>) -> Self {
        let input = self.newest_call().reply(reply, self.clocks.server_ms());
        self.handle(input)
    }

    /// The Redis behind this gateway replies to the newest call there.
    #[track_caller]
    pub(crate) fn reply_from(self, gateway: usize, reply: impl Into<ScriptReply>) -> Self {
        let input = self.newest_call_to(gateway).reply(reply, self.clocks.server_ms());
        self.handle(input)
    }

    /// Redis replies to this call.
    pub(crate) fn reply_to(self, call: &Call, reply: impl Into<ScriptReply>) -> Self {
        let input = call.reply(reply, self.clocks.server_ms());
        self.handle(input)
    }

    /// The newest call has no usable reply.
    #[track_caller]
    pub(crate) fn fail(self, kind: FailureKind) -> Self {
        let input = self.newest_call().fail(kind);
        self.handle(input)
    }

    /// The newest call to this gateway has no usable reply.
    #[track_caller]
    pub(crate) fn fail_from(self, gateway: usize, kind: FailureKind) -> Self {
        let input = self.newest_call_to(gateway).fail(kind);
        self.handle(input)
    }

    /// The machine makes this call `attempts` times, each after a timeout, and each attempt fails.
    #[track_caller]
    pub(crate) fn fail_attempts(self, script: &str, attempts: u32, kind: FailureKind) -> Self {
        let first = self.expect_call(script).fail(kind);
        (1..attempts).fold(first, |it, _| it.advance_to_timeout().expect_call(script).fail(kind))
    }

    /// Every call to these gateways fails until the machine is done.
    #[track_caller]
    pub(crate) fn fail_until_done(mut self, gateways: &[usize], kind: FailureKind) -> Self {
        for _ in 0..1_000 {
            self = gateways.iter().fold(self, |it, gateway| it.fail_from(*gateway, kind));
            if self.is_done() {
                return self;
            }
            self = self.advance_to_timeout();
        }
        panic!("the machine does not end: it {self}");
    }

    /// The gateway refuses the newest call with this error of Redis.
    #[track_caller]
    pub(crate) fn refuse(self, error: &str) -> Self {
        let input = self.newest_call().refuse(error);
        self.handle(input)
    }

    /// This gateway refuses the newest call to it with this error of Redis.
    #[track_caller]
    pub(crate) fn refuse_from(self, gateway: usize, error: &str) -> Self {
        let input = self.newest_call_to(gateway).refuse(error);
        self.handle(input)
    }

    /// The subscription is confirmed. The machine may have missed earlier messages.
    pub(crate) fn confirm_subscription(self) -> Self {
        self.handle(Input::Subscribed { must_retry: true })
    }

    /// The machine joins a subscription of this client whose other waiters have handled the earlier
    /// messages.
    pub(crate) fn join_subscription(self) -> Self {
        self.handle(Input::Subscribed { must_retry: false })
    }

    /// The subscription has ended.
    pub(crate) fn end_subscription(self) -> Self {
        self.handle(Input::Unsubscribed)
    }

    /// A message says that the object may be free. No other client competes for it.
    pub(crate) fn notify(self) -> Self {
        self.notify_within(0)
    }

    /// A message says that the object may be free. Other clients compete for it; this machine must
    /// retry within `within_ms`.
    pub(crate) fn notify_within(self, within_ms: u64) -> Self {
        self.handle(Input::Notified { within: ms(within_ms) })
    }

    /// A message says that another client has acquired the lock for `lease`, or permits (`None`).
    pub(crate) fn notify_acquired(self, lease: Option<Duration>) -> Self {
        self.handle(Input::AcquiredByOther { lease })
    }

    /// The caller cancels.
    pub(crate) fn cancel(self) -> Self {
        self.handle(Input::Cancelled)
    }

    /// Advances all clocks without waking the machine, as while a reply is in flight.
    pub(crate) fn advance(mut self, ms: u64) -> Self {
        self.clocks.advance(ms);
        self
    }

    /// Advances the host's clocks by different amounts, without waking the machine. Redis' clock
    /// stands still.
    pub(crate) const fn advance_host_clocks(mut self, monotonic_ms: u64, wall_ms: i64) -> Self {
        self.clocks.advance_host(monotonic_ms, wall_ms);
        self
    }

    /// Wakes the machine, whether or not its timeout has come.
    pub(crate) fn wake(self) -> Self {
        self.handle(Input::Timeout)
    }

    /// Advances all clocks and wakes the machine.
    pub(crate) fn advance_and_wake(self, ms: u64) -> Self {
        self.advance(ms).wake()
    }

    /// Advances all clocks to the timeout that the machine waits for, and wakes it.
    #[track_caller]
    pub(crate) fn advance_to_timeout(self) -> Self {
        let ms = self.timeout_ms();
        self.advance_and_wake(ms)
    }

    /// Hands one input to the machine and polls it.
    pub(crate) fn handle(mut self, input: Input) -> Self {
        self.machine.handle(input, self.clocks.now());
        self.poll()
    }

    /// Changes the machine by one of its own methods and polls it.
    pub(crate) fn update(mut self, change: impl FnOnce(&mut M)) -> Self {
        change(&mut self.machine);
        self.poll()
    }

    fn poll(mut self) -> Self {
        loop {
            let output = self.machine.poll(self.clocks.now());
            let is_done = matches!(output, Output::Done(_));
            assert!(is_done || self.outcome.is_none(), "after its end the machine goes on: {self}");
            match output {
                Output::Call { call: id, to: Endpoint(gateway), script } => {
                    self.calls.push(Call { id, gateway, script });
                }
                Output::Subscribe { to: Endpoint(gateway), topic } => {
                    self.subscription = Some((gateway, topic));
                }
                Output::Timeout { until, why } => {
                    self.timeout = Some((until, why));
                    return self;
                }
                Output::Done(outcome) => {
                    let again = self.machine.poll(self.clocks.now());
                    assert!(matches!(again, Output::Done(_)), "the machine goes on after its end");
                    (self.timeout, self.outcome) = (None, Some(outcome));
                    return self;
                }
            }
        }
    }
}

/// The state of the machine and the clocks.
impl<M: Machine> Conversation<M> {
    pub(crate) const fn machine(&self) -> &M {
        &self.machine
    }

    /// The time on the host's clocks.
    pub(crate) fn now(&self) -> Instant {
        self.clocks.now()
    }

    /// How long the conversation has lasted, by Redis' clock.
    pub(crate) const fn elapsed_ms(&self) -> u64 {
        self.clocks.elapsed_ms()
    }

    /// Every call that the machine has made, in order.
    pub(crate) fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// The scripts of every call, in order.
    pub(crate) fn scripts(&self) -> Vec<&'static str> {
        self.calls.iter().map(Call::name).collect()
    }

    /// How many calls of this script the machine has made.
    pub(crate) fn count(&self, script: &str) -> usize {
        self.calls.iter().filter(|call| call.name() == script).count()
    }

    /// The newest call.
    #[track_caller]
    pub(crate) fn newest_call(&self) -> &Call {
        self.calls.last().expect("the machine has made a call")
    }

    /// The newest call to this gateway.
    #[track_caller]
    pub(crate) fn newest_call_to(&self, gateway: usize) -> &Call {
        let newest = self.calls.iter().rev().find(|call| call.gateway == gateway);
        newest.expect("the machine has made a call to this gateway")
    }

    /// An argument of the newest call, by its number in the script's header.
    #[track_caller]
    pub(crate) fn arg(&self, number: usize) -> &str {
        self.newest_call().arg(number)
    }

    /// An argument of the newest call to this gateway, by its number in the script's header.
    #[track_caller]
    pub(crate) fn arg_of(&self, gateway: usize, number: usize) -> &str {
        self.newest_call_to(gateway).arg(number)
    }

    /// Whether the machine has made a call that no expectation has covered.
    pub(crate) const fn has_new_calls(&self) -> bool {
        self.expected < self.calls.len()
    }

    /// The reason of the machine's timeout; `None` once the machine is done.
    pub(crate) fn timeout_reason(&self) -> Option<TimeoutReason> {
        self.timeout.map(|(_, reason)| reason)
    }

    /// The time until the machine's timeout, in milliseconds.
    #[track_caller]
    pub(crate) fn timeout_ms(&self) -> u64 {
        let (until, _) = self.timeout.expect("the machine waits");
        u64::try_from(self.now().until(until).as_millis()).unwrap()
    }

    /// Whether the timeout has come.
    pub(crate) fn is_due(&self) -> bool {
        self.timeout.is_some_and(|(until, _)| self.now().has_reached(until))
    }

    pub(crate) const fn is_done(&self) -> bool {
        self.outcome.is_some()
    }

    pub(crate) const fn outcome(&self) -> Option<&M::Outcome> {
        self.outcome.as_ref()
    }
}
