//! The reason why a majority of nodes must store a token before a client returns it: with two
//! weaker rules, the search finds tokens that do not rise.
//!
//! Models acquisitions of a lock on three nodes. Their requests may arrive any number of times, at
//! any time after they were sent, even after their end. Replies may arrive late or never. A hold
//! may expire on any node; its client then knows this by its own clock.

use std::collections::BTreeSet;

use stateright::{Checker as _, HasDiscoveries, Model, Property};

const NODES: usize = 3;
const QUORUM: usize = 2;
const RISE: &str = "tokens rise in the order in which clients return them";
const ALL_SERVED: &str = "every acquisition has its token";
const RAISED: &str = "a token was raised";
const AT_ONCE: &str = "a proposal was stored by a majority at once";

/// How a client determines its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// The largest token that a majority has minted.
    Largest,
    /// A token such that a majority stores it or a larger one.
    AtLeast,
    /// A token that a majority stores exactly. As implemented.
    Stored,
}

struct Votes {
    rule: Rule,
    acquisitions: usize,
    /// The token that every request proposes; 0 means none.
    proposal: u8,
    /// The newest token of each node at the start.
    last: [u8; NODES],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Node {
    /// Its newest token.
    last: u8,
    /// The acquisition that holds the lock here.
    holder: Option<u8>,
    /// For each acquisition: no request executed yet, granted, or ended.
    latches: [Latch; 3],
    /// For each acquisition, the token that its client has received from this node, and the tokens
    /// that it may still receive, as bits.
    received: [u8; 3],
    receivable: [u16; 3],
    /// For each acquisition, the tokens of raises that were sent to the node and may arrive at any
    /// time, as bits.
    raises: [u16; 3],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Latch {
    #[default]
    None,
    Granted,
    Ended,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    nodes: [Node; NODES],
    stages: [Stage; 3],
    /// The tokens in the order in which clients returned them.
    returned_tokens: Vec<u8>,
    raised: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Idle,
    Requesting,
    Holding,
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Begin(usize),
    Acquire(usize, usize),
    Raise(usize, usize, u8),
    SendRaise(usize),
    Receive(usize, usize, u8),
    ReturnGrant(usize, u8),
    Finish(usize),
    Release(usize, usize),
    Expire(usize),
}

impl Votes {
    /// The token that a client may return, from the replies that it has received.
    fn token(&self, state: &State, number: usize) -> Option<u8> {
        let mut received: Vec<u8> = state.nodes.iter().map(|node| node.received[number]).collect();
        received.retain(|token| *token > 0);
        received.sort_unstable();
        let newest = *received.last()?;
        match self.rule {
            _ if received.len() < QUORUM => None,
            Rule::Largest => Some(newest),
            Rule::AtLeast => received.iter().rev().nth(QUORUM - 1).copied(),
            Rule::Stored => {
                received.windows(QUORUM).find(|same| same[0] == same[1]).map(|same| same[0])
            }
        }
    }

    /// The token to which the client must still raise some node.
    fn to_raise(&self, state: &State, number: usize) -> Option<u8> {
        let received =
            || state.nodes.iter().map(|node| node.received[number]).filter(|token| *token > 0);
        let newest = received().max()?;
        let sent =
            |node: &Node| node.received[number] == 0 || node.raises[number] & (1 << newest) != 0;
        let all_sent = state.nodes.iter().filter(|node| node.received[number] != newest).all(sent);
        (self.rule != Rule::Largest && received().count() >= QUORUM && !all_sent).then_some(newest)
    }

    fn execute(&self, state: &mut State, number: usize, index: usize) {
        let node = &mut state.nodes[index];
        let owner = Some(u8::try_from(number).unwrap());
        match node.latches[number] {
            Latch::None if node.holder.is_none() => {
                node.last = if self.proposal > node.last { self.proposal } else { node.last + 1 };
                (node.holder, node.latches[number]) = (owner, Latch::Granted);
                node.receivable[number] |= 1 << node.last;
            }
            Latch::Granted if node.holder == owner => node.receivable[number] |= 1 << node.last,
            _ => {}
        }
    }

    fn raise(state: &mut State, number: usize, index: usize, token: u8) {
        let node = &mut state.nodes[index];
        let is_held = node.holder == Some(u8::try_from(number).unwrap());
        if is_held && node.latches[number] == Latch::Granted {
            state.raised |= node.last < token;
            node.last = node.last.max(token);
            node.receivable[number] |= 1 << node.last;
        }
    }

    /// Returns the canonical form of a state. Nodes are interchangeable, so their order does not
    /// matter; nor do replies that no client waits for, and raises without effect.
    fn canonical(mut state: State) -> State {
        for node in &mut state.nodes {
            for (number, stage) in state.stages.iter().enumerate() {
                if *stage != Stage::Requesting {
                    node.receivable[number] = 0;
                    let above = u16::MAX << (node.last + 1);
                    let ended = node.latches[number] == Latch::Ended;
                    node.raises[number] &= if ended { 0 } else { above };
                }
            }
        }
        state.nodes.sort_unstable();
        state
    }
}

impl Node {
    /// Ends a hold on this node: by its own clock, the client ignores replies about it from now on.
    fn forget(&mut self, number: usize) {
        (self.received[number], self.receivable[number]) = (0, 0);
    }
}

impl Model for Votes {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let nodes = self.last.map(|last| Node { last, ..Node::default() });
        vec![State { nodes, stages: [Stage::Idle; 3], returned_tokens: Vec::new(), raised: false }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for number in 0..self.acquisitions {
            match state.stages[number] {
                // Acquisitions begin in order, since they are interchangeable too.
                Stage::Idle if number == 0 || state.stages[number - 1] != Stage::Idle => {
                    actions.push(Action::Begin(number));
                    continue;
                }
                Stage::Idle => continue,
                Stage::Requesting => {
                    actions.extend(
                        self.token(state, number).map(|token| Action::ReturnGrant(number, token)),
                    );
                    if self.token(state, number).is_none() && self.to_raise(state, number).is_some()
                    {
                        actions.push(Action::SendRaise(number));
                    }
                    actions.push(Action::Finish(number));
                }
                Stage::Holding => actions.push(Action::Finish(number)),
                Stage::Over => {}
            }
            for (index, node) in state.nodes.iter().enumerate() {
                actions.push(Action::Acquire(number, index));
                let tokens = (1..16).filter(|token| node.raises[number] & (1 << token) != 0);
                actions.extend(tokens.map(|token| Action::Raise(number, index, token)));
                if state.stages[number] == Stage::Requesting {
                    let tokens =
                        (1..16).filter(|token| node.receivable[number] & (1 << token) != 0);
                    let newer = tokens.filter(|token| *token > node.received[number]);
                    actions.extend(newer.map(|token| Action::Receive(number, index, token)));
                }
                if state.stages[number] == Stage::Over {
                    actions.push(Action::Release(number, index));
                }
            }
        }
        actions.extend((0..NODES).filter(|n| state.nodes[*n].holder.is_some()).map(Action::Expire));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Begin(number) => state.stages[number] = Stage::Requesting,
            Action::Acquire(number, index) => self.execute(&mut state, number, index),
            Action::Raise(number, index, token) => Self::raise(&mut state, number, index, token),
            Action::SendRaise(number) => {
                let token = self.to_raise(&state, number)?;
                for node in &mut state.nodes {
                    if node.received[number] != 0 && node.received[number] != token {
                        node.raises[number] |= 1 << token;
                    }
                }
            }
            Action::Receive(number, index, token) => state.nodes[index].received[number] = token,
            Action::ReturnGrant(number, token) => {
                state.returned_tokens.push(token);
                state.stages[number] = Stage::Holding;
            }
            Action::Finish(number) => {
                state.stages[number] = Stage::Over;
                state.nodes.iter_mut().for_each(|node| node.forget(number));
            }
            Action::Release(number, index) => {
                let node = &mut state.nodes[index];
                if node.holder == Some(u8::try_from(number).unwrap()) {
                    node.holder = None;
                }
                node.latches[number] = Latch::Ended;
            }
            Action::Expire(index) => {
                let number = usize::from(state.nodes[index].holder.take()?);
                state.nodes[index].forget(number);
                // A hold on fewer nodes than a majority is over, and its holder knows it.
                if state.stages[number] == Stage::Holding
                    && state.nodes.iter().filter(|node| node.received[number] > 0).count() < QUORUM
                {
                    state.stages[number] = Stage::Over;
                }
            }
        }
        let state = Self::canonical(state);
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(RISE, |_, state: &State| {
                state.returned_tokens.windows(2).all(|pair| pair[0] < pair[1])
            }),
            Property::sometimes(ALL_SERVED, |model: &Self, state: &State| {
                state.returned_tokens.len() == model.acquisitions
            }),
            Property::sometimes(RAISED, |model: &Self, state: &State| {
                (state.raised && !state.returned_tokens.is_empty()) || model.rule == Rule::Largest
            }),
            Property::sometimes(AT_ONCE, |model: &Self, state: &State| {
                model.proposal == 0 || (!state.raised && !state.returned_tokens.is_empty())
            }),
        ]
    }
}

// Slow: the search visits about 76,000 states.
#[test]
fn a_token_that_a_majority_stores_rises() {
    rises(Votes { rule: Rule::Stored, acquisitions: 2, proposal: 0, last: [0; NODES] });
}

// Slow: the search visits about 250,000 states.
#[test]
fn a_token_that_was_proposed_to_nodes_that_differ_rises() {
    rises(Votes { rule: Rule::Stored, acquisitions: 2, proposal: 2, last: [0, 1, 2] });
}

#[test]
fn the_largest_token_that_a_majority_has_minted_does_not_rise() {
    refuted(Votes { rule: Rule::Largest, acquisitions: 2, proposal: 0, last: [0; NODES] });
}

#[test]
fn a_majority_that_stores_a_token_or_a_larger_one_is_not_enough() {
    refuted(Votes { rule: Rule::AtLeast, acquisitions: 2, proposal: 0, last: [0; NODES] });
}

fn rises(votes: Votes) {
    let checker = votes.checker().threads(2).spawn_bfs().join();
    println!("{} states, {} steps deep", checker.unique_state_count(), checker.max_depth());
    checker.assert_properties();
}

fn refuted(votes: Votes) {
    let rule = votes.rule;
    let discovery = HasDiscoveries::AnyOf(BTreeSet::from([RISE]));
    let checker = votes.checker().threads(2).finish_when(discovery).spawn_bfs().join();
    let found = checker.assert_any_discovery(RISE);
    let (steps, states) = (found.into_actions().len(), checker.unique_state_count());
    println!("{rule:?}: refuted in {steps} steps after {states} states");
}
