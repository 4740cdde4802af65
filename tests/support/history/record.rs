//! How a history is kept: what the client answered, in the words of the judge.

use std::time::Duration;

use edgelatch::error::{AcquireError, ReleaseError};
use edgelatch::machine::Released;

use super::{Claim, End, History, Hold, NEVER, Take, Time, Told, Verdict};

/// What a holder's clock calls so long, at the least: its own one per cent is not the only one.
fn at_least(time: Duration) -> Time {
    (time.as_micros() as Time * 98 / 100).saturating_sub(2_000)
}

/// The same at the most.
fn at_most(time: Duration) -> Time {
    time.as_micros() as Time * 102 / 100 + 10_000
}

impl History {
    /// Somebody begins to acquire, as an owner of its own; answers the number of it.
    pub fn invokes(&mut self, now: Time, claims: &[Claim], lease: Duration) -> usize {
        self.takes.push(Take {
            owner: self.takes.len() as u32,
            claims: claims.into(),
            invoked: now,
            completed: NEVER,
            lease: lease.as_micros() as Time,
            told: Told::Nothing,
        });
        self.takes.len() - 1
    }

    /// And is told the end of it.
    pub fn is_told(&mut self, now: Time, take: usize, told: Told) {
        let take = &mut self.takes[take];
        (take.completed, take.told) = (now, told);
    }

    /// And is told that it has nothing, or that it may have.
    pub fn is_told_no(&mut self, now: Time, take: usize, error: &AcquireError) {
        let told = match error {
            AcquireError::Busy { .. } => Told::Busy,
            AcquireError::Cancelled { held_at_most: Some(time) }
            | AcquireError::Unknown { held_at_most: time, .. } => {
                Told::Unknown { over: now + at_most(*time) }
            }
            _ => Told::Not,
        };
        self.is_told(now, take, told);
    }

    /// A holder looks at its lease, of which so much is left.
    pub fn sees(&mut self, now: Time, take: usize, left: Duration) {
        if !left.is_zero() {
            self.change(take, |hold| hold.sees(now, at_least(left)));
        }
    }

    /// Redis has said that a hold was there after `asked`.
    pub fn stood(&mut self, now: Time, take: usize, asked: Time) {
        self.change(take, |hold| hold.stood(now, asked));
    }

    /// Redis has said that a hold is not there any more.
    pub fn is_gone(&mut self, now: Time, take: usize) {
        self.change(take, |hold| hold.gone = hold.gone.or(Some(now)));
    }

    pub fn asks_to_release(&mut self, now: Time, take: usize) {
        let end = End { asked: now, told: NEVER, verdict: Verdict::Nothing };
        self.change(take, |hold| hold.end = Some(end));
    }

    pub fn is_told_of_release(
        &mut self,
        now: Time,
        take: usize,
        answer: &Result<Released, ReleaseError>,
    ) {
        let verdict = match answer {
            Ok(Released::Released) => Verdict::Released,
            Ok(Released::WasLost) => Verdict::WasLost,
            Err(ReleaseError::Unknown { held_at_most, .. }) => {
                Verdict::Unknown { over: now + at_most(*held_at_most) }
            }
            Err(_) => Verdict::Nothing,
        };
        self.change(take, |hold| hold.end = hold.end.map(|end| End { told: now, verdict, ..end }));
    }

    /// In few words, for people.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let takes = self.takes.iter().enumerate();
        let counts = self.counts.iter().map(|count| format!("{count:?}"));
        takes.map(|(number, take)| format!("{number}: {take:?}")).chain(counts)
    }

    fn change(&mut self, take: usize, change: impl FnOnce(&mut Hold)) {
        if let Some(hold) = self.hold(take) {
            change(hold);
        }
    }
}
