//! A client whose tests are the gateway, Redis and the clock.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use crate::engine::{
    AcquirePolicy, Context, EndpointId, Engine, HoldId, HoldTime, LockSpec, MemberSpec, OpId,
    Outcome, OwnerHandle, ScopeId, Side, StreamId, StreamInput, Transmit, TransmitId, deadlines,
};
use crate::error::FailureKind;
use crate::machine::{Entropy, Pacing};
use crate::name::{LockName, RequestId};
use crate::protocol::calls::{LockCalls, Target};
use crate::protocol::gateway::{Gateway, Response};
use crate::protocol::script::{Publish, Script, scripts};
use crate::time::Instant;
use crate::timing::{WaitPolicy, WaitTime};

pub(super) const ONLY: EndpointId = EndpointId(0);
pub(super) const SCOPE: ScopeId = ScopeId::GLOBAL;
/// More timeouts than any test waits for in turn.
const TIMEOUTS_MAX: u32 = 10_000;
pub(super) const SUBSCRIBED: &str = "data: subscribe,redisson_lock__channel:{job},1\n\n";
pub(super) const RELEASED: &str = "data: message,redisson_lock__channel:{job},0\n\n";

/// A client of one gateway. The tests are the gateway, Redis and the clock.
pub(super) struct Client {
    pub(super) engine: Engine,
    pub(super) now: Instant,
    /// The number of times that entropy was drawn.
    draws: u8,
}

/// The words of a command: the verb, the hash of a script, its number of keys, keys and arguments.
#[derive(Debug)]
pub(super) struct Command(pub(super) Vec<String>);

/// A request that the engine has sent.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) id: TransmitId,
    /// Its gateway.
    pub(super) to: EndpointId,
    /// One command, or several of a pipeline.
    pub(super) commands: Vec<Command>,
}

pub(super) fn a_minute() -> WaitPolicy {
    WaitPolicy::UpTo(WaitTime::new(Duration::from_secs(60)).unwrap())
}

pub(super) fn lock(name: &str) -> Target {
    Target::Lock(LockCalls::new(LockName::parse(name).unwrap(), Publish::Plain))
}

impl Command {
    pub(super) fn runs(&self, script: &Script) -> bool {
        self.0[1] == script.sha1(false)
    }

    pub(super) fn args(&self) -> &[String] {
        let keys: usize = self.0[2].parse().unwrap();
        &self.0[3 + keys..]
    }

    pub(super) fn owner(&self) -> &str {
        &self.args()[4]
    }

    /// The reply with this code, whose echo is the request id.
    pub(super) fn reply(&self, code: i8, value: &str, ms: u32) -> String {
        format!(r#"{{"result":[{code},"{value}",{ms},1700000000000,"{}"]}}"#, self.args()[0])
    }

    pub(super) fn granted(&self) -> String {
        assert!(self.runs(&scripts::LOCK_ACQUIRE), "{self:?}");
        self.reply(1, "1795276611386445", 30_000)
    }

    pub(super) fn busy(&self) -> String {
        assert!(self.runs(&scripts::LOCK_ACQUIRE), "{self:?}");
        self.reply(0, "1", 600_000)
    }

    /// The reply to a renewal that Redis has executed.
    pub(super) fn renewed(&self) -> String {
        assert!(self.runs(&scripts::LOCK_RENEW), "{self:?}");
        self.reply(1, "1795276611386445", 30_000)
    }

    pub(super) fn inspected(&self, last_token: u64) -> String {
        assert!(self.runs(&scripts::LOCK_INSPECT), "{self:?}");
        self.reply(0, &format!("{last_token},0,0"), 0)
    }
}

impl Sent {
    /// The only command.
    pub(super) fn command(&self) -> &Command {
        assert_eq!(self.commands.len(), 1);
        &self.commands[0]
    }
}

impl Client {
    pub(super) fn new() -> Self {
        Self::with_streams(1)
    }

    /// A client that may have so many streams open.
    pub(super) fn with_streams(max: usize) -> Self {
        let mut engine = Engine::new();
        engine.add_endpoint(Gateway::upstash("http://localhost", "t").unwrap(), max);
        Self { engine, now: Instant::from_millis(1_000, 50_000), draws: 0 }
    }

    pub(super) fn with<R>(&mut self, change: impl FnOnce(&mut Engine, &mut Context<'_>) -> R) -> R {
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
    pub(super) fn acquire(&mut self, name: &str) -> OpId {
        self.acquire_for(name, None)
    }

    /// Begins to acquire a lock that an owner can acquire again, and waits for it at most a minute.
    pub(super) fn acquire_for(&mut self, name: &str, owner: Option<OwnerHandle>) -> OpId {
        let member = MemberSpec { endpoint: ONLY, target: lock(name), pacing: Pacing::Jittered };
        let spec = Arc::new(self.engine.one_lock(member, None, Side::Whole, true));
        let policy = AcquirePolicy::new(HoldTime::AsUsual, a_minute(), None);
        self.with(|engine, cx| engine.acquire(SCOPE, spec, (policy, owner), false, cx))
    }

    /// Begins to acquire several locks at one gateway, and waits for them at most a minute.
    pub(super) fn acquire_all(&mut self, names: &[&str]) -> OpId {
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
    pub(super) fn inspect(&mut self, name: &str) -> OpId {
        let target = lock(name);
        let call = |request: RequestId| target.inspect(request, None);
        self.with(|engine, cx| engine.query(SCOPE, ONLY, call, cx))
    }

    /// Acquires a free lock for 30 seconds, which count from now, for an owner if there is one.
    pub(super) fn hold(&mut self, name: &str, owner: Option<OwnerHandle>) -> HoldId {
        let op = self.acquire_for(name, owner);
        let sent = self.sent();
        self.respond(&sent, &sent.command().granted());
        self.acquired(op)
    }

    /// Takes the outcome of an acquisition that was granted.
    pub(super) fn acquired(&mut self, op: OpId) -> HoldId {
        match self.engine.take_outcome(op) {
            Some(Outcome::Acquired(Ok(hold))) => hold,
            other => panic!("{other:?}"),
        }
    }

    /// Lets this time pass.
    pub(super) fn pass(&mut self, seconds: u64) {
        self.now = self.now + Duration::from_secs(seconds);
        self.with(|engine, cx| engine.handle_timeout(SCOPE, cx));
    }

    pub(super) fn keep(&mut self, hold: HoldId) -> OpId {
        self.with(|engine, cx| engine.keep(SCOPE, hold, cx))
    }

    pub(super) fn release(&mut self, hold: HoldId) -> OpId {
        self.with(|engine, cx| engine.release(SCOPE, hold, false, cx))
    }

    pub(super) fn detach(&mut self, op: OpId) {
        self.with(|engine, cx| engine.detach(op, cx));
    }

    /// The next request, after those and the streams that the engine aborts.
    pub(super) fn poll_sent(&mut self) -> Option<Sent> {
        loop {
            match self.engine.poll_transmit(SCOPE)? {
                Transmit::Send { id, to, request } => {
                    let commands: Vec<Vec<String>> = if request.url.ends_with("pipeline") {
                        serde_json::from_str(&request.body).unwrap()
                    } else {
                        vec![serde_json::from_str(&request.body).unwrap()]
                    };
                    let commands = commands.into_iter().map(Command).collect();
                    return Some(Sent { id, to, commands });
                }
                Transmit::Abort { .. } | Transmit::Close { .. } => {}
                other @ Transmit::Open { .. } => panic!("{other:?}"),
            }
        }
    }

    pub(super) fn sent(&mut self) -> Sent {
        self.poll_sent().expect("a request")
    }

    /// The stream that the engine opens next.
    pub(super) fn opened(&mut self) -> StreamId {
        self.opened_for("job")
    }

    /// The stream that the engine opens next, after those that it closes: one for this lock.
    pub(super) fn opened_for(&mut self, name: &str) -> StreamId {
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
    pub(super) fn wait_for(&mut self, name: &str) -> OpId {
        let op = self.acquire(name);
        let sent = self.sent();
        let busy = sent.command().busy();
        self.respond(&sent, &busy);
        self.now = self.now + Duration::from_millis(1);
        op
    }

    pub(super) fn respond(&mut self, sent: &Sent, body: &str) {
        let response = Response::new(200, body);
        self.with(|engine, cx| engine.handle_response(sent.id, Ok(response), cx));
    }

    /// Responds to the requests of an operation until it is over. `reply` returns the reply of a
    /// gateway to a command; requests without a reply fail.
    pub(super) fn serve(
        &mut self,
        op: OpId,
        mut reply: impl FnMut(EndpointId, &Command) -> Option<String>,
    ) {
        while !self.engine.is_over(op) {
            let sent = self.sent_within(Duration::from_secs(60)).expect("a request or the end");
            let replies: Vec<Option<String>> =
                sent.commands.iter().map(|command| reply(sent.to, command)).collect();
            match replies.into_iter().collect::<Option<Vec<String>>>().as_deref() {
                Some([one]) => self.respond(&sent, one),
                Some(several) => self.respond(&sent, &format!("[{}]", several.join(","))),
                None => self.fail(&sent),
            }
        }
    }

    /// Lets a request fail, which may have been executed.
    pub(super) fn fail(&mut self, sent: &Sent) {
        let broken = Err(FailureKind::Broken);
        self.with(|engine, cx| engine.handle_response(sent.id, broken, cx));
    }

    pub(super) fn receive(&mut self, stream: StreamId, text: &str) {
        let input = StreamInput::Bytes(text.as_bytes());
        self.with(|engine, cx| engine.handle_stream(stream, input, cx));
    }

    /// Lets time pass until the engine has a request to send, but at most for `limit`.
    pub(super) fn sent_within(&mut self, limit: Duration) -> Option<Sent> {
        let end = self.now + limit;
        for _ in 0..TIMEOUTS_MAX {
            if let Some(sent) = self.poll_sent() {
                return Some(sent);
            }
            self.now = self.engine.poll_timeout(SCOPE).filter(|until| end.is_later(*until))?;
            self.with(|engine, cx| engine.handle_timeout(SCOPE, cx));
        }
        panic!("a timeout has no effect")
    }

    /// Replies to the release of a hold, and checks that the client then has nothing left to do.
    pub(super) fn confirm_release(&mut self, release: &Sent) {
        let released = release.command().reply(1, "0", 0);
        self.respond(release, &released);
        assert!(self.poll_sent().is_none());
        assert!(self.engine.is_idle(SCOPE));
    }
}
