//! One type for all machines that operations run.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::error::{AcquireError, LossReason, ReleaseError, RequestError};
use crate::machine::{
    Acquire, AcquireAll, AcquireQuorum, AwaitLatch, ExecuteOnce, Grant, Input, JoinAll,
    Machine as _, MultiGrant, MultiGrantPart, Output, Query, QuorumLease, ReleaseAll, Released,
    RenewalOnDemand, Renewed,
};
use crate::name::FencingToken;
use crate::protocol::reply::Reply;
use crate::time::Instant;

#[derive(Clone, Debug)]
pub(super) enum Runner {
    Acquire(Box<Acquire>),
    AcquireAll(Box<AcquireAll>),
    AcquireQuorum(Box<AcquireQuorum>),
    AwaitLatch(Box<AwaitLatch>),
    Query(Box<Query>),
    ExecuteOnce(Box<ExecuteOnce>),
    Renew(JoinAll<RenewalOnDemand>),
    Queries(JoinAll<Query>),
    Release(Box<ReleaseAll>),
    Keep(Box<QuorumLease>),
}

/// The outcome of a machine.
#[derive(Debug)]
pub(super) enum MachineOutcome {
    /// The grants of an acquisition, one for each target.
    Granted(Result<Vec<MultiGrantPart>, AcquireError>),
    Opened(Result<(), AcquireError>),
    /// A reply, and whether an attempt before the one with the reply may have been executed.
    Replied(Result<Reply, RequestError>, bool),
    Renewed(Vec<Result<Renewed, RequestError>>),
    AllReplied(Vec<Result<Reply, RequestError>>),
    /// The result of a release, and the token of the reads that continue after it.
    Released(Result<Released, ReleaseError>, Option<FencingToken>),
    Kept(Option<LossReason>),
}

impl MachineOutcome {
    fn one_granted(granted: Result<Grant, AcquireError>) -> Self {
        Self::Granted(granted.map(|grant| [MultiGrantPart { grant, counts: true }].into()))
    }

    fn all_granted(granted: Result<MultiGrant, AcquireError>) -> Self {
        Self::Granted(granted.map(|granted| granted.parts))
    }

    /// Whether a waiter has what it waited for; if not, a message that it received is passed on to
    /// another waiter.
    pub(super) const fn is_served(&self) -> bool {
        match self {
            Self::Granted(outcome) => outcome.is_ok(),
            Self::Opened(outcome) => outcome.is_ok(),
            // No waiter is involved.
            Self::Replied(..)
            | Self::Renewed(_)
            | Self::AllReplied(_)
            | Self::Released(..)
            | Self::Kept(_) => true,
        }
    }
}

impl Runner {
    pub(super) fn handle(&mut self, input: Input, now: Instant) {
        match self {
            Self::Acquire(machine) => machine.handle(input, now),
            Self::AcquireAll(machine) => machine.handle(input, now),
            Self::AcquireQuorum(machine) => machine.handle(input, now),
            Self::AwaitLatch(machine) => machine.handle(input, now),
            Self::Query(machine) => machine.handle(input, now),
            Self::ExecuteOnce(machine) => machine.handle(input, now),
            Self::Renew(machine) => machine.handle(input, now),
            Self::Queries(machine) => machine.handle(input, now),
            Self::Release(machine) => machine.handle(input, now),
            Self::Keep(machine) => machine.handle(input, now),
        }
    }

    pub(super) fn poll(&mut self, now: Instant) -> Output<MachineOutcome> {
        match self {
            Self::Acquire(machine) => machine.poll(now).map(MachineOutcome::one_granted),
            Self::AcquireAll(machine) => machine.poll(now).map(MachineOutcome::all_granted),
            Self::AcquireQuorum(machine) => machine.poll(now).map(MachineOutcome::all_granted),
            Self::AwaitLatch(machine) => machine.poll(now).map(MachineOutcome::Opened),
            Self::Query(machine) => {
                let output = machine.poll(now);
                output.map(|reply| MachineOutcome::Replied(reply, machine.is_unsure()))
            }
            Self::ExecuteOnce(machine) => {
                machine.poll(now).map(|reply| MachineOutcome::Replied(reply, false))
            }
            Self::Renew(machine) => machine.poll(now).map(MachineOutcome::Renewed),
            Self::Queries(machine) => machine.poll(now).map(MachineOutcome::AllReplied),
            Self::Release(machine) => {
                let output = machine.poll(now);
                output.map(|end| MachineOutcome::Released(end, machine.downgrade_token()))
            }
            Self::Keep(machine) => machine.poll(now).map(MachineOutcome::Kept),
        }
    }
}
