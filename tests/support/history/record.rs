//! Records a history: converts a client's results to the checker's terms.

use std::time::Duration;

use edgelatch_proto::error::{AcquireError, ReleaseError};
use edgelatch_proto::machine::Released;

use super::{
    AcquireResult, Acquisition, Claim, History, Hold, NEVER, ReleaseCall, ReleaseResult, Time,
};

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
    pub fn record_call(&mut self, now: Time, claims: &[Claim], lease: Duration) -> usize {
        self.acquisitions.push(Acquisition {
            owner: self.acquisitions.len() as u32,
            claims: claims.into(),
            invoked: now,
            completed: NEVER,
            lease: lease.as_micros() as Time,
            result: AcquireResult::Nothing,
        });
        self.acquisitions.len() - 1
    }

    /// Records the result of an acquisition.
    pub fn record_result(&mut self, now: Time, acquisition: usize, result: AcquireResult) {
        let acquisition = &mut self.acquisitions[acquisition];
        (acquisition.completed, acquisition.result) = (now, result);
    }

    /// Records the failure of an acquisition: nothing is held, or a hold may exist.
    pub fn record_refusal(&mut self, now: Time, acquisition: usize, error: &AcquireError) {
        let result = match error {
            AcquireError::Busy { .. } => AcquireResult::Busy,
            AcquireError::Cancelled { held_at_most: Some(time) }
            | AcquireError::Unknown { held_at_most: time, .. } => {
                AcquireResult::Unknown { over: now + at_most(*time) }
            }
            _ => AcquireResult::Not,
        };
        self.record_result(now, acquisition, result);
    }

    /// Records that the holder observes its lease, with `left` remaining.
    pub fn record_lease(&mut self, now: Time, acquisition: usize, left: Duration) {
        if !left.is_zero() {
            self.change(acquisition, |hold| hold.record_lease(now, at_least(left)));
        }
    }

    /// Records that Redis reported a hold that existed at `sent` or later.
    pub fn record_held(&mut self, now: Time, acquisition: usize, sent: Time) {
        self.change(acquisition, |hold| hold.record_held(now, sent));
    }

    /// Records that Redis reported that a hold does not exist any more.
    pub fn record_gone(&mut self, now: Time, acquisition: usize) {
        self.change(acquisition, |hold| hold.gone = hold.gone.or(Some(now)));
    }

    pub fn record_release_call(&mut self, now: Time, acquisition: usize) {
        let end = ReleaseCall { sent: now, completed: NEVER, result: ReleaseResult::Nothing };
        self.change(acquisition, |hold| hold.end = Some(end));
    }

    pub fn record_release_result(
        &mut self,
        now: Time,
        acquisition: usize,
        answer: &Result<Released, ReleaseError>,
    ) {
        let result = match answer {
            Ok(Released::Released) => ReleaseResult::Released,
            Ok(Released::WasLost) => ReleaseResult::WasLost,
            Err(ReleaseError::Unknown { held_at_most, .. }) => {
                ReleaseResult::Unknown { over: now + at_most(*held_at_most) }
            }
            Err(_) => ReleaseResult::Nothing,
        };
        self.change(acquisition, |hold| {
            hold.end = hold.end.map(|end| ReleaseCall { completed: now, result, ..end })
        });
    }

    /// A short form to read.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let acquisitions = self.acquisitions.iter().enumerate();
        let counts = self.counts.iter().map(|count| format!("{count:?}"));
        acquisitions.map(|(number, acquisition)| format!("{number}: {acquisition:?}")).chain(counts)
    }

    fn change(&mut self, acquisition: usize, change: impl FnOnce(&mut Hold)) {
        if let Some(hold) = self.hold(acquisition) {
            change(hold);
        }
    }
}
