//! Latches: there is no token that says in which order things were done, so it is searched for.
//!
//! Calls and answers are gone through in the order of time, with all states that a latch can be in
//! by then: each is a number, and which of the calls under way have been done already. An answer
//! leaves those in which its call was done, at once or by doing it now; a call of which nobody
//! heard stays under way for ever. That is Wing's and Gong's search in Lowe's order, whose memory
//! is that set of states.

use std::collections::BTreeSet;

use super::{Act, Count, History, NEVER, Time};

/// A latch in the middle of a history: what is left to count, and which of the calls that are under
/// way have been done.
type State = (u64, Vec<usize>);

impl History {
    /// I6 and I10: some order of the calls, each in its time, explains all answers.
    pub(super) fn judge_counts(&self) -> Result<(), String> {
        let names: BTreeSet<u8> = self.counts.iter().map(|count| count.name).collect();
        // What a loss takes with it, an older number among it, is no number of anything.
        let last = self.ground.losses.iter().map(|loss| loss.from).min().unwrap_or(NEVER);
        for name in names {
            let counts = self.counts.iter().filter(|count| count.name == name);
            let before = counts.filter(|count| count.invoked < last);
            search(&before.map(|count| count.until(last)).collect::<Vec<_>>())?;
        }
        Ok(())
    }
}

impl Count {
    /// What is known of it without an answer that came after this.
    fn until(&self, last: Time) -> Self {
        let act = match self.act {
            act if self.completed < last => act,
            Act::Set(to, _) | Act::PerhapsSet(to) => Act::PerhapsSet(to),
            Act::Down(_) | Act::PerhapsDown => Act::PerhapsDown,
            Act::Read(_) | Act::Closed | Act::Nothing => Act::Nothing,
        };
        Self { act, ..*self }
    }
}

fn search(counts: &[Count]) -> Result<(), String> {
    let calls = counts.iter().enumerate().map(|(number, count)| (count.invoked, 0, number));
    let answers = counts.iter().enumerate().filter(|(_, count)| !count.act.is_unheard());
    let mut events: Vec<_> =
        calls.chain(answers.map(|(number, count)| (count.completed, 1, number))).collect();
    // Of a call and an answer at the same time either may have been first.
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

/// The states in which a call is done, reached by doing whatever is under way in any order.
fn answered(
    counts: &[Count],
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
        // Of calls that are alike and that nobody hears of, which is done first makes no
        // difference.
        let alike = |one: usize, other: usize| {
            other < one && counts[one].act == counts[other].act && counts[one].act.is_unheard()
        };
        let first =
            |one: &&usize| !under_way.iter().filter(waits).any(|other| alike(**one, *other));
        for other in under_way.iter().filter(waits).filter(first) {
            if let Some(left) = counts[*other].act.done(left) {
                let mut done = done.clone();
                done.push(*other);
                done.sort_unstable();
                open.insert((left, done));
            }
        }
    }
    good
}

impl Act {
    const fn is_unheard(self) -> bool {
        matches!(self, Self::PerhapsSet(_) | Self::PerhapsDown | Self::Nothing)
    }

    /// What is left when it is done, if its answer is the one that was told.
    const fn done(self, left: u64) -> Option<u64> {
        let down = left.saturating_sub(1);
        match self {
            Self::Set(to, true) | Self::PerhapsSet(to) if left == 0 => Some(to),
            Self::Set(_, false) if left > 0 => Some(left),
            Self::Down(told) if told == down => Some(down),
            Self::PerhapsDown if left > 0 => Some(down),
            Self::Read(told) if told == left => Some(left),
            Self::Closed if left > 0 => Some(left),
            _ => None,
        }
    }
}
