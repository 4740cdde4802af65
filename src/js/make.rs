//! Creates the objects.

use alloc::rc::Rc;
use alloc::vec::Vec;

use super::lease::Events;
use super::numbers::kind;
use super::options::Numbers;
use super::{Client, Of, Thing};
use crate::error::InvalidOption;
use edgelatch_proto::protocol::calls::{
    BatchSize, CountDownLatchCalls, PermitCalls, PermitCount, SemaphoreCalls,
};

/// Creates an object of this kind from another object.
pub(super) fn make(
    of: &Thing,
    what: u32,
    other: &Thing,
    name: &str,
    numbers: &Numbers<'_>,
    bytes: &[u8],
) -> Result<Of, InvalidOption> {
    Ok(match (&*of.0, what) {
        (Of::Client(client), kind::OWNER) => Of::Client(client.owner()),
        (Of::Client(client), kind::LIST) => Of::Several(client.clone(), Vec::new()),
        (Of::Client(client), kind::GROUP_LOCK) => {
            Of::Lock(client.group_lock(name, values(numbers, bytes), numbers.skew()?)?)
        }
        (Of::Client(client), kind::GUARD) => guard(client, name, numbers, bytes)?,
        (Of::Client(_), kind::EVENTS) => Of::Events(Events::new(Rc::clone(&of.0))),
        (Of::Client(client), _) => named(client, what, name, numbers)?,
        (Of::Several(client, locks), kind::LIST) => {
            let Of::Lock(lock) = &*other.0 else { return Err(stray()) };
            Of::Several(client.clone(), locks.iter().chain([lock]).cloned().collect())
        }
        (Of::Several(client, locks), kind::MULTI_LOCK) => {
            Of::Lock(client.multi_lock(locks.iter().cloned())?)
        }
        (Of::Several(client, locks), _) => {
            Of::Lock(client.red_lock_with(locks.iter().cloned(), numbers.red_lock()?)?)
        }
        (Of::Lease(_), _) => Of::Events(Events::new(Rc::clone(&of.0))),
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
) -> Result<Of, InvalidOption> {
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
    lock.map(Of::Lock)
}

fn unlike_a_lock(
    client: &Client,
    what: u32,
    name: &str,
    numbers: &Numbers<'_>,
) -> Result<Of, InvalidOption> {
    Ok(match what {
        kind::SEMAPHORE => {
            let name = client.semaphore(name)?.name().clone();
            let one = PermitCount::new(1)?;
            Of::Semaphore(client.clone(), SemaphoreCalls::new(name, client.announces(), one))
        }
        kind::PERMITS => {
            let skew = numbers.skew()?;
            let name = client.permit_expirable_semaphore(name, skew)?.name().clone();
            let calls = PermitCalls::new(name, client.announces(), BatchSize::new(1)?, skew);
            Of::Permits(client.clone(), calls, skew)
        }
        _ => {
            let latch = client.count_down_latch(name)?;
            let calls = CountDownLatchCalls::new(latch.name().clone(), client.announces());
            Of::Latch(client.clone(), latch, calls)
        }
    })
}

/// Creates a guard of this key. `lock` is the name of the lock that protects the key, or empty.
fn guard(
    client: &Client,
    key: &str,
    numbers: &Numbers<'_>,
    lock: &[u8],
) -> Result<Of, InvalidOption> {
    let mut guard = client.guard(key, numbers.memory()?)?;
    if !lock.is_empty() {
        let lock = core::str::from_utf8(lock).unwrap_or_default();
        guard = guard.of_lock(lock).map_err(|bad| InvalidOption::new("lock", bad.accepted()))?;
    }
    Ok(Of::Guard(guard, numbers.flag(1, false)))
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
