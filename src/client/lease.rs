//! The lease: a hold in the hands of who has it.

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
use crate::machine::{
    Entropy, Input, JoinAll, LeaseState, LockState, Machine, Output, Query, QuorumLease, Release,
    ReleaseAll, Released, Renew, Renewal,
};
use crate::name::{FencingToken, LockName};
use crate::time::Instant;
use crate::timing::LeaseTime;
use crate::transport::Transport;

/// The right to a lock for a time.
///
/// Several share one hold when they were acquired through one [owner](super::Client::owner).
/// Release each; the last one ends the hold. One that is dropped instead sends nothing: its hold is
/// no longer renewed, runs out by itself, and counts as lost then.
#[must_use = "a lease that is dropped blocks the lock until it runs out; release it"]
pub struct Lease<T: Transport, H> {
    clients: Clients<T, H>,
    hold: Arc<Hold>,
    released: Mutex<bool>,
}

impl<T: Transport, H> Lease<T, H> {
    /// The fencing token: rises with every grant of this name. Send it with each write that the
    /// lock protects.
    ///
    /// Of several locks that were taken together it is the token of the first; see
    /// [`token_of`](Self::token_of).
    pub fn token(&self) -> FencingToken {
        self.hold.token()
    }

    /// The token of one of several locks that were taken together: fence what a lock protects with
    /// that lock's token. `None` when no lock of this name is among them.
    pub fn token_of(&self, name: &str) -> Option<FencingToken> {
        self.hold.token_of(name)
    }

    /// The lock's name; of several that were taken together, the first.
    pub fn name(&self) -> &LockName {
        self.hold.name()
    }

    /// How many leases share this hold.
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

    /// The part of a hold that has no other.
    pub(super) fn only_part(&self) -> Option<&Part> {
        match self.hold.parts.as_slice() {
            [part] => Some(part),
            _ => None,
        }
    }

    /// The first part of the hold.
    pub(super) fn part(&self) -> Option<&Part> {
        self.hold.counting().next().map(|(_, part)| part)
    }

    /// The one whose clocks and entropy count for all.
    pub(super) const fn client(&self) -> &Client<T, H> {
        self.clients.first()
    }
}

impl<T: Transport, H: Host> Lease<T, H> {
    /// How long the hold can still be trusted, by the holder's own clocks; nothing once it is lost
    /// or released.
    pub fn remaining(&self) -> Duration {
        let now = self.client().host().now();
        if self.hold.stands() { self.hold.lease().remaining(now) } else { Duration::ZERO }
    }

    /// What is known of the hold.
    pub fn state(&self) -> LeaseState {
        self.hold.look(self.client().host().now());
        self.hold.state()
    }

    /// Renews the hold in time for as long as it is polled, unless it was taken for a fixed lease;
    /// ends with the hold.
    ///
    /// Poll it beside your work, or spawn it. Of several at a time each renews; one is enough.
    pub fn keep(&self) -> impl Future<Output = LeaseEnd> + use<T, H> {
        let (clients, hold) = (self.clients.clone(), Arc::clone(&self.hold));
        async move { keep(&clients, &hold).await }
    }

    /// What is known of the hold, once that is not what was seen: at once for `None`. Learns of
    /// renewals and of an expiry for as long as the lease is [kept](Self::keep).
    pub async fn news(&self, seen: Option<Situation>) -> Situation {
        self.hold.news(seen).await
    }

    /// Ends when the lease is lost, at its expiry at the latest; never after a release. Renews
    /// nothing.
    pub fn lost(&self) -> impl Future<Output = LossReason> + use<T, H> {
        let (client, hold) = (self.client().clone(), Arc::clone(&self.hold));
        async move { lost(&client, &hold).await }
    }

    /// Prolongs the hold to at least `lease` from now; `None` for as long as it was acquired.
    ///
    /// # Errors
    /// [`RequestError::Lost`] when the hold is gone; with any other the hold stands as it was.
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

    /// Asks Redis whether the hold is still there.
    ///
    /// # Errors
    /// [`RequestError`] when there is no answer.
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

    /// Ends this lease, and with the last one the hold. Asked again it answers the same, or asks
    /// Redis again after an error.
    ///
    /// # Errors
    /// [`ReleaseError`] when it is not known that the hold has ended. It ends by itself then.
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
        // Without entropy there is no request id to renew with; the lease is then only watched.
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

/// Renewals that share what is known with their hold, before and after everything that happens to
/// them.
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
