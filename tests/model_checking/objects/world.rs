//! The model's state and actions: clients, a network that loses, duplicates and reorders messages,
//! and a Redis.
//!
//! Time advances in steps, to each of `World::times`. All events within one step happen at one time
//! of the server, while a client's own clock may be ahead of it: by at most `AHEAD_MAX`, and only
//! until the next step. The search tries every order of events, so losses and crashes need no
//! action: in some runs a message is never delivered, and in some a client never acts again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use edgelatch_proto::machine::CallId;
use edgelatch_proto::name::OwnerId;
use edgelatch_proto::protocol::reply::{Reply, ServerClock};
use edgelatch_proto::time::Instant;
use stateright::{Model, Property};

use super::client::{Client, TOKEN_HANDOVER, TrustedHold};
use super::network::{Answer, DeliveryLimit, From, SentRequest};
use super::plan::{JAVA, NAME, Operation, Plan};
use super::reachability::Reachability;
use super::run_record::{Executed, RunRecord};
use super::stage::{MachineKind, Outbox};
use super::vacuity::Vacuity;
use crate::model_checking::hashed::Hashed;
use test_support::script_model::fair_head::Rule;
use test_support::script_model::{Latches, ScriptModel, Value};

/// When the server's clock starts, in milliseconds since 1970.
pub(crate) const EPOCH: u64 = 1_700_000_000_000;
/// How far a client's clock may be ahead: less than 1 % of the shortest lease.
const AHEAD_MAX: Duration = Duration::from_millis(300);

/// One model: its clients, and the limits of the search.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) plans: Vec<Plan>,
    /// The client that begins first, for models in which the order does not matter.
    pub(crate) first: Option<usize>,
    /// The number of permits at the start, or the count of the latch.
    pub(crate) number: Option<i64>,
    /// The number of seconds for which a Java thread holds the lock at the start; `None` if it is
    /// free.
    pub(crate) java_holds_for: Option<u64>,
    /// The times of the server, in seconds since its start.
    pub(crate) times: &'static [u64],
    /// The number of messages that may be executed a second time.
    pub(crate) copies: u8,
    /// The number of messages that may be in flight at a time, without those executed already.
    pub(crate) in_flight: usize,
    /// The number of connections that may break.
    pub(crate) breaks: u8,
    pub(crate) latches: Latches,
    /// The rule that the scripts ignore, so that the search must find its counter-example: by name,
    /// or as a rule of the fair lock's queue.
    pub(crate) without: Option<&'static str>,
    pub(crate) without_fair: Option<Rule>,
    /// Gives each request a bound of its own, this number of seconds after it is sent (against rule
    /// C8).
    pub(crate) moving_bound: Option<u64>,
    pub(crate) delivery_limit: DeliveryLimit,
    /// Replaces the upper bound that a client computes for a hold with an unknown outcome (against
    /// rule C9).
    pub(crate) held_at_most: Option<Duration>,
    /// The properties that must hold in every state.
    pub(crate) properties: fn() -> Vec<Property<Self>>,
    /// The properties that this model cannot violate, even without the rules of the scripts.
    pub(crate) vacuous: &'static [&'static str],
    /// The events that the search has reached: not a part of a state.
    pub(crate) reached: Arc<Reachability>,
    /// The properties that no state of the search could violate: not a part of a state.
    pub(crate) vacuity: Arc<Vacuity>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    step: u8,
    pub(crate) redis: Hashed<ScriptModel>,
    pub(crate) clients: Vec<Hashed<Client>>,
    ahead_ms: Vec<u64>,
    pub(crate) sent_requests: Vec<SentRequest>,
    answers: Vec<Answer>,
    pub(crate) copies_left: u8,
    breaks_left: u8,
    pub(crate) record: Hashed<RunRecord>,
}

/// The possible next events; a number is an index into a list of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Begin(usize),
    Execute(usize),
    DeliverReply(usize),
    Break(usize, MachineKind, CallId),
    Timeout(usize, MachineKind),
    Cancel(usize),
    Renew(usize),
    Release(usize),
    TimePasses,
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let client = |(plan, number): (&Plan, u8)| {
            let now = local(number, 0, 0);
            let clock = plan.knows_clock.then(|| ServerClock::new(EPOCH, now));
            Hashed::new(Client::new(number, plan.operation, clock))
        };
        let state = State {
            step: 0,
            redis: Hashed::new(self.redis()),
            clients: self.plans.iter().zip(0..).map(client).collect(),
            ahead_ms: vec![0; self.plans.len()],
            sent_requests: Vec::new(),
            answers: Vec::new(),
            copies_left: self.copies,
            breaks_left: self.breaks,
            record: Hashed::default(),
        };
        match self.first {
            Some(first) => self.next_state(&state, Action::Begin(first)).into_iter().collect(),
            None => vec![state],
        }
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        // A search requests the actions of each state that it visits.
        self.vacuity.visit(self, state);
        for (number, client) in state.clients.iter().enumerate() {
            let plan = &self.plans[number];
            if client.is_idle() && self.can_begin(state, number) {
                actions.push(Action::Begin(number));
            }
            let wakes = client
                .deadlines()
                .filter(|(_, until)| self.wait_ms(state, number, *until).is_some());
            actions.extend(wakes.map(|(kind, _)| Action::Timeout(number, kind)));
            if state.breaks_left > 0 {
                actions.extend(
                    client.under_way().map(|(kind, call)| Action::Break(number, kind, call)),
                );
            }
            if client.is_acquiring() && plan.cancels {
                actions.push(Action::Cancel(number));
            }
            if client.may_release() && plan.releases > 0 {
                actions.push(Action::Release(number));
            }
            if client.may_renew() && plan.renewals_on_demand > 0 {
                actions.push(Action::Renew(number));
            }
        }
        actions.extend((0..state.sent_requests.len()).map(Action::Execute));
        actions.extend((0..state.answers.len()).map(Action::DeliverReply));
        if usize::from(state.step) + 1 < self.times.len() {
            actions.push(Action::TimePasses);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Begin(number) => {
                let (plan, outer) = (&self.plans[number], self.outer_writer(last, number));
                self.act(&mut state, number, |client, now| client.begin(plan, outer, now))?;
            }
            Action::Execute(place) => self.execute(&mut state, place),
            Action::DeliverReply(place) => {
                let Answer { to: (number, kind, call), reply } = state.answers.remove(place);
                self.act(&mut state, usize::from(number), |client, now| {
                    client.on_reply(kind, call, Reply::clone(&reply), now)
                })?;
            }
            Action::Break(number, kind, call) => {
                state.breaks_left -= 1;
                self.act(&mut state, number, |client, now| {
                    client.on_connection_broken(kind, call, now)
                })?;
            }
            Action::Timeout(number, kind) => {
                let (_, until) =
                    last.clients[number].deadlines().find(|(other, _)| *other == kind)?;
                state.ahead_ms[number] += self.wait_ms(last, number, until)?;
                self.act(&mut state, number, |client, now| client.on_timeout(kind, now))?;
            }
            Action::Cancel(number) => self.act(&mut state, number, Client::cancel)?,
            Action::Renew(number) => {
                let lease = self.plans[number].lease;
                self.act(&mut state, number, |client, now| client.renew(lease, now))?;
            }
            Action::Release(number) => {
                let inner = self.inner_reader(last, number);
                self.act(&mut state, number, |client, now| client.release(inner, now))?;
            }
            Action::TimePasses => {
                state.step += 1;
                state.ahead_ms.fill(0);
                let now = self.server_ms(&state);
                Hashed::make_mut(&mut state.redis).expire(now);
            }
        }
        self.drop_ineffective(&mut state);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        (self.properties)()
    }

    fn within_boundary(&self, state: &State) -> bool {
        state.sent_requests.iter().filter(|sent| !sent.executed).count() <= self.in_flight
    }
}

impl World {
    /// Redis at the start.
    fn redis(&self) -> ScriptModel {
        let mut redis = ScriptModel::new(self.latches);
        (redis.without, redis.without_fair) = (self.without, self.without_fair);
        if let Some(number) = self.number {
            redis.put(NAME, Value::Text(number.to_string()), None);
        }
        if let Some(held_for) = self.java_holds_for {
            let hold = BTreeMap::from([(JAVA.to_owned(), "1".to_owned())]);
            redis.put(NAME, Value::Hash(hold), Some(EPOCH + held_for * 1000));
        }
        redis
    }

    /// The server's time, in milliseconds since 1970.
    pub(crate) fn server_ms(&self, state: &State) -> u64 {
        EPOCH + self.times[usize::from(state.step)] * 1000
    }

    /// The time on a client's clocks.
    pub(crate) fn now(&self, state: &State, number: usize) -> Instant {
        let since_start = self.times[usize::from(state.step)] * 1000;
        local(u8::try_from(number).unwrap(), since_start, state.ahead_ms[number])
    }

    /// The clients that trust a hold, and these holds: by the client's own clock the lease has not
    /// expired, so its program relies on the hold.
    pub(crate) fn trusting_clients<'a>(
        &'a self,
        state: &'a State,
    ) -> impl Iterator<Item = (usize, TrustedHold<'a>)> {
        state.clients.iter().enumerate().filter_map(|(number, client)| {
            Some((number, client.trusted_hold(self.now(state, number))?))
        })
    }

    /// Whether two clients may hold at the same time.
    pub(crate) fn is_compatible(&self, a: usize, b: usize) -> bool {
        self.plans[a].operation.is_compatible(self.plans[b].operation, (a, b))
    }

    fn can_begin(&self, state: &State, number: usize) -> bool {
        let plan = &self.plans[number];
        let inner = matches!(plan.operation, Operation::NestedRead(_));
        plan.is_active && (!inner || self.outer_writer(state, number).is_some())
    }

    /// The owner of the unexpired write hold of the same program.
    fn outer_writer(&self, state: &State, number: usize) -> Option<OwnerId> {
        let Operation::NestedRead(writer) = self.plans[number].operation else { return None };
        let trusted = state.clients[writer].trusted_hold(self.now(state, writer))?;
        Some(trusted.grant.owner)
    }

    /// The owner of the unexpired read hold of the same program inside its write hold.
    fn inner_reader(&self, state: &State, number: usize) -> Option<OwnerId> {
        let inner = |(_, plan): &(usize, &Plan)| plan.operation == Operation::NestedRead(number);
        let (reader, _) = self.plans.iter().enumerate().find(inner)?;
        let trusted = state.clients[reader].trusted_hold(self.now(state, reader))?;
        Some(trusted.grant.owner)
    }

    /// The number of milliseconds by which a client's clock must advance to reach `until`; `None`
    /// if it would be further ahead than the model allows before the next step.
    fn wait_ms(&self, state: &State, number: usize, until: Instant) -> Option<u64> {
        let wait = self.now(state, number).until(until);
        let ahead = Duration::from_millis(state.ahead_ms[number]) + wait;
        (wait.is_zero() || ahead <= AHEAD_MAX).then_some(u64::try_from(wait.as_millis()).unwrap())
    }

    /// Runs one action of a client and sends its calls; returns `None` if the result exceeds the
    /// bounds of the model.
    fn act(
        &self,
        state: &mut State,
        number: usize,
        act: impl FnOnce(&mut Client, Instant) -> Outbox,
    ) -> Option<()> {
        let now = self.now(state, number);
        let client = Hashed::make_mut(&mut state.clients[number]);
        let outbox = act(client, now);
        if !client.is_within(&self.plans[number]) {
            return None;
        }
        self.reached.client(client);
        if let Some(token) = client.handed_over().filter(|_| self.without != Some(TOKEN_HANDOVER)) {
            let inner = |(_, plan): &(_, &Plan)| plan.operation == Operation::NestedRead(number);
            for (reader, _) in self.plans.iter().enumerate().filter(inner) {
                Hashed::make_mut(&mut state.clients[reader]).take_over(token);
            }
        }
        let server_ms = self.server_ms(state);
        for (kind, call, script) in outbox {
            let from = (u8::try_from(number).unwrap(), kind, call);
            state.sent_requests.push(SentRequest::new(from, script, self, server_ms));
        }
        Some(())
    }

    fn execute(&self, state: &mut State, place: usize) {
        let now = self.server_ms(state);
        let sent = &mut state.sent_requests[place];
        if sent.executed {
            state.copies_left -= 1;
        }
        sent.executed = true;
        let (to, script) = (sent.from, sent.script.clone());
        let before = state.redis.clone();
        let redis = Hashed::make_mut(&mut state.redis);
        let cells = redis.run_until(&script, sent.not_after, now * 1000);
        redis.published.clear();
        let run = Executed::new(to.0, &script, &cells, [&before, redis], now);
        let record = Hashed::make_mut(&mut state.record);
        record.executed(&run);
        self.reached.executed(&run, &state.clients[usize::from(to.0)], record);
        let reply = Reply::read(&cells, script.request).expect("the model answers like a script");
        state.answers.push(Answer { to, reply: Hashed::new(reply) });
    }

    /// Removes messages that have no effect any more, and sorts the others, so that equivalent
    /// states are equal.
    fn drop_ineffective(&self, state: &mut State) {
        let now = self.server_ms(state);
        let State { clients, sent_requests, answers, copies_left, .. } = state;
        let awaited = |(number, kind, call): From| clients[usize::from(number)].awaits(kind, call);
        answers.retain(|answer| awaited(answer.to));
        sent_requests
            .retain(|sent| sent.can_have_effect(awaited(sent.from), *copies_left > 0, now));
        sent_requests.sort_by_key(|sent| (sent.from, sent.executed));
        answers.sort_by_key(|answer| answer.to);
        answers.dedup();
    }
}

/// The time on a client's clocks. They are independent of the server's clock and of other clients'
/// clocks.
fn local(number: u8, since_start_ms: u64, ahead_ms: u64) -> Instant {
    let passed = since_start_ms + ahead_ms;
    Instant::from_millis(5_000 + passed, 900_000_000 * u64::from(number + 1) + passed)
}
