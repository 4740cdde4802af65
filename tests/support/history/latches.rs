//! Checks count-down latches. Without a token that orders their operations, the checker searches
//! for an order.
//!
//! It processes calls and responses by time, and keeps the set of all possible states of the latch:
//! its number, and which of the pending calls have taken effect. A response keeps the states in
//! which its call has taken effect, before or at this point; a call without a response stays
//! pending for ever. This is the search of Wing and Gong in Lowe's order, memoised by the set of
//! states.

use std::collections::BTreeSet;

use super::{History, LatchCall, LatchOperation, NEVER, Time};

/// A possible state of a latch: the remaining count, and the pending calls that have taken effect.
type State = (u64, Vec<usize>);

impl History {
    /// I6 and I10: some order of the calls, each between its start and its response, explains all
    /// responses.
    pub(super) fn check_latches(&self) -> Result<(), String> {
        let names: BTreeSet<u8> = self.counts.iter().map(|count| count.name).collect();
        // A data loss, or an older number that comes back with it, makes every later number
        // meaningless.
        let last = self.assumptions.losses.iter().map(|loss| loss.from).min().unwrap_or(NEVER);
        for name in names {
            let counts = self.counts.iter().filter(|count| count.name == name);
            let before = counts.filter(|count| count.invoked < last);
            search(&before.map(|count| count.until(last)).collect::<Vec<_>>())?;
        }
        Ok(())
    }
}

impl LatchCall {
    /// This call without a response that came after `last`.
    fn until(&self, last: Time) -> Self {
        let operation = match self.operation {
            operation if self.completed < last => operation,
            LatchOperation::Set(to, _) | LatchOperation::PerhapsSet(to) => {
                LatchOperation::PerhapsSet(to)
            }
            LatchOperation::Down(_) | LatchOperation::PerhapsDown => LatchOperation::PerhapsDown,
            LatchOperation::Read(_) | LatchOperation::Closed | LatchOperation::Nothing => {
                LatchOperation::Nothing
            }
        };
        Self { operation, ..*self }
    }
}

fn search(counts: &[LatchCall]) -> Result<(), String> {
    let calls = counts.iter().enumerate().map(|(number, count)| (count.invoked, 0, number));
    let answers = counts.iter().enumerate().filter(|(_, count)| !count.operation.is_unconfirmed());
    let mut events: Vec<_> =
        calls.chain(answers.map(|(number, count)| (count.completed, 1, number))).collect();
    // A call and a response at the same time may have happened in either order.
    events.sort_unstable();
    let mut under_way: Vec<usize> = Vec::new();
    let mut states = BTreeSet::from([(0, Vec::new())]);
    for (at, kind, number) in events {
        if kind == 0 {
            under_way.push(number);
            continue;
        }
        states = answered(counts, &under_way, states, number);
        under_way.retain(|other| *other != number);
        if states.is_empty() {
            return Err(format!("I6 at {at}: nothing explains {:?}", counts[number]));
        }
    }
    Ok(())
}

/// Returns the states in which call `number` has taken effect, after any pending calls in any
/// order.
fn answered(
    counts: &[LatchCall],
    under_way: &[usize],
    states: BTreeSet<State>,
    number: usize,
) -> BTreeSet<State> {
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
        // Equal calls without a response are interchangeable: only the first is tried.
        let alike = |one: usize, other: usize| {
            other < one
                && counts[one].operation == counts[other].operation
                && counts[one].operation.is_unconfirmed()
        };
        let first =
            |one: &&usize| !under_way.iter().filter(waits).any(|other| alike(**one, *other));
        for other in under_way.iter().filter(waits).filter(first) {
            if let Some(left) = counts[*other].operation.done(left) {
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
    const fn is_unconfirmed(self) -> bool {
        matches!(self, Self::PerhapsSet(_) | Self::PerhapsDown | Self::Nothing)
    }

    /// The remaining count after this act, or `None` if its recorded response contradicts `left`.
    const fn done(self, left: u64) -> Option<u64> {
        let down = left.saturating_sub(1);
        match self {
            Self::Set(to, true) | Self::PerhapsSet(to) if left == 0 => Some(to),
            Self::Set(_, false) if left > 0 => Some(left),
            Self::Down(returned) if returned == down => Some(down),
            Self::PerhapsDown if left > 0 => Some(down),
            Self::Read(returned) if returned == left => Some(left),
            Self::Closed if left > 0 => Some(left),
            _ => None,
        }
    }
}
