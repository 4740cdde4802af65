//! Reads the holds that Redis stores for each kind of object.

use std::borrow::Cow;

use edgelatch_proto::timing::PeerSkew;

use super::client::TrustedHold;
use super::plan::{JAVA, NAME, Operation};
use super::run_record::{
    ARRIVALS, FAIR_RW_BEATS, FAIR_RW_HOLDERS, FAIR_RW_QUEUE, FAIR_RW_WRITERS, HEARTBEATS, QUEUE,
    TIMEOUTS, owner_of_member,
};
use super::world::{State, World};
use test_support::script_model::{ScriptModel, holds};

/// The holds of a semaphore, and of a permit-expirable semaphore.
const HELD: &str = "el:{lock}:held";
const PERMITS: &str = "{lock}:timeout";
/// The writer that asked for precedence.
const WANT: &str = "el:{lock}:want";
/// The length of the field of a group's value, in bytes.
const VALUE: usize = 22;

/// Whether Redis stores a hold in all of its parts.
pub(crate) fn is_stored(operation: Operation, trusted: &TrustedHold<'_>, state: &State) -> bool {
    let (redis, owner) = (&*state.redis, trusted.owner);
    match operation {
        Operation::Lock | Operation::Fair => redis.field(NAME, owner).is_some(),
        Operation::Read | Operation::NestedRead(_) => {
            redis.field(NAME, owner).is_some() && is_timed(redis, owner)
        }
        Operation::Write => {
            let field = format!("{owner}:write");
            redis.field(NAME, &field).is_some() && redis.field(NAME, "mode") == Some("write")
        }
        Operation::FairReadWrite(_) => {
            members(redis, FAIR_RW_HOLDERS).any(|holder| holder == owner)
        }
        Operation::Permits(permits) => redis.score(HELD, &format!("{permits}|{owner}")).is_some(),
        Operation::Batch(_) => {
            let ids = operation.target().permit_ids(trusted.grant.owner);
            ids.into_iter().all(|id| redis.score(PERMITS, &holds::raw(&id.to_text())).is_some())
        }
        Operation::Values(values) => {
            let holders = fields(redis).filter(|field| field.len() == VALUE);
            let mine = holders.filter(|field| redis.field(NAME, field) == Some(owner));
            mine.count() == values.len()
        }
        Operation::CountDown | Operation::Close(_) | Operation::Await | Operation::Add(_) => false,
    }
}

/// The owners of clients with any record in Redis other than a latch. For permits with ids, the
/// ids.
pub(crate) fn recorded_owners<'a>(world: &World, state: &'a State) -> Vec<Cow<'a, str>> {
    let (redis, mut owners) = (&*state.redis, stored_owners(world, state));
    match world.plans[0].operation {
        Operation::Fair => {
            owners.extend(redis.list(QUEUE).iter().map(Cow::from));
            for key in [TIMEOUTS, HEARTBEATS, ARRIVALS] {
                owners.extend(redis.members(key).keys().map(Cow::from));
            }
        }
        Operation::FairReadWrite(_) => {
            for key in [FAIR_RW_QUEUE, FAIR_RW_WRITERS, FAIR_RW_BEATS] {
                owners.extend(members(redis, key).map(Cow::from));
            }
        }
        Operation::Read | Operation::NestedRead(_) | Operation::Write => {
            owners.extend(redis.text(WANT).map(|field| without_side(&field).to_owned().into()));
            let timed = state.record.ended.iter().filter(|owner| is_timed(redis, owner));
            owners.extend(timed.map(|owner| Cow::Borrowed(&**owner)));
        }
        _ => {}
    }
    owners
}

/// The owners that exclude other clients: not those whose hold has expired but was not removed yet.
///
/// A place in a queue is not a hold: the next acquisition removes it.
pub(crate) fn excluding_owners<'a>(world: &World, state: &'a State) -> Vec<Cow<'a, str>> {
    let (redis, now) = (&*state.redis, i64::try_from(world.server_ms(state)).unwrap());
    let lasts =
        |key, member: &str, skew| redis.score(key, member).is_some_and(|at| at > now - skew);
    let operation = world.plans[0].operation;
    let keeps_out = |owner: &str| match operation {
        Operation::Read | Operation::NestedRead(_) | Operation::Write => {
            is_timed(redis, owner) || redis.field(NAME, &format!("{owner}:write")).is_some()
        }
        Operation::FairReadWrite(_) => {
            let ends = redis.members(FAIR_RW_HOLDERS);
            ends.iter().any(|(member, ends)| owner_of_member(member) == owner && *ends > now)
        }
        Operation::Permits(permits) => lasts(HELD, &format!("{permits}|{owner}"), 0),
        Operation::Batch(_) => {
            lasts(PERMITS, owner, i64::try_from(PeerSkew::DEFAULT.get().as_millis()).unwrap())
        }
        Operation::Values(_) => fields(redis).filter(|field| field.len() == VALUE).any(|value| {
            let ends = redis.field(NAME, &format!("{value}:{owner}:expire_time"));
            ends.is_some_and(|ends| ends.parse::<i64>().unwrap() > now)
        }),
        _ => true,
    };
    let mut owners = stored_owners(world, state);
    owners.retain(|owner| keeps_out(owner));
    owners
}

/// The owners with a hold in Redis, whether expired or not.
fn stored_owners<'a>(world: &World, state: &'a State) -> Vec<Cow<'a, str>> {
    let redis = &*state.redis;
    let mut owners: Vec<Cow<'a, str>> = Vec::new();
    match world.plans[0].operation {
        Operation::Lock => owners.extend(fields(redis).map(Cow::Borrowed)),
        Operation::Fair => {
            owners.extend(fields(redis).filter(|field| *field != JAVA).map(Cow::Borrowed));
        }
        Operation::Read | Operation::NestedRead(_) | Operation::Write => {
            let holders = fields(redis).filter(|field| *field != "mode");
            owners.extend(holders.map(|field| Cow::Borrowed(without_side(field))));
        }
        Operation::FairReadWrite(_) => {
            owners.extend(members(redis, FAIR_RW_HOLDERS).map(Cow::from));
        }
        Operation::Values(_) => {
            owners.extend(fields(redis).filter_map(|field| owner_of_value(redis, field)));
        }
        Operation::Permits(_) => {
            let members = redis.members(HELD).keys();
            let parts = members.filter_map(|member| member.split_once('|'));
            owners.extend(parts.map(|(_, owner)| Cow::from(owner)));
        }
        Operation::Batch(_) => owners.extend(redis.members(PERMITS).keys().map(Cow::from)),
        Operation::CountDown | Operation::Close(_) | Operation::Await | Operation::Add(_) => {}
    }
    owners
}

/// The number of permits that are available and held, or the count of a latch.
pub(crate) fn count(world: &World, state: &State) -> i64 {
    let redis = &*state.redis;
    let weight = |member: &String| -> i64 { member.split('|').next().unwrap().parse().unwrap() };
    let held: i64 = match world.plans[0].operation {
        Operation::Permits(_) => redis.members(HELD).keys().map(weight).sum(),
        Operation::Batch(_) => i64::try_from(redis.members(PERMITS).len()).unwrap(),
        _ => 0,
    };
    redis.number(NAME).unwrap_or(0) + held
}

/// The fields of the hash. The model removes expired ones whenever time passes.
fn fields(redis: &ScriptModel) -> impl Iterator<Item = &str> {
    redis.fields(NAME, 0)
}

/// The owners of the members of a set of a fair read-write lock.
fn members<'a>(redis: &'a ScriptModel, key: &str) -> impl Iterator<Item = &'a str> {
    redis.members(key).keys().map(|member| owner_of_member(member))
}

fn owner_of_value<'a>(redis: &'a ScriptModel, field: &'a str) -> Option<Cow<'a, str>> {
    if field.len() == VALUE {
        return redis.field(NAME, field).map(Cow::Borrowed);
    }
    let (owner, _) = field[VALUE + 1..].rsplit_once(':')?;
    Some(Cow::Borrowed(owner))
}

fn without_side(field: &str) -> &str {
    field.strip_suffix(":write").unwrap_or(field)
}

fn is_timed(redis: &ScriptModel, reader: &str) -> bool {
    redis.pttl(&format!("{{lock}}:{reader}:rwlock_timeout:1"), 0) != -2
}
