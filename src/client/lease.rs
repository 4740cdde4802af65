//! The lease: the holder's handle to a hold.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::future::pending;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use super::error::{Error, Kind, Object};
use super::lock::RunError;
use super::observe::ObservedHold;
use super::shared::{Shared, Source};
use crate::error::{FailureKind, LossReason, ReleaseError, RequestError};
use crate::host::Host;
use crate::transport::Transport;
use edgelatch_proto::engine::{EndpointId, Engine, HoldId, LeaseEnd, Outcome, Situation};
use edgelatch_proto::machine::{Grant, LeaseState, Released};
use edgelatch_proto::name::{FencingToken, LockName};
use edgelatch_proto::protocol::calls::Target;
use edgelatch_proto::timing::LeaseTime;

/// The right to a lock, or to permits of a semaphore, for a limited time.
///
/// Leases of one lock that were acquired through one [owner](super::Client::owner) share one hold.
/// Release each of them; the last release ends the hold. Dropping a lease sends nothing. When the
/// last lease of a hold is dropped, the hold is no longer renewed, expires, and then counts as
/// lost.
#[must_use = "a lease that is dropped does not release its lock, which is blocked until it expires; call `release`"]
pub struct Lease<T: Transport, H: Host> {
    hold: Arc<HoldRef<T, H>>,
    /// Whether its release was begun.
    released: AtomicBool,
    /// Whether errors leave out the names.
    redacts: bool,
}

/// One lease's reference to a hold, shared with the lease's futures. The engine removes a hold
/// when the last of these references, over all its leases, is dropped.
pub(super) struct HoldRef<T: Transport, H: Host> {
    pub(super) shared: Arc<Shared<T, H>>,
    pub(super) id: HoldId,
    name: LockName,
    /// The token of the grant.
    granted_token: FencingToken,
    pub(super) observed: ObservedHold,
}

impl<T: Transport, H: Host> HoldRef<T, H> {
    /// Waits until the situation of the hold differs from `seen`, and returns it. The engine has
    /// the hold as long as this reference exists.
    pub(super) async fn situation_changed(&self, seen: Option<Situation>) -> Situation {
        let changed =
            |engine: &mut Engine| engine.situation(self.id).filter(|now| seen != Some(*now));
        self.shared.until(Source::Hold(self.id), changed).await
    }
}

impl<T: Transport, H: Host> Drop for HoldRef<T, H> {
    fn drop(&mut self) {
        self.observe_drop();
        // Wakers are stored for each hold, not for each lease: this removes those of all its
        // leases. It wakes them, so that the tasks of other leases store theirs again.
        self.shared.wake_tasks(Source::Hold(self.id));
        self.shared.change(|engine, cx| engine.drop_reference(self.id, cx));
    }
}

impl<T: Transport, H: Host> Lease<T, H> {
    /// Returns the fencing token, which rises with every grant of this name. Send it with each
    /// write that the lock protects, and read it anew each time: the token of a read hold inside a
    /// write hold rises when that write ends.
    ///
    /// For a multi-lock or redLock it is the token of the first lock that counts for the hold; see
    /// [`token_of`](Self::token_of).
    pub fn token(&self) -> FencingToken {
        self.read(|engine, id| engine.token(id)).unwrap_or(self.hold.granted_token)
    }

    /// Returns the fencing token of the lock `name` among those of a multi-lock or redLock: fence
    /// the data that a lock protects with the token of that lock. Returns `None` if no lock of this
    /// name counts for the hold. All locks of a multi-lock count, and those of a redLock that had
    /// been granted when its acquisition succeeded.
    pub fn token_of(&self, name: &str) -> Option<FencingToken> {
        self.read(|engine, id| engine.token_of(id, name))
    }

    /// Returns the lock's name. For a multi-lock or redLock it is the name of the first lock that
    /// counts for the hold, in the order that all clients use, and stays so for the whole hold;
    /// [`token`](Self::token) is the token of that lock. Errors name all of them.
    pub fn name(&self) -> &LockName {
        &self.hold.name
    }

    /// Returns the number of leases that share this hold.
    pub fn hold_count(&self) -> u32 {
        self.read(|engine, id| engine.hold_count(id))
    }

    /// Creates an error about the lock or the permits.
    pub(super) fn error<K: Kind>(&self, kind: K) -> Error<K> {
        let parts = self.read(|engine, id| {
            let targets = engine.all_parts(id).map(|(_, target)| target);
            let names = |target: &Target| target.names().into_iter().cloned().collect::<Vec<_>>();
            targets.map(|target| (Object::of(target), names(target))).collect::<Vec<_>>()
        });
        let object = parts.first().map_or(Object::Lock, |(object, _)| *object);
        let names = parts.iter().flat_map(|(_, names)| names).map(LockName::as_str);
        self.hold.shared.error(kind, object, names, self.redacts)
    }

    /// The reason why a lease did not last until its release.
    pub(crate) fn loss(&self) -> LossReason {
        match self.state() {
            LeaseState::Lost(reason) => reason,
            _ => LossReason::Gone,
        }
    }

    /// Creates the error of a callback whose lease did not last until its release.
    pub(crate) fn run_lost<R>(&self, result: R) -> RunError<R> {
        RunError::Lost { result, error: self.error(self.loss()) }
    }

    /// Returns `None` if the engine has no such hold.
    pub(super) fn new(
        shared: Arc<Shared<T, H>>,
        id: HoldId,
        observed: ObservedHold,
        redacts: bool,
    ) -> Option<Self> {
        let (name, granted_token) = shared.read(|engine| {
            let (_, target, grant) = engine.first_counting_part(id)?;
            Some((target.name().clone(), grant.token))
        })?;
        let hold = Arc::new(HoldRef { shared, id, name, granted_token, observed });
        Some(Self { hold, released: AtomicBool::new(false), redacts })
    }

    pub(super) fn hold_ref(&self) -> Arc<HoldRef<T, H>> {
        Arc::clone(&self.hold)
    }

    pub(super) fn hold(&self) -> &HoldRef<T, H> {
        &self.hold
    }

    fn read<R>(&self, read: impl FnOnce(&Engine, HoldId) -> R) -> R {
        self.hold.shared.read(|engine| read(engine, self.hold.id))
    }

    /// Reads the first part that counts for the hold.
    pub(super) fn first_counting_part<R>(
        &self,
        read: impl FnOnce(EndpointId, &Target, &Grant) -> R,
    ) -> Option<R> {
        self.read(|engine, id| {
            engine
                .first_counting_part(id)
                .map(|(endpoint, target, grant)| read(endpoint, target, grant))
        })
    }

    /// Returns how long the holder can still rely on the hold, by its own clocks; zero once the
    /// hold is lost or its last release has begun, even if that release then fails. Sends nothing.
    pub fn remaining(&self) -> Duration {
        let id = self.hold.id;
        self.hold.shared.change(|engine, cx| engine.remaining(id, cx))
    }

    /// Returns the state of the hold, by the holder's own clocks; after a release, the last state
    /// before it, or `Lost` if the release found the hold gone. Sends nothing.
    pub fn state(&self) -> LeaseState {
        let id = self.hold.id;
        self.hold.shared.change(|engine, cx| engine.hold_state(id, cx))
    }

    /// Returns a future that renews the hold in time while it is polled, and completes when the
    /// hold is lost or its last release begins; only [`release`](Self::release) tells whether that
    /// release succeeded. Dropping the future stops these renewals.
    ///
    /// Poll it concurrently with your work, or spawn it. If there are several such futures, each
    /// renews; one is enough. A fixed lease is not renewed, unless it is longer than the longest
    /// lease of one request
    /// ([`ReadWriteSettings::peer_watchdog`](super::ReadWriteSettings::peer_watchdog),
    /// [`RedLockSettings::rejoin_delay`](super::RedLockSettings::rejoin_delay)): it is then renewed
    /// until its end.
    pub fn keep(&self) -> impl Future<Output = LeaseEnd> + use<T, H> {
        let hold = Arc::clone(&self.hold);
        async move {
            let kept = hold.shared.perform(|engine, scope, cx| engine.keep(scope, hold.id, cx));
            match hold.observe_keep(kept).await {
                Some(Outcome::Ended(_, end)) => end,
                _ => LeaseEnd::Lost(LossReason::Gone),
            }
        }
    }

    /// Waits until the [`Situation`] of the hold (its state, the end of its lease, and whether its
    /// release has begun) differs from `seen`, as it does after each renewal, and returns it;
    /// returns at once for `None`. Renewals and an expiry are noticed while the lease is
    /// [kept](Self::keep).
    pub async fn situation_changed(&self, seen: Option<Situation>) -> Situation {
        self.hold.situation_changed(seen).await
    }

    /// Returns a future that completes when the lease is lost, at its expiry at the latest; it
    /// never completes once the last release has ended the hold ([`Released::Released`]). It renews
    /// nothing.
    pub fn lost(&self) -> impl Future<Output = LossReason> + use<T, H> {
        let hold = Arc::clone(&self.hold);
        async move {
            let lost =
                hold.shared.perform(|engine, scope, cx| engine.watch_hold(scope, hold.id, cx));
            let outcome = lost.await;
            hold.observe();
            match outcome {
                Some(Outcome::Lost(reason)) => reason,
                _ => pending().await,
            }
        }
    }

    /// Extends the hold to at least `lease` from now: 100 ms to 24 h in whole milliseconds; `None`
    /// for the lease of the acquisition.
    ///
    /// A longer `lease` than the longest of one request
    /// ([`ReadWriteSettings::peer_watchdog`](super::ReadWriteSettings::peer_watchdog),
    /// [`RedLockSettings::rejoin_delay`](super::RedLockSettings::rejoin_delay)) is renewed until
    /// its end, while the hold is [kept](Self::keep), as after an acquisition.
    ///
    /// # Errors
    /// [`RequestError::Lost`] if the hold is gone or was released. [`RequestError::InvalidOption`]
    /// if `lease` is out of range. After any error but `Lost` the hold lasts at least as long as
    /// before.
    pub async fn renew(&self, lease: Option<Duration>) -> Result<(), Error<RequestError>> {
        let lease = lease.map(LeaseTime::new).transpose()?;
        let outcome = self
            .hold
            .shared
            .perform(|engine, scope, cx| engine.renew(scope, self.hold.id, lease, cx));
        let renewed = match outcome.await {
            Some(Outcome::Renewed(renewed)) => renewed,
            _ => Err(RequestError::Unreachable(FailureKind::NO_ANSWER)),
        };
        self.hold.observe();
        renewed.map_err(|kind| self.error(kind))
    }

    /// Queries Redis whether the hold still exists. A hold that is gone counts as lost from then
    /// on.
    ///
    /// # Errors
    /// [`RequestError`] if a reply is missing, unless a majority of a redLock's nodes reports the
    /// hold.
    pub async fn is_held(&self) -> Result<bool, Error<RequestError>> {
        let outcome = self
            .hold
            .shared
            .perform(|engine, scope, cx| engine.query_hold(scope, self.hold.id, cx));
        let is_held = match outcome.await {
            Some(Outcome::IsHeld(is_held)) => is_held,
            _ => Err(RequestError::Unreachable(FailureKind::NO_ANSWER)),
        };
        self.hold.observe();
        is_held.map_err(|kind| self.error(kind))
    }

    /// Releases this lease. The release of the last lease of a hold ends the hold in Redis; the
    /// others send nothing.
    ///
    /// A repeated call returns `Released`, or `WasLost` if the hold is lost by now. It sends a
    /// request only if no lease shares the hold any more and the end of the hold is not confirmed:
    /// the request for it has failed, or its future was dropped.
    ///
    /// # Errors
    /// [`ReleaseError`] if the end of the hold is not confirmed. The hold is no longer renewed and
    /// expires.
    pub async fn release(&self) -> Result<Released, Error<ReleaseError>> {
        let again = self.released.swap(true, Ordering::Relaxed);
        let observed = self.hold.observe_release();
        let outcome = self
            .hold
            .shared
            .perform(|engine, scope, cx| engine.release(scope, self.hold.id, again, cx));
        let released = match outcome.await {
            Some(Outcome::Released(released)) => released,
            // An operation that is awaited has an outcome. Without one, no bound is known.
            _ => Err(ReleaseError::Unknown {
                held_at_most: Duration::MAX,
                cause: FailureKind::NO_ANSWER,
            }),
        };
        observed.end(&released);
        released.map_err(|kind| self.error(kind))
    }
}

impl<T: Transport, H: Host> Drop for Lease<T, H> {
    fn drop(&mut self) {
        if !*self.released.get_mut() {
            let id = self.hold.id;
            self.hold.shared.change(|engine, cx| engine.drop_lease(id, cx));
        }
    }
}

impl<T: Transport, H: Host> fmt::Debug for Lease<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("token", &self.token()).finish_non_exhaustive()
    }
}
