//! The states of objects in Redis.

use core::time::Duration;

use super::query::garbled;
use crate::error::RequestError;
use crate::protocol::reply::{Code, Reply};

/// The state of a lock in Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LockState {
    /// Whether an owner holds it.
    pub is_locked: bool,
    /// The hold count in Redis: 1 for ours, more for a Java thread that re-entered, 0 when free.
    /// For a side of a read-write lock it is the sum over all holders; from 1,000 holders on each
    /// counts once.
    pub hold_count: u64,
    /// The time until the hold expires; `None` when the lock is free or its hold has no end.
    pub remaining: Option<Duration>,
    /// The newest fencing token of the name; 0 if there is none.
    pub last_token: u64,
    /// Whether the owner of the query holds it.
    pub is_held: bool,
}

/// The state of a fair read-write lock in Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FairReadWriteState {
    /// The number of holds.
    pub holders: u64,
    /// Whether the hold is exclusive; `false` if there is none.
    pub is_exclusive: bool,
    /// The number of live waiters of both modes.
    pub waiters: u64,
    /// The number of exclusive waiters, which includes those that died a short time ago.
    pub exclusive_waiters: u64,
    /// The time until the last hold expires; `None` if the lock is free.
    pub remaining: Option<Duration>,
    /// The newest fencing token of the name; 0 if there is none.
    pub last_token: u64,
}

/// The state of a semaphore in Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SemaphoreState {
    /// The number of available permits; negative after more were removed than existed.
    pub available: i64,
    /// The number of this crate's leases. The permits of Java programs are not recorded.
    pub leases: u64,
    /// The number of permits of these leases.
    pub held: u64,
}

/// The state of a permit-expirable semaphore in Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PermitsState {
    /// The number of available permits; negative while more are held than exist in all.
    pub available: i64,
    /// The number of permits held by programs with this crate and by Java programs.
    pub acquired: u64,
    /// The total number of permits.
    pub total: i64,
    /// The time until the first of the queried permits ends; `None` if they have no end, or one of
    /// them is not held.
    pub remaining: Option<Duration>,
    /// Whether all of the queried permits are held.
    pub are_held: bool,
}

impl LockState {
    /// Reads the reply to [`Target::inspect`](crate::protocol::calls::Target::inspect) for a lock.
    ///
    /// # Errors
    /// [`RequestError::Unreachable`] if the reply has another form.
    pub fn read(reply: &Reply) -> Result<Self, RequestError> {
        let [last_token, hold_count, held, _, _] = numbers(reply, 3)?;
        Ok(Self {
            is_locked: reply.code == Code::Done,
            hold_count: non_negative(hold_count),
            remaining: reply.remaining(),
            last_token: non_negative(last_token),
            is_held: held == 1,
        })
    }
}

impl FairReadWriteState {
    /// Reads the reply to [`Target::inspect`](crate::protocol::calls::Target::inspect) for a fair
    /// read-write lock.
    ///
    /// # Errors
    /// [`RequestError::Unreachable`] if the reply has another form.
    pub fn read(reply: &Reply) -> Result<Self, RequestError> {
        let [last_token, holders, _, mode, waiters, exclusive_waiters, _] = numbers(reply, 7)?;
        Ok(Self {
            holders: non_negative(holders),
            is_exclusive: mode == 2,
            waiters: non_negative(waiters),
            exclusive_waiters: non_negative(exclusive_waiters),
            remaining: reply.remaining(),
            last_token: non_negative(last_token),
        })
    }
}

impl SemaphoreState {
    /// Reads the reply to [`Target::inspect`](crate::protocol::calls::Target::inspect) for a
    /// semaphore.
    ///
    /// # Errors
    /// [`RequestError::Unreachable`] if the reply has another form.
    pub fn read(reply: &Reply) -> Result<Self, RequestError> {
        let [_, leases, _, available, held] = numbers(reply, 3)?;
        Ok(Self { available, leases: non_negative(leases), held: non_negative(held) })
    }
}

impl PermitsState {
    /// Reads the reply to the same query for a permit-expirable semaphore.
    ///
    /// # Errors
    /// [`RequestError::Unreachable`] if the reply has another form.
    pub fn read(reply: &Reply) -> Result<Self, RequestError> {
        let [_, acquired, held, available, total] = numbers(reply, 3)?;
        let (acquired, are_held) = (non_negative(acquired), held == 1);
        Ok(Self { available, acquired, total, remaining: reply.remaining(), are_held })
    }
}

/// Reads the value of a reply as a number.
///
/// # Errors
/// [`RequestError::Unreachable`] if the reply has another form.
pub fn parse_number(reply: &Reply) -> Result<i64, RequestError> {
    reply.value.parse().map_err(|_| garbled())
}

/// Reads `min` to `N` numbers; missing ones are zero.
fn numbers<const N: usize>(reply: &Reply, min: usize) -> Result<[i64; N], RequestError> {
    let mut numbers = [0; N];
    let mut count = 0;
    for (number, text) in numbers.iter_mut().zip(reply.value.split(',')) {
        *number = text.parse().map_err(|_| garbled())?;
        count += 1;
    }
    if count < min { Err(garbled()) } else { Ok(numbers) }
}

fn non_negative(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
