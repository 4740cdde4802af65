//! The premise of each law: a state in which the law can be violated. In a search that never
//! reaches one, the law proves nothing.

use stateright::Property;

use super::network::Letter;
use super::plan::{Does, client_of, latch_of};
use super::properties::*;
use super::seen::QUEUE;
use super::stage::Told;
use super::world::{State, World};
use test_support::script_model::holds::raw;

type Premise = fn(&World, &State) -> bool;

/// Laws, the name of their premise, and the predicate that recognizes it.
const PREMISES: [(&[&str], &str, Premise); 19] = [
    (&[EXCLUSION, BESIDE], "what somebody believes in is wanted by another", is_wanted),
    (&[CONTINUITY, STANDS], "a hold is believed in", is_believed_in),
    (&[AT_MOST_ONCE], "who was granted may ask again", may_ask_again),
    (&[NO_RETURN], "who was granted may ask again after another", may_return),
    (&[NO_GHOST], "who has ended may ask again", may_come_back),
    (&[TOLD], "who was told that nothing is held may ask again", may_be_belied),
    (&[HELD_AT_MOST], "who cannot tell has waited", somebody_has_waited),
    (&[TOKENS], "two were granted", |_, state| state.seen.grants.len() > 1),
    (&[READ_TOKENS], "a read and a write were granted", both_sides_were_granted),
    (&[SHARED], "two readers believe in their holds", two_read),
    (&[DOWNGRADE], "a read goes on after its write", goes_on_after_its_write),
    (&[RISES], "a read is asked about after its write", is_asked_about_after_its_write),
    (&[HEARD], "a read goes on that has heard of its write's end", has_heard_of_the_end),
    (&[ORDER], "two are in the queue", |_, state| state.redis.list(QUEUE).len() > 1),
    (&[COPY], "a poll may come once more", may_poll_again),
    (&[COUNTED], "something was granted or done", is_granted_or_done),
    (&[ONCE], "what was done may be asked for again", may_be_done_again),
    (&[TOLD_ONCE], "somebody was told what was done", somebody_was_told),
    (&[OPEN], "somebody goes on", somebody_goes_on),
];

/// Returns the premise of this law, as a property that some state must have.
pub(crate) fn premise_of(law: &Property<World>) -> Property<World> {
    let of_this = |(laws, ..): &&(&[&str], &str, Premise)| laws.contains(&law.name);
    let (_, name, premise) = PREMISES.iter().find(of_this).expect("each law speaks of something");
    Property::sometimes(name, *premise)
}

fn is_wanted(world: &World, state: &State) -> bool {
    world.believers(state).any(|(holder, _)| {
        // Permits never exclude each other by themselves, only by their number.
        let counts = world.plans[holder].does.permits().is_some();
        let in_its_way = |other: &usize| counts || !world.goes_beside(holder, *other);
        let others = (0..world.plans.len()).filter(|other| *other != holder);
        others.filter(in_its_way).any(|other| state.clients[other].is_acquiring())
    })
}

fn is_believed_in(world: &World, state: &State) -> bool {
    world.believers(state).next().is_some()
}

fn may_ask_again(_: &World, state: &State) -> bool {
    asks(state).any(|owner| granted(state).any(|granted| granted == owner))
}

fn may_return(_: &World, state: &State) -> bool {
    let newest = granted(state).last();
    let returns = |owner: &str| granted(state).any(|granted| granted == owner);
    asks(state).any(|owner| newest != Some(owner) && returns(owner))
}

fn may_come_back(_: &World, state: &State) -> bool {
    // For permits with ids, `ended` holds the ids.
    let ids = |letter: &Letter| {
        let ids = letter.script.args().iter().skip(9).map(|id| raw(id));
        ids.into_iter().any(|id| state.seen.ended.contains(&*id))
    };
    acquisitions(state).any(|letter| match letter.script.script().name {
        "permits_acquire" => ids(letter),
        _ => state.seen.ended.contains(letter.owner()),
    })
}

fn may_be_belied(_: &World, state: &State) -> bool {
    acquisitions(state).any(|letter| {
        let told = state.clients[usize::from(letter.from.0)].told();
        matches!(told, Some(Told::Busy | Told::Nothing))
    })
}

fn somebody_has_waited(world: &World, state: &State) -> bool {
    (0..world.plans.len()).any(|number| has_waited(world, state, number))
}

fn both_sides_were_granted(world: &World, state: &State) -> bool {
    let writes = |owner: &str| world.plans[client_of(owner)].does == Does::Write;
    granted(state).any(writes) && granted(state).any(|owner| !writes(owner))
}

fn two_read(world: &World, state: &State) -> bool {
    world.believers(state).filter(|(number, _)| world.plans[*number].does == Does::Read).count() > 1
}

fn goes_on_after_its_write(_: &World, state: &State) -> bool {
    state.seen.outlived.iter().filter(|outlived| outlived.is_named).any(|outlived| {
        let latch = state.redis.text(&latch_of(&outlived.reader));
        latch.is_some_and(|latch| latch.parse::<u64>().is_ok())
    })
}

fn is_asked_about_after_its_write(world: &World, state: &State) -> bool {
    let is_inside = |owner: &str| matches!(world.plans[client_of(owner)].does, Does::ReadInside(_));
    let outlived = |owner: &str| {
        is_inside(owner) && state.seen.outlived.iter().any(|read| *read.reader == *owner)
    };
    let reads =
        |letter: &&Letter| ["read_acquire", "read_renew"].contains(&letter.script.script().name);
    state.letters.iter().filter(reads).any(|letter| outlived(letter.owner()))
}

fn has_heard_of_the_end(world: &World, state: &State) -> bool {
    world.believers(state).any(|(number, _)| outlives_its_write(world, state, number))
}

fn may_poll_again(_: &World, state: &State) -> bool {
    acquisitions(state).any(|letter| letter.executed && state.copies_left > 0)
}

fn is_granted_or_done(_: &World, state: &State) -> bool {
    !state.seen.grants.is_empty() || !state.seen.done.is_empty()
}

fn may_be_done_again(_: &World, state: &State) -> bool {
    let is_done = |number| state.seen.done.iter().any(|done| done.number == number);
    let changes = |letter: &&Letter| letter.script.script().name.ends_with("_change");
    state.letters.iter().filter(changes).any(|letter| is_done(letter.from.0))
}

fn somebody_was_told(_: &World, state: &State) -> bool {
    let is_told = |told: &Told| matches!(told, Told::Done(..) | Told::NotExecuted);
    state.clients.iter().any(|client| client.told().is_some_and(is_told))
}

fn somebody_goes_on(_: &World, state: &State) -> bool {
    state.clients.iter().any(|client| client.told() == Some(&Told::Open))
}

/// The acquisitions that may still be executed.
fn acquisitions(state: &State) -> impl Iterator<Item = &Letter> {
    state.letters.iter().filter(|letter| letter.script.script().name.ends_with("_acquire"))
}

fn asks(state: &State) -> impl Iterator<Item = &str> {
    acquisitions(state).map(Letter::owner)
}

fn granted(state: &State) -> impl Iterator<Item = &str> {
    state.seen.grants.iter().map(|(owner, _)| &**owner)
}
