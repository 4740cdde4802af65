//! The laws: properties of every state, common ones of all holds and special ones of each object.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use stateright::Property;

use super::client::Belief;
use super::plan::{Does, client_of, latch_of};
use super::stage::Told;
use super::stand::{all_that_is_held, all_that_is_there, count, stands};
use super::world::{State, World};

pub(crate) const EXCLUSION: &str = "at most one client believes in a hold";
pub(crate) const CONTINUITY: &str =
    "a hold that is believed in is the newest grant, and stands in Redis";
pub(crate) const AT_MOST_ONCE: &str = "an owner is granted at most once";
pub(crate) const NO_RETURN: &str = "an owner is not granted again after somebody else";
pub(crate) const NO_GHOST: &str = "nothing of an ended owner is in Redis";
pub(crate) const TOLD: &str = "what a client was told stays true";
pub(crate) const HELD_AT_MOST: &str =
    "no ghost holds or is granted anything after the time that was told";
pub(crate) const TOKENS: &str = "tokens rise";
pub(crate) const BESIDE: &str = "only what may be held side by side is believed in at once";
pub(crate) const STANDS: &str = "a hold that is believed in stands in Redis";
pub(crate) const READ_TOKENS: &str = "tokens rise, and those of readers are above earlier writers'";
pub(crate) const SHARED: &str = "readers share a token";
pub(crate) const DOWNGRADE: &str = "a read outlives the write around it with a newer token";
pub(crate) const RISES: &str = "a read that is asked about after that has the newer token";
pub(crate) const HEARD: &str = "who has heard of the end of its write reads with a newer token";
pub(crate) const ORDER: &str = "nobody overtakes a waiter that lives";
pub(crate) const COPY: &str = "a copy of a poll changes nothing";
pub(crate) const COUNTED: &str = "what is there and what is held is all there is";
pub(crate) const ONCE: &str = "what is done once has one effect";
pub(crate) const TOLD_ONCE: &str = "what was told of it is what was done";
pub(crate) const OPEN: &str = "only a latch that is open lets anybody go on";

/// The laws of an object that only one client may hold.
pub(crate) fn of_a_lock() -> Vec<Property<World>> {
    let mut all = of_holds(EXCLUSION, CONTINUITY);
    all.push(Property::always(NO_RETURN, |world: &World, state: &State| {
        let newest = |place: usize| state.seen.grants[place - 1].0.clone();
        regrants(world, state).all(|place| newest(place) == state.seen.grants[place].0)
    }));
    all.push(Property::always(TOKENS, tokens_rise));
    all
}

pub(crate) fn of_a_queue() -> Vec<Property<World>> {
    let mut all = of_a_lock();
    all.push(Property::always(ORDER, |_: &World, state: &State| !state.seen.overtaken));
    all.push(Property::always(COPY, |_: &World, state: &State| !state.seen.copy_acted));
    all
}

pub(crate) fn of_two_sides() -> Vec<Property<World>> {
    let mut all = of_holds(BESIDE, STANDS);
    all.push(Property::always(READ_TOKENS, tokens_of_sides));
    all.push(Property::always(SHARED, |world: &World, state: &State| {
        let mut tokens = world
            .believers(state)
            .filter(|(number, _)| world.plans[*number].does == Does::Read)
            .map(|(_, belief)| belief.token);
        let first = tokens.next();
        tokens.all(|token| Some(token) == first)
    }));
    all.push(Property::always(DOWNGRADE, |_: &World, state: &State| {
        state.seen.outlived.iter().filter(|outlived| outlived.is_named).all(|outlived| {
            let latch = state.redis.text(&latch_of(&outlived.reader));
            let token: Option<u64> = latch.and_then(|token| token.parse().ok());
            token.is_none_or(|token| token > outlived.write)
        })
    }));
    all.push(Property::always(RISES, |_: &World, state: &State| {
        !state.seen.told_of_an_ended_write
    }));
    all.push(Property::always(HEARD, newer_than_the_write_that_ended));
    all
}

pub(crate) fn of_permits() -> Vec<Property<World>> {
    let mut all = of_holds(BESIDE, STANDS);
    all.push(Property::always(TOKENS, tokens_rise));
    all.push(Property::always(COUNTED, all_is_counted));
    all
}

/// The laws of permits whose number clients change.
pub(crate) fn of_permits_that_change() -> Vec<Property<World>> {
    let mut all = of_permits();
    all.extend(of_what_is_done_once().into_iter().filter(|law| law.name != COUNTED));
    all
}

/// The laws of a latch with a waiting client.
pub(crate) fn of_a_latch_that_opens() -> Vec<Property<World>> {
    let mut all = of_what_is_done_once();
    all.push(Property::always(OPEN, |_: &World, state: &State| {
        let goes_on = state.clients.iter().any(|client| client.told() == Some(&Told::Open));
        !goes_on || state.seen.found_open
    }));
    all
}

pub(crate) fn of_what_is_done_once() -> Vec<Property<World>> {
    vec![
        Property::always(COUNTED, all_is_counted),
        Property::always(ONCE, |world: &World, state: &State| {
            let by = |number: u8| state.seen.done.iter().filter(move |done| done.number == number);
            let effects = |number| by(number).filter(|done| done.change != 0).count();
            (0_u8..).zip(&world.plans).all(|(number, _)| effects(number) <= 1)
        }),
        Property::always(TOLD_ONCE, |_: &World, state: &State| {
            (0_u8..).zip(&state.clients).all(|(number, client)| {
                let mut done = state.seen.done.iter().filter(|done| done.number == number);
                match client.told() {
                    Some(Told::Done(code, value)) => {
                        let is_it = done
                            .next()
                            .is_some_and(|done| (done.code, &done.value) == (*code, value));
                        is_it && done.next().is_none()
                    }
                    Some(Told::NotExecuted) => done.next().is_none(),
                    _ => true,
                }
            })
        }),
    ]
}

/// The laws of holds of any object.
pub(crate) fn of_ghosts() -> Vec<Property<World>> {
    of_holds(BESIDE, STANDS)
}

fn of_holds(exclusion: &'static str, continuity: &'static str) -> Vec<Property<World>> {
    vec![
        Property::always(exclusion, is_exclusive),
        Property::always(continuity, is_continuous),
        Property::always(AT_MOST_ONCE, |world: &World, state: &State| {
            regrants(world, state).next().is_none()
        }),
        Property::always(NO_GHOST, |world: &World, state: &State| {
            all_that_is_there(world, state).iter().all(|owner| !state.seen.ended.contains(&**owner))
        }),
        Property::always(TOLD, what_was_told_is_true),
        Property::always(HELD_AT_MOST, no_ghost_is_left),
    ]
}

/// The indices of grants to an owner that had a grant before.
///
/// Counts only clients that know the server's clock. Any other client may resend under the same
/// owner ten minutes later, when the latch of its first request has expired; it has never relied on
/// the grant of that request.
fn regrants<'a>(world: &'a World, state: &'a State) -> impl Iterator<Item = usize> + 'a {
    let grants = &state.seen.grants;
    (0..grants.len()).filter(move |place| {
        let (owner, _) = &grants[*place];
        grants[..*place].iter().any(|(earlier, _)| earlier == owner)
            && world.plans[client_of(owner)].knows_clock
    })
}

fn is_exclusive(world: &World, state: &State) -> bool {
    let beside = |(a, _): (usize, Belief<'_>)| {
        world.believers(state).all(|(b, _)| a == b || world.goes_beside(a, b))
    };
    let permits: i64 =
        world.believers(state).filter_map(|(number, _)| world.plans[number].does.permits()).sum();
    world.believers(state).all(beside) && (permits == 0 || permits <= all_there_is(world, state))
}

fn is_continuous(world: &World, state: &State) -> bool {
    world.believers(state).all(|(number, belief)| {
        let granted = |(owner, _): &(Arc<str>, u64)| **owner == *belief.owner;
        let grants = &state.seen.grants;
        let newest = grants.iter().rposition(granted).is_some_and(|place| {
            grants[place + 1..].iter().all(|(owner, _)| world.goes_beside(number, client_of(owner)))
        });
        newest && stands(world.plans[number].does, &belief, state)
    })
}

/// A client that was informed that it holds nothing has no record in Redis.
fn what_was_told_is_true(world: &World, state: &State) -> bool {
    let told =
        |number: usize| matches!(state.clients[number].told(), Some(Told::Busy | Told::Nothing));
    none_of(world, state, told, all_that_is_there)
}

/// A client with an unknown outcome holds nothing after the reported upper bound. Includes a grant
/// to a copy: it is a hold at once.
fn no_ghost_is_left(world: &World, state: &State) -> bool {
    none_of(world, state, |number| has_waited(world, state, number), all_that_is_held)
}

/// Whether this client has an unknown outcome and has waited for the reported upper bound.
pub(crate) fn has_waited(world: &World, state: &State, number: usize) -> bool {
    let Some(Told::HeldAtMost { since, time }) = state.clients[number].told() else { return false };
    // Redis removes a key after its last millisecond.
    let time = world.held_at_most.unwrap_or(*time) + Duration::from_millis(1);
    world.now(state, number).has_reached(*since + time)
}

/// Whether `list` contains nothing of the clients that `of` selects.
fn none_of<'a>(
    world: &World,
    state: &'a State,
    of: impl Fn(usize) -> bool,
    list: impl Fn(&World, &'a State) -> Vec<Cow<'a, str>>,
) -> bool {
    (0_u8..).zip(&world.plans).all(|(number, plan)| {
        let prefix = plan.does.prefix(number);
        !of(usize::from(number))
            || list(world, state).iter().all(|owner| !owner.starts_with(&prefix))
    })
}

fn tokens_rise(_: &World, state: &State) -> bool {
    state.seen.grants.windows(2).all(|pair| pair[0].1 < pair[1].1)
}

fn tokens_of_sides(world: &World, state: &State) -> bool {
    let grants = &state.seen.grants;
    let writes = |owner: &str| world.plans[client_of(owner)].does == Does::Write;
    (0..grants.len()).all(|place| {
        let (owner, token) = &grants[place];
        let inside = matches!(world.plans[client_of(owner)].does, Does::ReadInside(_));
        grants[..place].iter().all(|(earlier, other)| match (writes(owner), writes(earlier)) {
            (true, _) => token > other,
            // A read inside has the token of the write around it.
            (false, true) if !inside => token > other,
            (false, _) => token >= other,
        })
    })
}

fn newer_than_the_write_that_ended(world: &World, state: &State) -> bool {
    world.believers(state).filter(|(number, _)| outlives_its_write(world, state, *number)).all(
        |(number, belief)| {
            let Does::ReadInside(writer) = world.plans[number].does else { return true };
            let grants = &state.seen.grants;
            let mut writes = grants.iter().filter(|(owner, _)| client_of(owner) == writer);
            writes.all(|(_, write)| belief.token > *write)
        },
    )
}

/// Whether this client reads inside a write that was released, and its program knows that.
pub(crate) fn outlives_its_write(world: &World, state: &State, number: usize) -> bool {
    let Does::ReadInside(writer) = world.plans[number].does else { return false };
    state.clients[writer].told() == Some(&Told::Nothing)
}

fn all_is_counted(world: &World, state: &State) -> bool {
    count(world, state) == all_there_is(world, state)
}

fn all_there_is(world: &World, state: &State) -> i64 {
    let changes: i64 = state.seen.done.iter().map(|done| done.change).sum();
    world.number.unwrap_or(0) + changes
}
