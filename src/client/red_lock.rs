//! One lock on several independent Redis nodes: Redisson's `RedissonRedLock`.

use alloc::vec::Vec;
use core::pin::Pin;

use super::Client;
use super::clients::Clients;
use super::drive::drive_acquisition;
use super::hold::Hold;
use super::lock::{Inner, Lock};
use super::multi::{KEPT_MAX, held, no};
use super::options::Terms;
use super::plan::{Plan, Rule, Term};
use crate::error::{AcquireError, InvalidOption};
use crate::host::Host;
use crate::transport::Transport;
use edgelatch_proto::machine::{AcquireQuorum, AcquireQuorumSpec, Pacing};
use edgelatch_proto::protocol::calls::{LockCalls, Target};
use edgelatch_proto::timing::RejoinDelay;

/// Settings of a redLock that Redisson does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct RedLockSettings {
    rejoin_delay: Option<RejoinDelay>,
}

impl RedLockSettings {
    /// Excludes a node from the vote if its Redis was started less than `delay` ago: the *delayed
    /// restarts* of the Redlock algorithm.
    ///
    /// By default a restarted node votes at once. That is safe if each write is on disk before
    /// Redis replies (`appendonly yes`, `appendfsync always`), or if the operator keeps a node that
    /// has lost its data out of service for as long as the longest lease. Otherwise a node that has
    /// forgotten a hold forms a majority with a node that never had it: two clients then believe
    /// that they hold the lock, and fencing tokens can fall by as much as the nodes' clocks differ.
    ///
    /// All clients of the lock should set the same delay. The lease of each request to Redis is
    /// then at most the delay: a longer hold is renewed until its end, while it is
    /// [kept](super::Lease::keep), and [`renew`](super::Lease::renew) rejects a lease longer than
    /// the delay. A longer delay costs a node's vote for a longer time after each restart, with or
    /// without its data: after a restart of two of three nodes no client acquires the lock before
    /// the delay is over. A shorter delay costs more renewals.
    ///
    /// Each node must allow scripts to run `INFO`; a node that does not rejects the acquisition.
    /// The delay detects only a start of the Redis process. It detects no failover to a replica,
    /// for which there is [`replicas`](super::AcquireOptions::replicas), and no `FLUSHALL`.
    pub const fn rejoin_delay(mut self, delay: RejoinDelay) -> Self {
        self.rejoin_delay = Some(delay);
        self
    }
}

impl<T: Transport, H: Host> Client<T, H> {
    /// Returns one lock on several independent Redis nodes, held by the client that a majority of
    /// them grants it to: Redisson's `getRedLock(locks)`.
    ///
    /// Unlike Redisson's, it checks that enough of the lease is left, and releases the members that
    /// it was granted without a majority. The members are plain or fenced locks of clients of
    /// different Redis nodes; do not include one Redis twice through two gateways. Pauses between
    /// retries are jittered, even if a member is a spin lock. [`RedLockSettings::rejoin_delay`]
    /// describes the effect of a node that restarts without its data.
    ///
    /// # Errors
    /// [`InvalidOption`] unless there are 3, 5, 7 or 9 plain or fenced locks, each of a different
    /// gateway.
    pub fn red_lock(
        &self,
        locks: impl IntoIterator<Item = Lock<T, H>>,
    ) -> Result<Lock<T, H>, InvalidOption> {
        self.red_lock_with(locks, RedLockSettings::default())
    }

    /// Returns one lock on several independent Redis nodes with these settings; see
    /// [`red_lock`](Self::red_lock).
    ///
    /// # Errors
    /// [`InvalidOption`] unless there are 3, 5, 7 or 9 plain or fenced locks, each of a different
    /// gateway.
    pub fn red_lock_with(
        &self,
        locks: impl IntoIterator<Item = Lock<T, H>>,
        settings: RedLockSettings,
    ) -> Result<Lock<T, H>, InvalidOption> {
        let mut clients: Vec<Self> = Vec::new();
        let mut members = Vec::new();
        for lock in locks {
            let Inner { plan, clients: own, .. } = lock.inner();
            let (Rule::One, Target::Lock(calls)) = (&plan.rule, &plan.first) else {
                return Err(no("plain or fenced locks"));
            };
            let calls = match settings.rejoin_delay {
                Some(delay) => calls.clone().not_before(delay),
                None => calls.clone(),
            };
            members.push((members.len(), calls));
            clients.push(own.first().clone());
        }
        let ids: Vec<&str> = clients.iter().map(|client| client.link().gateway().id()).collect();
        let distinct =
            (0..ids.len()).all(|one| (0..one).all(|other| ids.get(one) != ids.get(other)));
        if !matches!(members.len(), 3 | 5 | 7 | 9) || !distinct {
            return Err(no("3, 5, 7 or 9 locks, each of a gateway of its own"));
        }
        let targets: Vec<(usize, Target)> = targets(&members).collect();
        let clients = Clients::new(clients).ok_or_else(|| no("at least one lock"))?;
        let (_, first) = targets.first().ok_or_else(|| no("at least one lock"))?;
        let plan = Plan {
            first: first.clone(),
            rule: Rule::Majority(members),
            pacing: Pacing::Jittered,
            lease_max: settings.rejoin_delay.map(RejoinDelay::lease_max),
        };
        Ok(self.several(clients, plan, &targets))
    }
}

fn targets(members: &[(usize, LockCalls)]) -> impl Iterator<Item = (usize, Target)> {
    members.iter().map(|(place, calls)| (*place, Target::Lock(calls.clone())))
}

impl<T: Transport, H: Host> Clients<T, H> {
    /// Acquires more than half of the members.
    pub(super) async fn majority(
        &self,
        members: &[(usize, LockCalls)],
        terms: Terms,
        term: Term,
        cancel: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Hold, AcquireError> {
        let (client, now) = (self.first(), self.first().host().now());
        let spec = AcquireQuorumSpec {
            parts: members.iter().map(|(_, calls)| calls.clone()).collect(),
            lease: term.lease,
            patience: terms.patience,
            budget: terms.budget,
            attempt: client.attempt(),
            keeps: KEPT_MAX.min(term.lease.get() / 4),
            replicas: terms.replicas,
            is_contended: targets(members)
                .any(|(place, target)| self.at(place).link().is_contended(&target, now)),
        };
        let entropy = client.entropy().ok_or(AcquireError::NoEntropy)?;
        let clocks = members.iter().map(|(place, _)| self.at(*place).link().clock()).collect();
        let machine = AcquireQuorum::new(spec, entropy, clocks, now);
        let places = members.iter().map(|(place, _)| *place);
        let gathered = drive_acquisition(machine, self, places, cancel).await?;
        held(targets(members), gathered, members.len() / 2 + 1, term)
    }
}
