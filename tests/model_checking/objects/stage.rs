//! The stage of a client, and the machine of this stage.

use std::time::Duration;

use crate::model_checking::hashed::Hashed;
use edgelatch_proto::error::{AcquireError, ReleaseError, RequestError};
use edgelatch_proto::machine::{
    Acquire, AwaitLatch, CallId, ExecuteOnce, Grant, Input, Machine, OutstandingBound, Release,
    Released, Renewal, RenewalOnDemand, Renewed,
};
use edgelatch_proto::name::FencingToken;
use edgelatch_proto::protocol::reply::Reply;
use edgelatch_proto::protocol::script::ScriptCall;
use edgelatch_proto::time::Instant;
use test_support::machines::poll_to_wait;

/// The machine of a client that a call belongs to: each machine numbers its calls by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum MachineKind {
    Acquire,
    DueRenewal,
    RenewalOnDemand,
    Release,
    Once,
    AwaitLatch,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    Idle,
    Acquiring(Acquire),
    Holding {
        grant: Grant,
        renewal: Renewal,
        renew: Option<RenewalOnDemand>,
    },
    /// The client knows that it has lost its hold.
    Lost {
        grant: Grant,
    },
    Releasing(Release),
    Executing(ExecuteOnce),
    AwaitLatch(AwaitLatch),
    Finished(Outcome),
}

/// The result of a client whose machines have ended: whether it may still have a hold in Redis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Outcome {
    /// Nothing is held: another client held the object.
    Busy,
    /// Nothing is held, for another reason.
    NothingHeld,
    /// Nothing is held any more after `time` on the client's clock, counted from `since`.
    HeldAtMost { since: Instant, time: Duration },
    /// The result gives no upper bound.
    Refused,
    /// The idempotent call was executed, with this reply.
    Done(i64, String),
    /// The call was not executed and never will be.
    NotExecuted,
    /// The latch is open.
    Open,
}

/// The outcome of a machine.
pub(crate) enum MachineOutcome {
    Acquired(Result<Grant, AcquireError>),
    Lost,
    Renewed(Result<Renewed, RequestError>),
    /// With the token that the reads inside have from then on.
    Released(Outcome, Option<FencingToken>),
    Finished(Outcome),
}

/// The calls that a client sends while it handles one input.
pub(crate) type Outbox = Vec<(MachineKind, CallId, Hashed<ScriptCall>)>;

impl MachineKind {
    pub(crate) const COUNT: usize = 6;
}

impl Stage {
    /// Passes the input to the machine of this kind; returns whether there is one.
    pub(crate) fn handle(&mut self, kind: MachineKind, input: Input, now: Instant) -> bool {
        match (self, kind) {
            (Self::Acquiring(machine), MachineKind::Acquire) => machine.handle(input, now),
            (Self::Holding { renewal, .. }, MachineKind::DueRenewal) => renewal.handle(input, now),
            (Self::Holding { renew: Some(machine), .. }, MachineKind::RenewalOnDemand) => {
                machine.handle(input, now)
            }
            (Self::Releasing(machine), MachineKind::Release) => machine.handle(input, now),
            (Self::Executing(machine), MachineKind::Once) => machine.handle(input, now),
            (Self::AwaitLatch(machine), MachineKind::AwaitLatch) => machine.handle(input, now),
            _ => return false,
        }
        true
    }

    /// Bounds the requests for a hold that may still be executed, combined with `known`; `None`
    /// when the stage has no hold.
    pub(crate) fn outstanding(&self, known: Option<OutstandingBound>) -> Option<OutstandingBound> {
        let and = |one: Option<OutstandingBound>, other: OutstandingBound| {
            Some(one.map_or(other, |one| one.and(other)))
        };
        match self {
            Self::Holding { renewal, renew, .. } => {
                let known = and(known, renewal.outstanding());
                renew.as_ref().map_or(known, |renew| and(known, renew.outstanding()))
            }
            Self::Lost { .. } => known,
            _ => None,
        }
    }

    /// Polls the machine of this kind until its next wait (`Err`) or its end (`Ok`); returns `None`
    /// without such a machine.
    pub(crate) fn poll(
        &mut self,
        kind: MachineKind,
        now: Instant,
        outbox: &mut Outbox,
    ) -> Option<Result<MachineOutcome, Instant>> {
        Some(match (self, kind) {
            (Self::Acquiring(machine), MachineKind::Acquire) => {
                drain(machine, kind, now, outbox).map(MachineOutcome::Acquired)
            }
            (Self::Holding { renewal, .. }, MachineKind::DueRenewal) => {
                drain(renewal, kind, now, outbox).map(|_| MachineOutcome::Lost)
            }
            (Self::Holding { renew: Some(machine), .. }, MachineKind::RenewalOnDemand) => {
                drain(machine, kind, now, outbox).map(MachineOutcome::Renewed)
            }
            (Self::Releasing(machine), MachineKind::Release) => drain(machine, kind, now, outbox)
                .map(|outcome| {
                    MachineOutcome::Released(
                        Outcome::of_release(&outcome, now),
                        machine.downgrade_token(),
                    )
                }),
            (Self::Executing(machine), MachineKind::Once) => drain(machine, kind, now, outbox)
                .map(|outcome| MachineOutcome::Finished(Outcome::of_idempotent_calls(outcome))),
            (Self::AwaitLatch(machine), MachineKind::AwaitLatch) => {
                drain(machine, kind, now, outbox).map(|outcome| {
                    MachineOutcome::Finished(outcome.map_or(Outcome::Busy, |()| Outcome::Open))
                })
            }
            _ => return None,
        })
    }
}

impl Outcome {
    pub(crate) fn without_grant(error: &AcquireError, now: Instant) -> Self {
        match error {
            AcquireError::Busy { .. } => Self::Busy,
            AcquireError::Unknown { held_at_most, .. }
            | AcquireError::Cancelled { held_at_most: Some(held_at_most) } => {
                Self::HeldAtMost { since: now, time: *held_at_most }
            }
            _ => Self::NothingHeld,
        }
    }

    fn of_release(outcome: &Result<Released, ReleaseError>, now: Instant) -> Self {
        match outcome {
            Ok(_) => Self::NothingHeld,
            Err(ReleaseError::Unknown { held_at_most, .. }) => {
                Self::HeldAtMost { since: now, time: *held_at_most }
            }
            Err(_) => Self::Refused,
        }
    }

    fn of_idempotent_calls(outcome: Result<Reply, RequestError>) -> Self {
        match outcome {
            Ok(reply) => Self::Done(reply.code as i64, reply.value),
            Err(RequestError::NotExecuted(_)) => Self::NotExecuted,
            Err(_) => Self::Refused,
        }
    }
}

/// Polls a machine until its next wait (`Err`) or its end (`Ok`).
fn drain<M: Machine>(
    machine: &mut M,
    kind: MachineKind,
    now: Instant,
    outbox: &mut Outbox,
) -> Result<M::Outcome, Instant> {
    poll_to_wait(machine, now, |_, call, script| outbox.push((kind, call, Hashed::new(script))))
}
