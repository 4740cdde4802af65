//! The language in which the conversations are written.

use std::time::Duration;

use edgelatch::LockName;
use edgelatch::error::{FailureKind, Refusal};
use edgelatch::machine::{
    Acquire, AcquireSpec, CallId, Entropy, Grant, Input, Machine, Output, Question, Wake,
};
use edgelatch::protocol::calls::{LockCalls, Target};
use edgelatch::protocol::exchange::{Answer, Exchange, Step};
use edgelatch::protocol::gateway::{Gateway, Memory, Response};
use edgelatch::protocol::reply::{Cell, Reply, ServerClock};
use edgelatch::protocol::script::{Publish, ScriptCall};
use edgelatch::time::Instant;
use edgelatch::timing::{AttemptTime, LeaseTime, Patience, RequestBudget, WaitTime};

/// What Redis' clock shows when a conversation begins.
pub(crate) const SERVER_MS: u64 = 1_700_000_000_000;
/// A token as Redis mints it.
pub(crate) const TOKEN: &str = "1700000000000000";

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// When every conversation begins.
pub(crate) const fn start() -> Instant {
    Instant::from_millis(5_000, 9_000_000)
}

pub(crate) fn target() -> Target {
    Target::Lock(LockCalls::new(LockName::parse("invoice:42").unwrap(), Publish::Plain))
}

pub(crate) fn entropy() -> Entropy {
    Entropy::new([7; 32])
}

pub(crate) fn clock() -> Option<ServerClock> {
    Some(ServerClock::new(SERVER_MS, start()))
}

pub(crate) fn lease(millis: u64) -> LeaseTime {
    LeaseTime::new(ms(millis)).unwrap()
}

/// An acquisition of a 30 s lease, as patient as it is said.
pub(crate) fn spec(patience: Patience) -> AcquireSpec {
    AcquireSpec::new(target(), patience)
}

pub(crate) fn up_to(millis: u64) -> Patience {
    Patience::UpTo(WaitTime::new(ms(millis)).unwrap())
}

pub(crate) fn budget(requests: u32) -> Option<RequestBudget> {
    Some(RequestBudget::new(requests).unwrap())
}

pub(crate) fn acquire(patience: Patience) -> Conversation<Acquire> {
    Conversation::new(Acquire::new(spec(patience), entropy(), clock(), start()))
}

/// A grant that was asked for at the start and answered 10 ms later.
pub(crate) fn grant(lease_time: LeaseTime) -> Grant {
    let spec = AcquireSpec { lease: lease_time, ..spec(Patience::Once) };
    let mut conversation = Conversation::new(Acquire::new(spec, entropy(), clock(), start()));
    conversation.asks("lock_acquire").after(10).hears(1, TOKEN, 0).done().unwrap()
}

/// For how long something may be held by Redis until so many ms after its clock was seen, when so much has passed since. The
/// client's clock may be a fast one: 1 % and 2 ms less have passed, and 1 % and 2 ms more have to pass.
pub(crate) fn held_at_most(until: u64, passed: Duration) -> Duration {
    let drift = |time: Duration| time / 100 + ms(2);
    let held = ms(until) - passed.saturating_sub(drift(passed));
    held + drift(held)
}

/// A refusal in these words, read as from a gateway.
pub(crate) fn refusal(error: &str) -> Refusal {
    let gateway = Gateway::upstash("https://example.com", "token").unwrap();
    let mut memory = Memory::default();
    let call = target().inspect(calls_request(), None);
    let (mut exchange, _) = Exchange::new(&gateway, &call, &memory);
    let body = format!("{{\"error\":\"{error}\"}}").into_bytes();
    let response = Response::new(400, body);
    match exchange.answered(Ok(response), &mut memory) {
        Step::Done(Answer::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

fn calls_request() -> edgelatch::name::RequestId {
    let mut id = None;
    let inspect = |request| {
        id = Some(request);
        target().inspect(request, None)
    };
    drop(Question::new(inspect, AttemptTime::DEFAULT, entropy()));
    id.unwrap()
}

/// A machine, and somebody who talks with it.
pub(crate) struct Conversation<M: Machine> {
    pub(crate) machine: M,
    pub(crate) now: Instant,
    passed: Duration,
    call: Option<(CallId, ScriptCall)>,
    pub(crate) asked: Vec<ScriptCall>,
}

impl<M: Machine + Clone> Conversation<M>
where
    M::Outcome: std::fmt::Debug,
{
    pub(crate) fn new(machine: M) -> Self {
        Self { machine, now: start(), passed: Duration::ZERO, call: None, asked: Vec::new() }
    }

    /// What it does next; that it would listen is not looked at here.
    fn poll(&mut self) -> Output<M::Outcome> {
        loop {
            match self.machine.poll(self.now) {
                Output::Listen { .. } => {}
                output => return output,
            }
        }
    }

    /// It sends this script now, and waits for the answer.
    pub(crate) fn asks(&mut self, script: &str) -> &mut Self {
        match self.poll() {
            Output::Call { call, script: asked, .. } => {
                assert_eq!(asked.script().name, script);
                self.call = Some((call, asked.clone()));
                self.asked.push(asked);
            }
            other => panic!("it does not ask {script}: {other:?}"),
        }
        match self.poll() {
            Output::Wait { why: Wake::ReplyDue | Wake::LeaseEnds, .. } => self,
            other => panic!("it does not wait for the answer: {other:?}"),
        }
    }

    /// Both clocks go on; nobody tells it.
    pub(crate) fn after(&mut self, millis: u64) -> &mut Self {
        self.now = self.now + ms(millis);
        self.passed += ms(millis);
        self
    }

    /// Redis answers the last call.
    pub(crate) fn hears(&mut self, code: i64, value: &str, left: i64) -> &mut Self {
        let (call, script) = self.call.clone().expect("nothing was asked");
        let reply = self.reply(&script, code, value, left);
        self.machine.handle(Input::Reply { call, reply }, self.now);
        self
    }

    pub(crate) fn reply(&self, script: &ScriptCall, code: i64, value: &str, left: i64) -> Reply {
        let server_ms = SERVER_MS + u64::try_from(self.passed.as_millis()).unwrap();
        let cells = [
            Cell::Int(code),
            Cell::Text(value.into()),
            Cell::Int(left),
            Cell::Int(i64::try_from(server_ms).unwrap()),
            Cell::Text(script.args()[0].clone()),
        ];
        Reply::read(&cells, script.request).expect("a reply of five elements")
    }

    /// Redis says no to the last call.
    pub(crate) fn is_refused(&mut self, error: &str) -> &mut Self {
        let (call, _) = self.call.clone().expect("nothing was asked");
        self.machine.handle(Input::Refused { call, refusal: refusal(error) }, self.now);
        self
    }

    /// Nothing is heard of the last call.
    pub(crate) fn fails(&mut self, kind: FailureKind) -> &mut Self {
        let (call, _) = self.call.clone().expect("nothing was asked");
        self.machine.handle(Input::Failed { call, kind }, self.now);
        self
    }

    pub(crate) fn is_cancelled(&mut self) -> &mut Self {
        self.machine.handle(Input::Cancelled, self.now);
        self
    }

    /// Whether it has nothing to do now.
    pub(crate) fn is_waiting(&mut self) -> bool {
        // Asked of a copy: to be asked for a call is to have made it.
        let machine = self.machine.clone();
        let mut copy = Self::new(machine);
        copy.now = self.now;
        matches!(copy.poll(), Output::Wait { .. })
    }

    /// It waits for this reason; how long?
    pub(crate) fn waits(&mut self, reason: Wake) -> Duration {
        match self.poll() {
            Output::Wait { until, why } => {
                assert_eq!(why, reason);
                self.now.until(until)
            }
            other => panic!("it does not wait: {other:?}"),
        }
    }

    /// It waits, and is woken when it wanted to be. Why did it wait?
    pub(crate) fn sleeps(&mut self) -> Wake {
        match self.poll() {
            Output::Wait { until, why } => {
                let pause = self.now.until(until);
                self.after(u64::try_from(pause.as_millis()).unwrap());
                self.machine.handle(Input::Woken, self.now);
                why
            }
            other => panic!("it does not wait: {other:?}"),
        }
    }

    /// It is done, and says so as often as it is asked.
    pub(crate) fn done(&mut self) -> M::Outcome {
        assert!(matches!(self.machine.poll(self.now), Output::Done(_)), "it is not done");
        match self.machine.poll(self.now) {
            Output::Done(outcome) => outcome,
            other => panic!("it was done before: {other:?}"),
        }
    }

    /// An argument of the last call, by its number in the script's header.
    pub(crate) fn arg(&self, number: usize) -> &str {
        &self.asked.last().expect("nothing was asked").args()[number - 1]
    }
}
