//! The lease of a hold, and the state of the hold as its holder knows it.

use core::time::Duration;

use super::OutstandingBound;
use crate::error::LossReason;
use crate::name::{FencingToken, OwnerId};
use crate::protocol::script::Bound;
use crate::time::Instant;
use crate::timing::LeaseTime;

/// The time for which a hold can be relied on: its length, and its end by the holder's clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    time: LeaseTime,
    /// When the request was sent whose reply confirmed this lease.
    sent_at: Instant,
    /// When the holder no longer relies on the hold.
    expires_at: Instant,
}

impl Lease {
    /// Creates the lease that a reply confirms. It counts from the *sending* of the request: the
    /// reply may have been long under way, and Redis' own count did not begin earlier.
    pub fn confirmed(time: LeaseTime, sent_at: Instant) -> Self {
        Self { time, sent_at, expires_at: sent_at + time.get().saturating_sub(time.drift()) }
    }

    /// The lease that was requested.
    pub const fn time(&self) -> LeaseTime {
        self.time
    }

    /// When the holder no longer relies on the hold.
    pub const fn expires_at(&self) -> Instant {
        self.expires_at
    }

    /// The time for which the hold can still be relied on.
    pub fn remaining(&self, now: Instant) -> Duration {
        now.until(self.expires_at)
    }

    /// When the request was sent whose reply confirmed this lease.
    pub const fn sent_at(&self) -> Instant {
        self.sent_at
    }

    /// When the renewal is due.
    pub(super) fn renew_at(&self) -> Instant {
        self.sent_at + self.time.renewal_interval()
    }

    /// When the renewal is due, up to a quarter of the interval earlier: at a step that the leases
    /// of one client share, so that their renewals are sent together. A lease that is on a step
    /// stays on it.
    pub fn renew_together_at(&self) -> Instant {
        self.renew_at().align_down(self.time.renewal_interval() / 4)
    }

    /// The combined lease of two parts that are both needed.
    pub(super) fn sooner(&self, other: &Self) -> Self {
        let (sent_at, expires_at) =
            (self.sent_at.sooner(other.sent_at), self.expires_at.sooner(other.expires_at));
        Self { time: self.time.min(other.time), sent_at, expires_at }
    }

    /// Returns the same lease for a holder that requests `time` with each further renewal. Its end
    /// stays as it is.
    #[must_use]
    pub const fn renewed_for(self, time: LeaseTime) -> Self {
        Self { time, ..self }
    }

    /// Extends the lease by a later confirmation. Never shortens it, and the requested time stays
    /// as granted.
    #[must_use]
    pub fn extended_by(&self, other: &Self) -> Self {
        // Keeps the lease that lasts longer by both clocks; otherwise the newer one, so that a
        // clock that was set back has no lasting effect.
        let is_longer = |one: &Self, two: &Self| !two.expires_at.until(one.expires_at).is_zero();
        let is_newer = self.sent_at.is_later(other.sent_at);
        let keeps = is_longer(self, other) || is_newer && !is_longer(other, self);
        let (sent_at, expires_at) =
            if keeps { (self.sent_at, self.expires_at) } else { (other.sent_at, other.expires_at) };
        Self { time: self.time, sent_at, expires_at }
    }
}

/// The state of a hold, as its holder knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeaseState {
    /// Granted.
    Held,
    /// Granted, and confirmed again since.
    Renewed,
    /// A renewal has no usable reply. Not lost: the lease runs until it expires.
    Unknown,
    /// Lost, for this reason.
    Lost(LossReason),
}

/// A hold as it was granted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Grant {
    /// The field in Redis.
    pub owner: OwnerId,
    /// The fencing token.
    pub token: FencingToken,
    /// The lease as granted.
    pub lease: Lease,
    /// The bound of the acquisition, which its release carries too.
    pub bound: Bound,
}

impl Grant {
    /// The bound on outstanding copies of the acquisition.
    pub const fn outstanding(&self) -> OutstandingBound {
        OutstandingBound::of(self.bound, self.lease.time())
    }
}
