//! The parameters of an acquisition.

use crate::machine::Pacing;
use crate::name::FencingToken;
use crate::protocol::calls::Target;
use crate::timing::{AttemptTime, LeaseTime, Replicas, RequestBudget, WaitPolicy};

/// The lock or permits to acquire, and the conditions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AcquireSpec {
    /// The lock or permits to acquire.
    pub target: Target,
    /// The lease of the hold.
    pub lease: LeaseTime,
    /// How long to wait for the grant.
    pub patience: WaitPolicy,
    /// The largest number of requests; `None` for no limit.
    pub budget: Option<RequestBudget>,
    /// The longest time for one attempt.
    pub attempt: AttemptTime,
    /// The pauses between tries.
    pub pacing: Pacing,
    /// The number of replicas that must have the grant; `None` to wait for none.
    pub replicas: Option<Replicas>,
    /// The newest fencing token known to have been granted for the target. A grant with an older
    /// one is given back.
    pub newest: Option<FencingToken>,
    /// Whether other waiters are known to compete for the target: a grant is then published even if
    /// the first try gets it.
    pub is_contended: bool,
}

impl AcquireSpec {
    /// Creates the parameters with the defaults: [`LeaseTime::DEFAULT`], [`AttemptTime::DEFAULT`],
    /// the pacing of the target ([`Pacing::Queue`] if it has a queue, else [`Pacing::Jittered`]),
    /// no budget, no replicas, no known token and no known contention.
    pub const fn new(target: Target, patience: WaitPolicy) -> Self {
        let pacing = if target.has_queue() { Pacing::Queue } else { Pacing::Jittered };
        Self {
            target,
            lease: LeaseTime::DEFAULT,
            patience,
            budget: None,
            attempt: AttemptTime::DEFAULT,
            pacing,
            replicas: None,
            newest: None,
            is_contended: false,
        }
    }
}
