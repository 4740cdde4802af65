//! Renews and watches a hold of one or several parts.

use alloc::vec::Vec;

use super::join_all::JoinAll;
use super::{Input, Lease, LeaseState, Machine, Output, Renewal};
use crate::error::LossReason;
use crate::time::Instant;

/// The machine that renews and watches a hold until it is lost or cancelled: one [`Renewal`] for
/// each part.
///
/// The hold lasts as long as at least `quorum` of its parts are held: the only part of a lock, all
/// parts of a multi-lock, or the majority of a redLock. Ends with the reason of the loss, or with
/// `None` when it was [cancelled](Input::Cancelled).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QuorumLease {
    renewals: JoinAll<Renewal>,
    quorum: usize,
}

impl QuorumLease {
    /// Watches the parts of these renewals. `quorum` is at least 1 and at most their number.
    pub fn new(renewals: impl IntoIterator<Item = Renewal>, quorum: usize) -> Self {
        Self { renewals: JoinAll::new(renewals), quorum }
    }

    /// The renewals of the parts, in their order.
    pub fn parts(&self) -> impl Iterator<Item = &Renewal> {
        self.renewals.iter()
    }

    /// The renewals of the parts, in their order. Through them the engine passes on each lease that
    /// [`RenewalOnDemand`](super::RenewalOnDemand) has confirmed. It also stops the renewals once
    /// the callers have dropped their last handle to the hold; the machine then watches the lease
    /// to its end.
    pub fn parts_mut(&mut self) -> impl Iterator<Item = &mut Renewal> {
        self.renewals.iter_mut()
    }

    /// The state of the hold: `Lost` if fewer than `quorum` parts are left. Otherwise `Unknown` if
    /// any part is, even if enough others are certain; else `Renewed` if any part is; else `Held`.
    /// The state of a lost part does not count while a quorum is left.
    pub fn state(&self) -> LeaseState {
        let any = |state| self.parts().any(|part| part.state() == state);
        match self.loss() {
            Some(reason) => LeaseState::Lost(reason),
            None if any(LeaseState::Unknown) => LeaseState::Unknown,
            None if any(LeaseState::Renewed) => LeaseState::Renewed,
            None => LeaseState::Held,
        }
    }

    /// The reason of the loss, if fewer than `quorum` parts are left: of the lost parts, the reason
    /// of the one that comes last in the order of the parts, whichever was lost last.
    fn loss(&self) -> Option<LossReason> {
        let losses = self.parts().filter_map(|part| match part.state() {
            LeaseState::Lost(reason) => Some(reason),
            _ => None,
        });
        let is_left = |part: &&Renewal| !matches!(part.state(), LeaseState::Lost(_));
        if self.parts().filter(is_left).count() < self.quorum { losses.last() } else { None }
    }
}

impl Machine for QuorumLease {
    type Outcome = Option<LossReason>;

    fn handle(&mut self, input: Input, now: Instant) {
        // Once the hold is lost, events of the other parts do not change the reason.
        if self.loss().is_none() {
            self.renewals.handle(input, now);
        }
    }

    fn poll(&mut self, now: Instant) -> Output<Self::Outcome> {
        if let Some(reason) = self.loss() {
            return Output::Done(Some(reason));
        }
        // A renewal is lost only in `handle`, so if all have ended here, the hold was cancelled.
        self.renewals.poll(now).map(|_| None)
    }
}

/// Returns the lease of a hold of several parts: it ends when fewer than `quorum` of `leases` are
/// still valid, at the `quorum`-th latest of their ends. `None` with fewer leases than `quorum`,
/// and with a quorum of 0.
pub fn combined(leases: impl Iterator<Item = Lease>, quorum: usize) -> Option<Lease> {
    let mut leases: Vec<Lease> = leases.collect();
    let mut result: Option<Lease> = None;
    // Takes `quorum` leases in turn, each time the one that expires last. Parts are few, so a sort
    // is not worth its bytes in the WebAssembly.
    for _ in 0..quorum {
        let later = |one: usize, other: usize| match (leases.get(one), leases.get(other)) {
            (Some(a), Some(b)) if b.expires_at().is_later(a.expires_at()) => other,
            _ => one,
        };
        let latest = (0..leases.len()).reduce(later)?;
        let lease = leases.swap_remove(latest);
        // The lease taken last ends first by the monotonic clock; the wall clock of another one, or
        // the time that it requested, may be less.
        result = Some(result.map_or(lease, |result| result.sooner(&lease)));
    }
    result
}
