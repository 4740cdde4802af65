//! A hold: what is known of it, in one place for all the leases that share it.

use std::sync::{Mutex, PoisonError};

use super::notice::Notice;
use crate::error::{LossReason, RequestError};
use crate::machine::{Grant, Lease, LeaseState, Released, Renewal};
use crate::protocol::script::LockCalls;
use crate::time::Instant;
use crate::timing::LeaseTime;

/// How a hold ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseEnd {
    /// By a release.
    Released,
    /// Against the holder's will.
    Lost(LossReason),
}

pub(super) struct Hold {
    pub(super) calls: LockCalls,
    pub(super) grant: Grant,
    pub(super) renews: bool,
    record: Mutex<Record>,
    notice: Notice,
}

#[derive(Debug)]
struct Record {
    lease: Lease,
    state: LeaseState,
    /// The longest lease that was ever asked for: noted before it is asked, since the answer may be lost.
    longest: LeaseTime,
    /// How many leases share the hold.
    count: u32,
    release: ReleaseState,
}

#[derive(Clone, Copy, Debug)]
enum ReleaseState {
    NotYet,
    UnderWay,
    Over(Released),
}

impl Hold {
    pub(super) fn new(calls: LockCalls, grant: Grant, renews: bool) -> Self {
        let record = Record {
            lease: grant.lease,
            state: LeaseState::Held,
            longest: grant.lease.time(),
            count: 1,
            release: ReleaseState::NotYet,
        };
        Self { calls, grant, renews, record: Mutex::new(record), notice: Notice::default() }
    }

    fn record<R>(&self, access: impl FnOnce(&mut Record) -> R) -> R {
        access(&mut self.record.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn change<R>(&self, access: impl FnOnce(&mut Record) -> R) -> R {
        let result = self.record(access);
        self.notice.notify();
        result
    }

    pub(super) fn count(&self) -> u32 {
        self.record(|record| record.count)
    }

    /// The lease as last confirmed.
    pub(super) fn lease(&self) -> Lease {
        self.record(|record| record.lease)
    }

    pub(super) fn state(&self) -> LeaseState {
        self.record(|record| record.state)
    }

    /// Whether it can be trusted for as long as its lease lasts.
    pub(super) fn stands(&self) -> bool {
        self.record(|record| record.stands())
    }

    /// How it ended, if it has.
    pub(super) fn end(&self) -> Option<LeaseEnd> {
        self.record(|record| match (record.state, record.release) {
            (LeaseState::Lost(reason), _) => Some(LeaseEnd::Lost(reason)),
            (_, ReleaseState::NotYet) => None,
            _ => Some(LeaseEnd::Released),
        })
    }

    /// One lease more, if the hold still stands.
    pub(super) fn enter(&self, now: Instant) -> bool {
        self.look(now);
        self.record(|record| {
            let stands = record.stands();
            if stands {
                record.count += 1;
            }
            stands
        })
    }

    /// One lease less; answers whether it was the last.
    pub(super) fn leave(&self) -> bool {
        self.change(|record| {
            record.count = record.count.saturating_sub(1);
            record.count == 0
        })
    }

    /// Sees to it that a lease that has run out counts as lost, whoever looks first.
    pub(super) fn look(&self, now: Instant) {
        let has_run_out =
            |record: &mut Record| !record.is_over() && now.has_reached(record.lease.expires_at());
        if self.record(has_run_out) {
            self.lose(LossReason::Expired);
        }
    }

    pub(super) fn lose(&self, reason: LossReason) {
        self.change(|record| {
            if !record.is_over() {
                record.state = LeaseState::Lost(reason);
            }
        });
    }

    /// The longest lease that was ever asked for.
    pub(super) fn longest(&self) -> LeaseTime {
        self.record(|record| record.longest)
    }

    /// Says that a renewal on demand is to be asked for.
    pub(super) fn renewing(&self, lease: LeaseTime) {
        self.record(|record| record.longest = record.longest.max(lease));
    }

    /// Takes over what a renewal on demand came to.
    pub(super) fn renewed(&self, outcome: Result<Lease, RequestError>) -> Result<(), RequestError> {
        match outcome {
            Ok(lease) => {
                self.change(|record| {
                    if !record.is_over() {
                        record.lease = record.lease.extended_by(&lease);
                        record.state = LeaseState::Renewed;
                    }
                });
                Ok(())
            }
            Err(error) => {
                if let RequestError::Lost(reason) = error {
                    self.lose(reason);
                }
                Err(error)
            }
        }
    }

    /// Both ways: what a renewal besides the machine has confirmed, and what the machine knows.
    pub(super) fn share(&self, renewal: &mut Renewal) {
        let changed = self.record(|record| {
            renewal.adopt(record.lease);
            if record.count == 0 {
                // All its leases were dropped. Who still heeds the signal is told of the end.
                renewal.only_watch();
            }
            let before = (record.lease, record.state);
            if !record.is_over() {
                record.lease = record.lease.extended_by(&renewal.lease());
                record.state = renewal.state();
            }
            before != (record.lease, record.state)
        });
        if changed {
            self.notice.notify();
        }
    }

    /// Ends when the hold is lost, or its release has begun.
    pub(super) async fn over(&self) {
        self.notice.until(|| self.record(|record| record.is_over().then_some(()))).await;
    }

    /// Ends when the hold is over, or its lease does not end at `expires_at` any more.
    pub(super) async fn changed(&self, expires_at: Instant) {
        let is_changed =
            |record: &mut Record| record.is_over() || record.lease.expires_at() != expires_at;
        self.notice.until(|| self.record(is_changed).then_some(())).await;
    }

    /// Waits for the turn to release it; the answer stands instead when somebody else had the turn.
    ///
    /// One request, whoever asks; the others hear its answer.
    pub(super) async fn release_turn(&self) -> Result<ReleaseTurn<'_>, Released> {
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

impl Record {
    /// Lost once is lost for ever, and a release does not turn into a loss.
    const fn is_over(&self) -> bool {
        matches!(self.state, LeaseState::Lost(_)) || !matches!(self.release, ReleaseState::NotYet)
    }

    const fn stands(&self) -> bool {
        !self.is_over() && self.count > 0
    }
}

/// The turn to release a hold. One that failed, or was dropped half-way, may be asked for again.
pub(super) struct ReleaseTurn<'a>(&'a Hold);

impl ReleaseTurn<'_> {
    pub(super) fn over(self, verdict: Released) {
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
