//! Operations that run one at a time: releasing a hold, and writing to a guarded key under it.

use super::{Hold, Record, ReleaseState};
use crate::error::LossReason;
use edgelatch_proto::machine::{LeaseState, Released};
use edgelatch_proto::name::GuardKey;

impl Hold {
    /// Waits until no other write of this hold to this key is under way, and numbers the next one.
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

    /// Waits until no other release is under way. Returns its result if it has succeeded, and
    /// `Released::Released` while other leases share the hold.
    ///
    /// At most one request is under way, however many callers release the hold. If it succeeds, all
    /// of them get its result.
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
        // The tasks that renew the hold stop.
        self.notice.notify();
        Ok(ReleaseTurn(self))
    }
}

/// The right to release a hold. If it is dropped before `over`, the release may be attempted again.
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

/// The right to write to a guarded key.
pub(in crate::client) struct WriteTurn<'a> {
    hold: &'a Hold,
    place: usize,
    /// The ordinal of this write among those of this hold to this key.
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
