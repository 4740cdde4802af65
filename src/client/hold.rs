//! A hold, and the leases that share it.

use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use super::Client;
use super::drive::{drive, drive_watched};
use super::notice::{First, Notice, first};
use crate::error::{LossReason, ReleaseError, RequestError};
use crate::host::Host;
use crate::machine::{self, Entropy, Grant, Inspect, LeaseState, Release, Released, Renew, Renewal};
use crate::name::{FencingToken, LockName};
use crate::protocol::script::LockCalls;
use crate::time::Instant;
use crate::timing::LeaseTime;
use crate::transport::Transport;

/// The right to a lock for a time.
///
/// Several share one hold when they were acquired through one [`Owner`](super::Owner). Release each; the last one ends the
/// hold. One that is dropped instead sends nothing: its hold is no longer renewed, runs out by itself, and counts as lost then.
#[must_use = "a lease that is dropped blocks the lock until it runs out; release it"]
pub struct Lease<T, H> {
    hold: Arc<Hold<T, H>>,
    released: Mutex<bool>,
}

/// How a hold ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseEnd {
    /// By a release.
    Released,
    /// Against the holder's will.
    Lost(LossReason),
}

pub(super) struct Hold<T, H> {
    client: Client<T, H>,
    calls: LockCalls,
    grant: Grant,
    renews: bool,
    record: Mutex<Record>,
    notice: Notice,
}

/// What is known of a hold, in one place.
#[derive(Debug)]
struct Record {
    lease: machine::Lease,
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

impl<T, H> Lease<T, H> {
    /// The fencing token: rises with every grant of this name. Send it with each write that the lock protects.
    pub fn token(&self) -> FencingToken {
        self.hold.grant.token
    }

    /// The lock's name.
    pub fn name(&self) -> &LockName {
        &self.hold.calls.name
    }

    /// How many leases share this hold.
    pub fn hold_count(&self) -> u32 {
        self.hold.record(|record| record.count)
    }

    pub(super) const fn new(hold: Arc<Hold<T, H>>) -> Self {
        Self { hold, released: Mutex::new(false) }
    }
}

impl<T: Transport, H: Host> Lease<T, H> {
    /// How long the hold can still be trusted, by the holder's own clocks; nothing once it is lost or released.
    pub fn remaining(&self) -> Duration {
        let now = self.hold.client.inner.host.now();
        self.hold.record(|record| {
            if record.is_over() || record.count == 0 { Duration::ZERO } else { record.lease.remaining(now) }
        })
    }

    /// What is known of the hold.
    pub fn state(&self) -> LeaseState {
        self.hold.look(self.hold.client.inner.host.now());
        self.hold.record(|record| record.state)
    }

    /// Renews the hold in time for as long as it is polled, unless it was taken for a fixed lease; ends with the hold.
    ///
    /// Poll it beside your work, or spawn it. Of several at a time each renews; one is enough.
    pub fn keep(&self) -> impl Future<Output = LeaseEnd> + use<T, H> {
        let hold = Arc::clone(&self.hold);
        async move { hold.keep().await }
    }

    /// Ends when the lease is lost, at its expiry at the latest; never after a release. Renews nothing.
    pub fn lost(&self) -> impl Future<Output = LossReason> + use<T, H> {
        let hold = Arc::clone(&self.hold);
        async move { hold.lost().await }
    }

    /// Prolongs the hold to at least `lease` from now; `None` for as long as it was acquired.
    ///
    /// # Errors
    /// [`RequestError::Lost`] when the hold is gone; with any other the hold stands as it was.
    pub async fn renew(&self, lease: Option<Duration>) -> Result<(), RequestError> {
        let lease = lease.map(LeaseTime::new).transpose().map_err(RequestError::InvalidOption)?;
        self.hold.renew(lease).await
    }

    /// Asks Redis whether the hold is still there.
    ///
    /// # Errors
    /// [`RequestError`] when there is no answer.
    pub async fn is_held(&self) -> Result<bool, RequestError> {
        self.hold.is_held().await
    }

    /// Ends this lease, and with the last one the hold. Asked again it answers the same, or asks Redis again after an error.
    ///
    /// # Errors
    /// [`ReleaseError`] when it is not known that the hold has ended. It ends with its lease at the latest.
    pub async fn release(&self) -> Result<Released, ReleaseError> {
        let first_time = {
            let mut released = self.released.lock().unwrap_or_else(PoisonError::into_inner);
            !core::mem::replace(&mut *released, true)
        };
        self.hold.release(first_time).await
    }
}

impl<T, H> Drop for Lease<T, H> {
    fn drop(&mut self) {
        if !*self.released.get_mut().unwrap_or_else(PoisonError::into_inner) {
            self.hold.leave();
        }
    }
}

impl<T, H> fmt::Debug for Lease<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("token", &self.token()).finish_non_exhaustive()
    }
}

impl<T, H> Hold<T, H> {
    pub(super) fn new(client: Client<T, H>, calls: LockCalls, grant: Grant, renews: bool) -> Self {
        let record = Record {
            lease: grant.lease,
            state: LeaseState::Held,
            longest: grant.lease.time(),
            count: 1,
            release: ReleaseState::NotYet,
        };
        Self { client, calls, grant, renews, record: Mutex::new(record), notice: Notice::default() }
    }

    fn record<R>(&self, access: impl FnOnce(&mut Record) -> R) -> R {
        access(&mut self.record.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn change<R>(&self, access: impl FnOnce(&mut Record) -> R) -> R {
        let result = self.record(access);
        self.notice.notify();
        result
    }

    /// One lease more, if the hold still stands.
    pub(super) fn enter(&self, now: Instant) -> bool {
        self.look(now);
        self.record(|record| {
            let stands = !record.is_over() && record.count > 0;
            if stands {
                record.count += 1;
            }
            stands
        })
    }

    /// One lease less; answers whether it was the last.
    fn leave(&self) -> bool {
        self.change(|record| {
            record.count = record.count.saturating_sub(1);
            record.count == 0
        })
    }

    /// Sees to it that a lease that has run out counts as lost, whoever looks first.
    fn look(&self, now: Instant) {
        if self.record(|record| !record.is_over() && now.has_reached(record.lease.expires_at())) {
            self.lose(LossReason::Expired);
        }
    }

    fn lose(&self, reason: LossReason) {
        self.change(|record| {
            if !record.is_over() {
                record.state = LeaseState::Lost(reason);
            }
        });
    }
}

impl Record {
    /// Lost once is lost for ever, and a release does not turn into a loss.
    const fn is_over(&self) -> bool {
        matches!(self.state, LeaseState::Lost(_)) || !matches!(self.release, ReleaseState::NotYet)
    }
}

impl<T: Transport, H: Host> Hold<T, H> {
    fn entropy(&self) -> Option<Entropy> {
        self.client.inner.host.entropy().ok().map(Entropy::new)
    }

    pub(super) async fn keep(&self) -> LeaseEnd {
        let inner = &self.client.inner;
        // Without entropy there is no request id to renew with; the lease is then only watched.
        let (entropy, renews) = self.entropy().map_or((Entropy::new([0; 32]), false), |e| (e, self.renews));
        let attempt = inner.link.gateway().attempt();
        let clock = inner.link.clock();
        let (calls, grant) = (self.calls.clone(), self.grant.clone());
        let mut renewal = Renewal::new(calls, grant, renews, attempt, entropy, clock);
        renewal.adopt(self.record(|record| record.lease));
        let over = self.notice.until(|| self.record(|record| record.is_over().then_some(())));
        let loss = drive_watched(&mut renewal, &[&inner.link], &inner.host, over, |renewal| self.share(renewal)).await;
        if let Some(reason) = loss {
            self.lose(reason);
        }
        self.end().unwrap_or(LeaseEnd::Released)
    }

    /// Both ways: what a renewal besides the machine has confirmed, and what the machine knows.
    fn share(&self, renewal: &mut Renewal) {
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

    fn end(&self) -> Option<LeaseEnd> {
        self.record(|record| match (record.state, record.release) {
            (LeaseState::Lost(reason), _) => Some(LeaseEnd::Lost(reason)),
            (_, ReleaseState::NotYet) => None,
            _ => Some(LeaseEnd::Released),
        })
    }

    async fn lost(&self) -> LossReason {
        let host = &self.client.inner.host;
        loop {
            self.look(host.now());
            let expires_at = match self.record(|record| (record.state, record.lease.expires_at())) {
                (LeaseState::Lost(reason), _) => return reason,
                (_, expires_at) => expires_at,
            };
            let released = self.record(|record| !matches!(record.release, ReleaseState::NotYet));
            if released {
                return core::future::pending().await;
            }
            let changed = self.notice.until(|| {
                self.record(|record| (record.is_over() || record.lease.expires_at() != expires_at).then_some(()))
            });
            match first(changed, host.sleep_until(expires_at)).await {
                First::A(()) | First::B(()) => {}
            }
        }
    }

    pub(super) async fn renew(&self, lease: Option<LeaseTime>) -> Result<(), RequestError> {
        let inner = &self.client.inner;
        let now = inner.host.now();
        self.look(now);
        match self.end() {
            Some(LeaseEnd::Lost(reason)) => return Err(RequestError::Lost(reason)),
            Some(LeaseEnd::Released) => return Err(RequestError::Lost(LossReason::Gone)),
            None => {}
        }
        let lease = lease.unwrap_or_else(|| self.grant.lease.time());
        self.record(|record| record.longest = record.longest.max(lease));
        let entropy = self.entropy().ok_or(RequestError::NoEntropy)?;
        let attempt = inner.link.gateway().attempt();
        let mut renew = Renew::new(&self.calls, &self.grant, lease, attempt, entropy, inner.link.clock(), now);
        match drive(&mut renew, &inner.link, &inner.host).await {
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

    async fn is_held(&self) -> Result<bool, RequestError> {
        let inner = &self.client.inner;
        let entropy = self.entropy().ok_or(RequestError::NoEntropy)?;
        let attempt = inner.link.gateway().attempt();
        let mut inspect = Inspect::new(&self.calls, Some(&self.grant.owner), attempt, entropy);
        let held = drive(&mut inspect, &inner.link, &inner.host).await?.is_held;
        if !held {
            self.lose(LossReason::Gone);
        }
        Ok(held)
    }

    async fn release(&self, first_time: bool) -> Result<Released, ReleaseError> {
        let last = !first_time || self.leave();
        if !last {
            self.look(self.client.inner.host.now());
            let lost = matches!(self.end(), Some(LeaseEnd::Lost(_)));
            return Ok(if lost { Released::WasLost } else { Released::Released });
        }
        loop {
            // One request, whoever asks; the others hear its answer.
            let begun = self.change(|record| match record.release {
                ReleaseState::NotYet if record.count == 0 => {
                    record.release = ReleaseState::UnderWay;
                    true
                }
                _ => false,
            });
            if begun {
                return self.end_in_redis().await;
            }
            let state = self.notice.until(|| self.record(|record| match record.release {
                ReleaseState::UnderWay => None,
                ReleaseState::NotYet if record.count > 0 => Some(Some(Ok(Released::Released))),
                ReleaseState::NotYet => Some(None),
                ReleaseState::Over(verdict) => Some(Some(Ok(verdict))),
            }));
            if let Some(verdict) = state.await {
                return verdict;
            }
        }
    }

    async fn end_in_redis(&self) -> Result<Released, ReleaseError> {
        let under_way = UnderWay(self);
        let inner = &self.client.inner;
        // Any bytes do for a request id here: the verdict is the owner's, not the request's.
        let entropy = self.entropy().unwrap_or(Entropy::new([0; 32]));
        let longest = self.record(|record| record.longest);
        let attempt = inner.link.gateway().attempt();
        let mut release = Release::new(&self.calls, &self.grant, longest, attempt, entropy);
        let verdict = drive(&mut release, &inner.link, &inner.host).await?;
        self.change(|record| {
            record.release = ReleaseState::Over(verdict);
            if verdict == Released::WasLost && !matches!(record.state, LeaseState::Lost(_)) {
                record.state = LeaseState::Lost(LossReason::Gone);
            }
        });
        drop(under_way);
        Ok(verdict)
    }
}

/// A release that failed, or whose future was dropped half-way, may be asked for again.
struct UnderWay<'a, T, H>(&'a Hold<T, H>);

impl<T, H> Drop for UnderWay<'_, T, H> {
    fn drop(&mut self) {
        self.0.change(|record| {
            if matches!(record.release, ReleaseState::UnderWay) {
                record.release = ReleaseState::NotYet;
            }
        });
    }
}
