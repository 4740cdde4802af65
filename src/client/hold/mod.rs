//! A hold: its known state, shared by all [`Lease`](super::Lease) handles of it.

mod failures;
mod schedule;
mod turns;

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use std::sync::{Mutex, PoisonError};

use failures::taken_together;
pub(super) use schedule::RenewalSchedule;

use super::notice::Notice;
use super::plan::Term;
use crate::error::{AcquireError, FailureKind, LossReason, RequestError};
use edgelatch_proto::machine::{
    Grant, Lease, LeaseState, OutstandingBound, QuorumLease, Released, Renewed, combined,
};
use edgelatch_proto::name::{FencingToken, GuardKey, LockName, OwnerId};
use edgelatch_proto::protocol::calls::Target;
use edgelatch_proto::time::Instant;

/// The way in which a hold ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseEnd {
    /// By a release.
    Released,
    /// Before its release, for this reason.
    Lost(LossReason),
}

/// The state of a hold at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Situation {
    /// The state of its lease, as last known.
    pub state: LeaseState,
    /// Whether its release has begun.
    pub released: bool,
    /// Makes the situation differ after a renewal, even if the state is the same.
    expires_at: Instant,
}

impl Situation {
    /// Whether the hold is lost, or its release has begun. A stream of events ends with it.
    pub const fn is_over(&self) -> bool {
        self.released || matches!(self.state, LeaseState::Lost(_))
    }
}

pub(super) struct Hold {
    /// The parts: one, or several that were acquired together.
    pub(super) parts: Vec<Part>,
    /// The number of counting parts that the hold needs.
    pub(super) quorum: usize,
    name: LockName,
    /// The token of the grant; `record` has the current one.
    granted: FencingToken,
    record: Mutex<Record>,
    notice: Notice,
}

/// A grant by one script at one gateway.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// The index of its client in the lock's list of clients; not the index of the part.
    pub(super) place: usize,
    pub(super) target: Target,
    pub(super) grant: Grant,
    /// Whether the part counts for the hold. A part without a usable confirmation does not: it may
    /// be held, or granted late, so it is only released.
    pub(super) counts: bool,
}

#[derive(Debug)]
struct Record {
    /// The lease and the token of each part, as last confirmed.
    parts: Vec<(Lease, FencingToken)>,
    /// The lease of the hold, combined from those of its parts.
    lease: Lease,
    state: LeaseState,
    schedule: RenewalSchedule,
    /// For each part, how long delayed copies of its requests may still extend it. A request is
    /// recorded before it is sent, since its reply may be lost.
    reaches: Vec<OutstandingBound>,
    /// The number of leases that share the hold.
    count: u32,
    /// For a hold of the write side: the read hold that its owner has acquired inside it.
    reader: Option<(OwnerId, Weak<Hold>)>,
    /// The token that the release of this hold has brought for that read hold (R6).
    handed_on: Option<FencingToken>,
    /// For each key written through a `Guard`: the number of the newest write under this hold, and
    /// whether it is under way.
    writes: Vec<(GuardKey, u64, bool)>,
    release: ReleaseState,
}

#[derive(Clone, Copy, Debug)]
enum ReleaseState {
    NotYet,
    UnderWay,
    Over(Released),
}

impl Hold {
    /// Creates the hold of these parts. Fails if fewer than `quorum` of them count, which no
    /// machine returns.
    pub(super) fn new(parts: Vec<Part>, quorum: usize, term: Term) -> Result<Self, AcquireError> {
        let counting = || parts.iter().filter(|part| part.counts);
        let lease = combined(counting().map(|part| part.grant.lease), quorum);
        let (Some(lease), Some(first)) = (lease, counting().next()) else {
            return Err(AcquireError::Unreachable(FailureKind::NO_ANSWER));
        };
        let (name, granted) = (first.target.name().clone(), first.grant.token);
        let record = Record {
            parts: parts.iter().map(|part| (part.grant.lease, part.grant.token)).collect(),
            lease,
            state: LeaseState::Held,
            schedule: RenewalSchedule::new(term, lease.sent_at()),
            reaches: parts.iter().map(|part| part.grant.outstanding()).collect(),
            count: 1,
            reader: None,
            handed_on: None,
            writes: Vec::new(),
            release: ReleaseState::NotYet,
        };
        let (record, notice) = (Mutex::new(record), Notice::default());
        Ok(Self { parts, quorum, name, granted, record, notice })
    }

    /// Returns the parts that count, each with its index in `parts`.
    pub(super) fn counting(&self) -> impl Iterator<Item = (usize, &Part)> {
        self.parts.iter().enumerate().filter(|(_, part)| part.counts)
    }

    /// The name of the hold: that of its first counting part.
    pub(super) const fn name(&self) -> &LockName {
        &self.name
    }

    /// The fencing token of the hold: that of its first counting part.
    pub(super) fn token(&self) -> FencingToken {
        let first = self.counting().next().map_or(0, |(place, _)| place);
        self.record(|record| record.parts.get(first).map_or(self.granted, |(_, token)| *token))
    }

    /// The fencing token of one of the hold's names.
    pub(super) fn token_of(&self, name: &str) -> Option<FencingToken> {
        let place = self.parts.iter().position(|part| part.counts && part.target.has_name(name))?;
        self.record(|record| record.parts.get(place).map(|(_, token)| *token))
    }

    fn record<R>(&self, access: impl FnOnce(&mut Record) -> R) -> R {
        access(&mut self.record.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the record, and wakes the tasks that wait for a change.
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

    /// Whether the holder can rely on it: a lease shares the hold, it is not lost, and its release
    /// has not begun.
    pub(super) fn stands(&self) -> bool {
        self.record(|record| record.stands())
    }

    /// Records the read hold that the owner of this write hold has acquired inside it. If this hold
    /// was released before that grant arrived, the grant has the token of a write that has ended:
    /// the read hold then gets the newer token here (R6 in `proto/src/protocol/README.md`).
    pub(super) fn took_inside(&self, reader: &Arc<Self>) {
        let handed_on = self.record(|record| {
            let part = reader.parts.first();
            record.reader = part.map(|part| (part.grant.owner, Arc::downgrade(reader)));
            record.handed_on
        });
        reader.rose(handed_on);
    }

    /// The owner of the read hold inside this write hold: the release names it to Redis.
    pub(super) fn reader(&self) -> Option<OwnerId> {
        self.record(|record| record.reader.as_ref().map(|(owner, _)| *owner))
    }

    /// Records the token that the reply to the release of this write hold has brought, and raises
    /// the tokens of the read hold inside to it, if there is one.
    pub(super) fn hands_on(&self, token: Option<FencingToken>) {
        let reader = self.record(|record| {
            record.handed_on = token;
            record.reader.as_ref().and_then(|(_, reader)| reader.upgrade())
        });
        if let Some(reader) = reader {
            reader.rose(token);
        }
    }

    /// Raises the tokens to a newer one than that of the grant. Renewals go on sending the token
    /// that they know: Redis reports a hold as lost if they send a newer one than its latch has,
    /// and may not have raised the latch yet. Wakes no task: none waits for a token.
    fn rose(&self, newer: Option<FencingToken>) {
        let Some(newer) = newer else { return };
        self.record(|record| {
            for (_, token) in &mut record.parts {
                *token = newer.max(*token);
            }
        });
    }

    /// How the hold ended, if it has.
    pub(super) fn end(&self) -> Option<LeaseEnd> {
        self.record(|record| match (record.state, record.release) {
            (LeaseState::Lost(reason), _) => Some(LeaseEnd::Lost(reason)),
            (_, ReleaseState::NotYet) => None,
            _ => Some(LeaseEnd::Released),
        })
    }

    /// Adds a lease if the hold still stands, and returns whether it does.
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

    /// Removes a lease, and returns whether it was the last.
    pub(super) fn leave(&self) -> bool {
        self.change(|record| {
            record.count = record.count.saturating_sub(1);
            record.count == 0
        })
    }

    /// Marks the hold as lost if its lease has run out. Callers use it before they read the state,
    /// since no task watches the lease of a hold that is not kept.
    pub(super) fn look(&self, now: Instant) {
        let runs_out = |record: &mut Record| {
            let runs_out = !record.is_over() && now.has_reached(record.lease.expires_at());
            if runs_out {
                record.state = LeaseState::Lost(LossReason::Expired);
            }
            runs_out
        };
        if self.record(runs_out) {
            self.notice.notify();
        }
    }

    pub(super) fn lose(&self, reason: LossReason) {
        self.change(|record| {
            if !record.is_over() {
                record.state = LeaseState::Lost(reason);
            }
        });
    }

    /// For each part, how long delayed copies of its requests may still extend it.
    pub(super) fn reaches(&self) -> Vec<OutstandingBound> {
        self.record(|record| record.reaches.clone())
    }

    /// Records a renewal on demand of the part with this index, before it is sent.
    pub(super) fn renewing(&self, place: usize, reach: OutstandingBound) {
        self.record(|record| record.reaches(place, reach));
    }

    /// Applies the outcomes of a renewal on demand, one for each part that counts, in their order.
    /// A quorum of successes renews the hold.
    pub(super) fn renewed(
        &self,
        outcomes: Vec<Result<Renewed, RequestError>>,
    ) -> Result<(), RequestError> {
        let mut errors = Vec::new();
        self.change(|record| {
            for ((place, _), outcome) in self.counting().zip(outcomes) {
                match (outcome, record.parts.get_mut(place)) {
                    (Ok(renewed), Some((lease, token))) => {
                        *lease = lease.extended_by(&renewed.lease);
                        *token = renewed.token.max(*token);
                    }
                    (Err(error), _) => errors.push(error),
                    (Ok(_), None) => {}
                }
            }
            let confirmed = self.counting().count() - errors.len();
            if !record.is_over() && confirmed >= self.quorum {
                record.state = LeaseState::Renewed;
                self.settle(record);
            }
        });
        let outcome = taken_together(errors, self.counting().count() - self.quorum);
        if matches!(outcome, Err(RequestError::Lost(_))) {
            self.lose(LossReason::Gone);
        }
        outcome
    }

    /// Recomputes the lease of the hold from those of its counting parts.
    fn settle(&self, record: &mut Record) {
        let leases: Vec<Lease> = self
            .counting()
            .filter_map(|(place, _)| record.parts.get(place).map(|(lease, _)| *lease))
            .collect();
        if let Some(lease) = combined(leases.into_iter(), self.quorum) {
            record.lease = lease;
        }
    }

    /// Exchanges state with the renewing machine: the machine adopts renewals on demand, and the
    /// hold adopts the machine's leases, tokens and state.
    pub(super) fn share(&self, keeping: &mut QuorumLease) {
        let changed = self.record(|record| {
            let before = (record.lease, record.state);
            let over = record.is_over();
            for ((place, _), renewal) in self.counting().zip(keeping.parts_mut()) {
                record.reaches(place, renewal.outstanding());
                let Some((lease, token)) = record.parts.get_mut(place) else { continue };
                renewal.adopt(*lease);
                if record.count == 0 {
                    // All its leases were dropped, so it is renewed no more. A holder that kept
                    // only the signal is still notified of the end.
                    renewal.stop_renewing();
                }
                if !over {
                    *lease = lease.extended_by(&renewal.lease());
                    // The token may have risen through a request that this machine does not know.
                    *token = renewal.token().max(*token);
                }
            }
            if !over {
                self.settle(record);
                record.state = keeping.state();
            }
            before != (record.lease, record.state)
        });
        if changed {
            self.notice.notify();
        }
    }

    /// Waits until the state differs from `seen`, and returns it.
    pub(super) async fn news(&self, seen: Option<Situation>) -> Situation {
        let look = |record: &mut Record| Situation {
            state: record.state,
            released: !matches!(record.release, ReleaseState::NotYet),
            expires_at: record.lease.expires_at(),
        };
        let news = || Some(self.record(look)).filter(|now| seen != Some(*now));
        self.notice.until(news).await
    }

    /// Waits until the hold is over, or its lease no longer ends at `expires_at`.
    pub(super) async fn changed(&self, expires_at: Instant) {
        let is_changed =
            |record: &mut Record| record.is_over() || record.lease.expires_at() != expires_at;
        self.notice.until(|| self.record(is_changed).then_some(())).await;
    }
}

impl Record {
    /// Whether the hold is lost or its release has begun. A lost hold stays lost, and neither the
    /// clock nor a renewal turns a release into a loss.
    const fn is_over(&self) -> bool {
        matches!(self.state, LeaseState::Lost(_)) || !matches!(self.release, ReleaseState::NotYet)
    }

    fn reaches(&mut self, place: usize, reach: OutstandingBound) {
        if let Some(known) = self.reaches.get_mut(place) {
            *known = known.and(reach);
        }
    }

    const fn stands(&self) -> bool {
        !self.is_over() && self.count > 0
    }
}
