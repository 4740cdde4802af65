//! The lease: a hold in the hands of who has it.

use alloc::sync::Arc;
use core::fmt;
use core::pin::pin;
use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use super::Client;
use super::drive::{drive, drive_until};
use super::hold::{Hold, LeaseEnd};
use super::notice::{First, first};
use crate::error::{LossReason, ReleaseError, RequestError};
use crate::host::Host;
use crate::machine::{
    Entropy, Input, Inspect, LeaseState, Machine, Output, Release, Released, Renew, Renewal,
};
use crate::name::{FencingToken, LockName};
use crate::time::Instant;
use crate::timing::LeaseTime;
use crate::transport::Transport;

/// The right to a lock for a time.
///
/// Several share one hold when they were acquired through one [`Owner`](super::Owner). Release each; the last one ends the
/// hold. One that is dropped instead sends nothing: its hold is no longer renewed, runs out by itself, and counts as lost then.
#[must_use = "a lease that is dropped blocks the lock until it runs out; release it"]
pub struct Lease<T, H> {
    client: Client<T, H>,
    hold: Arc<Hold>,
    released: Mutex<bool>,
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
        self.hold.count()
    }

    pub(super) const fn new(client: Client<T, H>, hold: Arc<Hold>) -> Self {
        Self { client, hold, released: Mutex::new(false) }
    }
}

impl<T: Transport, H: Host> Lease<T, H> {
    /// How long the hold can still be trusted, by the holder's own clocks; nothing once it is lost or released.
    pub fn remaining(&self) -> Duration {
        let now = self.client.inner.host.now();
        if self.hold.stands() { self.hold.lease().remaining(now) } else { Duration::ZERO }
    }

    /// What is known of the hold.
    pub fn state(&self) -> LeaseState {
        self.hold.look(self.client.inner.host.now());
        self.hold.state()
    }

    /// Renews the hold in time for as long as it is polled, unless it was taken for a fixed lease; ends with the hold.
    ///
    /// Poll it beside your work, or spawn it. Of several at a time each renews; one is enough.
    pub fn keep(&self) -> impl Future<Output = LeaseEnd> + use<T, H> {
        let (client, hold) = (self.client.clone(), Arc::clone(&self.hold));
        async move { keep(&client, &hold).await }
    }

    /// Ends when the lease is lost, at its expiry at the latest; never after a release. Renews nothing.
    pub fn lost(&self) -> impl Future<Output = LossReason> + use<T, H> {
        let (client, hold) = (self.client.clone(), Arc::clone(&self.hold));
        async move { lost(&client, &hold).await }
    }

    /// Prolongs the hold to at least `lease` from now; `None` for as long as it was acquired.
    ///
    /// # Errors
    /// [`RequestError::Lost`] when the hold is gone; with any other the hold stands as it was.
    pub async fn renew(&self, lease: Option<Duration>) -> Result<(), RequestError> {
        let lease = lease.map(LeaseTime::new).transpose().map_err(RequestError::InvalidOption)?;
        let (inner, hold) = (&self.client.inner, &self.hold);
        let now = inner.host.now();
        hold.look(now);
        match hold.end() {
            Some(LeaseEnd::Lost(reason)) => return Err(RequestError::Lost(reason)),
            Some(LeaseEnd::Released) => return Err(RequestError::Lost(LossReason::Gone)),
            None => {}
        }
        let lease = lease.unwrap_or_else(|| hold.grant.lease.time());
        hold.renewing(lease);
        let entropy = self.client.entropy().ok_or(RequestError::NoEntropy)?;
        let (attempt, clock) = (inner.link.gateway().attempt(), inner.link.clock());
        let mut renew = Renew::new(&hold.calls, &hold.grant, lease, attempt, entropy, clock, now);
        hold.renewed(drive(&mut renew, &inner.link, &inner.host).await)
    }

    /// Asks Redis whether the hold is still there.
    ///
    /// # Errors
    /// [`RequestError`] when there is no answer.
    pub async fn is_held(&self) -> Result<bool, RequestError> {
        let (inner, hold) = (&self.client.inner, &self.hold);
        let entropy = self.client.entropy().ok_or(RequestError::NoEntropy)?;
        let attempt = inner.link.gateway().attempt();
        let mut inspect = Inspect::new(&hold.calls, Some(&hold.grant.owner), attempt, entropy);
        let held = drive(&mut inspect, &inner.link, &inner.host).await?.is_held;
        if !held {
            hold.lose(LossReason::Gone);
        }
        Ok(held)
    }

    /// Ends this lease, and with the last one the hold. Asked again it answers the same, or asks Redis again after an error.
    ///
    /// # Errors
    /// [`ReleaseError`] when it is not known that the hold has ended. It ends by itself then.
    pub async fn release(&self) -> Result<Released, ReleaseError> {
        let again = {
            let mut released = self.released.lock().unwrap_or_else(PoisonError::into_inner);
            core::mem::replace(&mut *released, true)
        };
        let (inner, hold) = (&self.client.inner, &self.hold);
        if !again && !hold.leave() {
            hold.look(inner.host.now());
            let lost = matches!(hold.end(), Some(LeaseEnd::Lost(_)));
            return Ok(if lost { Released::WasLost } else { Released::Released });
        }
        let turn = match hold.release_turn().await {
            Ok(turn) => turn,
            Err(verdict) => return Ok(verdict),
        };
        // Any bytes do for a request id here: the verdict is the owner's, not the request's.
        let entropy = self.client.entropy().unwrap_or(Entropy::new([0; 32]));
        let attempt = inner.link.gateway().attempt();
        let (calls, grant) = (&hold.calls, &hold.grant);
        let mut release = Release::new(calls, grant, hold.longest(), attempt, entropy);
        let verdict = drive(&mut release, &inner.link, &inner.host).await?;
        turn.over(verdict);
        Ok(verdict)
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

async fn keep<T: Transport, H: Host>(client: &Client<T, H>, hold: &Hold) -> LeaseEnd {
    let inner = &client.inner;
    // Without entropy there is no request id to renew with; the lease is then only watched.
    let entropy = client.entropy();
    let renews = hold.renews && entropy.is_some();
    let entropy = entropy.unwrap_or(Entropy::new([0; 32]));
    let (attempt, clock) = (inner.link.gateway().attempt(), inner.link.clock());
    let (calls, grant) = (hold.calls.clone(), hold.grant.clone());
    let mut renewal = Renewal::new(calls, grant, renews, attempt, entropy, clock);
    renewal.adopt(hold.lease());
    let mut renewal = SharedRenewal { hold, renewal };
    let over = pin!(hold.over());
    if let Some(reason) = drive_until(&mut renewal, &[&inner.link], &inner.host, over).await {
        hold.lose(reason);
    }
    hold.end().unwrap_or(LeaseEnd::Released)
}

async fn lost<T, H: Host>(client: &Client<T, H>, hold: &Hold) -> LossReason {
    let host = &client.inner.host;
    loop {
        hold.look(host.now());
        let expires_at = hold.lease().expires_at();
        match hold.end() {
            Some(LeaseEnd::Lost(reason)) => return reason,
            Some(LeaseEnd::Released) => return core::future::pending().await,
            None => {}
        }
        match first(hold.changed(expires_at), host.sleep_until(expires_at)).await {
            First::A(()) | First::B(()) => {}
        }
    }
}

/// A renewal that shares what is known with its hold, before and after everything that happens to it.
struct SharedRenewal<'a> {
    hold: &'a Hold,
    renewal: Renewal,
}

impl Machine for SharedRenewal<'_> {
    type Outcome = Option<LossReason>;

    fn handle(&mut self, input: Input, now: Instant) {
        self.hold.share(&mut self.renewal);
        self.renewal.handle(input, now);
        self.hold.share(&mut self.renewal);
    }

    fn poll(&mut self, now: Instant) -> Output<Self::Outcome> {
        self.renewal.poll(now)
    }
}
