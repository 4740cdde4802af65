//! The lease: the holder's handle to a hold.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::pin::pin;
use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use super::drive::{drive_until, drive_with};
use super::hold::{Hold, LeaseEnd, Part, Situation};
use super::notice::{First, first};
use super::{Client, Clients};
use crate::error::{InvalidOption, LossReason, ReleaseError, RequestError};
use crate::host::Host;
use crate::transport::Transport;
use edgelatch_proto::machine::{
    Entropy, Input, JoinAll, LeaseState, LockState, Machine, Output, Query, QuorumLease, Release,
    ReleaseAll, Released, Renew, Renewal,
};
use edgelatch_proto::name::{FencingToken, LockName};
use edgelatch_proto::time::Instant;
use edgelatch_proto::timing::LeaseTime;

/// The right to a lock for a limited time.
///
/// Leases of one lock that were acquired through one [owner](super::Client::owner) share one hold.
/// Release each of them; the last release ends the hold. Dropping a lease sends nothing. When the
/// last lease of a hold is dropped, the hold is no longer renewed, expires, and then counts as
/// lost.
#[must_use = "a lease that is dropped blocks the lock until it runs out; release it"]
pub struct Lease<T: Transport, H> {
    clients: Clients<T, H>,
    hold: Arc<Hold>,
    released: Mutex<bool>,
}

impl<T: Transport, H> Lease<T, H> {
    /// Returns the fencing token, which rises with every grant of this name. Send it with each
    /// write that the lock protects.
    ///
    /// For several locks taken as one it is the token of the first; see
    /// [`token_of`](Self::token_of).
    pub fn token(&self) -> FencingToken {
        self.hold.token()
    }

    /// Returns the fencing token of the lock `name` among several locks taken as one: fence the
    /// data that a lock protects with the token of that lock. Returns `None` if no lock of this
    /// name is among them.
    pub fn token_of(&self, name: &str) -> Option<FencingToken> {
        self.hold.token_of(name)
    }

    /// Returns the lock's name; for several locks taken as one, the name of the first.
    pub fn name(&self) -> &LockName {
        self.hold.name()
    }

    /// Returns the number of leases that share this hold.
    pub fn hold_count(&self) -> u32 {
        self.hold.count()
    }

    pub(super) const fn new(clients: Clients<T, H>, hold: Arc<Hold>) -> Self {
        Self { clients, hold, released: Mutex::new(false) }
    }

    pub(super) fn shared_hold(&self) -> Arc<Hold> {
        Arc::clone(&self.hold)
    }

    pub(super) fn hold(&self) -> &Hold {
        &self.hold
    }

    /// The part of the hold, if it has only one.
    pub(super) fn only_part(&self) -> Option<&Part> {
        match self.hold.parts.as_slice() {
            [part] => Some(part),
            _ => None,
        }
    }

    /// The first part that counts towards the quorum.
    pub(super) fn part(&self) -> Option<&Part> {
        self.hold.counting().next().map(|(_, part)| part)
    }

    /// The first client. All parts are measured by the clock of its host.
    pub(super) const fn client(&self) -> &Client<T, H> {
        self.clients.first()
    }
}

impl<T: Transport, H: Host> Lease<T, H> {
    /// Returns how long the holder can still rely on the hold, by its own clocks; zero once the
    /// hold is lost or released. Sends nothing.
    pub fn remaining(&self) -> Duration {
        let now = self.client().host().now();
        if self.hold.stands() { self.hold.lease().remaining(now) } else { Duration::ZERO }
    }

    /// Returns the present state of the hold, by the holder's own clocks. Sends nothing.
    pub fn state(&self) -> LeaseState {
        self.hold.look(self.client().host().now());
        self.hold.state()
    }

    /// Returns a future that renews the hold in time while it is polled, and completes when the
    /// hold ends. Dropping the future stops these renewals.
    ///
    /// Poll it concurrently with your work, or spawn it. If there are several such futures, each
    /// renews; one is enough. A hold with a fixed lease is not renewed, unless that lease is longer
    /// than Redis may be requested to grant at a time (see
    /// [`ReadWriteSettings::peer_watchdog`](super::ReadWriteSettings::peer_watchdog) and
    /// [`RedLockSettings::rejoin_delay`](super::RedLockSettings::rejoin_delay)): then it is renewed
    /// until its end.
    pub fn keep(&self) -> impl Future<Output = LeaseEnd> + use<T, H> {
        let (clients, hold) = (self.clients.clone(), Arc::clone(&self.hold));
        async move { keep(&clients, &hold).await }
    }

    /// Waits until the known situation of the hold differs from `seen`, and returns it; returns at
    /// once for `None`. Renewals and an expiry are noticed while the lease is [kept](Self::keep).
    pub async fn news(&self, seen: Option<Situation>) -> Situation {
        self.hold.news(seen).await
    }

    /// Returns a future that completes when the lease is lost, at its expiry at the latest; it
    /// never completes after a release. It renews nothing.
    pub fn lost(&self) -> impl Future<Output = LossReason> + use<T, H> {
        let (client, hold) = (self.client().clone(), Arc::clone(&self.hold));
        async move { lost(&client, &hold).await }
    }

    /// Extends the hold to at least `lease` from now: 100 ms to 24 h in whole milliseconds; `None`
    /// for the lease of the acquisition.
    ///
    /// # Errors
    /// [`RequestError::Lost`] if the hold is gone or was released. [`RequestError::InvalidOption`]
    /// if `lease` is out of range, or longer than the rejoin delay of a redLock. After any other
    /// error the hold lasts at least as long as before.
    pub async fn renew(&self, lease: Option<Duration>) -> Result<(), RequestError> {
        let lease = lease.map(LeaseTime::new).transpose().map_err(RequestError::InvalidOption)?;
        let (client, hold) = (self.client(), &self.hold);
        let most = hold.parts.iter().filter_map(|part| part.target.lease_max()).min();
        if lease.zip(most).is_some_and(|(lease, most)| lease > most) {
            let no =
                InvalidOption::new("lease", "no more than the delay after which a node rejoins");
            return Err(RequestError::InvalidOption(no));
        }
        let now = client.host().now();
        hold.look(now);
        match hold.end() {
            Some(LeaseEnd::Lost(reason)) => return Err(RequestError::Lost(reason)),
            Some(LeaseEnd::Released) => return Err(RequestError::Lost(LossReason::Gone)),
            None => {}
        }
        let mut parts = Vec::new();
        for (number, part) in hold.counting() {
            let lease = lease.unwrap_or_else(|| part.grant.lease.time());
            let client = self.clients.at(part.place);
            let entropy = client.entropy().ok_or(RequestError::NoEntropy)?;
            let (attempt, clock) = (client.attempt(), client.link().clock());
            let (target, grant) = (&part.target, &part.grant);
            let part = Renew::new(target, grant, lease, attempt, entropy, clock, now);
            hold.renewing(number, part.outstanding());
            parts.push(part);
        }
        let mut renew = JoinAll::new(parts);
        let links = self.clients.links(hold.counting().map(|(_, part)| part.place));
        hold.renewed(drive_with(&mut renew, &links, client.host()).await)
    }

    /// Queries Redis whether the hold still exists. A hold that is gone counts as lost from then
    /// on.
    ///
    /// # Errors
    /// [`RequestError`] if too few nodes reply to decide it.
    pub async fn is_held(&self) -> Result<bool, RequestError> {
        let (client, hold) = (self.client(), &self.hold);
        let mut questions = Vec::new();
        for (_, part) in hold.counting() {
            let client = self.clients.at(part.place);
            let entropy = client.entropy().ok_or(RequestError::NoEntropy)?;
            let inspect = |request| part.target.inspect(request, Some(part.grant.owner));
            questions.push(Query::new(inspect, client.attempt(), entropy));
        }
        let links = self.clients.links(hold.counting().map(|(_, part)| part.place));
        let mut questions = JoinAll::new(questions);
        let (mut held, mut unknown) = (0, None);
        for answer in drive_with(&mut questions, &links, client.host()).await {
            match answer.and_then(|reply| LockState::read(&reply)) {
                Ok(state) => held += usize::from(state.is_held),
                Err(error) => unknown = Some(error),
            }
        }
        let held = held >= hold.quorum;
        match unknown {
            Some(error) if !held => return Err(error),
            _ => {}
        }
        if !held {
            hold.lose(LossReason::Gone);
        }
        Ok(held)
    }

    /// Releases this lease; the last release of a hold ends it in Redis. A repeated call returns
    /// the same result, or sends the request again after an error or a dropped future.
    ///
    /// # Errors
    /// [`ReleaseError`] if the end of the hold is not confirmed. The hold is no longer renewed and
    /// expires.
    pub async fn release(&self) -> Result<Released, ReleaseError> {
        let again = {
            let mut released = self.released.lock().unwrap_or_else(PoisonError::into_inner);
            core::mem::replace(&mut *released, true)
        };
        let (client, hold) = (self.client(), &self.hold);
        if !again && !hold.leave() {
            hold.look(client.host().now());
            let lost = matches!(hold.end(), Some(LeaseEnd::Lost(_)));
            return Ok(if lost { Released::WasLost } else { Released::Released });
        }
        let turn = match hold.release_turn().await {
            Ok(turn) => turn,
            Err(verdict) => return Ok(verdict),
        };
        let releases = hold.parts.iter().zip(hold.reaches()).map(|(part, reach)| {
            let client = self.clients.at(part.place);
            let target = match hold.reader() {
                Some(reader) => part.target.clone().with_nested_read(reader),
                None => part.target.clone(),
            };
            let (attempt, clock) = (client.attempt(), client.link().clock());
            (Release::new(&target, &part.grant, reach, attempt, clock), part.counts)
        });
        let mut release = ReleaseAll::new(releases, hold.quorum);
        let links = self.clients.links(hold.parts.iter().map(|part| part.place));
        let verdict = drive_with(&mut release, &links, client.host()).await?;
        hold.hands_on(release.handed_on());
        turn.over(verdict);
        Ok(verdict)
    }
}

impl<T: Transport, H> Drop for Lease<T, H> {
    fn drop(&mut self) {
        if !*self.released.get_mut().unwrap_or_else(PoisonError::into_inner) {
            self.hold.leave();
        }
    }
}

impl<T: Transport, H> fmt::Debug for Lease<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("token", &self.token()).finish_non_exhaustive()
    }
}

async fn keep<T: Transport, H: Host>(clients: &Clients<T, H>, hold: &Hold) -> LeaseEnd {
    let renewals = hold.counting().map(|(_, part)| {
        let client = clients.at(part.place);
        // Without entropy a renewal has no request id; the lease is then only watched.
        let entropy = hold.renews.then(|| client.entropy()).flatten();
        let renews = entropy.is_some();
        let entropy = entropy.unwrap_or(Entropy::new([0; 32]));
        let (attempt, clock) = (client.attempt(), client.link().clock());
        let (target, grant) = (part.target.clone(), part.grant.clone());
        Renewal::new(target, grant, renews, attempt, entropy, clock).until(hold.lasts_until)
    });
    let keeping = QuorumLease::new(renewals, hold.quorum);
    let mut keeping = SharedKeeping { hold, keeping };
    hold.share(&mut keeping.keeping);
    let links = clients.links(hold.counting().map(|(_, part)| part.place));
    let over = pin!(hold.over());
    let host = clients.first().host();
    if let Some(reason) = drive_until(&mut keeping, &links, host, over).await {
        hold.lose(reason);
    }
    hold.end().unwrap_or(LeaseEnd::Released)
}

async fn lost<T: Transport, H: Host>(client: &Client<T, H>, hold: &Hold) -> LossReason {
    let host = client.host();
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

/// Renewals that exchange their state with the hold before and after each input.
struct SharedKeeping<'a> {
    hold: &'a Hold,
    keeping: QuorumLease,
}

impl Machine for SharedKeeping<'_> {
    type Outcome = Option<LossReason>;

    fn handle(&mut self, input: Input, now: Instant) {
        self.hold.share(&mut self.keeping);
        self.keeping.handle(input, now);
        self.hold.share(&mut self.keeping);
    }

    fn poll(&mut self, now: Instant) -> Output<Self::Outcome> {
        self.keeping.poll(now)
    }
}
