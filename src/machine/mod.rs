//! When to ask, when to wait, when to give up: machines without a clock, I/O or randomness of their own.
//!
//! **The one rule:** one [`handle`](Machine::handle), then [`poll`](Machine::poll) until it answers [`Output::Wait`] or
//! [`Output::Done`]; then the next `handle`. A new machine is polled first.
//!
//! Waking early or twice changes nothing. A `Wait` always says why. A [`CallId`] ties an input to its call, so that a late
//! reply is never taken for another's. A call's time-out is the machine's: while one is under way it waits for
//! [`Wake::ReplyDue`]. Whether a call may be repeated is decided here too, because only a machine knows what its script is.
//!
//! A machine is a value: it can be cloned, compared and hashed in the middle of its work, so that a model checker can try all
//! that might happen to it next.

mod acquire;
mod backoff;
mod call;
mod force_release;
mod ids;
mod lease;
mod question;
mod release;
mod renewal;

pub use acquire::{Acquire, AcquireSpec};
pub use force_release::ForceRelease;
pub use ids::Entropy;
pub use lease::{Grant, Lease, LeaseState};
pub use question::{Inspect, LockState, Renew};
pub use release::{Release, Released};
pub use renewal::Renewal;

use crate::error::{FailureKind, Refusal};
use crate::protocol::reply::Reply;
use crate::protocol::script::ScriptCall;
use crate::time::Instant;

/// One thing that happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// The script of a call ran and answered.
    Reply {
        /// Which call.
        call: CallId,
        /// What it said.
        reply: Reply,
    },
    /// The gateway or Redis said no to a call.
    Refused {
        /// Which call.
        call: CallId,
        /// In what way.
        refusal: Refusal,
    },
    /// Nothing tells what became of a call.
    Failed {
        /// Which call.
        call: CallId,
        /// What went wrong.
        kind: FailureKind,
    },
    /// Time has passed, or somebody thinks so.
    Woken,
    /// The caller does not want it any more.
    Cancelled,
}

/// One thing to do.
#[derive(Debug)]
#[must_use]
pub enum Output<T> {
    /// Send this. A new call takes the place of the one that is under way to the same gateway: drop that.
    Call {
        /// Names the call in the inputs about it.
        call: CallId,
        /// Which gateway.
        to: Endpoint,
        /// What to run.
        script: ScriptCall,
    },
    /// Nothing to do until then, or until something happens.
    Wait {
        /// When to say [`Input::Woken`].
        until: Instant,
        /// What is due then.
        why: Wake,
    },
    /// It is over. Nothing under way is of interest any more.
    Done(T),
}

/// Names one call of one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(u32);

/// Which of the gateways that a machine was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint(pub usize);

impl Endpoint {
    /// The only one, for machines of one gateway.
    pub const ONLY: Self = Self(0);
}

/// Why a machine waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wake {
    /// The answer to a call should be there by then.
    ReplyDue,
    /// The pause between two tries is over.
    BackOff,
    /// The holder's lease runs out.
    HolderExpires,
    /// The caller's wait is over.
    WaitOver,
    /// The lease is to be renewed.
    RenewalDue,
    /// The lease can no longer be trusted.
    LeaseEnds,
}

/// What all machines have in common.
pub trait Machine {
    /// What it ends with.
    type Outcome;

    /// Tells the machine what happened. Inputs about calls that are not under way change nothing.
    fn handle(&mut self, input: Input, now: Instant);

    /// Asks for the next thing to do. Once it is done it says so as often as it is asked.
    fn poll(&mut self, now: Instant) -> Output<Self::Outcome>;
}
