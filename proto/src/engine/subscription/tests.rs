use super::*;
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
struct Bench {
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

impl Bench {
    fn new() -> Self {
        let mut engine = Engine::new();
        engine.add_endpoint(Gateway::upstash("http://localhost", "t").unwrap(), 1);
        let key = engine.find_subscription(ScopeId::SHARED, ONLY, &topic(), at(0)).unwrap();
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
    let mut bench = Bench::new();
    let waiter = bench.enter(WakePolicy::One, 0);
    assert_eq!(bench.poll(waiter, 0), Some("open"));
    bench.open(0, SUBSCRIBED);
    assert_eq!(bench.poll(waiter, 0), Some("retries"));
    assert_eq!(bench.poll(waiter, 30), None, "it may have no habit of giving any");
    bench.receive(30, ":\n\n");
    assert_eq!(bench.poll(waiter, 35), None);
    assert_eq!(bench.poll(waiter, 60), Some("open"), "no stream is kept for so long");
    bench.open(60, SUBSCRIBED);
    assert_eq!(bench.poll(waiter, 60), Some("retries"));
    bench.receive(65, ":\n\n");
    assert_eq!(bench.poll(waiter, 66), None);

    let mut bench = Bench::new();
    let waiter = bench.enter(WakePolicy::One, 200);
    assert_eq!(bench.poll(waiter, 200), Some("open"));
    bench.open(200, SUBSCRIBED);
    assert_eq!(bench.poll(waiter, 200), Some("retries"));
    bench.receive(205, ":\n\n");
    assert_eq!((bench.poll(waiter, 205), bench.poll(waiter, 215)), (None, None));
    assert_eq!(bench.poll(waiter, 216), Some("unsubscribed"), "more than twice as long as before");
    assert_eq!((bench.poll(waiter, 216), bench.poll(waiter, 217)), (None, Some("open")));
}

#[test]
fn a_stream_without_an_acknowledgement_is_given_up() {
    let mut bench = Bench::new();
    let waiter = bench.enter(WakePolicy::One, 0);
    assert_eq!(bench.poll(waiter, 0), Some("open"));
    assert_eq!(bench.poll(waiter, 9), None);
    assert_eq!(bench.poll(waiter, 10), None, "a response that does not begin");
    assert_eq!(bench.poll(waiter, 12), Some("open"));
    bench.open(12, "");
    assert_eq!(bench.poll(waiter, 21), None);
    assert_eq!((bench.poll(waiter, 22), bench.poll(waiter, 600)), (None, None), "it hung twice");
}

#[test]
fn when_a_stream_is_opened_anew_one_waiter_retries_for_all() {
    let mut bench = Bench::new();
    let waiters = [(); 3].map(|()| bench.enter(WakePolicy::One, 0));
    assert_eq!(bench.poll(waiters[0], 0), Some("open"));
    bench.open(0, SUBSCRIBED);
    for seconds in [0, 60] {
        if seconds > 0 {
            assert_eq!(
                bench.poll(waiters[1], seconds),
                Some("open"),
                "no waiter is notified of the end"
            );
            bench.open(seconds, SUBSCRIBED);
        }
        let events = waiters.map(|waiter| bench.poll(waiter, seconds));
        assert_eq!(events, [Some("retries"), Some("subscribed"), Some("subscribed")]);
    }
}

/// Wants differ: permits that are too few for the waiter that retries may suffice for another.
#[test]
fn a_refusal_after_the_stream_was_reopened_passes_the_retry_to_the_next_waiter() {
    let mut bench = Bench::new();
    let [large, small, smaller] =
        [3, 2, 1].map(|permits| bench.enter(WakePolicy::Permits(permits), 0));
    let all = [large, small, smaller];
    assert_eq!(bench.poll(large, 0), Some("open"));
    bench.open(0, SUBSCRIBED);
    assert_eq!(all.map(|waiter| bench.poll(waiter, 0)), [Some("retries"); 3]);
    let refuse = |bench: &mut Bench, waiter| {
        bench.waiters().on_timeout_set(waiter, TimeoutReason::HolderExpires);
    };
    refuse(&mut bench, large);
    assert_eq!(all.map(|waiter| bench.poll(waiter, 1)), [None; 3], "each has retried for itself");
    assert_eq!(bench.poll(large, 60), Some("open"));
    bench.open(60, SUBSCRIBED);
    let events = all.map(|waiter| bench.poll(waiter, 60));
    assert_eq!(events, [Some("retries"), Some("subscribed"), Some("subscribed")]);
    refuse(&mut bench, large);
    assert_eq!(all.map(|waiter| bench.poll(waiter, 61)), [None, Some("notified"), None]);
    bench.waiters().leave(small);
    assert_eq!((bench.poll(large, 62), bench.poll(smaller, 62)), (Some("notified"), None));
    refuse(&mut bench, large);
    assert_eq!((bench.poll(large, 63), bench.poll(smaller, 63)), (None, Some("notified")));
    refuse(&mut bench, smaller);
    // A waiter that leaves before it has retried passes the retry on too.
    assert_eq!(bench.poll(large, 120), Some("open"));
    bench.open(120, SUBSCRIBED);
    assert_eq!(bench.poll(smaller, 120), Some("subscribed"));
    bench.waiters().leave(large);
    assert_eq!(bench.poll(smaller, 121), Some("notified"));
}

#[test]
fn a_joining_waiter_retries_if_it_may_have_missed_a_message_for_all() {
    let mut bench = Bench::new();
    let first = bench.enter(WakePolicy::All, 0);
    assert_eq!(bench.poll(first, 0), Some("open"));
    bench.open(0, SUBSCRIBED);
    assert_eq!(bench.poll(first, 1), Some("retries"));
    let joins = |bench: &mut Bench, wakes, sent_at, seconds| {
        let waiter = bench.enter(wakes, sent_at);
        bench.poll(waiter, seconds)
    };
    assert_eq!(joins(&mut bench, WakePolicy::All, 2, 3), Some("subscribed"));
    assert_eq!(joins(&mut bench, WakePolicy::All, 0, 3), Some("retries"), "sent before that");
    bench.receive(5, RELEASED);
    assert_eq!(bench.poll(first, 5), Some("notified"));
    assert_eq!(joins(&mut bench, WakePolicy::All, 4, 6), Some("retries"), "sent before it");
    assert_eq!(joins(&mut bench, WakePolicy::Permits(1), 4, 6), Some("retries"));
    let one = joins(&mut bench, WakePolicy::One, 4, 6);
    assert_eq!(one, Some("retries"), "the message has woken none that waits as it does");
    let other = joins(&mut bench, WakePolicy::One, 4, 6);
    assert_eq!(other, Some("subscribed"), "the first one retries for it");
}

/// A runtime that ends the request of a Worker reports nothing.
#[test]
fn an_operation_that_was_ended_without_a_sign_keeps_no_stream() {
    let mut bench = Bench::new();
    let none = at(0);
    bench.engine.subscriptions.remove(bench.key);
    let mut wait = |scope: ScopeId, seconds: u64| {
        let op = OpId(bench.engine.ops.insert(Operation::new(scope, Task::AwaitLatch, none)));
        let mut cx = Context { now: at(seconds), entropy: &mut || None };
        let wanted = (ONLY, topic());
        let listener = bench.engine.subscribe((op, scope), &wanted, at(seconds), &mut cx);
        let operation = bench.engine.ops.get_mut(op.0).unwrap();
        operation.listener = listener;
        operation.deadline = Some((at(seconds), TimeoutReason::Silence));
        listener.is_some()
    };
    let [first, second, third] = [1, 2, 3].map(ScopeId);
    assert!(wait(first, 0));
    assert!(!wait(second, 30), "one stream may be open");
    assert!(wait(third, 31));
}
