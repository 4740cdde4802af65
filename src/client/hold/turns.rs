//! What is done by one at a time: releasing a hold, and writing to a guarded key in its name.

use super::{Hold, Record, ReleaseState};
use crate::error::LossReason;
use crate::machine::{LeaseState, Released};
use crate::name::GuardKey;

impl Hold {
    /// Waits for the turn to write to a guarded key, and numbers the write: of one hold and one
    /// key, one is under way at a time.
    pub(in crate::client) async fn write_turn(&self, key: &GuardKey) -> WriteTurn<'_> {
        let look = |record: &mut Record| {
            let place = record.writes.iter().position(|(other, ..)| other == key);
            let place = place.unwrap_or(record.writes.len());
            if place == record.writes.len() {
                record.writes.push((key.clone(), 0, false));
            }
            let (_, number, under_way) = record.writes.get_mut(place)?;
            if *under_way {
                return None;
            }
            (*number, *under_way) = (*number + 1, true);
            Some((place, *number))
        };
        let (place, number) = self.notice.until(|| self.record(look)).await;
        WriteTurn { hold: self, place, number }
    }

    /// Waits for the turn to release it; the answer stands instead when somebody else had the turn.
    ///
    /// One request, whoever asks; the others hear its answer.
    pub(in crate::client) async fn release_turn(&self) -> Result<ReleaseTurn<'_>, Released> {
        let look = |record: &mut Record| match record.release {
            ReleaseState::UnderWay => None,
            ReleaseState::NotYet if record.count > 0 => Some(Err(Released::Released)),
            ReleaseState::NotYet => {
                record.release = ReleaseState::UnderWay;
                Some(Ok(()))
            }
            ReleaseState::Over(verdict) => Some(Err(verdict)),
        };
        self.notice.until(|| self.record(look)).await?;
        // Those who keep the hold are to stop.
        self.notice.notify();
        Ok(ReleaseTurn(self))
    }
}

/// The turn to release a hold. One that failed, or was dropped half-way, may be asked for again.
pub(in crate::client) struct ReleaseTurn<'a>(&'a Hold);

impl ReleaseTurn<'_> {
    pub(in crate::client) fn over(self, verdict: Released) {
        self.0.change(|record| {
            record.release = ReleaseState::Over(verdict);
            if verdict == Released::WasLost && !matches!(record.state, LeaseState::Lost(_)) {
                record.state = LeaseState::Lost(LossReason::Gone);
            }
        });
    }
}

impl Drop for ReleaseTurn<'_> {
    fn drop(&mut self) {
        self.0.change(|record| {
            if matches!(record.release, ReleaseState::UnderWay) {
                record.release = ReleaseState::NotYet;
            }
        });
    }
}

/// The turn to write to a guarded key.
pub(in crate::client) struct WriteTurn<'a> {
    hold: &'a Hold,
    place: usize,
    /// The how many-th write of this hold to this key it is.
    pub(in crate::client) number: u64,
}

impl Drop for WriteTurn<'_> {
    fn drop(&mut self) {
        self.hold.change(|record| {
            if let Some((.., under_way)) = record.writes.get_mut(self.place) {
                *under_way = false;
            }
        });
    }
}
