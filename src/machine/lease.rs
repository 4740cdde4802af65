//! What a holder may believe, and until when.

use core::time::Duration;

use super::OutstandingBound;
use crate::error::LossReason;
use crate::name::{FencingToken, OwnerId};
use crate::protocol::script::Bound;
use crate::time::Instant;
use crate::timing::LeaseTime;

/// The time for which a hold can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    time: LeaseTime,
    /// When the request left whose answer this lease rests on.
    sent_at: Instant,
    /// When the holder stops believing.
    expires_at: Instant,
}

impl Lease {
    /// The lease that a reply confirms. It counts from when the request was *sent*: the reply may
    /// have been long under way, and Redis' own count began no sooner than that.
    pub fn confirmed(time: LeaseTime, sent_at: Instant) -> Self {
        Self { time, sent_at, expires_at: sent_at + time.get().saturating_sub(time.drift()) }
    }

    /// The lease that was asked for.
    pub const fn time(&self) -> LeaseTime {
        self.time
    }

    /// When the holder stops believing.
    pub const fn expires_at(&self) -> Instant {
        self.expires_at
    }

    /// How long it can still be trusted.
    pub fn remaining(&self, now: Instant) -> Duration {
        now.until(self.expires_at)
    }

    /// When the request left whose answer this lease rests on.
    pub(crate) const fn sent_at(&self) -> Instant {
        self.sent_at
    }

    /// When it is time to renew.
    pub(super) fn renew_at(&self) -> Instant {
        self.sent_at + self.time.renewal_interval()
    }

    /// The same a little sooner, by a quarter of the interval at the most: at a step that leases of
    /// one client have in common, so that their renewals travel together. Once on a step a lease
    /// stays there.
    pub(super) fn renew_together_at(&self) -> Instant {
        self.renew_at().align_down(self.time.renewal_interval() / 4)
    }

    /// The lease of two parts that are both needed.
    pub(super) fn sooner(&self, other: &Self) -> Self {
        let (sent_at, expires_at) =
            (self.sent_at.sooner(other.sent_at), self.expires_at.sooner(other.expires_at));
        Self { time: self.time.min(other.time), sent_at, expires_at }
    }

    /// Takes over what a later reply confirmed: never shortens, and the lease that is renewed for
    /// stays as it was granted.
    #[must_use]
    pub fn extended_by(&self, other: &Self) -> Self {
        // What lasts longer by both clocks; else the newer, whichever of the two that is, so that a
        // clock that was set back does not leave its mark.
        let is_longer = |one: &Self, two: &Self| !two.expires_at.until(one.expires_at).is_zero();
        let is_newer = self.sent_at.is_later(other.sent_at);
        let keeps = is_longer(self, other) || is_newer && !is_longer(other, self);
        let (sent_at, expires_at) =
            if keeps { (self.sent_at, self.expires_at) } else { (other.sent_at, other.expires_at) };
        Self { time: self.time, sent_at, expires_at }
    }
}

/// What is known of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeaseState {
    /// Granted.
    Held,
    /// Granted, and confirmed again since.
    Renewed,
    /// A renewal has no answer yet. Not lost: the lease runs on until it expires.
    Unknown,
    /// Over, and this is why.
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
    /// What copies of the acquisition may still do.
    pub const fn outstanding(&self) -> OutstandingBound {
        OutstandingBound::of(self.bound, self.lease.time())
    }
}
