//! What must hold in every state.

use std::time::Duration;

use stateright::Property;

use super::client::{Told, owner_prefix};
use super::world::{State, World};

pub(crate) const EXCLUSION: &str = "at most one client believes in a hold";
pub(crate) const CONTINUITY: &str =
    "a hold that is believed in is the newest grant, and stands in Redis";
pub(crate) const AT_MOST_ONCE: &str = "an owner is granted at most once";
pub(crate) const NO_RETURN: &str = "an owner is not granted again after somebody else";
pub(crate) const NO_GHOST: &str = "nothing of an ended owner is in Redis";
pub(crate) const TOLD: &str = "what a client was told stays true";
pub(crate) const TOKENS: &str = "tokens rise";

pub(crate) fn all() -> Vec<Property<World>> {
    vec![
        Property::always(EXCLUSION, |world, state: &State| believers(world, state).count() <= 1),
        Property::always(CONTINUITY, is_continuous),
        Property::always(AT_MOST_ONCE, |world: &World, state: &State| {
            regrants(world, state).next().is_none()
        }),
        Property::always(NO_RETURN, |world: &World, state: &State| {
            let newest = |place: usize| state.seen.grants[place - 1].0.clone();
            regrants(world, state).all(|place| newest(place) == state.seen.grants[place].0)
        }),
        Property::always(NO_GHOST, |world: &World, state: &State| {
            state.fields(world.server_ms(state)).all(|field| !state.seen.ended.contains(field))
        }),
        Property::always(TOLD, what_was_told_is_true),
        Property::always(TOKENS, |_, state: &State| {
            state.seen.grants.windows(2).all(|pair| pair[0].1 < pair[1].1)
        }),
    ]
}

/// The places of the grants to an owner that was granted before.
///
/// Only of clients that know the server's clock. One that does not may ask again under its owner when the latch of its first
/// request is gone already, ten minutes later: it has never believed in what that request was granted.
fn regrants<'a>(world: &'a World, state: &'a State) -> impl Iterator<Item = usize> + 'a {
    let grants = &state.seen.grants;
    let knows_clock = |owner: &str| {
        let numbers = world.plans.iter().zip(0_u8..);
        numbers
            .filter(|(plan, _)| plan.knows_clock)
            .any(|(_, number)| owner.starts_with(&owner_prefix(number)))
    };
    (0..grants.len()).filter(move |place| {
        let (owner, _) = &grants[*place];
        grants[..*place].iter().any(|(earlier, _)| earlier == owner) && knows_clock(owner)
    })
}

fn believers<'a>(world: &'a World, state: &'a State) -> impl Iterator<Item = (&'a str, u64)> {
    state.clients.iter().enumerate().filter_map(|(number, client)| {
        let grant = client.believes(world.now(state, number))?;
        let token = grant.token.as_u64();
        // The model's tokens are unlike each other (see `TOKENS`), so the token tells the owner field.
        let (owner, _) = state.seen.grants.iter().find(|(_, granted)| *granted == token)?;
        Some((&**owner, token))
    })
}

fn is_continuous(world: &World, state: &State) -> bool {
    let server_ms = world.server_ms(state);
    believers(world, state).all(|(owner, token)| {
        let newest = state.seen.grants.last().is_some_and(|(_, newest)| *newest == token);
        newest && state.fields(server_ms).any(|field| field == owner)
    })
}

fn what_was_told_is_true(world: &World, state: &State) -> bool {
    state.clients.iter().zip(0_u8..).all(|(client, number)| {
        let nothing_left = || {
            let prefix = owner_prefix(number);
            state.fields(world.server_ms(state)).all(|field| !field.starts_with(&prefix))
        };
        match client.told() {
            Some(Told::Busy | Told::Nothing) => nothing_left(),
            Some(Told::NothingAfter(time)) => {
                // Redis lets go of a key after its last millisecond.
                let after = time + Duration::from_millis(1);
                !world.now(state, usize::from(number)).has_reached(after) || nothing_left()
            }
            Some(Told::Refused) | None => true,
        }
    })
}
