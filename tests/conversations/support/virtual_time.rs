//! A small language for conversations with a machine: no event loop, no I/O, and a time that passes when told to.
//!
//! ```text
//! talk(acquire).asks("lock_acquire").hears(busy(3_000)).waits(Wake::BackOff).wakes().asks("lock_acquire")...
//! ```
//!
//! After each thing that happens the machine is polled until it waits or is done, as a driver does.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::time::Duration;

use edgelatch::error::{FailureKind, Refusal};
use edgelatch::machine::{CallId, Endpoint, Input, Machine, Output, Wake};
use edgelatch::protocol::calls::Topic;
use edgelatch::protocol::exchange::{Answer, Exchange, Step};
use edgelatch::protocol::gateway::{Gateway, Memory, Response};
use edgelatch::protocol::reply::{Code, Reply, ServerClock};
use edgelatch::protocol::script::ScriptCall;
use edgelatch::time::Instant;
use edgelatch::timing::Replicas;

/// What Redis' clock shows when a conversation begins, in milliseconds since 1970.
pub(crate) const SERVER_START: u64 = 1_700_000_000_000;

/// The two clocks of the host when a conversation begins. They have no epoch in common with the server's.
pub(crate) const START: Instant = Instant::from_millis(START_MONOTONIC, START_WALL);
const START_MONOTONIC: u64 = 5_000;
const START_WALL: u64 = 9_000_000;

/// A machine, and what it was heard to say.
pub(crate) struct Talk<M: Machine> {
    machine: M,
    /// How far each clock has gone since the start.
    monotonic_ms: u64,
    wall_ms: u64,
    server_ms: u64,
    /// Calls that no test line has taken notice of yet.
    unheard: VecDeque<(CallId, ScriptCall)>,
    /// All calls.
    calls: Vec<(CallId, ScriptCall)>,
    /// Which gateway each of them went to.
    places: Vec<usize>,
    wait: Option<(Instant, Wake)>,
    /// What it listens to, and at which gateway.
    listens: Option<(usize, Topic)>,
    outcome: Option<M::Outcome>,
}

/// What Redis says: code, value, milliseconds.
#[derive(Clone, Debug)]
pub(crate) struct Says(pub(crate) Code, pub(crate) String, pub(crate) i64);

/// Begins at [`START`].
pub(crate) fn talk<M: Machine>(machine: M) -> Talk<M> {
    let (unheard, calls) = (VecDeque::new(), Vec::new());
    let mut begun = Talk {
        machine,
        monotonic_ms: 0,
        wall_ms: 0,
        server_ms: SERVER_START,
        unheard,
        calls,
        places: Vec::new(),
        wait: None,
        listens: None,
        outcome: None,
    };
    begun.drain();
    begun
}

/// What a client knows that has heard from Redis just before a conversation.
pub(crate) const fn known_clock() -> ServerClock {
    ServerClock::new(SERVER_START, START)
}

impl<M: Machine> Talk<M> {
    /// The machine has made exactly one call, of this script, since the last line that looked.
    #[track_caller]
    pub(crate) fn asks(mut self, script: &str) -> Self {
        let asked: Vec<_> = self.unheard.drain(..).map(|(_, call)| call.script().name).collect();
        assert_eq!(asked, [script], "it waits {:?}", self.wait);
        self
    }

    /// The machine has made exactly these calls, to these gateways, since the last line that looked.
    #[track_caller]
    pub(crate) fn asks_of(mut self, wanted: &[(usize, &str)]) -> Self {
        let new = self.unheard.len();
        let places = self.places[self.places.len() - new..].to_vec();
        let scripts = self.unheard.drain(..).map(|(_, call)| call.script().name);
        let mut asked: Vec<_> = places.into_iter().zip(scripts).collect();
        asked.sort_unstable();
        assert_eq!(asked, wanted, "it waits {:?}", self.wait);
        self
    }

    /// The Redis behind this gateway answers its newest call.
    pub(crate) fn hears_from(self, place: usize, says: Says) -> Self {
        let call = self.newest_of(place).0;
        self.hears_of(call, says)
    }

    /// The newest call to this gateway ends without an answer.
    pub(crate) fn fails_at(mut self, place: usize, kind: FailureKind) -> Self {
        let call = self.newest_of(place).0;
        self.tell(Input::Failed { call, kind });
        self
    }

    /// The newest call to this gateway is refused with this error of Redis.
    pub(crate) fn refused_by(mut self, place: usize, error: &str) -> Self {
        let (call, script) = self.newest_of(place).clone();
        self.tell(Input::Refused { call, refusal: refusal(&script, error) });
        self
    }

    /// The newest call to this gateway.
    fn newest_of(&self, place: usize) -> &(CallId, ScriptCall) {
        let at = self.places.iter().rposition(|other| *other == place);
        &self.calls[at.expect("it was asked")]
    }

    /// An argument of the newest call to this gateway, by its number in the script's header.
    pub(crate) fn arg_at(&self, place: usize, number: usize) -> &str {
        self.newest_of(place).1.args().get(number - 1).map_or("", String::as_str)
    }

    /// The machine has made no call since the last line that looked, and waits for this.
    #[track_caller]
    pub(crate) fn waits(self, why: Wake) -> Self {
        assert_eq!(self.unheard.len(), 0, "{:?}", self.unheard);
        assert_eq!(self.wait.map(|(_, why)| why), Some(why));
        self
    }

    /// It listens to this channel of this gateway.
    #[track_caller]
    pub(crate) fn listens_to(self, place: usize, channel: &str) -> Self {
        let listens = self.listens.as_ref().map(|(place, topic)| (*place, topic.channel()));
        assert_eq!(listens, Some((place, channel)));
        self
    }

    /// Whether it has said that it wants to listen.
    pub(crate) const fn is_listening(&self) -> bool {
        self.listens.is_some()
    }

    /// At which gateway it listens.
    pub(crate) fn listens_at(&self) -> Option<usize> {
        self.listens.as_ref().map(|(place, _)| *place)
    }

    /// Redis answers the newest call.
    pub(crate) fn hears(self, says: Says) -> Self {
        let call = self.newest();
        self.hears_of(call, says)
    }

    /// Redis answers this call.
    pub(crate) fn hears_of(mut self, call: CallId, says: Says) -> Self {
        let Says(code, value, ms) = says;
        let reply = Reply { code, value, ms, server_ms: self.server_ms, acknowledged: None };
        self.tell(Input::Reply { call, reply });
        self
    }

    /// The Redis behind this gateway answers its newest call, and so many replicas had it then.
    pub(crate) fn hears_replicated(
        mut self,
        place: usize,
        says: Says,
        acknowledged: Option<u32>,
    ) -> Self {
        let (call, Says(code, value, ms)) = (self.newest_of(place).0, says);
        let reply = Reply { code, value, ms, server_ms: self.server_ms, acknowledged };
        self.tell(Input::Reply { call, reply });
        self
    }

    /// The newest call ends without an answer.
    pub(crate) fn fails(mut self, kind: FailureKind) -> Self {
        let call = self.newest();
        self.tell(Input::Failed { call, kind });
        self
    }

    /// Nothing is heard of the calls to these gateways until it is over.
    pub(crate) fn unheard(mut self, places: &[usize], kind: FailureKind) -> Self {
        for _ in 0..1_000 {
            self = places.iter().fold(self, |it, place| it.fails_at(*place, kind));
            if self.is_over() {
                return self;
            }
            self = self.wakes();
        }
        panic!("it never ends: {:?}", self.scripts());
    }

    /// The newest call is refused with this error of Redis.
    pub(crate) fn refused(mut self, error: &str) -> Self {
        let (call, script) = self.calls.last().cloned().unwrap();
        self.tell(Input::Refused { call, refusal: refusal(&script, error) });
        self
    }

    /// Time passes up to what the machine waits for, and it is woken.
    pub(crate) fn wakes(self) -> Self {
        let ms = self.wait_ms();
        self.passes(ms)
    }

    /// Time passes on all clocks, and the machine is woken.
    pub(crate) fn passes(self, ms: u64) -> Self {
        self.travels(ms).woken()
    }

    /// Time passes on all clocks while something is under way; nobody wakes the machine.
    pub(crate) fn travels(mut self, ms: u64) -> Self {
        self.server_ms += ms;
        self.clocks(ms, ms)
    }

    /// The clocks of the host go on by different amounts.
    pub(crate) fn clocks(mut self, monotonic_ms: u64, wall_ms: u64) -> Self {
        self.monotonic_ms += monotonic_ms;
        self.wall_ms += wall_ms;
        self
    }

    /// Somebody thinks that time has passed.
    pub(crate) fn woken(mut self) -> Self {
        self.tell(Input::Woken);
        self
    }

    /// The caller does not want it any more.
    pub(crate) fn cancelled(mut self) -> Self {
        self.tell(Input::Cancelled);
        self
    }

    /// Tells the machine one thing and polls it.
    pub(crate) fn tell(&mut self, input: Input) {
        self.machine.handle(input, self.now());
        self.drain();
    }

    /// It is over; no call was made since the last line that looked.
    #[track_caller]
    pub(crate) fn ends(self) -> M::Outcome
    where
        M::Outcome: Debug,
    {
        assert_eq!(self.unheard.len(), 0, "{:?}", self.unheard);
        self.outcome.unwrap_or_else(|| panic!("not over: it waits {:?}", self.wait))
    }

    pub(crate) const fn is_over(&self) -> bool {
        self.outcome.is_some()
    }

    pub(crate) const fn outcome(&self) -> Option<&M::Outcome> {
        self.outcome.as_ref()
    }

    /// What the clocks of the host show.
    pub(crate) fn now(&self) -> Instant {
        Instant::from_millis(START_MONOTONIC + self.monotonic_ms, START_WALL + self.wall_ms)
    }

    /// The machine itself.
    pub(crate) const fn machine(&self) -> &M {
        &self.machine
    }

    /// For how long the machine waits now.
    pub(crate) fn wait_ms(&self) -> u64 {
        let (until, _) = self.wait.expect("it is not over");
        u64::try_from(self.now().until(until).as_millis()).unwrap()
    }

    /// Whether what it waits for has come, so that whoever drives it would wake it.
    pub(crate) fn is_due(&self) -> bool {
        self.wait.is_some_and(|(until, _)| self.now().has_reached(until))
    }

    /// Whether it has made a call that nobody has looked at.
    pub(crate) fn asks_now(&self) -> bool {
        !self.unheard.is_empty()
    }

    pub(crate) const fn why(&self) -> Option<Wake> {
        match self.wait {
            Some((_, why)) => Some(why),
            None => None,
        }
    }

    /// How long the conversation has lasted.
    pub(crate) const fn elapsed_ms(&self) -> u64 {
        self.server_ms - SERVER_START
    }

    /// Which call is the newest.
    pub(crate) fn newest(&self) -> CallId {
        self.calls.last().expect("a call was made").0
    }

    /// How many calls were made.
    pub(crate) const fn count(&self) -> usize {
        self.calls.len()
    }

    /// Which calls wait for replicas, how many, and for how many milliseconds: `0` is the first of all.
    pub(crate) fn awaits(&self) -> Vec<Option<(u8, u128)>> {
        let told = |(replicas, within): (Replicas, Duration)| (replicas.get(), within.as_millis());
        self.calls.iter().map(|(_, call)| call.replicas().map(told)).collect()
    }

    /// The arguments of a call: `0` is the first of all.
    pub(crate) fn args(&self, call: usize) -> &[String] {
        self.calls[call].1.args()
    }

    /// The scripts of all calls.
    pub(crate) fn scripts(&self) -> Vec<&'static str> {
        self.calls.iter().map(|(_, call)| call.script().name).collect()
    }

    fn drain(&mut self) {
        loop {
            match self.machine.poll(self.now()) {
                Output::Call { call, to: Endpoint(place), script } => {
                    assert!(self.outcome.is_none(), "a call after the end");
                    self.places.push(place);
                    self.unheard.push_back((call, script.clone()));
                    self.calls.push((call, script));
                }
                Output::Listen { to: Endpoint(place), topic } => {
                    assert!(self.outcome.is_none(), "it listens after the end");
                    self.listens = Some((place, topic));
                }
                Output::Wait { until, why } => {
                    assert!(self.outcome.is_none(), "a wait after the end");
                    self.wait = Some((until, why));
                    return;
                }
                Output::Done(outcome) => {
                    self.wait = None;
                    self.outcome = Some(outcome);
                    return;
                }
            }
        }
    }
}

/// The refusal that this error of Redis is read as.
fn refusal(script: &ScriptCall, error: &str) -> Refusal {
    let gateway = Gateway::upstash("https://gateway.invalid", "token").unwrap();
    let mut memory = Memory::default();
    let (mut exchange, _) = Exchange::new(&gateway, script, &memory);
    let body = format!("{{\"error\":\"{error}\"}}").into_bytes();
    match exchange.answered(Ok(Response::new(400, body)), &mut memory) {
        Step::Done(Answer::Refused(refusal)) => refusal,
        other => panic!("`{error}` is no refusal: {other:?}"),
    }
}

/// `1` of an acquisition or a renewal.
pub(crate) fn granted(token: u64) -> Says {
    Says(Code::Done, token.to_string(), 30_000)
}

/// `2`: granted before, and extended.
pub(crate) fn already_yours(token: u64) -> Says {
    Says(Code::AlreadyYours, token.to_string(), 30_000)
}

/// `0` of an acquisition.
pub(crate) fn busy(remaining_ms: i64) -> Says {
    Says(Code::No, "1".into(), remaining_ms)
}

/// A code alone.
pub(crate) fn says(code: Code) -> Says {
    Says(code, "0".into(), 0)
}

/// So many milliseconds.
pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
