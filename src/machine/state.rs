//! What Redis says of an object.

use core::time::Duration;

use super::query::garbled;
use crate::error::RequestError;
use crate::protocol::reply::{Code, Reply};

/// What Redis says of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LockState {
    /// Whether anybody holds it.
    pub is_locked: bool,
    /// The hold count in Redis: 1 for ours, more for a Java thread that re-entered, 0 when free.
    /// For a side of a read-write lock it is the sum over all holders; from 1,000 holders on each
    /// counts once.
    pub hold_count: u64,
    /// Until the hold runs out; `None` when the lock is free or its hold has no end.
    pub remaining: Option<Duration>,
    /// The newest fencing token of the name, 0 when there is none.
    pub last_token: u64,
    /// Whether the owner that was asked for holds it.
    pub is_held: bool,
}

/// What Redis says of a semaphore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SemaphoreState {
    /// How many permits are available; fewer than none after more were taken away than there were.
    pub available: i64,
    /// How many leases of ours are on it. What Java holds is known to nobody.
    pub leases: u64,
    /// How many permits these hold.
    pub held: u64,
}

/// What Redis says of a permit-expirable semaphore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PermitsState {
    /// How many permits are available; fewer than none while more are held than there are in all.
    pub available: i64,
    /// How many are held, by ours and by Java.
    pub acquired: u64,
    /// How many there are in all.
    pub total: i64,
    /// Of the ids that were asked for: until the first of them ends, `None` for no end or when one
    /// is not held.
    pub remaining: Option<Duration>,
    /// Whether all of the ids that were asked for are held.
    pub are_held: bool,
}

impl LockState {
    /// Reads the answer to [`Target::inspect`](crate::protocol::calls::Target::inspect).
    ///
    /// # Errors
    /// [`RequestError::Unreachable`] when it is none.
    pub fn read(reply: &Reply) -> Result<Self, RequestError> {
        let [last_token, hold_count, held, ..] = numbers(reply)?;
        Ok(Self {
            is_locked: reply.code == Code::Done,
            hold_count: natural(hold_count),
            remaining: reply.remaining(),
            last_token: natural(last_token),
            is_held: held == 1,
        })
    }
}

impl SemaphoreState {
    /// Reads the same of a semaphore.
    ///
    /// # Errors
    /// [`RequestError::Unreachable`] when it is none.
    pub fn read(reply: &Reply) -> Result<Self, RequestError> {
        let [_, leases, _, available, held] = numbers(reply)?;
        Ok(Self { available, leases: natural(leases), held: natural(held) })
    }
}

impl PermitsState {
    /// Reads the same of a permit-expirable semaphore.
    ///
    /// # Errors
    /// [`RequestError::Unreachable`] when it is none.
    pub fn read(reply: &Reply) -> Result<Self, RequestError> {
        let [_, acquired, held, available, total] = numbers(reply)?;
        let (acquired, are_held) = (natural(acquired), held == 1);
        Ok(Self { available, acquired, total, remaining: reply.remaining(), are_held })
    }
}

/// The number that a reply's value is.
///
/// # Errors
/// [`RequestError::Unreachable`] when it is none.
pub fn number(reply: &Reply) -> Result<i64, RequestError> {
    reply.value.parse().map_err(|_| garbled())
}

/// Three numbers at least, and what is there of five.
fn numbers(reply: &Reply) -> Result<[i64; 5], RequestError> {
    let mut numbers = [0; 5];
    let mut told = 0;
    for (number, text) in numbers.iter_mut().zip(reply.value.split(',')) {
        *number = text.parse().map_err(|_| garbled())?;
        told += 1;
    }
    if told < 3 { Err(garbled()) } else { Ok(numbers) }
}

fn natural(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
