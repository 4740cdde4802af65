//! What an acquisition may be told.

use core::time::Duration;

use crate::error::InvalidOption;
use crate::timing::{LeaseTime, Patience, RequestBudget, WaitTime};

/// How long to hold, how long to wait, and with what means. Checked when the acquisition begins, before anything is sent.
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct AcquireOptions {
    lease: Option<Duration>,
    wait: Option<Duration>,
    until_cancelled: bool,
    requests_max: Option<u32>,
}

impl AcquireOptions {
    /// A hold that is renewed while it is kept, and a wait of 30 s.
    pub const fn new() -> Self {
        Self { lease: None, wait: None, until_cancelled: false, requests_max: None }
    }

    /// Holds for exactly this time: 100 ms to 24 h in whole milliseconds. It is not renewed unless by
    /// [`Lease::renew`](super::Lease::renew). Without it the lease is 30 s and is renewed every third of it, by
    /// [`Lease::keep`](super::Lease::keep) or while [`run`](super::Lock::run) runs.
    pub const fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Waits at most so long: 1 ms to 24 h in whole milliseconds, 30 s unless set.
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self.until_cancelled = false;
        self
    }

    /// Waits until it is cancelled.
    pub const fn wait_until_cancelled(mut self) -> Self {
        self.until_cancelled = true;
        self
    }

    /// Spends at most so many requests on the wait: 3 to 10 000. Unless set 40 for a timed wait, and any number for one that
    /// lasts until it is cancelled.
    pub const fn max_requests(mut self, requests: u32) -> Self {
        self.requests_max = Some(requests);
        self
    }

    pub(super) fn check(self) -> Result<Terms, InvalidOption> {
        let patience = match self.wait {
            _ if self.until_cancelled => Patience::UntilCancelled,
            None => Patience::UpTo(WaitTime::DEFAULT),
            Some(wait) => Patience::UpTo(WaitTime::new(wait)?),
        };
        let lease = self.lease.map(LeaseTime::new).transpose()?;
        let budget = self.requests_max.map(RequestBudget::new).transpose()?;
        Ok(Terms::new(lease, patience, budget))
    }

    pub(super) fn check_once(self) -> Result<Terms, InvalidOption> {
        let lease = self.lease.map(LeaseTime::new).transpose()?;
        Ok(Terms::new(lease, Patience::Once, None))
    }
}

/// Options that were checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(super) lease: LeaseTime,
    /// No lease was named: it is renewed for as long as it is kept.
    pub(super) renews: bool,
    pub(super) patience: Patience,
    pub(super) budget: Option<RequestBudget>,
}

impl Terms {
    pub(crate) fn new(
        lease: Option<LeaseTime>,
        patience: Patience,
        budget: Option<RequestBudget>,
    ) -> Self {
        let budget = match patience {
            Patience::UpTo(_) => budget.or(Some(RequestBudget::DEFAULT)),
            Patience::Once | Patience::UntilCancelled => budget,
        };
        Self {
            lease: lease.unwrap_or(LeaseTime::DEFAULT),
            renews: lease.is_none(),
            patience,
            budget,
        }
    }

    /// The same with what is left of the wait.
    pub(super) fn with_wait(self, left: Option<Duration>) -> Self {
        let patience = match (self.patience, left) {
            (Patience::UpTo(_), Some(left)) => {
                WaitTime::new(left).map_or(Patience::Once, Patience::UpTo)
            }
            (patience, _) => patience,
        };
        Self { patience, ..self }
    }
}
