//! What the conversations begin with.

use edgelatch::machine::{Acquire, AcquireSpec, Entropy, Grant};
use edgelatch::name::LockName;
use edgelatch::protocol::reply::ServerClock;
use edgelatch::protocol::script::{LockCalls, Publish};
use edgelatch::timing::{AttemptTime, LeaseTime, Patience, RequestBudget, WaitTime};

use crate::virtual_time::{Conversation, START, conversation, granted, known_clock, ms};

/// The attempt time of a lease of 30 s that names none.
pub(crate) const ATTEMPT: u64 = 5_000;

pub(crate) const ENTROPY: Entropy = Entropy::new([7; 32]);

pub(crate) fn calls() -> LockCalls {
    LockCalls { name: LockName::parse("lock").unwrap(), publish: Publish::Plain }
}

pub(crate) fn spec(patience: Patience) -> AcquireSpec {
    let budget = if patience == Patience::UntilCancelled { None } else { Some(RequestBudget::DEFAULT) };
    AcquireSpec { calls: calls(), lease: LeaseTime::DEFAULT, patience, budget, attempt: AttemptTime::DEFAULT }
}

pub(crate) fn with_budget(patience: Patience, budget: u32) -> AcquireSpec {
    AcquireSpec { budget: Some(RequestBudget::new(budget).unwrap()), ..spec(patience) }
}

pub(crate) fn up_to(wait_ms: u64) -> Patience {
    Patience::UpTo(WaitTime::new(ms(wait_ms)).unwrap())
}

/// A conversation of a client that has seen Redis' clock.
pub(crate) fn acquiring(spec: AcquireSpec) -> Conversation<Acquire> {
    acquiring_with(spec, Some(known_clock()))
}

pub(crate) fn acquiring_with(spec: AcquireSpec, clock: Option<ServerClock>) -> Conversation<Acquire> {
    conversation(Acquire::new(spec, ENTROPY, clock, START))
}

/// A hold that was asked for and granted at the start.
pub(crate) fn grant() -> Grant {
    acquiring(spec(Patience::Once)).asks("lock_acquire").hears(granted(42)).ends().unwrap()
}
