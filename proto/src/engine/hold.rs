//! A hold: its parts, its lease and its end, as far as the client knows them.

use alloc::vec::Vec;

use super::failures::taken_together;
use super::hold_part::Part;
use super::policy::LeasePolicy;
use super::schedule::RenewalSchedule;
use super::{HoldId, OpId};
use crate::error::{AcquireError, FailureKind, LossReason, RequestError};
use crate::machine::{Lease, LeaseState, QuorumLease, Released, Renewed, combined};
use crate::name::{FencingToken, GuardKey, OwnerId};
use crate::time::Instant;

/// The way in which a hold ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseEnd {
    /// By a release.
    Released,
    /// Before its release, for this reason.
    Lost(LossReason),
}

/// The state of a hold at one moment: whether its lease lasts, and whether its release has begun.
/// Two situations differ after each renewal, so that a caller can wait for the next change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Situation {
    /// The state of its lease, as last known.
    pub state: LeaseState,
    /// Whether its release has begun.
    pub released: bool,
    /// The end of the lease. Not public: it only makes the situation differ after a renewal.
    expires_at: Instant,
}

impl Situation {
    /// Whether the hold is lost, or its release has begun: the last item of a stream of events.
    pub const fn is_over(&self) -> bool {
        self.released || matches!(self.state, LeaseState::Lost(_))
    }
}

#[derive(Clone, Debug)]
pub(super) struct Hold {
    /// One part, or several that were acquired together.
    pub(super) parts: Vec<Part>,
    /// The number of counting parts that the hold needs.
    pub(super) quorum: usize,
    /// The lease of the hold, combined from those of its parts.
    lease: Lease,
    state: LeaseState,
    pub(super) schedule: RenewalSchedule,
    /// The number of leases that share the hold.
    leases: u32,
    /// For a hold of the write side: the read hold that its owner has acquired inside it.
    inner_reader: Option<(OwnerId, HoldId)>,
    /// The token that the release of this hold has brought for that read hold (R6).
    downgrade_token: Option<FencingToken>,
    /// The keys written through a guard under this hold.
    guarded: Vec<GuardedKey>,
    release: ReleaseState,
    /// Whether its acquisition has waited for a retry.
    pub(super) has_waited: bool,
    /// The operations that wait for a change.
    pub(super) observers: Vec<OpId>,
    /// The number of acquisitions whose callers still refer to it. Without one, it is removed with
    /// its last operation.
    pub(super) references: u32,
}

/// A key that was written through a guard.
#[derive(Clone, Debug)]
struct GuardedKey {
    key: GuardKey,
    /// The number of the newest write.
    number: u64,
    is_writing: bool,
}

#[derive(Clone, Copy, Debug)]
enum ReleaseState {
    NotYet,
    UnderWay,
    Over(Released),
}

/// The effect of a call to [`Hold::begin_release`].
pub(super) enum ReleaseStart {
    /// It begins now.
    Begins,
    /// It waits: another release is under way.
    Waits,
    /// There is nothing to release, or another release has succeeded.
    Over(Released),
}

impl Hold {
    /// Creates the hold of these parts. Fails if fewer than `quorum` of them count, which no
    /// machine returns.
    pub(super) fn new(
        parts: Vec<Part>,
        quorum: usize,
        policy: LeasePolicy,
        has_waited: bool,
    ) -> Result<Self, AcquireError> {
        let counting = parts.iter().filter(|part| part.counts);
        let Some(lease) = combined(counting.map(|part| part.grant.lease), quorum) else {
            return Err(AcquireError::Unreachable(FailureKind::NO_ANSWER));
        };
        Ok(Self {
            parts,
            quorum,
            lease,
            state: LeaseState::Held,
            schedule: RenewalSchedule::new(policy, lease.sent_at()),
            leases: 1,
            inner_reader: None,
            downgrade_token: None,
            guarded: Vec::new(),
            release: ReleaseState::NotYet,
            has_waited,
            observers: Vec::new(),
            references: 1,
        })
    }

    /// The parts that count.
    pub(super) fn counting_parts(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(|part| part.counts)
    }

    fn counting_parts_mut(&mut self) -> impl Iterator<Item = &mut Part> {
        self.parts.iter_mut().filter(|part| part.counts)
    }

    /// The fencing token of the hold: that of its first counting part.
    pub(super) fn token(&self) -> Option<FencingToken> {
        self.counting_parts().next().map(|part| part.token)
    }

    /// The fencing token of one of the hold's names.
    pub(super) fn token_of(&self, name: &str) -> Option<FencingToken> {
        self.counting_parts().find(|part| part.target.has_name(name)).map(|part| part.token)
    }

    pub(super) const fn hold_count(&self) -> u32 {
        self.leases
    }

    /// The lease as last confirmed.
    pub(super) const fn lease(&self) -> Lease {
        self.lease
    }

    pub(super) const fn state(&self) -> LeaseState {
        self.state
    }

    pub(super) const fn situation(&self) -> Situation {
        Situation {
            state: self.state,
            released: !matches!(self.release, ReleaseState::NotYet),
            expires_at: self.lease.expires_at(),
        }
    }

    /// Whether the hold is lost or its release has begun. A lost hold stays lost, and neither the
    /// clock nor a renewal turns a release into a loss.
    pub(super) const fn is_over(&self) -> bool {
        matches!(self.state, LeaseState::Lost(_)) || !matches!(self.release, ReleaseState::NotYet)
    }

    /// Whether the holder can rely on it: a lease shares the hold, it is not lost, and its release
    /// has not begun.
    pub(super) const fn is_usable(&self) -> bool {
        !self.is_over() && self.leases > 0
    }

    /// How the hold ended, if it has.
    pub(super) const fn end(&self) -> Option<LeaseEnd> {
        match (self.state, self.release) {
            (LeaseState::Lost(reason), _) => Some(LeaseEnd::Lost(reason)),
            (_, ReleaseState::NotYet) => None,
            _ => Some(LeaseEnd::Released),
        }
    }

    /// Adds a lease if the holder can still rely on the hold; returns whether it was added.
    pub(super) fn add_lease(&mut self, now: Instant) -> bool {
        self.expire_if_due(now);
        let is_usable = self.is_usable();
        self.leases += u32::from(is_usable);
        self.references += u32::from(is_usable);
        is_usable
    }

    /// Removes a lease, and returns whether it was the last.
    pub(super) const fn remove_lease(&mut self) -> bool {
        self.leases = self.leases.saturating_sub(1);
        self.leases == 0
    }

    /// Marks the hold as lost if its lease has run out; returns whether it was marked. Called
    /// before the state is read, since nothing watches the lease of a hold that is not kept.
    pub(super) fn expire_if_due(&mut self, now: Instant) -> bool {
        let has_run_out = !self.is_over() && now.has_reached(self.lease.expires_at());
        if has_run_out {
            self.state = LeaseState::Lost(LossReason::Expired);
        }
        has_run_out
    }

    /// When the first of its parts is due for renewal; `None` if it is not renewed.
    pub(super) fn renewal_due(&self) -> Option<Instant> {
        let parts = self.counting_parts().filter(|_| self.schedule.renews && self.leases > 0);
        let due = |part: &Part| part.lease.renewed_for(self.schedule.lease).renew_together_at();
        parts.map(due).reduce(Instant::sooner)
    }

    pub(super) const fn lose(&mut self, reason: LossReason) {
        if !self.is_over() {
            self.state = LeaseState::Lost(reason);
        }
    }

    /// The owner of the read hold inside this write hold: the release names it to Redis.
    pub(super) fn inner_reader(&self) -> Option<OwnerId> {
        self.inner_reader.map(|(owner, _)| owner)
    }

    /// Records the read hold that the owner of this write hold has acquired inside it. If this hold
    /// was released before that grant arrived, the grant has the token of a write that has ended:
    /// the read hold then gets the newer token that is returned (R6 in
    /// `proto/src/protocol/README.md`).
    pub(super) fn register_inner_reader(
        &mut self,
        reader: OwnerId,
        id: HoldId,
    ) -> Option<FencingToken> {
        self.inner_reader = Some((reader, id));
        self.downgrade_token
    }

    /// Records the token that the reply to the release of this write hold has brought, and returns
    /// the read hold inside, whose tokens rise to it.
    pub(super) fn propagate_token(&mut self, token: Option<FencingToken>) -> Option<HoldId> {
        self.downgrade_token = token;
        self.inner_reader.map(|(_, reader)| reader)
    }

    /// Raises the tokens to a newer one than that of the grant. Renewals go on sending the token
    /// that they know: Redis reports a hold as lost if they send a newer one than its latch has,
    /// and may not have raised the latch yet.
    pub(super) fn raise_tokens(&mut self, newer: FencingToken) {
        for part in &mut self.parts {
            part.token = newer.max(part.token);
        }
    }

    /// Handles the outcomes of a renewal on demand, one for each part that counts, in their order.
    /// A quorum of successes renews the hold.
    pub(super) fn on_renewal(
        &mut self,
        outcomes: Vec<Result<Renewed, RequestError>>,
    ) -> Result<(), RequestError> {
        let (mut errors, mut count) = (Vec::new(), 0);
        for (part, outcome) in self.counting_parts_mut().zip(outcomes) {
            count += 1;
            match outcome {
                Ok(renewed) => {
                    part.lease = part.lease.extended_by(&renewed.lease);
                    part.token = renewed.token.max(part.token);
                }
                Err(error) => errors.push(error),
            }
        }
        if !self.is_over() && count - errors.len() >= self.quorum {
            self.state = LeaseState::Renewed;
            self.combine_leases();
        }
        let outcome = taken_together(errors, count.saturating_sub(self.quorum));
        if let Err(RequestError::Lost(reason)) = outcome {
            self.lose(reason);
        }
        outcome
    }

    /// Recomputes the lease of the hold from those of its counting parts.
    fn combine_leases(&mut self) {
        if let Some(lease) = combined(self.counting_parts().map(|part| part.lease), self.quorum) {
            self.lease = lease;
        }
    }

    /// Exchanges state with the renewing machine: the machine adopts renewals on demand, and the
    /// hold adopts the machine's leases, tokens and state. Returns whether the hold has changed.
    pub(super) fn sync(&mut self, renewing: &mut QuorumLease) -> bool {
        let before = (self.lease, self.state);
        let (is_over, leases) = (self.is_over(), self.leases);
        for (part, renewal) in self.counting_parts_mut().zip(renewing.parts_mut()) {
            part.outstanding = part.outstanding.and(renewal.outstanding());
            renewal.adopt(part.lease);
            if leases == 0 {
                // All leases were dropped, so the hold is renewed no more. A holder that kept only
                // the signal is still notified of the end.
                renewal.stop_renewing();
            }
            if !is_over {
                part.lease = part.lease.extended_by(&renewal.lease());
                // The token may have risen by a request of another machine.
                part.token = renewal.token().max(part.token);
            }
        }
        if !is_over {
            self.combine_leases();
            self.state = renewing.state();
        }
        before != (self.lease, self.state)
    }

    /// Whether a release may begin now; if so, records that it has. At most one release is under
    /// way, however many callers release the hold. If it succeeds, all of them get its result.
    pub(super) const fn begin_release(&mut self) -> ReleaseStart {
        match self.release {
            ReleaseState::UnderWay => ReleaseStart::Waits,
            // Other leases share the hold.
            ReleaseState::NotYet if self.leases > 0 => ReleaseStart::Over(Released::Released),
            ReleaseState::NotYet => {
                self.release = ReleaseState::UnderWay;
                ReleaseStart::Begins
            }
            ReleaseState::Over(result) => ReleaseStart::Over(result),
        }
    }

    /// Records the result of the release under way; after `None` it may be attempted again.
    pub(super) const fn end_release(&mut self, result: Option<Released>) {
        let Some(result) = result else {
            if matches!(self.release, ReleaseState::UnderWay) {
                self.release = ReleaseState::NotYet;
            }
            return;
        };
        self.release = ReleaseState::Over(result);
        if matches!(result, Released::WasLost) && !matches!(self.state, LeaseState::Lost(_)) {
            self.state = LeaseState::Lost(LossReason::Gone);
        }
    }

    /// Begins a write to a guarded key, and returns its number among those of this hold to this
    /// key; `None` while another one is under way.
    pub(super) fn begin_write(&mut self, key: &GuardKey) -> Option<u64> {
        let known = self.guarded.iter().position(|guarded| guarded.key == *key);
        let index = known.unwrap_or_else(|| {
            self.guarded.push(GuardedKey { key: key.clone(), number: 0, is_writing: false });
            self.guarded.len() - 1
        });
        let guarded = self.guarded.get_mut(index)?;
        if guarded.is_writing {
            return None;
        }
        (guarded.number, guarded.is_writing) = (guarded.number + 1, true);
        Some(guarded.number)
    }

    pub(super) fn end_write(&mut self, key: &GuardKey) {
        if let Some(guarded) = self.guarded.iter_mut().find(|guarded| guarded.key == *key) {
            guarded.is_writing = false;
        }
    }
}
