//! Options of an acquisition.

use core::time::Duration;

use crate::error::InvalidOption;
use edgelatch_proto::engine::{AcquirePolicy, HoldTime};
use edgelatch_proto::timing::{LeaseTime, Replicas, RequestBudget, WaitPolicy, WaitTime};

/// Options of an acquisition: its lease, wait, request budget and replicas.
///
/// The values are checked when the acquisition begins, before a request is sent. A value out of
/// range is rejected as an [`InvalidOption`].
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
    /// Creates the default options: a lease of 30 s that is renewed while it is
    /// [kept](super::Lease::keep) (for permits, a hold without an end), and a wait of 30 s.
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

    /// Sets a fixed lease: 100 ms to 24 h in whole milliseconds. Only
    /// [`Lease::renew`](super::Lease::renew) extends it.
    ///
    /// By default a lock has a lease of 30 s, renewed every 10 s by
    /// [`Lease::keep`](super::Lease::keep) or while [`run`](super::Lock::run) runs, and permits are
    /// held until they are released.
    pub const fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self.renewed = false;
        self
    }

    /// Sets a lease of 30 s that is renewed while it is [kept](super::Lease::keep). Replaces a
    /// fixed lease.
    ///
    /// This is the default of locks. Permits of semaphores are by default held until they are
    /// released; with this option, permits of a holder that died expire.
    pub const fn renewed(mut self) -> Self {
        self.lease = None;
        self.renewed = true;
        self
    }

    /// Sets the longest wait: 1 ms to 24 h in whole milliseconds; 30 s by default.
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self.until_cancelled = false;
        self
    }

    /// Removes the limit of the wait: the acquisition waits until it is cancelled.
    pub const fn wait_until_cancelled(mut self) -> Self {
        self.until_cancelled = true;
        self
    }

    /// Sets the largest number of requests of the acquisition: 3 to 10 000. The default is 40 for a
    /// timed wait, and no limit for a wait that lasts until it is cancelled. A smaller number
    /// lengthens the pauses between retries.
    pub const fn max_requests(mut self, requests: u32) -> Self {
        self.requests_max = Some(requests);
        self
    }

    /// Sets the number of Redis replicas that must have a grant before it is accepted: 1 to 8. By
    /// default the acquisition does not wait for replicas.
    ///
    /// A failover to one of these replicas then keeps the grant. Each try costs a round trip to the
    /// replicas. If too few of them have the grant within 1 s, or within half of an attempt if that
    /// is shorter, the grant is given back, and the acquisition fails with
    /// [`AcquireError::NotReplicated`](crate::error::AcquireError::NotReplicated). Renewals and
    /// releases do not wait for replicas; an acquisition by an owner that already holds the lock
    /// sends no request.
    ///
    /// The gateway must support `/pipeline` and `WAIT`, as `edgelatch-gateway` does; otherwise the
    /// acquisition fails with [`RefusalKind::Unsupported`](crate::error::RefusalKind::Unsupported).
    pub const fn replicas(mut self, replicas: u8) -> Self {
        self.replicas = Some(replicas);
        self
    }

    /// Checks the options of an acquisition that may wait.
    pub(super) fn check(self) -> Result<AcquirePolicy, InvalidOption> {
        let wait = match self.wait {
            _ if self.until_cancelled => WaitPolicy::UntilCancelled,
            None => WaitPolicy::UpTo(WaitTime::DEFAULT),
            Some(time) => WaitPolicy::UpTo(WaitTime::new(time)?),
        };
        let hold = self.hold_time()?;
        let budget = self.requests_max.map(RequestBudget::new).transpose()?;
        Ok(AcquirePolicy::new(hold, wait, budget).with_replicas(self.replica_count()?))
    }

    /// Checks the options of a single try; its wait and its request budget are ignored.
    pub(super) fn check_once(self) -> Result<AcquirePolicy, InvalidOption> {
        let replicas = self.replica_count()?;
        Ok(AcquirePolicy::new(self.hold_time()?, WaitPolicy::Once, None).with_replicas(replicas))
    }

    fn replica_count(self) -> Result<Option<Replicas>, InvalidOption> {
        self.replicas.map(Replicas::new).transpose()
    }

    fn hold_time(self) -> Result<HoldTime, InvalidOption> {
        Ok(match self.lease {
            Some(lease) => HoldTime::Fixed(LeaseTime::new(lease)?),
            None if self.renewed => HoldTime::Renewed,
            None => HoldTime::AsUsual,
        })
    }
}
