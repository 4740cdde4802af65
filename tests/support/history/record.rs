//! Records a history while a test runs: converts the results that a client returns to the checker's
//! terms, and the times that its clocks show to times of the test's clock.

use std::time::Duration;

use edgelatch_proto::error::{AcquireError, ReleaseError};
use edgelatch_proto::machine::Released;

use super::{
    AcquireResult, Acquisition, Claim, History, Hold, NEVER, ReleaseCall, ReleaseResult, Time,
};

/// The least real time that a client's clock may show as `time`: 2 % and 2 ms less. The client
/// allows for a drift of 1 %; the rest covers rounding and the time between two readings.
fn at_least(time: Duration) -> Time {
    (time.as_micros() as Time * 98 / 100).saturating_sub(2_000)
}

/// The longest real time that a client's clock may show as `time`: 2 % and 10 ms more.
fn at_most(time: Duration) -> Time {
    time.as_micros() as Time * 102 / 100 + 10_000
}

impl History {
    /// Records the start of an acquisition, and returns its number for the calls below. Each
    /// acquisition gets another owner, so recorded acquisitions share no hold.
    pub fn record_call(&mut self, now: Time, claims: &[Claim], lease: Duration) -> usize {
        self.acquisitions.push(Acquisition {
            owner: self.acquisitions.len() as u32,
            claims: claims.into(),
            invoked: now,
            completed: NEVER,
            lease: lease.as_micros() as Time,
            result: AcquireResult::NoResponse,
        });
        self.acquisitions.len() - 1
    }

    /// Records the result of an acquisition, received now.
    pub fn record_result(&mut self, now: Time, acquisition: usize, result: AcquireResult) {
        let acquisition = &mut self.acquisitions[acquisition];
        (acquisition.completed, acquisition.result) = (now, result);
    }

    /// Records the failure of an acquisition. A hold may exist only if the error has a bound for
    /// it; any other error promises that nothing is held.
    pub fn record_refusal(&mut self, now: Time, acquisition: usize, error: &AcquireError) {
        let result = match error {
            AcquireError::Busy { .. } => AcquireResult::Busy,
            AcquireError::Cancelled { held_at_most: Some(time) }
            | AcquireError::Unknown { held_at_most: time, .. } => {
                AcquireResult::Unknown { ends_by: now + at_most(*time) }
            }
            _ => AcquireResult::Failed,
        };
        self.record_result(now, acquisition, result);
    }

    /// Records that the holder's own clocks show a lease with `left` remaining. A lease that is
    /// over proves nothing, and is not recorded.
    pub fn record_lease(&mut self, now: Time, acquisition: usize, left: Duration) {
        if !left.is_zero() {
            self.change(acquisition, |hold| hold.record_lease(now, at_least(left)));
        }
    }

    /// Records a reply of Redis, received now, that the hold exists. The call was sent at `sent`.
    pub fn record_held(&mut self, now: Time, acquisition: usize, sent: Time) {
        self.change(acquisition, |hold| hold.record_held(now, sent));
    }

    /// Records Redis' report, received now, that the hold does not exist any more. Only the first
    /// report counts.
    pub fn record_gone(&mut self, now: Time, acquisition: usize) {
        self.change(acquisition, |hold| hold.gone = hold.gone.or(Some(now)));
    }

    /// Records that the holder sends a release now.
    pub fn record_release_call(&mut self, now: Time, acquisition: usize) {
        let end = ReleaseCall { sent: now, completed: NEVER, result: ReleaseResult::NoResponse };
        self.change(acquisition, |hold| hold.end = Some(end));
    }

    /// Records the result of the release, received now. A repeated release replaces it.
    pub fn record_release_result(
        &mut self,
        now: Time,
        acquisition: usize,
        result: &Result<Released, ReleaseError>,
    ) {
        let result = match result {
            Ok(Released::Released) => ReleaseResult::Released,
            Ok(Released::WasLost) => ReleaseResult::WasLost,
            Err(ReleaseError::Unknown { held_at_most, .. }) => {
                ReleaseResult::Unknown { ends_by: now + at_most(*held_at_most) }
            }
            Err(_) => ReleaseResult::NoResponse,
        };
        self.change(acquisition, |hold| {
            hold.end = hold.end.map(|end| ReleaseCall { completed: now, result, ..end })
        });
    }

    /// The history as lines of text, for the message of a failed test.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let acquisitions = self.acquisitions.iter().enumerate();
        let latch_calls = self.latch_calls.iter().map(|call| format!("{call:?}"));
        acquisitions
            .map(|(number, acquisition)| format!("{number}: {acquisition:?}"))
            .chain(latch_calls)
    }

    /// Changes the hold of an acquisition; does nothing if it was not granted.
    fn change(&mut self, acquisition: usize, change: impl FnOnce(&mut Hold)) {
        if let Some(hold) = self.hold(acquisition) {
            change(hold);
        }
    }
}
