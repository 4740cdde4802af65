//! The parameters of acquisitions.

use alloc::vec::Vec;
use core::time::Duration;

use super::Pacing;
use crate::name::FencingToken;
use crate::protocol::calls::{LockCalls, Target};
use crate::timing::{AttemptTime, LeaseTime, Replicas, RequestBudget, WaitPolicy};

/// The parameters of an acquisition. `T` is the type of its targets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AcquireParams<T> {
    /// The objects to acquire.
    pub targets: T,
    /// The lease of the hold.
    pub lease: LeaseTime,
    /// How long to wait for the grant.
    pub wait: WaitPolicy,
    /// The largest number of calls; `None` for no limit. An acquisition of several targets makes
    /// two tries of each of them in any case, and undoes them: six calls are reserved for each
    /// target, or eight for each node of a quorum.
    pub budget: Option<RequestBudget>,
    /// The longest time for one attempt. A quorum waits at most a tenth of the lease for a node,
    /// within 100 ms to 1 s.
    pub attempt_time: AttemptTime,
    /// The number of replicas that must have each grant; `None` to wait for none.
    pub replicas: Option<Replicas>,
    /// Whether other waiters are known to compete: grants are then published even if the first try
    /// gets them.
    pub is_contended: bool,
}

/// The parameters of [`Acquire`](super::Acquire).
pub type AcquireSpec = AcquireParams<OneTarget>;

/// The parameters of [`AcquireAll`](super::AcquireAll).
pub type AcquireAllSpec = AcquireParams<AllTargets>;

/// The parameters of [`AcquireQuorum`](super::AcquireQuorum).
pub type AcquireQuorumSpec = AcquireParams<QuorumNodes>;

/// A lock or permits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OneTarget {
    /// The lock or permits to acquire.
    pub target: Target,
    /// The pauses between tries.
    pub pacing: Pacing,
    /// The newest fencing token known to have been granted for the target. A grant with an older
    /// one is given back.
    pub newest_token: Option<FencingToken>,
}

/// Several targets; the hold needs all of them. The index of a part is the endpoint of its calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AllTargets {
    /// The parts, in an order that all clients share.
    pub parts: Vec<Target>,
    /// How long parts are kept while the machine waits for another one.
    pub keep_time: Duration,
    /// The pauses of the wait for each part, in the order of the parts; jittered for a part without
    /// an entry. A part with a queue is retried at the times that the queue sets.
    pub pacing: Vec<Pacing>,
    /// For each part, the newest fencing token known to have been granted for it. If a part is
    /// granted with an older one, all parts are given back.
    pub newest_tokens: Vec<Option<FencingToken>>,
}

/// A lock on several nodes; the hold needs more than half of them. The index of a node is
/// the endpoint of its calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QuorumNodes {
    /// The lock on each node, under one or several names, each on its own Redis. Odd, at least 3.
    pub parts: Vec<LockCalls>,
    /// How long nodes are kept while other nodes are retried.
    pub keep_time: Duration,
}

/// The default of `keep_time`.
const KEEP_TIME: Duration = Duration::from_secs(1);

impl AcquireSpec {
    /// Creates the parameters with the pacing of the target ([`Pacing::Queue`] if it has a queue,
    /// else [`Pacing::Jittered`]), no known token, and otherwise the defaults of
    /// [`with_defaults`](AcquireParams::with_defaults).
    pub const fn new(target: Target, wait: WaitPolicy) -> Self {
        let pacing = if target.has_queue() { Pacing::Queue } else { Pacing::Jittered };
        Self::with_defaults(OneTarget { target, pacing, newest_token: None }, wait)
    }
}

impl AcquireAllSpec {
    /// Creates the parameters with a `keep_time` of one second, jittered pauses, no known tokens,
    /// and otherwise the defaults of [`with_defaults`](AcquireParams::with_defaults).
    pub const fn new(parts: Vec<Target>, wait: WaitPolicy) -> Self {
        let targets = AllTargets {
            parts,
            keep_time: KEEP_TIME,
            pacing: Vec::new(),
            newest_tokens: Vec::new(),
        };
        Self::with_defaults(targets, wait)
    }
}

impl AcquireQuorumSpec {
    /// Creates the parameters with a `keep_time` of one second, and otherwise the defaults of
    /// [`with_defaults`](AcquireParams::with_defaults).
    pub const fn new(parts: Vec<LockCalls>, wait: WaitPolicy) -> Self {
        Self::with_defaults(QuorumNodes { parts, keep_time: KEEP_TIME }, wait)
    }
}

impl<T> AcquireParams<T> {
    /// Creates the parameters with the defaults: [`LeaseTime::DEFAULT`], [`AttemptTime::DEFAULT`],
    /// no budget, no replicas, no known contention.
    pub const fn with_defaults(targets: T, wait: WaitPolicy) -> Self {
        Self {
            targets,
            lease: LeaseTime::DEFAULT,
            wait,
            budget: None,
            attempt_time: AttemptTime::DEFAULT,
            replicas: None,
            is_contended: false,
        }
    }

    /// Separates the targets from the parameters that all acquisitions have.
    pub(super) fn split(self) -> (T, AcquireParams<()>) {
        let Self { targets, lease, wait, budget, attempt_time, replicas, is_contended } = self;
        let shared = AcquireParams {
            targets: (),
            lease,
            wait,
            budget,
            attempt_time,
            replicas,
            is_contended,
        };
        (targets, shared)
    }
}
