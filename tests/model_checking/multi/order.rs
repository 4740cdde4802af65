//! The reason for the rule of `AcquireAll`, which keeps the parts before the first refused one and
//! waits for that one alone: with simpler rules, the search finds a deadlock, or clients that block
//! each other for ever.
//!
//! Redis executes requests and releases one by one in any order, a waiter retries at any time, and
//! every client acquires its parts once.

use stateright::{Model, Property};

use super::graph::Graph;

/// A set of parts, as bits.
type PartSet = u8;

/// The reaction of a client to a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Requests one part after the other, keeps the granted ones and waits: Redisson's multi-lock
    /// without its time limit.
    HoldAndWait,
    /// Requests all parts; releases all of them.
    BackOff,
    /// Keeps the parts before the first refused one; requests all that are missing.
    RequestAll,
    /// Keeps the parts before the first refused one; requests that part, and the rest once it is
    /// granted. As implemented.
    RequestFirst,
}

/// Clients, each with its parts in its own order.
struct Clients {
    rule: Rule,
    orders: Vec<Vec<u8>>,
    /// Whether a waiter may release the parts that it keeps, and go on without any.
    limits_kept_parts: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Client {
    requested: PartSet,
    refused: PartSet,
    held: PartSet,
    /// The parts that are still held although their release is in flight.
    releasing: PartSet,
    /// The part that it waits for.
    waits_for: u8,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Requesting,
    Waiting,
    Holding,
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Acquire(usize, u8),
    Release(usize, u8),
    Retry(usize),
    GiveUpParts(usize),
    Finish(usize),
}

const fn bit(part: u8) -> PartSet {
    1 << part
}

impl Clients {
    fn graph(rule: Rule, orders: &[&[u8]], limits_kept_parts: bool) -> Graph<Action> {
        let orders = orders.iter().map(|order| order.to_vec()).collect();
        let is_over = |client: &Client| client.stage == Stage::Over && client.releasing == 0;
        let model = Self { rule, orders, limits_kept_parts };
        Graph::of(&model, |state: &Vec<Client>| state.iter().all(is_over))
    }

    fn missing(&self, number: usize, client: &Client) -> impl Iterator<Item = u8> {
        let held = client.held;
        self.orders[number].iter().copied().filter(move |part| held & bit(*part) == 0)
    }

    /// Requests all missing parts; or only one, if the rule says so. `is_retry` after a refusal.
    fn request(&self, number: usize, client: &mut Client, is_retry: bool) {
        client.requested = match self.rule {
            Rule::HoldAndWait => self.missing(number, client).next().map_or(0, bit),
            Rule::RequestFirst if is_retry => bit(client.waits_for),
            _ => self.missing(number, client).map(bit).sum(),
        };
        (client.refused, client.stage) = (0, Stage::Requesting);
    }

    /// Decides what to do after the last reply.
    fn decide(&self, number: usize, client: &mut Client) {
        let Some(first) = self.missing(number, client).next() else {
            client.stage = Stage::Holding;
            return;
        };
        if client.refused == 0 {
            return self.request(number, client, false);
        }
        // A client without parts requested `first` alone, and the parts before it are not refused.
        let refused = client.refused;
        let first =
            self.missing(number, client).find(|part| refused & bit(*part) != 0).unwrap_or(first);
        let index = self.orders[number].iter().position(|part| *part == first).unwrap();
        let released: PartSet = match self.rule {
            Rule::HoldAndWait => 0,
            Rule::BackOff => PartSet::MAX,
            Rule::RequestAll | Rule::RequestFirst => {
                self.orders[number][index..].iter().copied().map(bit).sum()
            }
        };
        client.releasing |= client.held & released;
        client.held &= !released;
        (client.waits_for, client.stage) = (first, Stage::Waiting);
    }
}

impl Model for Clients {
    type State = Vec<Client>;
    type Action = Action;

    fn init_states(&self) -> Vec<Vec<Client>> {
        let client = |number| {
            let mut client = Client {
                requested: 0,
                refused: 0,
                held: 0,
                releasing: 0,
                waits_for: 0,
                stage: Stage::Requesting,
            };
            self.request(number, &mut client, false);
            client
        };
        vec![(0..self.orders.len()).map(client).collect()]
    }

    fn actions(&self, state: &Vec<Client>, actions: &mut Vec<Action>) {
        for (number, client) in state.iter().enumerate() {
            for part in 0..8 {
                // The client requests a released part again only after its release is confirmed.
                if client.requested & !client.releasing & bit(part) != 0 {
                    actions.push(Action::Acquire(number, part));
                }
                if client.releasing & bit(part) != 0 {
                    actions.push(Action::Release(number, part));
                }
            }
            match client.stage {
                Stage::Waiting => {
                    actions.push(Action::Retry(number));
                    if self.limits_kept_parts && client.held != 0 {
                        actions.push(Action::GiveUpParts(number));
                    }
                }
                Stage::Holding => actions.push(Action::Finish(number)),
                Stage::Requesting | Stage::Over => {}
            }
        }
    }

    fn next_state(&self, last: &Vec<Client>, action: Action) -> Option<Vec<Client>> {
        let mut state = last.clone();
        match action {
            Action::Acquire(number, part) => {
                let is_free =
                    last.iter().all(|other| (other.held | other.releasing) & bit(part) == 0);
                let client = &mut state[number];
                client.requested &= !bit(part);
                *(if is_free { &mut client.held } else { &mut client.refused }) |= bit(part);
                if client.requested == 0 {
                    self.decide(number, client);
                }
            }
            Action::Release(number, part) => state[number].releasing &= !bit(part),
            Action::Retry(number) => self.request(number, &mut state[number], true),
            Action::GiveUpParts(number) => {
                let client = &mut state[number];
                client.releasing |= std::mem::take(&mut client.held);
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

/// For each case, the parts of each client in its order. The last case is a ring of three pairs.
const CASES: [&[&[u8]]; 5] = [
    &[&[0, 1], &[0, 1]],
    &[&[0, 1, 2], &[0, 1, 2]],
    &[&[0, 1], &[0, 1], &[0, 1]],
    &[&[0, 1, 2], &[0, 1, 2], &[0, 1, 2]],
    &[&[0, 1], &[1, 2], &[0, 2]],
];

#[test]
fn a_client_that_waits_for_the_first_refused_part_alone_is_served() {
    for case in CASES {
        let graph = Clients::graph(Rule::RequestFirst, case, false);
        println!("{case:?}: {} states", graph.count());
        assert_eq!((graph.count_stuck(), graph.fair_cycle()), (0, None), "{case:?}");
    }
}

#[test]
fn clients_that_hold_parts_and_wait_in_different_orders_get_stuck() {
    let opposite: [[&[u8]; 2]; 2] = [[&[0, 1], &[1, 0]], [&[0, 1, 2], &[2, 1, 0]]];
    for case in &opposite {
        let graph = Clients::graph(Rule::HoldAndWait, case, false);
        println!("{case:?}: {} of {} states stuck", graph.count_stuck(), graph.count());
        assert!(graph.count_stuck() > 0, "{case:?}");
    }
    // If both clients use the same order, holding while waiting never gets stuck.
    assert_eq!(Clients::graph(Rule::HoldAndWait, CASES[0], false).count_stuck(), 0);
}

#[test]
fn clients_that_release_every_part_on_refusal_may_never_be_served() {
    for case in [CASES[0], CASES[1], CASES[2], CASES[4]] {
        let graph = Clients::graph(Rule::BackOff, case, false);
        let cycle = graph.fair_cycle();
        println!("{case:?}: a cycle of {cycle:?} in {} states", graph.count());
        assert_eq!(graph.count_stuck(), 0, "{case:?}");
        assert!(cycle.is_some(), "{case:?}");
    }
}

#[test]
fn clients_that_retry_all_missing_parts_may_refuse_each_other_for_ever() {
    for case in &CASES[..3] {
        let graph = Clients::graph(Rule::RequestAll, case, false);
        let cycle = graph.fair_cycle();
        println!("{case:?}: a cycle of {cycle:?} in {} states", graph.count());
        assert_eq!(graph.count_stuck(), 0, "{case:?}");
        assert!(cycle.is_some(), "{case:?}");
    }
}

/// S94.
#[test]
fn clients_with_different_orders_get_stuck_without_a_limit_on_kept_parts() {
    let orders: [&[u8]; 2] = [&[0, 1], &[1, 0]];
    let endless = Clients::graph(Rule::RequestFirst, &orders, false);
    println!("{} of {} states stuck", endless.count_stuck(), endless.count());
    assert!(endless.count_stuck() > 0);
    assert_eq!(Clients::graph(Rule::RequestFirst, &orders, true).count_stuck(), 0);
}

// Slow: the largest of the five graphs has about 200,000 states.
#[test]
fn a_limit_on_kept_parts_is_safe_for_clients_with_one_order() {
    for case in CASES {
        let graph = Clients::graph(Rule::RequestFirst, case, true);
        println!("{case:?}: {} states", graph.count());
        assert_eq!(graph.count_stuck(), 0, "{case:?}");
    }
}
