//! Records a history: converts a client's results to the checker's terms.

use std::time::Duration;

use edgelatch_proto::error::{AcquireError, ReleaseError};
use edgelatch_proto::machine::Released;

use super::{Claim, End, History, Hold, NEVER, Take, Time, Told, Verdict};

/// The least real time that a holder's clock may show as `time`: 2 % and 2 ms less, since the 1 %
/// that the client allows for is not the only error.
fn at_least(time: Duration) -> Time {
    (time.as_micros() as Time * 98 / 100).saturating_sub(2_000)
}

/// The longest real time that a holder's clock may show as `time`: 2 % and 10 ms more.
fn at_most(time: Duration) -> Time {
    time.as_micros() as Time * 102 / 100 + 10_000
}

impl History {
    /// Records the start of an acquisition by an owner of its own; returns the number of the
    /// acquisition.
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

    /// Records the result of an acquisition.
    pub fn is_told(&mut self, now: Time, take: usize, told: Told) {
        let take = &mut self.takes[take];
        (take.completed, take.told) = (now, told);
    }

    /// Records the failure of an acquisition: nothing is held, or a hold may exist.
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

    /// Records that the holder observes its lease, with `left` remaining.
    pub fn sees(&mut self, now: Time, take: usize, left: Duration) {
        if !left.is_zero() {
            self.change(take, |hold| hold.sees(now, at_least(left)));
        }
    }

    /// Records that Redis reported a hold that existed at `asked` or later.
    pub fn stood(&mut self, now: Time, take: usize, asked: Time) {
        self.change(take, |hold| hold.stood(now, asked));
    }

    /// Records that Redis reported that a hold does not exist any more.
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

    /// A short form to read.
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
