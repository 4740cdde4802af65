//! The reason for the rule of a redLock: the holder of the lowest node keeps its nodes, and all
//! other clients wait for that node alone. With simpler rules, the search finds votes that stay
//! split.
//!
//! Redis executes requests and releases one by one in any order, and every client acquires a
//! majority once.

use stateright::{Model, Property};

use super::graph::Graph;

/// A set of nodes, as bits.
type NodeSet = u8;

/// The reaction of a client that gets no majority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Every client releases all nodes and requests all again.
    BackOff,
    /// The holder of the lowest node keeps its nodes; the other clients request all again.
    LowestKeeps,
    /// The holder of the lowest node keeps its nodes; the other clients wait for the lowest node
    /// alone. As implemented.
    WaitForLowest,
}

struct Clients {
    rule: Rule,
    nodes: u8,
    /// For each client, the nodes that do not reply to it.
    silent: Vec<NodeSet>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Client {
    requested: NodeSet,
    refused: NodeSet,
    held: NodeSet,
    releasing: NodeSet,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Requesting,
    /// Pauses, then requests all nodes, or only this one.
    Pausing {
        only: Option<u8>,
    },
    Holding,
    /// Done; its releases may still be in flight.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Acquire(usize, u8),
    Release(usize, u8),
    Retry(usize),
    Finish(usize),
}

const fn bit(node: u8) -> NodeSet {
    1 << node
}

impl Clients {
    fn graph(rule: Rule, nodes: u8, silent: &[NodeSet]) -> Graph<Action> {
        let is_over = |client: &Client| client.stage == Stage::Over && client.releasing == 0;
        let model = Self { rule, nodes, silent: silent.to_vec() };
        Graph::of(&model, |state: &Vec<Client>| state.iter().all(is_over))
    }

    const fn request_all(&self, client: &mut Client) {
        client.requested = (bit(self.nodes) - 1) & !client.held;
        (client.refused, client.stage) = (0, Stage::Requesting);
    }

    /// Handles a reply: the client holds as soon as it has a majority; otherwise it decides after
    /// the last reply.
    fn decide(&self, number: usize, client: &mut Client) {
        if client.held.count_ones() > u32::from(self.nodes / 2) {
            client.requested = 0;
            client.stage = Stage::Holding;
            return;
        }
        if client.requested != 0 {
            return;
        }
        // The client waited for the lowest node alone and now has it.
        if client.refused == 0 && (client.held | self.silent[number]) != bit(self.nodes) - 1 {
            return self.request_all(client);
        }
        let lowest = bit(u8::try_from((client.held | client.refused).trailing_zeros()).unwrap());
        let keeps = self.rule != Rule::BackOff && client.held & lowest != 0;
        if !keeps {
            client.releasing |= std::mem::take(&mut client.held);
        }
        let waits = self.rule == Rule::WaitForLowest && !keeps;
        let only = waits.then(|| u8::try_from(lowest.trailing_zeros()).unwrap());
        client.stage = Stage::Pausing { only };
    }
}

impl Model for Clients {
    type State = Vec<Client>;
    type Action = Action;

    fn init_states(&self) -> Vec<Vec<Client>> {
        let mut client =
            Client { requested: 0, refused: 0, held: 0, releasing: 0, stage: Stage::Requesting };
        self.request_all(&mut client);
        vec![vec![client; self.silent.len()]]
    }

    fn actions(&self, state: &Vec<Client>, actions: &mut Vec<Action>) {
        for (number, client) in state.iter().enumerate() {
            for node in 0..self.nodes {
                if client.requested & !client.releasing & bit(node) != 0 {
                    actions.push(Action::Acquire(number, node));
                }
                if client.releasing & bit(node) != 0 {
                    actions.push(Action::Release(number, node));
                }
            }
            match client.stage {
                Stage::Pausing { .. } => actions.push(Action::Retry(number)),
                Stage::Holding => actions.push(Action::Finish(number)),
                Stage::Requesting | Stage::Over => {}
            }
        }
    }

    fn next_state(&self, last: &Vec<Client>, action: Action) -> Option<Vec<Client>> {
        let mut state = last.clone();
        match action {
            Action::Acquire(number, node) => {
                let is_free =
                    last.iter().all(|other| (other.held | other.releasing) & bit(node) == 0);
                let client = &mut state[number];
                client.requested &= !bit(node);
                if self.silent[number] & bit(node) == 0 {
                    *(if is_free { &mut client.held } else { &mut client.refused }) |= bit(node);
                }
                self.decide(number, client);
            }
            Action::Release(number, node) => state[number].releasing &= !bit(node),
            Action::Retry(number) => {
                let client = &mut state[number];
                match client.stage {
                    Stage::Pausing { only: Some(node) } => {
                        client.requested = bit(node);
                        (client.refused, client.stage) = (0, Stage::Requesting);
                    }
                    _ => self.request_all(client),
                }
            }
            Action::Finish(number) => {
                let client = &mut state[number];
                client.releasing |= std::mem::take(&mut client.held);
                client.stage = Stage::Over;
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        Vec::new()
    }
}

#[test]
fn a_client_that_waits_for_the_lowest_node_alone_is_served() {
    // In the last two cases the lowest node does not reply: to both clients, then to one of them.
    let cases: [(u8, &[NodeSet]); 5] =
        [(3, &[0, 0]), (3, &[0, 0, 0]), (5, &[0, 0]), (3, &[1, 1]), (3, &[1, 0])];
    for (nodes, silent) in cases {
        let graph = Clients::graph(Rule::WaitForLowest, nodes, silent);
        println!("{nodes} nodes, {silent:?}: {} states", graph.count());
        assert_eq!((graph.count_stuck(), graph.fair_cycle()), (0, None), "{nodes} {silent:?}");
    }
}

// Slow: two graphs with about 140,000 states are searched for cycles.
#[test]
fn with_every_other_rule_three_clients_may_split_the_votes_for_ever() {
    for rule in [Rule::BackOff, Rule::LowestKeeps] {
        let graph = Clients::graph(rule, 3, &[0, 0, 0]);
        let cycle = graph.fair_cycle();
        println!("{rule:?}: a cycle of {cycle:?} in {} states", graph.count());
        assert_eq!(graph.count_stuck(), 0, "{rule:?}");
        assert!(cycle.is_some(), "{rule:?}");
    }
}
