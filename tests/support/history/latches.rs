//! Checks that calls to count-down latches are linearizable. No token orders these calls, so the
//! checker searches for an order.
//!
//! It processes calls and responses by time, and keeps the set of all possible states of the latch:
//! its remaining count, and which of the pending calls have taken effect. A response keeps the
//! states in which its call has taken effect, before or at this point, with this response. A call
//! with an unknown outcome stays pending for ever. This is the search of Wing and Gong in Lowe's
//! order, memoised by the set of states.

use std::collections::BTreeSet;

use super::{History, LatchCall, LatchOperation, NEVER, Time};

/// A possible state of a latch: the remaining count, and the indices of the pending calls that have
/// taken effect, in ascending order.
type State = (u64, Vec<usize>);

impl History {
    /// I6 and I10: some order of the calls, each with one effect between its start and its
    /// response, explains all responses. Errors name I6 for both.
    pub(super) fn check_latches(&self) -> Result<(), String> {
        let names: BTreeSet<u8> = self.latch_calls.iter().map(|call| call.name).collect();
        // From the first data loss on, any count is possible: the latch may be lost, or an older
        // count may come back with a replica. Only earlier responses are checked.
        let last = self.assumptions.losses.iter().map(|loss| loss.from).min().unwrap_or(NEVER);
        for name in names {
            let calls = self.latch_calls.iter().filter(|call| call.name == name);
            let before = calls.filter(|call| call.invoked < last);
            search(&before.map(|call| call.until(last)).collect::<Vec<_>>())?;
        }
        Ok(())
    }
}

impl LatchCall {
    /// This call as known at `last`: a response that came later is replaced by an unknown outcome.
    fn until(&self, last: Time) -> Self {
        let operation = match self.operation {
            operation if self.completed < last => operation,
            LatchOperation::Set(to, _) | LatchOperation::UnconfirmedSet(to) => {
                LatchOperation::UnconfirmedSet(to)
            }
            LatchOperation::CountDown(_) | LatchOperation::UnconfirmedCountDown => {
                LatchOperation::UnconfirmedCountDown
            }
            LatchOperation::Read(_) | LatchOperation::Closed | LatchOperation::Ignored => {
                LatchOperation::Ignored
            }
        };
        Self { operation, ..*self }
    }
}

/// Searches for an order of the calls to one latch. Fails at the first response that no order
/// explains.
fn search(calls: &[LatchCall]) -> Result<(), String> {
    let starts = calls.iter().enumerate().map(|(number, call)| (call.invoked, 0, number));
    let responses = calls.iter().enumerate().filter(|(_, call)| !call.operation.is_unconfirmed());
    let mut events: Vec<_> =
        starts.chain(responses.map(|(number, call)| (call.completed, 1, number))).collect();
    // At equal times calls come before responses: they overlap, so either order is possible.
    events.sort_unstable();
    let mut under_way: Vec<usize> = Vec::new();
    // At first the latch is open: its count is 0.
    let mut states = BTreeSet::from([(0, Vec::new())]);
    for (at, kind, number) in events {
        if kind == 0 {
            under_way.push(number);
            continue;
        }
        states = states_after(calls, &under_way, states, number);
        under_way.retain(|other| *other != number);
        if states.is_empty() {
            return Err(format!("I6 at {at}: nothing explains {:?}", calls[number]));
        }
    }
    Ok(())
}

/// Returns the states in which call `number` has taken effect with its recorded response, after any
/// of the pending calls in any order; empty if there is no such state. The returned states do not
/// have this call among the pending ones any more.
fn states_after(
    calls: &[LatchCall],
    under_way: &[usize],
    states: BTreeSet<State>,
    number: usize,
) -> BTreeSet<State> {
    // States to continue from, states that were continued, and states to return.
    let (mut open, mut seen, mut good) = (states, BTreeSet::new(), BTreeSet::new());
    while let Some((left, done)) = open.pop_first() {
        if !seen.insert((left, done.clone())) {
            continue;
        }
        if done.contains(&number) {
            let others = done.iter().copied().filter(|other| *other != number).collect();
            good.insert((left, others));
            continue;
        }
        let waits = |other: &&usize| !done.contains(other);
        // Equal calls with an unknown outcome are interchangeable: only the first one is tried.
        let alike = |one: usize, other: usize| {
            other < one
                && calls[one].operation == calls[other].operation
                && calls[one].operation.is_unconfirmed()
        };
        let first =
            |one: &&usize| !under_way.iter().filter(waits).any(|other| alike(**one, *other));
        for other in under_way.iter().filter(waits).filter(first) {
            if let Some(left) = calls[*other].operation.done(left) {
                let mut done = done.clone();
                done.push(*other);
                done.sort_unstable();
                open.insert((left, done));
            }
        }
    }
    good
}

impl LatchOperation {
    /// Whether the call has no response to check. Its effect may come at any later time, or never.
    const fn is_unconfirmed(self) -> bool {
        matches!(self, Self::UnconfirmedSet(_) | Self::UnconfirmedCountDown | Self::Ignored)
    }

    /// The remaining count after this operation on a latch with the count `left`; `None` if its
    /// recorded response is not possible then, or if the operation has no effect.
    const fn done(self, left: u64) -> Option<u64> {
        let down = left.saturating_sub(1);
        match self {
            Self::Set(to, true) | Self::UnconfirmedSet(to) if left == 0 => Some(to),
            Self::Set(_, false) if left > 0 => Some(left),
            Self::CountDown(returned) if returned == down => Some(down),
            Self::UnconfirmedCountDown if left > 0 => Some(down),
            Self::Read(returned) if returned == left => Some(left),
            Self::Closed if left > 0 => Some(left),
            _ => None,
        }
    }
}
