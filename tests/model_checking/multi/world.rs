//! The model: clients, a network that loses, duplicates and reorders messages, and a Redis for each
//! node.
//!
//! Time advances in steps, as in `objects::world`. A request that a run never executes is a lost
//! one. A reply arrives when its request is executed, or never.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use edgelatch_proto::error::LossReason;
use edgelatch_proto::machine::LeaseState;
use edgelatch_proto::protocol::reply::{Code, Reply, RespValue, ServerClock};
use edgelatch_proto::protocol::script::ScriptCall;
use edgelatch_proto::time::Instant;
use stateright::{Model, Property};

use super::client::{Client, Outbox, Outcome, owner_prefix};
use super::plan::{MAJORITY, Plan, Rule, name};
use super::reachability::{Reachability, mark};
use super::state::{Action, SentRequest, State};
use crate::model_checking::hashed::Hashed;
use test_support::script_model::{Latches, ScriptModel};

/// When the servers' clocks start, in milliseconds since 1970.
const EPOCH: u64 = 1_700_000_000_000;
/// The code of an acquisition whose owner has ended.
const GONE: i64 = Code::Gone as i64;
/// How far a client's clock may be ahead: less than 1 % of the shortest lease.
const AHEAD_MAX: Duration = Duration::from_millis(300);

pub(crate) const EXCLUSION: &str = "at most one client trusts a hold of each part";
pub(crate) const CONTINUITY: &str = "Redis stores each trusted hold";
pub(crate) const TOKENS: &str = "tokens rise";
pub(crate) const OUTCOME_IS_TRUE: &str =
    "a client with the result that it holds nothing holds nothing";
pub(crate) const HELD_AT_MOST: &str = "a client holds nothing after the bound of its unknown hold";
pub(crate) const LOSS: &str =
    "a client is notified of each loss by the end of its lease, and of nothing else";
pub(crate) const PREFIX: &str = "a waiter holds the parts before the one that it waits for";

/// One model: its clients, and the limits of the search.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) plans: Vec<Plan>,
    /// The times of the servers, in seconds since their start.
    pub(crate) times: &'static [u64],
    /// The number of messages that may be executed a second time, and of replies that may be lost.
    /// Any number of requests may be lost.
    pub(crate) copies: u8,
    pub(crate) losses: u8,
    /// The number of connections that may break while their request stays in flight.
    pub(crate) breaks: u8,
    /// Replaces the upper bound that a client computes for a hold with an unknown outcome (against
    /// rule C9).
    pub(crate) held_at_most: Option<Duration>,
    pub(crate) latches: Latches,
    /// The events that the search has reached: not a part of a state.
    pub(crate) reached: Arc<Reachability>,
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let count = u8::try_from(self.plans.len()).unwrap();
        let state = State {
            step: 0,
            nodes: (0..3).map(|_| Hashed::new(ScriptModel::new(self.latches))).collect(),
            clients: (0..count).map(|number| Hashed::new(Client::new(number))).collect(),
            ahead_ms: vec![0; self.plans.len()],
            sent_requests: Vec::new(),
            copies_left: self.copies,
            losses_left: self.losses,
            breaks_left: self.breaks,
            grants: vec![Vec::new(); 3],
            returned_tokens: Vec::new(),
        };
        self.next_state(&state, Action::Begin(0)).into_iter().collect()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (number, client) in state.clients.iter().enumerate() {
            if client.is_idle() {
                actions.push(Action::Begin(number));
            }
            if client.deadline().is_some_and(|until| self.wait_ms(state, number, until).is_some()) {
                actions.push(Action::Timeout(number));
            }
            if state.breaks_left > 0 {
                actions.extend(client.under_way().map(|call| Action::Break(number, call)));
            }
            if client.is_acquiring() && self.plans[number].cancels {
                actions.push(Action::Cancel(number));
            }
            if client.multi_grant().is_some() {
                actions.push(Action::Release(number));
            }
        }
        for (index, sent) in state.sent_requests.iter().enumerate() {
            actions.push(Action::Execute(index));
            if state.losses_left > 0 && !sent.executed && self.is_awaited(state, sent) {
                actions.push(Action::ExecuteAndLoseReply(index));
            }
        }
        if usize::from(state.step) + 1 < self.times.len() {
            actions.push(Action::TimePasses);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Begin(number) => {
                let clock = ServerClock::new(self.server_ms(last), self.now(last, number));
                self.act(&mut state, number, |client, plan, now| client.begin(plan, clock, now))?;
            }
            Action::Execute(index) => self.execute(&mut state, index, true)?,
            Action::ExecuteAndLoseReply(index) => {
                state.losses_left -= 1;
                self.execute(&mut state, index, false)?;
            }
            Action::Break(number, call) => {
                state.breaks_left -= 1;
                self.act(&mut state, number, |client, plan, now| {
                    client.on_connection_broken(plan, call, now)
                })?;
            }
            Action::Timeout(number) => {
                let until = last.clients[number].deadline()?;
                state.ahead_ms[number] += self.wait_ms(last, number, until)?;
                self.act(&mut state, number, Client::on_timeout)?;
            }
            Action::Cancel(number) => self.act(&mut state, number, Client::cancel)?,
            Action::Release(number) => self.act(&mut state, number, Client::release)?,
            Action::TimePasses => {
                state.step += 1;
                state.ahead_ms.fill(0);
                let now = self.server_ms(&state);
                state.nodes.iter_mut().for_each(|node| Hashed::make_mut(node).expire(now));
            }
        }
        self.drop_ineffective(&mut state);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(EXCLUSION, |world: &Self, state: &State| {
                let mut trusted = BTreeSet::new();
                (0..state.clients.len()).filter(|n| world.is_trusting(state, *n)).all(|number| {
                    let plan = &world.plans[number];
                    let nodes = if plan.rule == Rule::All { plan.nodes } else { &[MAJORITY] };
                    nodes.iter().all(|node| trusted.insert(node))
                })
            }),
            Property::always(CONTINUITY, |world: &Self, state: &State| {
                (0..state.clients.len())
                    .filter(|n| world.is_trusting(state, *n))
                    .all(|number| world.held(state, number).count() >= world.plans[number].quorum())
            }),
            Property::always(TOKENS, |world: &Self, state: &State| {
                let rise = |tokens: &Vec<u64>| tokens.windows(2).all(|pair| pair[0] < pair[1]);
                let returned_tokens =
                    state.returned_tokens.iter().map(|(_, token)| *token).collect();
                let majority = world.plans.iter().all(|plan| plan.rule == Rule::Majority);
                state.grants.iter().all(rise) && (!majority || rise(&returned_tokens))
            }),
            Property::always(OUTCOME_IS_TRUE, |world: &Self, state: &State| {
                (0..state.clients.len()).all(|number| world.outcome_is_true(state, number))
            }),
            Property::always(HELD_AT_MOST, |world: &Self, state: &State| {
                (0..state.clients.len()).all(|number| world.is_free_after_bound(state, number))
            }),
            Property::always(LOSS, |world: &Self, state: &State| {
                (0..state.clients.len()).all(|number| world.reports_losses(state, number))
            }),
            Property::always(PREFIX, |world: &Self, state: &State| {
                let waits = |number: &usize| state.clients[*number].is_waiting();
                (0..state.clients.len()).filter(waits).all(|number| {
                    let held: Vec<usize> = world.held(state, number).collect();
                    let before = world.plans[number].nodes.iter().take(held.len());
                    held.len() < 2 || before.eq(&held)
                })
            }),
        ]
    }
}

impl World {
    fn server_ms(&self, state: &State) -> u64 {
        EPOCH + self.times[usize::from(state.step)] * 1000
    }

    fn now(&self, state: &State, number: usize) -> Instant {
        let passed = self.times[usize::from(state.step)] * 1000 + state.ahead_ms[number];
        // Each client's wall clock has an epoch of its own.
        let epoch = 900_000_000 * (1 + u64::try_from(number).unwrap());
        Instant::from_millis(5_000 + passed, epoch + passed)
    }

    /// The number of milliseconds by which a client's clock must advance to reach `until`; `None`
    /// if it would be further ahead than the model allows before the next step.
    fn wait_ms(&self, state: &State, number: usize, until: Instant) -> Option<u64> {
        let wait = self.now(state, number).until(until);
        let ahead = Duration::from_millis(state.ahead_ms[number]) + wait;
        (wait.is_zero() || ahead <= AHEAD_MAX).then_some(u64::try_from(wait.as_millis()).unwrap())
    }

    fn is_trusting(&self, state: &State, number: usize) -> bool {
        let now = self.now(state, number);
        state.clients[number].is_trusting(&self.plans[number], now)
    }

    /// The nodes that store a field of this client.
    fn held<'a>(&'a self, state: &'a State, number: usize) -> impl Iterator<Item = usize> + 'a {
        let prefix = owner_prefix(u8::try_from(number).unwrap());
        let now = self.server_ms(state);
        (0..state.nodes.len()).filter(move |node| {
            state.nodes[*node].fields(name(*node), now).any(|field| field.starts_with(&prefix))
        })
    }

    fn outcome_is_true(&self, state: &State, number: usize) -> bool {
        let plan = &self.plans[number];
        // A client may leave holds on a minority of nodes, since they prevent no majority.
        let left = self.held(state, number).count() > plan.nodes.len() - plan.quorum();
        !left
            || !matches!(
                state.clients[number].outcome(),
                Some(Outcome::Busy | Outcome::NothingHeld)
            )
    }

    /// Whether a client with an unknown outcome holds nothing on any node after the reported upper
    /// bound.
    fn is_free_after_bound(&self, state: &State, number: usize) -> bool {
        let Some(Outcome::HeldAtMost { since, time }) = state.clients[number].outcome() else {
            return true;
        };
        // Redis removes a key after its last millisecond.
        let time = self.held_at_most.unwrap_or(time) + Duration::from_millis(1);
        !self.now(state, number).has_reached(since + time)
            || self.held(state, number).next().is_none()
    }

    /// Whether a client that renews its hold sets a timeout before fewer parts than its quorum are
    /// unexpired, reports a loss exactly when fewer are, and reports only parts as gone that no
    /// node stores.
    fn reports_losses(&self, state: &State, number: usize) -> bool {
        let (client, plan, now) =
            (&state.clients[number], &self.plans[number], self.now(state, number));
        let Some(quorum_lease) = client.quorum_lease() else { return true };
        let has_quorum = |wait: Duration| {
            let leases = client.leases().into_iter();
            leases.filter(|lease| wait <= lease.remaining(now)).count() >= plan.quorum()
        };
        let is_lost = matches!(quorum_lease.state(), LeaseState::Lost(_));
        let is_woken = client.deadline().is_some_and(|until| has_quorum(now.until(until)));
        let held: Vec<usize> = self.held(state, number).collect();
        let gone = LeaseState::Lost(LossReason::Gone);
        let mut gone_parts = client.renewed_parts().filter(|(_, part)| part.state() == gone);
        (if is_lost { !has_quorum(Duration::ZERO) } else { is_woken })
            && gone_parts.all(|(index, _)| !held.contains(&plan.nodes[index]))
    }

    fn is_awaited(&self, state: &State, sent: &SentRequest) -> bool {
        let client = &state.clients[usize::from(sent.from)];
        client.awaits(sent.index, sent.call, sent.script.request)
    }

    /// Runs one action of a client and sends its calls; returns `None` if the result exceeds the
    /// bounds of the model.
    fn act(
        &self,
        state: &mut State,
        number: usize,
        act: impl FnOnce(&mut Client, &Plan, Instant) -> Outbox,
    ) -> Option<()> {
        let (now, plan) = (self.now(state, number), &self.plans[number]);
        let was_acquiring = state.clients[number].is_acquiring();
        let client = Hashed::make_mut(&mut state.clients[number]);
        let outbox = act(client, plan, now);
        if !client.is_within(plan) {
            return None;
        }
        let from = u8::try_from(number).unwrap();
        if let Some(multi_grant) = client.multi_grant().filter(|_| was_acquiring) {
            state.returned_tokens.push((from, multi_grant.token.as_u64()));
        }
        self.reached.record(client);
        let sent_requests = outbox.into_iter().map(|(index, call, script)| SentRequest {
            from,
            index,
            call,
            script,
            executed: false,
        });
        state.sent_requests.extend(sent_requests);
        let returned_tokens: BTreeSet<u8> =
            state.returned_tokens.iter().map(|(number, _)| *number).collect();
        if returned_tokens.len() == self.plans.len() {
            mark(&self.reached.all_held);
        }
        if state.clients[number].is_waiting() && self.held(state, number).next().is_some() {
            mark(&self.reached.kept);
        }
        Some(())
    }

    fn execute(&self, state: &mut State, index: usize, is_delivered: bool) -> Option<()> {
        let now = self.server_ms(state);
        let sent = &mut state.sent_requests[index];
        if std::mem::replace(&mut sent.executed, true) {
            state.copies_left = state.copies_left.checked_sub(1)?;
        }
        let (sent, number) = (sent.clone(), usize::from(sent.from));
        let node = self.plans[number].nodes[sent.index];
        let cells = Hashed::make_mut(&mut state.nodes[node]).run(&sent.script, now);
        self.record_script(state, node, &sent.script, &cells);
        if !self.is_awaited(state, &sent) {
            return Some(());
        }
        let reply = Reply::read(&cells, sent.script.request).expect("a reply of five elements");
        self.act(state, number, |client, plan, now| match is_delivered {
            true => client.on_reply(plan, sent.call, reply, now),
            false => client.on_connection_broken(plan, sent.call, now),
        })
    }

    fn record_script(
        &self,
        state: &mut State,
        node: usize,
        script: &ScriptCall,
        cells: &[RespValue],
    ) {
        let [RespValue::Int(code), RespValue::Text(value), ..] = cells else {
            panic!("a reply begins with a number and a text")
        };
        match (script.script().name, *code) {
            ("lock_acquire", 1) => state.grants[node].push(value.parse().unwrap()),
            ("lock_acquire", GONE) => mark(&self.reached.gone),
            ("lock_release", 1) => mark(&self.reached.undone),
            ("lock_raise", 1) => mark(&self.reached.raised),
            _ => {}
        }
    }

    /// Removes messages that have no effect any more, and sorts the others, so that equivalent
    /// states are equal.
    fn drop_ineffective(&self, state: &mut State) {
        let now = self.server_ms(state);
        let State { sent_requests, clients, copies_left, .. } = state;
        sent_requests.retain(|sent| {
            let client = &clients[usize::from(sent.from)];
            let awaited = client.awaits(sent.index, sent.call, sent.script.request);
            let not_after = sent.script.args()[1].parse::<u64>().ok();
            let late = not_after.is_some_and(|not_after| now > not_after);
            let is_ineffective = late && !awaited && sent.script.script().name != "lock_release";
            // A request that no client waits for matters only as a copy.
            !is_ineffective && (*copies_left > 0 || (!sent.executed && awaited))
        });
        sent_requests.sort_by_key(|sent| (sent.from, sent.index, sent.call, sent.executed));
    }
}
