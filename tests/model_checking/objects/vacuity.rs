//! For each property, the states in which it can be violated. In a search that reaches none of them
//! the property holds vacuously, which proves nothing.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use stateright::Property;

use super::network::SentRequest;
use super::plan::{Operation, client_of, latch_of};
use super::properties::*;
use super::run_record::waiters;
use super::stage::Outcome;
use super::world::{State, World};
use test_support::script_model::holds::raw;

type Predicate = fn(&World, &State) -> bool;

/// Properties, and the predicate of the states in which they can be violated.
const NON_VACUOUS: [(&[&str], Predicate); 19] = [
    // A client trusts a hold that another client acquires.
    (&[EXCLUSION, BESIDE], is_contended),
    (&[CONTINUITY, TRUSTED_IS_STORED], is_trusted),
    // A granted owner can be retried.
    (&[AT_MOST_ONCE], can_be_retried),
    (&[NO_RETURN], can_be_retried_after_another),
    (&[NOTHING_AFTER_END], can_be_retried_after_end),
    // A client that holds nothing can be granted a retry.
    (&[OUTCOME_IS_TRUE], can_be_retried_after_outcome),
    (&[HELD_AT_MOST], bound_has_passed),
    // Two owners were granted.
    (&[TOKENS], |_, state| state.record.grants.len() > 1),
    (&[READ_TOKENS], both_sides_were_granted),
    // Two readers trust their holds.
    (&[SHARED], two_readers),
    // A read outlives the write around it.
    (&[DOWNGRADE], outlives_named_write),
    // A read is queried after its write.
    (&[RISES], is_queried_after_write),
    // The client of a read knows that its write ended.
    (&[NEWER_THAN_WRITE], knows_write_end),
    // Two waiters are in the queue.
    (&[ORDER], |_, state| waiters(&state.redis).len() > 1),
    (&[COPY], poll_can_be_repeated),
    (&[COUNTED], is_granted_or_done),
    // An executed call can be repeated.
    (&[ONCE], call_can_be_repeated),
    // A client knows the result of its call.
    (&[REPORTED_ONCE], has_result),
    (&[OPEN], wait_ended),
];

/// The properties of a search that no state has been able to violate so far.
#[derive(Debug, Default)]
pub(crate) struct Vacuity(Vec<Vacuous>);

/// A property, and whether it has held vacuously so far.
#[derive(Debug)]
struct Vacuous {
    property: &'static str,
    can_be_violated: Predicate,
    is_vacuous: AtomicBool,
}

impl Vacuity {
    /// Creates the record of a search for violations of `properties` that has visited no state yet.
    pub(crate) fn new(properties: &[Property<World>]) -> Self {
        let vacuous = properties.iter().map(|Property { name: property, .. }| {
            let (_, can_be_violated) = NON_VACUOUS
                .iter()
                .find(|(properties, _)| properties.contains(property))
                .expect("each property has such states");
            Vacuous { property, can_be_violated: *can_be_violated, is_vacuous: true.into() }
        });
        Self(vacuous.collect())
    }

    /// Records a state that the search visits. Runs only the predicates of properties that no
    /// earlier state could violate, so most states cost nothing.
    pub(crate) fn visit(&self, world: &World, state: &State) {
        for Vacuous { can_be_violated, is_vacuous, .. } in &self.0 {
            if is_vacuous.load(Ordering::Relaxed) && can_be_violated(world, state) {
                is_vacuous.store(false, Ordering::Relaxed);
            }
        }
    }

    /// Returns the properties that no state so far could violate: their truth proves nothing.
    pub(crate) fn vacuous(&self) -> BTreeSet<&'static str> {
        let vacuous = self.0.iter().filter(|one| one.is_vacuous.load(Ordering::Relaxed));
        vacuous.map(|one| one.property).collect()
    }
}

fn is_contended(world: &World, state: &State) -> bool {
    world.trusting_clients(state).any(|(holder, _)| {
        // Permits never exclude each other by themselves, only by their number.
        let counts = world.plans[holder].operation.permits().is_some();
        let in_its_way = |other: &usize| counts || !world.is_compatible(holder, *other);
        let others = (0..world.plans.len()).filter(|other| *other != holder);
        others.filter(in_its_way).any(|other| state.clients[other].is_acquiring())
    })
}

fn is_trusted(world: &World, state: &State) -> bool {
    world.trusting_clients(state).next().is_some()
}

fn can_be_retried(_: &World, state: &State) -> bool {
    pending_owners(state).any(|owner| granted(state).any(|granted| granted == owner))
}

fn can_be_retried_after_another(_: &World, state: &State) -> bool {
    let newest = granted(state).last();
    let returns = |owner: &str| granted(state).any(|granted| granted == owner);
    pending_owners(state).any(|owner| newest != Some(owner) && returns(owner))
}

fn can_be_retried_after_end(_: &World, state: &State) -> bool {
    // For permits with ids, `ended` holds the ids.
    let ids = |sent: &SentRequest| {
        let ids = sent.script.args().iter().skip(9).map(|id| raw(id));
        ids.into_iter().any(|id| state.record.ended.contains(&*id))
    };
    acquisitions(state).any(|sent| match sent.script.script().name {
        "permits_acquire" => ids(sent),
        _ => state.record.ended.contains(sent.owner()),
    })
}

fn can_be_retried_after_outcome(_: &World, state: &State) -> bool {
    acquisitions(state).any(|sent| {
        let outcome = state.clients[usize::from(sent.from.0)].outcome();
        matches!(outcome, Some(Outcome::Busy | Outcome::NothingHeld))
    })
}

fn bound_has_passed(world: &World, state: &State) -> bool {
    (0..world.plans.len()).any(|number| has_waited(world, state, number))
}

fn both_sides_were_granted(world: &World, state: &State) -> bool {
    let writes = |owner: &str| world.plans[client_of(owner)].operation.writes();
    granted(state).any(writes) && granted(state).any(|owner| !writes(owner))
}

fn two_readers(world: &World, state: &State) -> bool {
    world
        .trusting_clients(state)
        .filter(|(number, _)| world.plans[*number].operation.reads())
        .count()
        > 1
}

fn outlives_named_write(_: &World, state: &State) -> bool {
    state.record.outlived.iter().filter(|outlived| outlived.is_named).any(|outlived| {
        let latch = state.redis.text(&latch_of(&outlived.reader));
        latch.is_some_and(|latch| latch.parse::<u64>().is_ok())
    })
}

fn is_queried_after_write(world: &World, state: &State) -> bool {
    let is_inside =
        |owner: &str| matches!(world.plans[client_of(owner)].operation, Operation::NestedRead(_));
    let outlived = |owner: &str| {
        is_inside(owner) && state.record.outlived.iter().any(|read| *read.reader == *owner)
    };
    let reads =
        |sent: &&SentRequest| ["read_acquire", "read_renew"].contains(&sent.script.script().name);
    state.sent_requests.iter().filter(reads).any(|sent| outlived(sent.owner()))
}

fn knows_write_end(world: &World, state: &State) -> bool {
    world.trusting_clients(state).any(|(number, _)| outlives_its_write(world, state, number))
}

fn poll_can_be_repeated(_: &World, state: &State) -> bool {
    acquisitions(state).any(|sent| sent.executed && state.copies_left > 0)
}

fn is_granted_or_done(_: &World, state: &State) -> bool {
    !state.record.grants.is_empty() || !state.record.done.is_empty()
}

fn call_can_be_repeated(_: &World, state: &State) -> bool {
    let is_done = |number| state.record.done.iter().any(|done| done.number == number);
    let changes = |sent: &&SentRequest| sent.script.script().name.ends_with("_change");
    state.sent_requests.iter().filter(changes).any(|sent| is_done(sent.from.0))
}

fn has_result(_: &World, state: &State) -> bool {
    let is_told = |outcome: &Outcome| matches!(outcome, Outcome::Done(..) | Outcome::NotExecuted);
    state.clients.iter().any(|client| client.outcome().is_some_and(is_told))
}

fn wait_ended(_: &World, state: &State) -> bool {
    state.clients.iter().any(|client| client.outcome() == Some(&Outcome::Open))
}

/// The acquisitions that may still be executed.
fn acquisitions(state: &State) -> impl Iterator<Item = &SentRequest> {
    state.sent_requests.iter().filter(|sent| sent.script.script().name.ends_with("_acquire"))
}

fn pending_owners(state: &State) -> impl Iterator<Item = &str> {
    acquisitions(state).map(SentRequest::owner)
}

fn granted(state: &State) -> impl Iterator<Item = &str> {
    state.record.grants.iter().map(|(owner, _)| &**owner)
}
