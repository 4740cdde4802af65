//! A hold: what is known of it, in one place for all the leases that share it.

mod failures;
mod turns;

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use std::sync::{Mutex, PoisonError};

use failures::taken_together;

use super::notice::Notice;
use super::plan::Term;
use crate::error::{AcquireError, FailureKind, LossReason, RequestError};
use crate::machine::{
    Grant, Lease, LeaseState, OutstandingBound, QuorumLease, Released, Renewed, combined,
};
use crate::name::{FencingToken, GuardKey, LockName, OwnerId};
use crate::protocol::calls::Target;
use crate::time::Instant;

/// How a hold ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseEnd {
    /// By a release.
    Released,
    /// Against the holder's will.
    Lost(LossReason),
}

/// What is known of a hold at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Situation {
    /// What is known of it.
    pub state: LeaseState,
    /// Whether its release has begun.
    pub released: bool,
    expires_at: Instant,
}

impl Situation {
    /// Whether nothing comes after it.
    pub const fn is_over(&self) -> bool {
        self.released || matches!(self.state, LeaseState::Lost(_))
    }
}

pub(super) struct Hold {
    /// One, or several that were taken together.
    pub(super) parts: Vec<Part>,
    /// How many of them it takes.
    pub(super) quorum: usize,
    name: LockName,
    granted: FencingToken,
    pub(super) renews: bool,
    /// When renewing is to end.
    pub(super) lasts_until: Option<Instant>,
    record: Mutex<Record>,
    notice: Notice,
}

/// What one script has taken on one gateway.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// The place of its gateway's client among those of the lock.
    pub(super) place: usize,
    pub(super) target: Target,
    pub(super) grant: Grant,
    /// Not so for a gateway that may have granted late: it is released, and not believed in.
    pub(super) counts: bool,
}

#[derive(Debug)]
struct Record {
    /// What was last confirmed of each part.
    parts: Vec<(Lease, FencingToken)>,
    /// What of the parts comes to.
    lease: Lease,
    state: LeaseState,
    /// What may still be done of what was asked for each part: noted before it is asked, since the
    /// answer may be lost.
    reaches: Vec<OutstandingBound>,
    /// How many leases share the hold.
    count: u32,
    /// The reader of the same owner that was let in because of this hold.
    reader: Option<(OwnerId, Weak<Hold>)>,
    /// What that one has for a token since this hold has ended.
    handed_on: Option<FencingToken>,
    /// Of each guarded key that was written to: the number of the newest write, and whether it is
    /// under way.
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
    /// The hold that these parts are. Fails when fewer than the quorum count, which no machine
    /// answers.
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
            reaches: parts.iter().map(|part| part.grant.outstanding()).collect(),
            count: 1,
            reader: None,
            handed_on: None,
            writes: Vec::new(),
            release: ReleaseState::NotYet,
        };
        let (record, notice) = (Mutex::new(record), Notice::default());
        let lasts_until = term.lasts.map(|lasts| lease.sent_at() + lasts);
        let renews = term.renews;
        Ok(Self { parts, quorum, name, granted, renews, lasts_until, record, notice })
    }

    /// Which of the parts count, and these.
    pub(super) fn counting(&self) -> impl Iterator<Item = (usize, &Part)> {
        self.parts.iter().enumerate().filter(|(_, part)| part.counts)
    }

    /// The name of the whole: that of its first part.
    pub(super) const fn name(&self) -> &LockName {
        &self.name
    }

    /// The fencing token of the whole: that of its first part.
    pub(super) fn token(&self) -> FencingToken {
        let first = self.counting().next().map_or(0, |(place, _)| place);
        self.record(|record| record.parts.get(first).map_or(self.granted, |(_, token)| *token))
    }

    /// The fencing token of one of the names.
    pub(super) fn token_of(&self, name: &str) -> Option<FencingToken> {
        let place = self.parts.iter().position(|part| part.counts && part.target.has_name(name))?;
        self.record(|record| record.parts.get(place).map(|(_, token)| *token))
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

    /// Notes that its owner, who writes, has begun to read as well. The write may have ended while
    /// the read was asked for: its grant then brings the token of a write that has ended.
    pub(super) fn took_inside(&self, reader: &Arc<Self>) {
        let handed_on = self.record(|record| {
            let part = reader.parts.first();
            record.reader = part.map(|part| (part.grant.owner, Arc::downgrade(reader)));
            record.handed_on
        });
        reader.rose(handed_on);
    }

    /// The reader of the same owner that was let in because of this hold.
    pub(super) fn reader(&self) -> Option<OwnerId> {
        self.record(|record| record.reader.as_ref().map(|(owner, _)| *owner))
    }

    /// Its release was answered: what the reader inside, if there is one, has for a token from now
    /// on.
    pub(super) fn hands_on(&self, token: Option<FencingToken>) {
        let reader = self.record(|record| {
            record.handed_on = token;
            record.reader.as_ref().and_then(|(_, reader)| reader.upgrade())
        });
        if let Some(reader) = reader {
            reader.rose(token);
        }
    }

    /// A newer token than that of the grant is known. Renewals go on naming the one that they know
    /// of: Redis may have written none that is newer to the latch yet.
    fn rose(&self, newer: Option<FencingToken>) {
        let Some(newer) = newer else { return };
        self.record(|record| {
            for (_, token) in &mut record.parts {
                *token = newer.max(*token);
            }
        });
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

    /// What may still be done of all that was asked for each part.
    pub(super) fn reaches(&self) -> Vec<OutstandingBound> {
        self.record(|record| record.reaches.clone())
    }

    /// Says that a renewal on demand is to be asked for, of the part in this place.
    pub(super) fn renewing(&self, place: usize, reach: OutstandingBound) {
        self.record(|record| record.reaches(place, reach));
    }

    /// Takes over what a renewal on demand came to for each part that counts.
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

    /// What is known of the parts, taken together.
    fn settle(&self, record: &mut Record) {
        let leases: Vec<Lease> = self
            .counting()
            .filter_map(|(place, _)| record.parts.get(place).map(|(lease, _)| *lease))
            .collect();
        if let Some(lease) = combined(leases.into_iter(), self.quorum) {
            record.lease = lease;
        }
    }

    /// Both ways: what a renewal besides the machine has confirmed, and what the machine knows.
    pub(super) fn share(&self, keeping: &mut QuorumLease) {
        let changed = self.record(|record| {
            let before = (record.lease, record.state);
            let over = record.is_over();
            for ((place, _), renewal) in self.counting().zip(keeping.parts_mut()) {
                record.reaches(place, renewal.outstanding());
                let Some((lease, token)) = record.parts.get_mut(place) else { continue };
                renewal.adopt(*lease);
                if record.count == 0 {
                    // All its leases were dropped. Who still heeds the signal is told of the end.
                    renewal.stop_renewing();
                }
                if !over {
                    *lease = lease.extended_by(&renewal.lease());
                    // It may have risen by what this machine has not heard of.
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

    /// Ends when the hold is lost, or its release has begun.
    pub(super) async fn over(&self) {
        self.notice.until(|| self.record(|record| record.is_over().then_some(()))).await;
    }

    /// What is known of it, once that is not what was seen.
    pub(super) async fn news(&self, seen: Option<Situation>) -> Situation {
        let look = |record: &mut Record| Situation {
            state: record.state,
            released: !matches!(record.release, ReleaseState::NotYet),
            expires_at: record.lease.expires_at(),
        };
        let news = || Some(self.record(look)).filter(|now| seen != Some(*now));
        self.notice.until(news).await
    }

    /// Ends when the hold is over, or its lease does not end at `expires_at` any more.
    pub(super) async fn changed(&self, expires_at: Instant) {
        let is_changed =
            |record: &mut Record| record.is_over() || record.lease.expires_at() != expires_at;
        self.notice.until(|| self.record(is_changed).then_some(())).await;
    }
}

impl Record {
    /// Lost once is lost for ever, and a release does not turn into a loss.
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
