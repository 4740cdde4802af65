//! What an acquisition is told.

use crate::machine::Pacing;
use crate::name::FencingToken;
use crate::protocol::calls::Target;
use crate::timing::{AttemptTime, LeaseTime, Replicas, RequestBudget, WaitPolicy};

/// What to acquire, and how.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AcquireSpec {
    /// What to take.
    pub target: Target,
    /// How long the hold is to last.
    pub lease: LeaseTime,
    /// How long to wait for it.
    pub patience: WaitPolicy,
    /// How many requests may be spent; `None` for no limit.
    pub budget: Option<RequestBudget>,
    /// How long one attempt may take.
    pub attempt: AttemptTime,
    /// How a refused try is followed by the next.
    pub pacing: Pacing,
    /// How many replicas must have the grant; `None` to wait for none.
    pub replicas: Option<Replicas>,
    /// The newest fencing token that is known to have been granted for it: who is granted an older
    /// one gives it back.
    pub newest: Option<FencingToken>,
    /// Whether others are known to want it as well: its grant is told to them even if it is had at
    /// once.
    pub is_contended: bool,
}

impl AcquireSpec {
    /// To take this, so patiently, and all else as most want it: [`LeaseTime::DEFAULT`],
    /// [`AttemptTime::DEFAULT`], the pace of what is taken ([`Pacing::Queue`] for what has a queue,
    /// else [`Pacing::Jittered`]), no budget, no replicas, nothing known of others.
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
