//! A number with S is that of a scenario in `docs/reliability.md`.

use core::mem;

use super::*;
use crate::engine::StreamInput;
use crate::engine::operation::{Operation, Task};
use crate::engine::table::Table;
use crate::machine::{Input, TimeoutReason};
use crate::name::{LockName, OwnerId};
use crate::protocol::calls::{LockCalls, Target, WakePolicy};
use crate::protocol::gateway::Gateway;
use crate::protocol::reply::{Code, Reply};
use crate::protocol::script::Publish;

const SUBSCRIBED: &str = "data: subscribe,redisson_lock__channel:{job},1\n\n";
const RELEASED: &str = "data: message,redisson_lock__channel:{job},0\n\n";

const ONLY: EndpointId = EndpointId(0);

/// One subscription of an engine without operations: the tests are its waiters.
struct Fixture {
    engine: Engine,
    key: Key,
    /// Whether the engine has requested a stream that `poll` has not reported yet.
    is_opening: bool,
}

fn at(seconds: u64) -> Instant {
    Instant::from_millis(seconds * 1000, seconds * 1000)
}

fn topic() -> Topic {
    let target = LockCalls::new(LockName::parse("job").unwrap(), Publish::Plain);
    let value = "1".into();
    let busy = Reply { code: Code::No, value, ms: 1, server_ms: 1, acknowledged: None };
    Target::Lock(target).topic(OwnerId::new([0; 16], 1), &busy)
}

impl Fixture {
    fn new() -> Self {
        let mut engine = Engine::new();
        engine.add_endpoint(Gateway::upstash("http://localhost", "t").unwrap(), 1);
        let key = engine.find_or_add_subscription(ScopeId::GLOBAL, ONLY, &topic(), at(0)).unwrap();
        Self { engine, key, is_opening: false }
    }

    fn with<R>(
        &mut self,
        seconds: u64,
        change: impl FnOnce(&mut Engine, Key, &mut Context<'_>) -> R,
    ) -> R {
        let mut cx = Context { now: at(seconds), entropy: &mut || None };
        let result = change(&mut self.engine, self.key, &mut cx);
        for (_, transmit) in self.engine.transmits.drain(..) {
            match transmit {
                Transmit::Open { .. } => self.is_opening = true,
                Transmit::Close { .. } => self.is_opening = false,
                other => panic!("{other:?}"),
            }
        }
        result
    }

    fn waiters(&mut self) -> &mut Waiters {
        &mut self.engine.subscriptions.get_mut(self.key).unwrap().waiters
    }

    fn enter(&mut self, wakes: WakePolicy, seconds: u64) -> WaiterId {
        let confirmed_at = self.engine.subscriptions.get(self.key).unwrap().confirmed_at();
        let op = OpId(Table::default().insert(()));
        self.waiters().enter(op, wakes, at(seconds), confirmed_at)
    }

    /// Looks at the stream, and returns the event of a waiter, or that the stream is to be opened.
    fn poll(&mut self, waiter: WaiterId, seconds: u64) -> Option<&'static str> {
        self.with(seconds, |engine, key, cx| engine.check_stream(key, cx));
        match self.waiters().take_input(waiter, Duration::ZERO) {
            None => mem::take(&mut self.is_opening).then_some("open"),
            Some((_, Input::Subscribed { must_retry: true })) => Some("retries"),
            Some((_, Input::Subscribed { must_retry: false })) => Some("subscribed"),
            Some((_, Input::Notified { .. })) => Some("notified"),
            Some((_, Input::Unsubscribed)) => Some("unsubscribed"),
            Some((_, other)) => panic!("{other:?}"),
        }
    }

    /// Opens the stream that was requested, which then receives this text.
    fn open(&mut self, seconds: u64, text: &str) {
        let id = self.engine.subscriptions.get(self.key).unwrap().stream_id(self.key).unwrap();
        let head = StreamInput::Head { status: 200, retry_after: None };
        self.with(seconds, |engine, _, cx| engine.stream_input(id, head, cx));
        self.receive(seconds, text);
    }

    fn receive(&mut self, seconds: u64, text: &str) {
        let id = self.engine.subscriptions.get(self.key).unwrap().stream_id(self.key).unwrap();
        let bytes = StreamInput::Bytes(text.as_bytes());
        self.with(seconds, |engine, _, cx| engine.stream_input(id, bytes, cx));
    }
}

/// S72.
#[test]
fn a_stream_without_its_signs_of_life_is_dead() {
    let mut fixture = Fixture::new();
    let waiter = fixture.enter(WakePolicy::One, 0);
    assert_eq!(fixture.poll(waiter, 0), Some("open"));
    fixture.open(0, SUBSCRIBED);
    assert_eq!(fixture.poll(waiter, 0), Some("retries"));
    assert_eq!(fixture.poll(waiter, 30), None, "the gateway may send no heartbeats");
    fixture.receive(30, ":\n\n");
    assert_eq!(fixture.poll(waiter, 35), None);
    assert_eq!(fixture.poll(waiter, 60), Some("open"), "a stream is reopened every minute");
    fixture.open(60, SUBSCRIBED);
    assert_eq!(fixture.poll(waiter, 60), Some("retries"));
    fixture.receive(65, ":\n\n");
    assert_eq!(fixture.poll(waiter, 66), None);

    let mut fixture = Fixture::new();
    let waiter = fixture.enter(WakePolicy::One, 200);
    assert_eq!(fixture.poll(waiter, 200), Some("open"));
    fixture.open(200, SUBSCRIBED);
    assert_eq!(fixture.poll(waiter, 200), Some("retries"));
    fixture.receive(205, ":\n\n");
    assert_eq!((fixture.poll(waiter, 205), fixture.poll(waiter, 215)), (None, None));
    assert_eq!(
        fixture.poll(waiter, 216),
        Some("unsubscribed"),
        "silent for more than twice the longest silence before"
    );
    assert_eq!((fixture.poll(waiter, 216), fixture.poll(waiter, 217)), (None, Some("open")));
}

#[test]
fn a_stream_without_an_acknowledgement_is_given_up() {
    let mut fixture = Fixture::new();
    let waiter = fixture.enter(WakePolicy::One, 0);
    assert_eq!(fixture.poll(waiter, 0), Some("open"));
    assert_eq!(fixture.poll(waiter, 9), None);
    assert_eq!(
        fixture.poll(waiter, 10),
        None,
        "given up; a waiter that was never subscribed is not notified"
    );
    assert_eq!(fixture.poll(waiter, 12), Some("open"));
    fixture.open(12, "");
    assert_eq!(fixture.poll(waiter, 21), None);
    assert_eq!(
        (fixture.poll(waiter, 22), fixture.poll(waiter, 600)),
        (None, None),
        "it hung twice"
    );
    assert_eq!(fixture.engine.poll_timeout(ScopeId::GLOBAL), None);
}

#[test]
fn when_a_stream_is_opened_anew_one_waiter_retries_for_all() {
    let mut fixture = Fixture::new();
    let waiters = [(); 3].map(|()| fixture.enter(WakePolicy::One, 0));
    assert_eq!(fixture.poll(waiters[0], 0), Some("open"));
    fixture.open(0, SUBSCRIBED);
    for seconds in [0, 60] {
        if seconds > 0 {
            assert_eq!(
                fixture.poll(waiters[1], seconds),
                Some("open"),
                "no waiter is notified of the end"
            );
            fixture.open(seconds, SUBSCRIBED);
        }
        let events = waiters.map(|waiter| fixture.poll(waiter, seconds));
        assert_eq!(events, [Some("retries"), Some("subscribed"), Some("subscribed")]);
    }
}

/// Another stream of the gateway has failed, so that none may be opened for a while.
#[test]
fn when_a_stream_ends_that_cannot_be_reopened_at_once_its_waiters_poll() {
    let mut fixture = Fixture::new();
    let waiter = fixture.enter(WakePolicy::One, 0);
    assert_eq!(fixture.poll(waiter, 0), Some("open"));
    fixture.open(0, SUBSCRIBED);
    assert_eq!(fixture.poll(waiter, 0), Some("retries"));
    fixture.with(60, |engine, _, cx| {
        engine.change_health(ONLY, &mut |health| health.on_failure(cx.now));
    });
    assert_eq!(fixture.poll(waiter, 60), Some("unsubscribed"));
}

/// Waiters request different numbers of permits: too few for the one that retries may suffice for
/// another.
#[test]
fn a_refusal_after_the_stream_was_reopened_passes_the_retry_to_the_next_waiter() {
    let mut fixture = Fixture::new();
    let [large, small, smaller] =
        [3, 2, 1].map(|permits| fixture.enter(WakePolicy::Permits(permits), 0));
    let all = [large, small, smaller];
    assert_eq!(fixture.poll(large, 0), Some("open"));
    fixture.open(0, SUBSCRIBED);
    assert_eq!(all.map(|waiter| fixture.poll(waiter, 0)), [Some("retries"); 3]);
    // An operation that is refused sets its next timeout.
    let refuse = |fixture: &mut Fixture, waiter| {
        fixture.waiters().on_timeout_set(waiter, TimeoutReason::HolderExpires);
    };
    refuse(&mut fixture, large);
    assert_eq!(all.map(|waiter| fixture.poll(waiter, 1)), [None; 3], "each has retried for itself");
    assert_eq!(fixture.poll(large, 60), Some("open"));
    fixture.open(60, SUBSCRIBED);
    let events = all.map(|waiter| fixture.poll(waiter, 60));
    assert_eq!(events, [Some("retries"), Some("subscribed"), Some("subscribed")]);
    refuse(&mut fixture, large);
    assert_eq!(all.map(|waiter| fixture.poll(waiter, 61)), [None, Some("notified"), None]);
    fixture.waiters().leave(small);
    assert_eq!((fixture.poll(large, 62), fixture.poll(smaller, 62)), (Some("notified"), None));
    refuse(&mut fixture, large);
    assert_eq!((fixture.poll(large, 63), fixture.poll(smaller, 63)), (None, Some("notified")));
    refuse(&mut fixture, smaller);
    // A waiter that leaves before it has retried passes the retry on too.
    assert_eq!(fixture.poll(large, 120), Some("open"));
    fixture.open(120, SUBSCRIBED);
    assert_eq!(fixture.poll(smaller, 120), Some("subscribed"));
    fixture.waiters().leave(large);
    assert_eq!(fixture.poll(smaller, 121), Some("notified"));
}

#[test]
fn a_joining_waiter_retries_if_it_may_have_missed_a_message_for_all() {
    let mut fixture = Fixture::new();
    let first = fixture.enter(WakePolicy::All, 0);
    assert_eq!(fixture.poll(first, 0), Some("open"));
    fixture.open(0, SUBSCRIBED);
    assert_eq!(fixture.poll(first, 1), Some("retries"));
    let joins = |fixture: &mut Fixture, wakes, sent_at, seconds| {
        let waiter = fixture.enter(wakes, sent_at);
        fixture.poll(waiter, seconds)
    };
    assert_eq!(joins(&mut fixture, WakePolicy::All, 2, 3), Some("subscribed"));
    assert_eq!(
        joins(&mut fixture, WakePolicy::All, 0, 3),
        Some("retries"),
        "not sent after the confirmation"
    );
    fixture.receive(5, RELEASED);
    assert_eq!(fixture.poll(first, 5), Some("notified"));
    assert_eq!(
        joins(&mut fixture, WakePolicy::All, 4, 6),
        Some("retries"),
        "sent before the message"
    );
    assert_eq!(joins(&mut fixture, WakePolicy::Permits(1), 4, 6), Some("retries"));
    let one = joins(&mut fixture, WakePolicy::One, 4, 6);
    assert_eq!(one, Some("retries"), "no waiter with its policy was woken by the message");
    let other = joins(&mut fixture, WakePolicy::One, 4, 6);
    assert_eq!(other, Some("subscribed"), "the first one retries for it");
}

/// A runtime that ends the request of a Worker does not report it.
#[test]
fn an_operation_that_ended_without_notice_keeps_no_stream() {
    let mut fixture = Fixture::new();
    let began_at = at(0);
    fixture.engine.subscriptions.remove(fixture.key);
    let mut wait = |scope: ScopeId, seconds: u64| {
        let op = OpId(fixture.engine.ops.insert(Operation::new(scope, Task::AwaitLatch, began_at)));
        let mut cx = Context { now: at(seconds), entropy: &mut || None };
        let wanted = (ONLY, topic());
        let waiter_ref = fixture.engine.subscribe((op, scope), &wanted, at(seconds), &mut cx);
        let operation = fixture.engine.ops.get_mut(op.0).unwrap();
        operation.waiter_ref = waiter_ref;
        operation.deadline = Some((at(seconds), TimeoutReason::Silence));
        waiter_ref.is_some()
    };
    let [first, second, third] = [1, 2, 3].map(ScopeId);
    assert!(wait(first, 0));
    assert!(!wait(second, 30), "only one stream may be open");
    assert!(wait(third, 31));
}
