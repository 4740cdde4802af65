//! The model's state and what can happen in it: two clients, a network that loses, doubles and reorders, and a Redis.
//!
//! Time goes in steps. All that happens within one step happens at one time of the server, while a client's own clock may run
//! ahead of it by a little: never by more than a lease allows for drift, and only until the next step. A message that is never
//! delivered is a lost one.

use std::sync::Arc;
use std::time::Duration;

use edgelatch::machine::CallId;
use edgelatch::protocol::reply::{Cell, Reply, ServerClock};
use edgelatch::protocol::script::ScriptCall;
use edgelatch::time::Instant;
use stateright::{Model, Property};

use super::client::{Client, Leg, Outbox, Plan};
use super::properties;
use super::seen::{Seen, Sights};
use crate::script_model::{Latches, ScriptModel};

/// When the server's clock starts, in milliseconds since 1970.
pub(crate) const EPOCH: u64 = 1_700_000_000_000;
/// How far a client's clock may be ahead: less than 1 % of the shortest lease.
const AHEAD_MAX: Duration = Duration::from_millis(300);

/// One model: who does what, and how far it is searched.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) plans: [Plan; 2],
    /// The times of the server, in seconds since its start.
    pub(crate) times: &'static [u64],
    /// How many messages may be executed once more.
    pub(crate) copies: u8,
    /// How many messages may wait to be executed.
    pub(crate) in_flight: usize,
    /// How often a connection may break.
    pub(crate) breaks: u8,
    pub(crate) latches: Latches,
    /// Whether each request of an acquisition gets a not-after of its own (against rule C8): so many seconds after it is sent.
    pub(crate) moving_bound: Option<u64>,
    /// What was reached while the model was searched: no part of a state.
    pub(crate) sights: Arc<Sights>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    step: u8,
    pub(crate) redis: Arc<ScriptModel>,
    pub(crate) clients: [Arc<Client>; 2],
    ahead_ms: [u64; 2],
    letters: Vec<Letter>,
    answers: Vec<Answer>,
    copies_left: u8,
    breaks_left: u8,
    pub(crate) seen: Seen,
}

/// A request on its way to Redis, or a copy of one that was executed already.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Letter {
    from: (u8, Leg, CallId),
    script: Arc<ScriptCall>,
    not_after: Option<u64>,
    /// Until when a request without a bound may be on its way: its tombstone lives no longer either (C3).
    travels_until: Option<u64>,
    executed: bool,
}

/// A reply on its way back.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Answer {
    to: (u8, Leg, CallId),
    reply: Reply,
}

/// What can happen next; numbers are places in the lists of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Begin(usize),
    Execute(usize),
    Hear(usize),
    Break(usize, Leg, CallId),
    Wake(usize, Leg),
    Cancel(usize),
    Renew(usize),
    Release(usize),
    TimePasses,
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let client = |number: u8| {
            let now = local(number, 0, 0);
            let clock =
                self.plans[usize::from(number)].knows_clock.then(|| ServerClock::new(EPOCH, now));
            Arc::new(Client::new(number, clock))
        };
        let state = State {
            step: 0,
            redis: Arc::new(ScriptModel::new(self.latches)),
            clients: [client(0), client(1)],
            ahead_ms: [0; 2],
            letters: Vec::new(),
            answers: Vec::new(),
            copies_left: self.copies,
            breaks_left: self.breaks,
            seen: Seen::default(),
        };
        // One of them is the first: the other may begin at any time after it.
        self.next_state(&state, Action::Begin(0)).into_iter().collect()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (number, client) in state.clients.iter().enumerate() {
            let plan = &self.plans[number];
            if client.is_idle() && plan.takes_part {
                actions.push(Action::Begin(number));
            }
            let wakes = client
                .deadlines()
                .filter(|(_, until)| self.wait_ms(state, number, *until).is_some());
            actions.extend(wakes.map(|(leg, _)| Action::Wake(number, leg)));
            if state.breaks_left > 0 {
                actions
                    .extend(client.under_way().map(|(leg, call)| Action::Break(number, leg, call)));
            }
            if client.is_acquiring() && plan.cancels {
                actions.push(Action::Cancel(number));
            }
            if client.may_release() && plan.releases > 0 {
                actions.push(Action::Release(number));
            }
            if client.may_renew() && plan.renews > 0 {
                actions.push(Action::Renew(number));
            }
        }
        actions.extend((0..state.letters.len()).map(Action::Execute));
        actions.extend((0..state.answers.len()).map(Action::Hear));
        if usize::from(state.step) + 1 < self.times.len() {
            actions.push(Action::TimePasses);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Begin(number) => {
                let plan = &self.plans[number];
                self.act(&mut state, number, |client, now| client.begin(plan, now))?;
            }
            Action::Execute(place) => self.execute(&mut state, place),
            Action::Hear(place) => {
                let Answer { to: (number, leg, call), reply } = state.answers.remove(place);
                self.act(&mut state, usize::from(number), |client, now| {
                    client.hear(leg, call, reply, now)
                })?;
            }
            Action::Break(number, leg, call) => {
                state.breaks_left -= 1;
                self.act(&mut state, number, |client, now| client.broken(leg, call, now))?;
            }
            Action::Wake(number, leg) => {
                let (_, until) =
                    last.clients[number].deadlines().find(|(other, _)| *other == leg)?;
                state.ahead_ms[number] += self.wait_ms(last, number, until)?;
                self.act(&mut state, number, |client, now| client.woken(leg, now))?;
            }
            Action::Cancel(number) => self.act(&mut state, number, Client::cancelled)?,
            Action::Renew(number) => {
                let lease = self.plans[number].lease;
                self.act(&mut state, number, |client, now| client.renew(lease, now))?;
            }
            Action::Release(number) => self.act(&mut state, number, Client::release)?,
            Action::TimePasses => {
                state.step += 1;
                state.ahead_ms = [0; 2];
                let now = self.server_ms(&state);
                Arc::make_mut(&mut state.redis).expire(now);
            }
        }
        self.forget(&mut state);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }

    fn within_boundary(&self, state: &State) -> bool {
        state.letters.iter().filter(|letter| !letter.executed).count() <= self.in_flight
    }
}

impl World {
    /// The server's clock.
    pub(crate) fn server_ms(&self, state: &State) -> u64 {
        EPOCH + self.times[usize::from(state.step)] * 1000
    }

    /// A client's clocks.
    pub(crate) fn now(&self, state: &State, number: usize) -> Instant {
        let since_start = self.times[usize::from(state.step)] * 1000;
        local(u8::try_from(number).unwrap(), since_start, state.ahead_ms[number])
    }

    /// How much further a client's clock has to go to reach a time, if it may go so far before the next step.
    fn wait_ms(&self, state: &State, number: usize, until: Instant) -> Option<u64> {
        let wait = self.now(state, number).until(until);
        let ahead = Duration::from_millis(state.ahead_ms[number]) + wait;
        (wait.is_zero() || ahead <= AHEAD_MAX).then_some(u64::try_from(wait.as_millis()).unwrap())
    }

    /// Lets a client do something and sends what it has to send; `None` when that leaves the bounds of the model.
    fn act(
        &self,
        state: &mut State,
        number: usize,
        act: impl FnOnce(&mut Client, Instant) -> Outbox,
    ) -> Option<()> {
        let now = self.now(state, number);
        let client = Arc::make_mut(&mut state.clients[number]);
        let outbox = act(client, now);
        if !client.is_within(&self.plans[number]) {
            return None;
        }
        self.sights.client(client);
        let server_ms = self.server_ms(state);
        for (leg, call, script) in outbox {
            let mut not_after = script.args()[1].parse().ok();
            if let (Some(seconds), Some(_), Leg::Acquire) = (self.moving_bound, not_after, leg) {
                not_after = Some(server_ms + seconds * 1000);
            }
            let keep: u64 = script.args()[2].parse().unwrap();
            let travels_until = if not_after.is_none() { Some(server_ms + keep) } else { None };
            let from = (u8::try_from(number).unwrap(), leg, call);
            state.letters.push(Letter { from, script, not_after, travels_until, executed: false });
        }
        Some(())
    }

    fn execute(&self, state: &mut State, place: usize) {
        let now = self.server_ms(state);
        let letter = &mut state.letters[place];
        if letter.executed {
            state.copies_left -= 1;
        }
        letter.executed = true;
        let (to, script) = (letter.from, Arc::clone(&letter.script));
        let cells =
            Arc::make_mut(&mut state.redis).run_until(&script, letter.not_after, now * 1000);
        state.seen.executed(&script, &cells);
        self.sights.executed(&script, &cells, &state.seen);
        let reply = Reply::read(&cells, script.request).expect("the model answers like a script");
        state.answers.push(Answer { to, reply });
    }

    /// Takes out what cannot matter any more, and orders the rest, so that states that are alike are equal.
    fn forget(&self, state: &mut State) {
        let now = self.server_ms(state);
        let State { clients, letters, answers, copies_left, .. } = state;
        let awaited =
            |(number, leg, call): (u8, Leg, CallId)| clients[usize::from(number)].awaits(leg, call);
        answers.retain(|answer| awaited(answer.to));
        letters.retain(|letter| {
            let travels = letter.travels_until.is_none_or(|until| now <= until);
            // Late for good: neither an acquisition nor a renewal writes anything then.
            let late = letter.not_after.is_some_and(|not_after| now > not_after);
            let idle =
                late && !awaited(letter.from) && letter.script.script().name != "lock_release";
            travels && !idle && !(letter.executed && *copies_left == 0)
        });
        letters.sort_by_key(|letter| (letter.from, letter.executed));
        answers.sort_by_key(|answer| answer.to);
        answers.dedup();
    }
}

/// What the clocks of a client show: they have nothing to do with the server's, nor with each other.
fn local(number: u8, since_start_ms: u64, ahead_ms: u64) -> Instant {
    let passed = since_start_ms + ahead_ms;
    Instant::from_millis(5_000 + passed, 900_000_000 * u64::from(number + 1) + passed)
}

impl State {
    /// The owner fields in the lock.
    pub(crate) fn fields(&self, server_ms: u64) -> impl Iterator<Item = &str> {
        self.redis.fields(super::client::LOCK, server_ms)
    }
}

/// The cells of a reply's code and value.
pub(crate) fn verdict(cells: &[Cell]) -> (i64, &str) {
    match cells {
        [Cell::Int(code), Cell::Text(value), ..] => (*code, value),
        _ => panic!("a reply begins with a number and a text"),
    }
}
