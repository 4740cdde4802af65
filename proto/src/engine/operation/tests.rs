//! Operations whose caller leaves early, through the public interface of the engine.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use core::time::Duration;

use super::*;
use crate::engine::{
    AcquirePolicy, HoldTime, LockSpec, MemberSpec, NotificationMode, Side, StreamId, StreamInput,
    Transmit, TransmitId, deadlines,
};
use crate::machine::{Entropy, LockState, Pacing};
use crate::name::{LockName, RequestId};
use crate::protocol::calls::{LockCalls, Target};
use crate::protocol::gateway::{Gateway, Response};
use crate::protocol::script::{Publish, Script, scripts};
use crate::timing::{WaitPolicy, WaitTime};

const ONLY: EndpointId = EndpointId(0);
const SCOPE: ScopeId = ScopeId::GLOBAL;
const SUBSCRIBED: &str = "data: subscribe,redisson_lock__channel:{job},1\n\n";
const RELEASED: &str = "data: message,redisson_lock__channel:{job},0\n\n";

/// A client of one gateway. The tests are the gateway, Redis and the clock.
struct Client {
    engine: Engine,
    now: Instant,
    /// The number of times that entropy was drawn.
    draws: u8,
}

/// The words of a command: the verb, the hash of a script, its number of keys, keys and arguments.
#[derive(Debug)]
struct Command(Vec<String>);

/// A request that the engine has sent.
#[derive(Debug)]
struct Sent {
    id: TransmitId,
    /// One command, or several of a pipeline.
    commands: Vec<Command>,
}

fn a_minute() -> WaitPolicy {
    WaitPolicy::UpTo(WaitTime::new(Duration::from_secs(60)).unwrap())
}

fn lock(name: &str) -> Target {
    Target::Lock(LockCalls::new(LockName::parse(name).unwrap(), Publish::Plain))
}

impl Command {
    fn runs(&self, script: &Script) -> bool {
        self.0[1] == script.sha1(false)
    }

    fn args(&self) -> &[String] {
        let keys: usize = self.0[2].parse().unwrap();
        &self.0[3 + keys..]
    }

    fn owner(&self) -> &str {
        &self.args()[4]
    }

    /// The reply with this code, whose echo is the request id.
    fn reply(&self, code: i8, value: &str, ms: u32) -> String {
        format!(r#"{{"result":[{code},"{value}",{ms},1700000000000,"{}"]}}"#, self.args()[0])
    }

    fn granted(&self) -> String {
        assert!(self.runs(&scripts::LOCK_ACQUIRE), "{self:?}");
        self.reply(1, "1795276611386445", 30_000)
    }

    fn busy(&self) -> String {
        assert!(self.runs(&scripts::LOCK_ACQUIRE), "{self:?}");
        self.reply(0, "1", 600_000)
    }

    fn inspected(&self, last_token: u64) -> String {
        assert!(self.runs(&scripts::LOCK_INSPECT), "{self:?}");
        self.reply(0, &format!("{last_token},0,0"), 0)
    }
}

impl Sent {
    /// The only command.
    fn command(&self) -> &Command {
        assert_eq!(self.commands.len(), 1);
        &self.commands[0]
    }
}

impl Client {
    fn new() -> Self {
        Self::with_streams(1)
    }

    /// A client that may have so many streams open.
    fn with_streams(max: usize) -> Self {
        let mut engine = Engine::new();
        engine.add_endpoint(Gateway::upstash("http://localhost", "t").unwrap(), max);
        Self { engine, now: Instant::from_millis(1_000, 50_000), draws: 0 }
    }

    fn with<R>(&mut self, change: impl FnOnce(&mut Engine, &mut Context<'_>) -> R) -> R {
        let mut entropy = || {
            self.draws += 1;
            Some(Entropy::new([self.draws; 32]))
        };
        let result =
            change(&mut self.engine, &mut Context { now: self.now, entropy: &mut entropy });
        deadlines::tests::check(&self.engine, self.now);
        result
    }

    /// Begins to acquire a lock, and waits for it at most a minute.
    fn acquire(&mut self, name: &str) -> OpId {
        let member = MemberSpec { endpoint: ONLY, target: lock(name), pacing: Pacing::Jittered };
        let spec: LockSpec = self.engine.one_lock(member, None, Side::Whole, false);
        let policy = AcquirePolicy::new(HoldTime::AsUsual, a_minute(), None);
        self.with(|engine, cx| engine.acquire(SCOPE, Arc::new(spec), (policy, None), false, cx))
    }

    /// Begins to acquire several locks at one gateway, and waits for them at most a minute.
    fn acquire_all(&mut self, names: &[&str]) -> OpId {
        let one = |name: &&str| {
            let member =
                MemberSpec { endpoint: ONLY, target: lock(name), pacing: Pacing::Jittered };
            self.engine.one_lock(member, None, Side::Whole, false)
        };
        let specs: Vec<LockSpec> = names.iter().map(one).collect();
        let spec = self.engine.multi_lock(&specs.iter().collect::<Vec<_>>()).unwrap();
        let policy = AcquirePolicy::new(HoldTime::AsUsual, a_minute(), None);
        self.with(|engine, cx| engine.acquire(SCOPE, Arc::new(spec), (policy, None), false, cx))
    }

    /// Begins to inspect a lock.
    fn inspect(&mut self, name: &str) -> OpId {
        let target = lock(name);
        let call = |request: RequestId| target.inspect(request, None);
        self.with(|engine, cx| engine.query(SCOPE, ONLY, call, cx))
    }

    fn detach(&mut self, op: OpId) {
        self.with(|engine, cx| engine.detach(op, cx));
    }

    /// The next request, after those and the streams that the engine aborts.
    fn poll_sent(&mut self) -> Option<Sent> {
        loop {
            match self.engine.poll_transmit(SCOPE)? {
                Transmit::Send { id, request, .. } => {
                    let commands: Vec<Vec<String>> = if request.url.ends_with("pipeline") {
                        serde_json::from_str(&request.body).unwrap()
                    } else {
                        vec![serde_json::from_str(&request.body).unwrap()]
                    };
                    let commands = commands.into_iter().map(Command).collect();
                    return Some(Sent { id, commands });
                }
                Transmit::Abort { .. } | Transmit::Close { .. } => {}
                other @ Transmit::Open { .. } => panic!("{other:?}"),
            }
        }
    }

    fn sent(&mut self) -> Sent {
        self.poll_sent().expect("a request")
    }

    /// The stream that the engine opens next.
    fn opened(&mut self) -> StreamId {
        self.opened_for("job")
    }

    /// The stream that the engine opens next, after those that it closes: one for this lock.
    fn opened_for(&mut self, name: &str) -> StreamId {
        loop {
            match self.engine.poll_transmit(SCOPE) {
                Some(Transmit::Open { id, request, .. }) => {
                    assert!(request.url.contains(&format!("%7B{name}%7D")), "{request:?}");
                    return id;
                }
                Some(Transmit::Close { .. }) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Begins to acquire a lock that another client holds.
    fn wait_for(&mut self, name: &str) -> OpId {
        let op = self.acquire(name);
        let sent = self.sent();
        let busy = sent.command().busy();
        self.respond(&sent, &busy);
        self.now = self.now + Duration::from_millis(1);
        op
    }

    fn respond(&mut self, sent: &Sent, body: &str) {
        let response = Response::new(200, body);
        self.with(|engine, cx| engine.handle_response(sent.id, Ok(response), cx));
    }

    fn receive(&mut self, stream: StreamId, text: &str) {
        let input = StreamInput::Bytes(text.as_bytes());
        self.with(|engine, cx| engine.handle_stream(stream, input, cx));
    }

    /// Lets time pass until the engine has a request to send, but at most for `limit`.
    fn sent_within(&mut self, limit: Duration) -> Option<Sent> {
        let end = self.now + limit;
        loop {
            if let Some(sent) = self.poll_sent() {
                return Some(sent);
            }
            self.now = self.engine.poll_timeout(SCOPE).filter(|until| end.is_later(*until))?;
            self.with(|engine, cx| engine.handle_timeout(SCOPE, cx));
        }
    }

    /// Replies to the release of a hold, and checks that the client then has nothing left to do.
    fn confirm_release(&mut self, release: &Sent) {
        let released = release.command().reply(1, "0", 0);
        self.respond(release, &released);
        assert!(self.poll_sent().is_none());
        assert!(self.engine.is_idle(SCOPE));
    }
}

/// S59.
#[test]
fn an_acquisition_that_was_sent_and_is_detached_is_undone() {
    let mut client = Client::new();
    let op = client.acquire("job");
    let acquire = client.sent();
    client.detach(op);
    let undo = client.sent();
    assert!(undo.command().runs(&scripts::LOCK_RELEASE), "{undo:?}");
    assert_eq!(undo.command().owner(), acquire.command().owner());
    // Redis has executed the acquisition, and its late reply is ignored.
    let granted = acquire.command().granted();
    client.respond(&acquire, &granted);
    assert!(!client.engine.is_idle(SCOPE), "the undoing is not confirmed");
    client.confirm_release(&undo);
    assert!(!client.engine.has(op));
}

#[test]
fn an_acquisition_that_is_detached_before_it_was_sent_sends_nothing() {
    let mut client = Client::new();
    let op = client.acquire("job");
    client.detach(op);
    assert!(client.engine.is_idle(SCOPE) && !client.engine.has(op));
}

/// S59.
#[test]
fn a_hold_that_a_detached_acquisition_was_granted_is_released() {
    let mut client = Client::new();
    let op = client.acquire("job");
    let acquire = client.sent();
    let granted = acquire.command().granted();
    client.respond(&acquire, &granted);
    assert!(client.engine.is_over(op) && client.engine.has(op));
    client.detach(op);
    let release = client.sent();
    assert!(release.command().runs(&scripts::LOCK_RELEASE), "{release:?}");
    assert_eq!(release.command().owner(), acquire.command().owner());
    client.confirm_release(&release);
    assert!(!client.engine.has(op));
}

#[test]
fn a_notified_waiter_that_is_detached_passes_the_message_on() {
    let mut client = Client::new();
    let [first, second] = [client.acquire("job"), client.acquire("job")];
    let tries = client.sent();
    let busy: Vec<String> = tries.commands.iter().map(Command::busy).collect();
    client.respond(&tries, &format!("[{}]", busy.join(",")));
    let stream = client.opened();
    let head = StreamInput::Head { status: 200, retry_after: None };
    client.with(|engine, cx| engine.handle_stream(stream, head, cx));
    client.receive(stream, SUBSCRIBED);
    assert_eq!(client.engine.notification_mode(ONLY), Some(NotificationMode::Stream));
    // The first waiter retries for both, since a release may have come before the confirmation.
    let retry = client.sent_within(Duration::from_secs(1)).unwrap();
    assert_eq!(retry.command().owner(), tries.commands[0].owner());
    let busy = retry.command().busy();
    client.respond(&retry, &busy);
    assert!(client.sent_within(Duration::from_secs(1)).is_none(), "no waiter polls");

    client.receive(stream, RELEASED);
    client.detach(first);
    // Redis has not recorded the end of the refused acquisition yet.
    let undo = client.sent();
    assert_eq!(undo.command().owner(), tries.commands[0].owner());
    let undone = undo.command().reply(0, "0", 0);
    client.respond(&undo, &undone);
    let retry = client.sent_within(Duration::from_secs(1)).expect("a retry of the second waiter");
    assert_eq!(retry.command().owner(), tries.commands[1].owner());
    let granted = retry.command().granted();
    client.respond(&retry, &granted);
    assert!(matches!(client.engine.take_outcome(second), Some(Outcome::Acquired(Ok(_)))));
}

#[test]
fn an_acquisition_reports_once_that_it_waits() {
    let mut client = Client::with_streams(0);
    let op = client.acquire("job");
    let first = client.sent();
    let waits = |client: &mut Client| {
        let events = core::iter::from_fn(|| client.engine.poll_event());
        events.filter(|event| *event == Event::Waiting(op)).count()
    };
    assert_eq!(waits(&mut client), 0, "Redis has not replied");
    client.respond(&first, &first.command().busy());
    assert_eq!(waits(&mut client), 1);
    client.now = client.now + Duration::from_secs(11);
    client.with(|engine, cx| engine.handle_timeout(SCOPE, cx));
    let second = client.sent();
    client.respond(&second, &second.command().busy());
    assert_eq!(waits(&mut client), 0, "it still waits");
}

#[test]
fn when_a_subscription_ends_the_operation_that_has_polled_for_longest_subscribes() {
    let mut client = Client::new();
    let first = client.wait_for("first");
    client.opened_for("first");
    let second = client.wait_for("second");
    client.wait_for("third");
    assert!(client.engine.poll_transmit(SCOPE).is_none(), "one stream may be open");
    for (op, next) in [(first, "second"), (second, "third")] {
        client.detach(op);
        let undo = client.sent();
        let undone = undo.command().reply(0, "0", 0);
        client.respond(&undo, &undone);
        client.opened_for(next);
    }
}

#[test]
fn an_acquisition_that_begins_again_in_a_cluster_keeps_the_end_of_its_wait() {
    let mut client = Client::with_streams(0);
    let op = client.acquire_all(&["a", "b"]);
    let end = client.now + Duration::from_secs(60);
    let both = client.sent();
    client.now = client.now + Duration::from_secs(4);
    client.respond(&both, r#"{"error":"CROSSSLOT Keys in request don't hash to the same slot"}"#);
    while !client.engine.is_over(op) {
        let sent = client.sent_within(Duration::from_secs(60)).expect("a request or the end");
        let busy = sent.commands.iter().map(|command| command.reply(0, "1", 600_000));
        let replies: Vec<String> = busy.collect();
        match replies.as_slice() {
            [one] => client.respond(&sent, one),
            several => client.respond(&sent, &format!("[{}]", several.join(","))),
        }
    }
    assert!(!client.now.is_later(end + Duration::from_secs(1)), "{:?}", client.now);
}

#[test]
fn a_call_that_is_dropped_from_a_pipeline_keeps_the_places_of_the_other_replies() {
    let mut client = Client::new();
    let ops = ["a", "b", "c"].map(|name| client.inspect(name));
    let sent = client.sent();
    assert_eq!(sent.commands.len(), 3);
    client.detach(ops[1]);
    let replies = sent.commands.iter().zip(1..).map(|(command, token)| command.inspected(token));
    let replies: Vec<String> = replies.collect();
    client.respond(&sent, &format!("[{}]", replies.join(",")));
    for (op, last_token) in [(ops[0], 1), (ops[2], 3)] {
        match client.engine.take_outcome(op) {
            Some(Outcome::Replied(Ok(reply), false)) => {
                assert_eq!(LockState::read(&reply).unwrap().last_token, last_token);
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(client.engine.is_idle(SCOPE) && !client.engine.has(ops[1]));
}
