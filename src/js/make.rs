//! Creates the objects.

use alloc::rc::Rc;
use alloc::vec::Vec;

use super::lease::Events;
use super::numbers::kind;
use super::options::Numbers;
use super::{Client, Handle, Object};
use crate::error::InvalidOption;
use edgelatch_proto::protocol::calls::{
    BatchSize, CountDownLatchCalls, PermitCalls, PermitCount, SemaphoreCalls,
};

/// Creates an object of this kind from another object.
pub(super) fn make(
    of: &Handle,
    what: u32,
    other: &Handle,
    name: &str,
    numbers: &Numbers<'_>,
    bytes: &[u8],
) -> Result<Object, InvalidOption> {
    Ok(match (&*of.0, what) {
        (Object::Client(client), kind::OWNER) => Object::Client(client.owner()),
        (Object::Client(client), kind::LIST) => Object::Several(client.clone(), Vec::new()),
        (Object::Client(client), kind::GROUP_LOCK) => {
            Object::Lock(client.group_lock(name, values(numbers, bytes), numbers.skew()?)?)
        }
        (Object::Client(client), kind::GUARD) => guard(client, name, numbers, bytes)?,
        (Object::Client(_), kind::EVENTS) => Object::Events(Events::new(Rc::clone(&of.0))),
        (Object::Client(client), _) => named(client, what, name, numbers)?,
        (Object::Several(client, locks), kind::LIST) => {
            let Object::Lock(lock) = &*other.0 else { return Err(stray()) };
            Object::Several(client.clone(), locks.iter().chain([lock]).cloned().collect())
        }
        (Object::Several(client, locks), kind::MULTI_LOCK) => {
            Object::Lock(client.multi_lock(locks.iter().cloned())?)
        }
        (Object::Several(client, locks), _) => {
            Object::Lock(client.red_lock_with(locks.iter().cloned(), numbers.red_lock()?)?)
        }
        (Object::Lease(_), _) => Object::Events(Events::new(Rc::clone(&of.0))),
        _ => return Err(stray()),
    })
}

/// The error of a call that `pkg/api.js` never makes: the object has no such method.
pub(super) fn stray() -> InvalidOption {
    InvalidOption::new("this", "an object that can do this")
}

/// Creates an object that has a name.
fn named(
    client: &Client,
    what: u32,
    name: &str,
    numbers: &Numbers<'_>,
) -> Result<Object, InvalidOption> {
    let lock = match what {
        kind::LOCK => client.lock(name),
        kind::NON_REENTRANT_LOCK => client.non_reentrant_lock(name),
        kind::FENCED_LOCK => client.fenced_lock(name),
        kind::SPIN_LOCK => client.spin_lock(name, numbers.pauses()),
        kind::FAIR_LOCK => client.fair_lock(name, numbers.fair()?),
        kind::NON_REENTRANT_FAIR_LOCK => client.non_reentrant_fair_lock(name, numbers.fair()?),
        kind::READ_LOCK => {
            client.read_write_lock(name, numbers.read_write()?).map(|sides| sides.read().clone())
        }
        kind::WRITE_LOCK => {
            client.read_write_lock(name, numbers.read_write()?).map(|sides| sides.write().clone())
        }
        _ => return unlike_a_lock(client, what, name, numbers),
    };
    lock.map(Object::Lock)
}

fn unlike_a_lock(
    client: &Client,
    what: u32,
    name: &str,
    numbers: &Numbers<'_>,
) -> Result<Object, InvalidOption> {
    Ok(match what {
        kind::SEMAPHORE => {
            let name = client.semaphore(name)?.name().clone();
            let one = PermitCount::new(1)?;
            Object::Semaphore(client.clone(), SemaphoreCalls::new(name, client.announces(), one))
        }
        kind::PERMITS => {
            let skew = numbers.skew()?;
            let name = client.permit_expirable_semaphore(name, skew)?.name().clone();
            let calls = PermitCalls::new(name, client.announces(), BatchSize::new(1)?, skew);
            Object::Permits(client.clone(), calls, skew)
        }
        _ => {
            let latch = client.count_down_latch(name)?;
            let calls = CountDownLatchCalls::new(latch.name().clone(), client.announces());
            Object::Latch(client.clone(), latch, calls)
        }
    })
}

/// Creates a guard of this key. `lock` is the name of the lock that protects the key, or empty.
fn guard(
    client: &Client,
    key: &str,
    numbers: &Numbers<'_>,
    lock: &[u8],
) -> Result<Object, InvalidOption> {
    let mut guard = client.guard(key, numbers.memory()?)?;
    if !lock.is_empty() {
        let lock = core::str::from_utf8(lock).unwrap_or_default();
        guard = guard.of_lock(lock).map_err(|bad| InvalidOption::new("lock", bad.accepted()))?;
    }
    Ok(Object::Guard(guard))
}

/// Splits concatenated values; the numbers after the first are their lengths.
fn values<'a>(numbers: &Numbers<'_>, bytes: &'a [u8]) -> Vec<&'a [u8]> {
    let mut rest = bytes;
    let lengths = (1..numbers.0.len()).map(|place| numbers.small(place) as usize);
    let values = lengths.map_while(|length| {
        let (value, after) = rest.split_at_checked(length)?;
        rest = after;
        Some(value)
    });
    values.collect()
}
