//! The properties of every state: common ones of all holds and special ones of each object.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use stateright::Property;

use super::client::TrustedHold;
use super::plan::{Operation, client_of, latch_of};
use super::stage::Outcome;
use super::stored_holds::{count, excluding_owners, is_stored, recorded_owners};
use super::world::{State, World};

pub(crate) const EXCLUSION: &str = "at most one client trusts a hold";
pub(crate) const CONTINUITY: &str = "a trusted hold is the newest grant, and Redis stores it";
pub(crate) const AT_MOST_ONCE: &str = "an owner is granted at most once";
pub(crate) const NO_RETURN: &str = "an owner is not granted again after another owner";
pub(crate) const NOTHING_AFTER_END: &str = "Redis stores nothing of an ended owner";
pub(crate) const OUTCOME_IS_TRUE: &str =
    "a client with the result that it holds nothing holds nothing";
pub(crate) const HELD_AT_MOST: &str = "a client holds nothing after the bound of its unknown hold";
pub(crate) const TOKENS: &str = "tokens rise";
pub(crate) const BESIDE: &str = "clients trust only compatible holds at once";
pub(crate) const TRUSTED_IS_STORED: &str = "Redis stores each trusted hold";
pub(crate) const READ_TOKENS: &str =
    "tokens rise, and a reader's token is above those of earlier writers";
pub(crate) const SHARED: &str = "readers share a token";
pub(crate) const DOWNGRADE: &str = "a read outlives the write around it with a newer token";
pub(crate) const RISES: &str = "a query of such a read returns the newer token";
pub(crate) const NEWER_THAN_WRITE: &str =
    "a client that knows the end of its write reads with a newer token";
pub(crate) const ORDER: &str = "no waiter overtakes a live one";
pub(crate) const COPY: &str = "a copy of a poll changes nothing";
pub(crate) const COUNTED: &str = "available and held permits add up to the total";
pub(crate) const ONCE: &str = "an idempotent call has one effect";
pub(crate) const REPORTED_ONCE: &str = "the reported result is the executed one";
pub(crate) const OPEN: &str = "a wait ends only when the latch is open";

/// The properties of an object that only one client may hold.
pub(crate) fn of_a_lock() -> Vec<Property<World>> {
    let mut all = of_holds(EXCLUSION, CONTINUITY);
    all.push(Property::always(NO_RETURN, |world: &World, state: &State| {
        let newest = |place: usize| state.record.grants[place - 1].0.clone();
        regrants(world, state).all(|place| newest(place) == state.record.grants[place].0)
    }));
    all.push(Property::always(TOKENS, tokens_rise));
    all
}

pub(crate) fn of_a_queue() -> Vec<Property<World>> {
    let mut all = of_a_lock();
    all.push(Property::always(ORDER, |_: &World, state: &State| !state.record.overtaken));
    all.push(Property::always(COPY, |_: &World, state: &State| !state.record.copy_had_effect));
    all
}

pub(crate) fn of_two_sides() -> Vec<Property<World>> {
    let mut all = of_holds(BESIDE, TRUSTED_IS_STORED);
    all.push(Property::always(READ_TOKENS, tokens_of_sides));
    all.push(Property::always(SHARED, |world: &World, state: &State| {
        let mut tokens = world
            .trusting_clients(state)
            .filter(|(number, _)| world.plans[*number].operation.reads())
            .map(|(_, trusted)| trusted.token);
        let first = tokens.next();
        tokens.all(|token| Some(token) == first)
    }));
    all.push(Property::always(DOWNGRADE, |_: &World, state: &State| {
        state.record.outlived.iter().filter(|outlived| outlived.is_named).all(|outlived| {
            let latch = state.redis.text(&latch_of(&outlived.reader));
            let token: Option<u64> = latch.and_then(|token| token.parse().ok());
            token.is_none_or(|token| token > outlived.write)
        })
    }));
    all.push(Property::always(RISES, |_: &World, state: &State| {
        !state.record.returned_ended_write
    }));
    all.push(Property::always(NEWER_THAN_WRITE, newer_than_the_write_that_ended));
    all
}

pub(crate) fn of_a_queue_of_two_modes() -> Vec<Property<World>> {
    let mut all = of_two_sides();
    all.retain(|property| ![DOWNGRADE, RISES, NEWER_THAN_WRITE].contains(&property.name));
    all.push(Property::always(ORDER, |_: &World, state: &State| !state.record.overtaken));
    all.push(Property::always(COPY, |_: &World, state: &State| !state.record.copy_had_effect));
    all
}

pub(crate) fn of_permits() -> Vec<Property<World>> {
    let mut all = of_holds(BESIDE, TRUSTED_IS_STORED);
    all.push(Property::always(TOKENS, tokens_rise));
    all.push(Property::always(COUNTED, is_balanced));
    all
}

/// The properties of permits whose number clients change.
pub(crate) fn of_changing_permits() -> Vec<Property<World>> {
    let mut all = of_permits();
    all.extend(of_idempotent_calls().into_iter().filter(|property| property.name != COUNTED));
    all
}

/// The properties of a latch with a waiting client.
pub(crate) fn of_latch_waits() -> Vec<Property<World>> {
    let mut all = of_idempotent_calls();
    all.push(Property::always(OPEN, |_: &World, state: &State| {
        let is_over = state.clients.iter().any(|client| client.outcome() == Some(&Outcome::Open));
        !is_over || state.record.found_open
    }));
    all
}

pub(crate) fn of_idempotent_calls() -> Vec<Property<World>> {
    vec![
        Property::always(COUNTED, is_balanced),
        Property::always(ONCE, |world: &World, state: &State| {
            let by =
                |number: u8| state.record.done.iter().filter(move |done| done.number == number);
            let effects = |number| by(number).filter(|done| done.change != 0).count();
            (0_u8..).zip(&world.plans).all(|(number, _)| effects(number) <= 1)
        }),
        Property::always(REPORTED_ONCE, |_: &World, state: &State| {
            (0_u8..).zip(&state.clients).all(|(number, client)| {
                let mut done = state.record.done.iter().filter(|done| done.number == number);
                match client.outcome() {
                    Some(Outcome::Done(code, value)) => {
                        let is_it = done
                            .next()
                            .is_some_and(|done| (done.code, &done.value) == (*code, value));
                        is_it && done.next().is_none()
                    }
                    Some(Outcome::NotExecuted) => done.next().is_none(),
                    _ => true,
                }
            })
        }),
    ]
}

/// The properties of holds of any object.
pub(crate) fn of_unconfirmed_holds() -> Vec<Property<World>> {
    of_holds(BESIDE, TRUSTED_IS_STORED)
}

fn of_holds(exclusion: &'static str, continuity: &'static str) -> Vec<Property<World>> {
    vec![
        Property::always(exclusion, is_exclusive),
        Property::always(continuity, is_continuous),
        Property::always(AT_MOST_ONCE, |world: &World, state: &State| {
            regrants(world, state).next().is_none()
        }),
        Property::always(NOTHING_AFTER_END, |world: &World, state: &State| {
            let ended = &state.record.ended;
            ended.is_empty()
                || recorded_owners(world, state).iter().all(|owner| !ended.contains(&**owner))
        }),
        Property::always(OUTCOME_IS_TRUE, outcome_is_true),
        Property::always(HELD_AT_MOST, is_free_after_bound),
    ]
}

/// The indices of grants to an owner that had a grant before.
///
/// Counts only clients that know the server's clock. Any other client may resend under the same
/// owner ten minutes later, when the latch of its first request has expired; it has never relied on
/// the grant of that request.
fn regrants<'a>(world: &'a World, state: &'a State) -> impl Iterator<Item = usize> + 'a {
    let grants = &state.record.grants;
    (0..grants.len()).filter(move |place| {
        let (owner, _) = &grants[*place];
        grants[..*place].iter().any(|(earlier, _)| earlier == owner)
            && world.plans[client_of(owner)].knows_clock
    })
}

fn is_exclusive(world: &World, state: &State) -> bool {
    let beside = |(a, _): (usize, TrustedHold<'_>)| {
        world.trusting_clients(state).all(|(b, _)| a == b || world.is_compatible(a, b))
    };
    let permits: i64 = world
        .trusting_clients(state)
        .filter_map(|(number, _)| world.plans[number].operation.permits())
        .sum();
    world.trusting_clients(state).all(beside) && (permits == 0 || permits <= total(world, state))
}

fn is_continuous(world: &World, state: &State) -> bool {
    world.trusting_clients(state).all(|(number, trusted)| {
        let granted = |(owner, _): &(Arc<str>, u64)| **owner == *trusted.owner;
        let grants = &state.record.grants;
        let newest = grants.iter().rposition(granted).is_some_and(|place| {
            grants[place + 1..]
                .iter()
                .all(|(owner, _)| world.is_compatible(number, client_of(owner)))
        });
        newest && is_stored(world.plans[number].operation, &trusted, state)
    })
}

/// A client that was informed that it holds nothing has no record in Redis.
fn outcome_is_true(world: &World, state: &State) -> bool {
    let outcome = |number: usize| {
        matches!(state.clients[number].outcome(), Some(Outcome::Busy | Outcome::NothingHeld))
    };
    none_of(world, state, outcome, recorded_owners)
}

/// A client with an unknown outcome holds nothing after the reported upper bound. Includes a grant
/// to a copy: it is a hold at once.
fn is_free_after_bound(world: &World, state: &State) -> bool {
    none_of(world, state, |number| has_waited(world, state, number), excluding_owners)
}

/// Whether this client has an unknown outcome and has waited for the reported upper bound.
pub(crate) fn has_waited(world: &World, state: &State, number: usize) -> bool {
    let Some(Outcome::HeldAtMost { since, time }) = state.clients[number].outcome() else {
        return false;
    };
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
        !of(usize::from(number)) || {
            let prefix = plan.operation.prefix(number);
            list(world, state).iter().all(|owner| !owner.starts_with(&prefix))
        }
    })
}

fn tokens_rise(_: &World, state: &State) -> bool {
    state.record.grants.windows(2).all(|pair| pair[0].1 < pair[1].1)
}

fn tokens_of_sides(world: &World, state: &State) -> bool {
    let grants = &state.record.grants;
    let writes = |owner: &str| world.plans[client_of(owner)].operation.writes();
    (0..grants.len()).all(|place| {
        let (owner, token) = &grants[place];
        let inside = matches!(world.plans[client_of(owner)].operation, Operation::NestedRead(_));
        grants[..place].iter().all(|(earlier, other)| match (writes(owner), writes(earlier)) {
            (true, _) => token > other,
            // A read inside has the token of the write around it.
            (false, true) if !inside => token > other,
            (false, _) => token >= other,
        })
    })
}

fn newer_than_the_write_that_ended(world: &World, state: &State) -> bool {
    world
        .trusting_clients(state)
        .filter(|(number, _)| outlives_its_write(world, state, *number))
        .all(|(number, trusted)| {
            let Operation::NestedRead(writer) = world.plans[number].operation else { return true };
            let grants = &state.record.grants;
            let mut writes = grants.iter().filter(|(owner, _)| client_of(owner) == writer);
            writes.all(|(_, write)| trusted.token > *write)
        })
}

/// Whether this client reads inside a write that was released, and its program knows that.
pub(crate) fn outlives_its_write(world: &World, state: &State, number: usize) -> bool {
    let Operation::NestedRead(writer) = world.plans[number].operation else { return false };
    state.clients[writer].outcome() == Some(&Outcome::NothingHeld)
}

fn is_balanced(world: &World, state: &State) -> bool {
    count(world, state) == total(world, state)
}

fn total(world: &World, state: &State) -> i64 {
    let changes: i64 = state.record.done.iter().map(|done| done.change).sum();
    world.number.unwrap_or(0) + changes
}
