//! What an acquisition may be told.

use core::time::Duration;

use crate::error::InvalidOption;
use crate::timing::{LeaseTime, Replicas, RequestBudget, WaitPolicy, WaitTime};

/// How long to hold, how long to wait, and with what means. Checked when the acquisition begins,
/// before anything is sent.
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct AcquireOptions {
    lease: Option<Duration>,
    renewed: bool,
    wait: Option<Duration>,
    until_cancelled: bool,
    requests_max: Option<u32>,
    replicas: Option<u8>,
}

impl AcquireOptions {
    /// A hold that is renewed while it is kept, and a wait of 30 s.
    pub const fn new() -> Self {
        Self {
            lease: None,
            renewed: false,
            wait: None,
            until_cancelled: false,
            requests_max: None,
            replicas: None,
        }
    }

    /// Holds for exactly this time: 100 ms to 24 h in whole milliseconds. It is not renewed unless
    /// by [`Lease::renew`](super::Lease::renew). Without it the lease is 30 s and is renewed every
    /// third of it, by [`Lease::keep`](super::Lease::keep) or while [`run`](super::Lock::run) runs.
    pub const fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self.renewed = false;
        self
    }

    /// Holds for as long as it is [kept](super::Lease::keep), by a lease of 30 s that is renewed.
    /// This is what locks do anyway; permits of semaphores are held until they are released unless
    /// this or a lease is asked for.
    pub const fn renewed(mut self) -> Self {
        self.lease = None;
        self.renewed = true;
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

    /// Spends at most so many requests on the wait: 3 to 10 000. Unless set 40 for a timed wait,
    /// and any number for one that lasts until it is cancelled.
    pub const fn max_requests(mut self, requests: u32) -> Self {
        self.requests_max = Some(requests);
        self
    }

    /// Takes a grant only when so many replicas of Redis have it: 1 to 8; unless set none is waited
    /// for.
    ///
    /// A failover to one of these replicas then keeps the grant. It costs each try a round to the
    /// replicas; where fewer have the grant within a second (or half of an attempt, if that is
    /// shorter), it is given back, and the acquisition ends with
    /// [`AcquireError::NotReplicated`](crate::error::AcquireError::NotReplicated). Renewals and
    /// releases wait for nobody, and an owner that holds the lock already asks nobody. The gateway
    /// has to know `/pipeline` and `WAIT`, as `edgelatch-gateway` does; one that does not is told
    /// by [`RefusalKind::Unsupported`](crate::error::RefusalKind::Unsupported).
    pub const fn replicas(mut self, replicas: u8) -> Self {
        self.replicas = Some(replicas);
        self
    }

    pub(super) fn check(self) -> Result<Terms, InvalidOption> {
        let patience = match self.wait {
            _ if self.until_cancelled => WaitPolicy::UntilCancelled,
            None => WaitPolicy::UpTo(WaitTime::DEFAULT),
            Some(wait) => WaitPolicy::UpTo(WaitTime::new(wait)?),
        };
        let lease = self.hold()?;
        let budget = self.requests_max.map(RequestBudget::new).transpose()?;
        Ok(Terms::new(lease, patience, budget).replicated(self.has_replicas()?))
    }

    pub(super) fn check_once(self) -> Result<Terms, InvalidOption> {
        let replicas = self.has_replicas()?;
        Ok(Terms::new(self.hold()?, WaitPolicy::Once, None).replicated(replicas))
    }

    fn has_replicas(self) -> Result<Option<Replicas>, InvalidOption> {
        self.replicas.map(Replicas::new).transpose()
    }

    fn hold(self) -> Result<HoldTime, InvalidOption> {
        Ok(match self.lease {
            Some(lease) => HoldTime::Fixed(LeaseTime::new(lease)?),
            None if self.renewed => HoldTime::Renewed,
            None => HoldTime::AsUsual,
        })
    }
}

/// How long is to be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HoldTime {
    /// As the kind does if nothing is said: renewed for locks, without an end for permits.
    AsUsual,
    /// For as long as it is kept.
    Renewed,
    /// For exactly so long.
    Fixed(LeaseTime),
}

/// Options that were checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(super) hold: HoldTime,
    pub(super) patience: WaitPolicy,
    pub(super) budget: Option<RequestBudget>,
    pub(super) replicas: Option<Replicas>,
}

impl Terms {
    pub(crate) fn new(hold: HoldTime, patience: WaitPolicy, budget: Option<RequestBudget>) -> Self {
        let budget = match patience {
            WaitPolicy::UpTo(_) => budget.or(Some(RequestBudget::DEFAULT)),
            WaitPolicy::Once | WaitPolicy::UntilCancelled => budget,
        };
        Self { hold, patience, budget, replicas: None }
    }

    /// The same for a grant that so many replicas must have.
    pub(crate) const fn replicated(mut self, replicas: Option<Replicas>) -> Self {
        self.replicas = replicas;
        self
    }

    /// The same with what is left of the wait.
    pub(super) fn with_wait(self, left: Option<Duration>) -> Self {
        let patience = match (self.patience, left) {
            (WaitPolicy::UpTo(_), Some(left)) => {
                WaitTime::new(left).map_or(WaitPolicy::Once, WaitPolicy::UpTo)
            }
            (patience, _) => patience,
        };
        Self { patience, ..self }
    }
}
