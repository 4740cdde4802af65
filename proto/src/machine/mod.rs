//! Sans-I/O state machines, which decide when to send, wait, retry and give up. They have no clock,
//! no I/O and no randomness of their own.
//!
//! **The one rule:** call [`handle`](Machine::handle) once, then [`poll`](Machine::poll) until it
//! returns [`Output::Timeout`] or [`Output::Done`]; then the next `handle`. Poll a new machine
//! first.
//!
//! Early and repeated wake-ups change nothing. A `Timeout` always has a reason. A [`CallId`] ties
//! an input to its call, so that a late reply never counts for another call. The machine also
//! decides the timeout of a call: during a call it waits for [`TimeoutReason::ReplyDue`]. Only a
//! machine repeats a call, because only it knows that the script is idempotent.
//!
//! A machine is a value: it can be cloned, compared and hashed at any time, so that a model checker
//! can explore every possible next event.

mod acquire;
mod acquire_all;
mod acquire_quorum;
mod await_latch;
mod backoff;
mod call;
mod contention;
mod execute_once;
mod guarded;
mod ids;
mod join_all;
mod lease;
mod notification_state;
mod outstanding_bound;
mod owner_round;
mod params;
mod query;
mod quorum_lease;
mod rate_limiter;
mod release;
mod renewal;
mod replicas;
mod state;

pub use acquire::Acquire;
pub use acquire_all::{AcquireAll, MultiGrant, MultiGrantPart};
pub use acquire_quorum::AcquireQuorum;
pub use await_latch::AwaitLatch;
pub use backoff::{Pacing, SpinBackoff};
pub use contention::ContentionEstimator;
pub use execute_once::ExecuteOnce;
pub(crate) use guarded::script_result;
pub use guarded::{check_protecting_lock, newest_token, write_result};
pub use ids::Entropy;
pub use join_all::JoinAll;
pub use lease::{Grant, Lease, LeaseState};
pub use outstanding_bound::OutstandingBound;
pub use params::{
    AcquireAllSpec, AcquireParams, AcquireQuorumSpec, AcquireSpec, AllTargets, OneTarget,
    QuorumNodes,
};
pub use query::{Query, RenewalOnDemand, Renewed};
pub use quorum_lease::{QuorumLease, combined};
pub use release::{Release, ReleaseAll, Released};
pub use renewal::Renewal;
pub use state::{FairReadWriteState, LockState, PermitsState, SemaphoreState, parse_number};

use core::time::Duration;

use crate::error::{FailureKind, Refusal};
use crate::protocol::calls::Topic;
use crate::protocol::reply::Reply;
use crate::protocol::script::ScriptCall;
use crate::time::Instant;
use crate::timing::WaitPolicy;

/// An event that a machine handles.
#[derive(Clone, Debug)]
pub enum Input {
    /// The script of a call ran and replied.
    Reply {
        /// The call.
        call: CallId,
        /// The reply.
        reply: Reply,
    },
    /// The gateway or Redis refused a call.
    Refused {
        /// The call.
        call: CallId,
        /// The reason.
        refusal: Refusal,
    },
    /// The outcome of a call is unknown.
    Failed {
        /// The call.
        call: CallId,
        /// The failure.
        kind: FailureKind,
    },
    /// The subscription is confirmed.
    Subscribed {
        /// Whether the machine retries, because it may have missed earlier messages. `false` if
        /// another waiter of this client retries because of them.
        must_retry: bool,
    },
    /// A message was published. It is a hint: it may be meant for another waiter, come twice, or
    /// never come.
    Notified {
        /// If other clients that exclude each other got the message too, the time within which to
        /// retry; otherwise zero: retry at once.
        within: Duration,
    },
    /// A message says that another client has acquired the object. A hint as well.
    AcquiredByOther {
        /// The lease of that client, which it may renew. `None` if several clients may hold the
        /// object at a time, so that this grant does not exclude the waiter.
        lease: Option<Duration>,
    },
    /// The subscription has ended, or could not be made: no message will arrive.
    Unsubscribed,
    /// Time has passed: the time of [`Output::Timeout`], or less.
    Timeout,
    /// The caller has cancelled the operation.
    Cancelled,
}

/// An action that a machine requires.
#[derive(Debug)]
#[must_use]
pub enum Output<T> {
    /// Send this call. It replaces a call that is under way to the same gateway, which may be
    /// dropped.
    Call {
        /// Identifies the call in the inputs about it.
        call: CallId,
        /// The gateway.
        to: Endpoint,
        /// The script.
        script: ScriptCall,
    },
    /// Subscribe to this topic until the end, instead of an earlier topic, and poll again. A caller
    /// without streams may ignore it: a machine without inputs about a subscription polls.
    Subscribe {
        /// The gateway.
        to: Endpoint,
        /// The topic.
        topic: Topic,
    },
    /// Wait until this time, or until an earlier event.
    Timeout {
        /// When to pass [`Input::Timeout`].
        until: Instant,
        /// The reason.
        why: TimeoutReason,
    },
    /// The operation is over. Calls under way may be dropped.
    Done(T),
}

impl<T> Output<T> {
    /// Converts the outcome.
    pub fn map<U>(self, outcome: impl FnOnce(T) -> U) -> Output<U> {
        match self {
            Self::Call { call, to, script } => Output::Call { call, to, script },
            Self::Subscribe { to, topic } => Output::Subscribe { to, topic },
            Self::Timeout { until, why } => Output::Timeout { until, why },
            Self::Done(end) => Output::Done(outcome(end)),
        }
    }
}

/// Identifies a call of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(u32);

/// The index of a gateway among those of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint(pub usize);

impl Endpoint {
    /// The gateway of a machine with one gateway.
    pub const ONLY: Self = Self(0);
}

/// The reason of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeoutReason {
    /// The reply to a call is due.
    ReplyDue,
    /// The pause between two tries is over.
    BackOff,
    /// The gateway's `Retry-After`: no message shortens it.
    RetryAfter,
    /// No message has arrived for as long as a subscription is trusted.
    Silence,
    /// The random time of a retry after a message that other clients got too.
    Notification,
    /// The holder's lease expires.
    HolderExpires,
    /// The caller's wait is over.
    WaitOver,
    /// The caller's wait is over, and the last try of the budget is due: no message shortens it.
    LastTry,
    /// A renewal is due.
    RenewalDue,
    /// The lease can no longer be trusted.
    LeaseEnds,
}

/// A state machine for one operation.
pub trait Machine {
    /// The result of the operation.
    type Outcome;

    /// Handles an event. Inputs about calls that are not under way change nothing.
    fn handle(&mut self, input: Input, now: Instant);

    /// Returns the next action. After the end it returns `Done` every time.
    fn poll(&mut self, now: Instant) -> Output<Self::Outcome>;
}

/// When a wait that begins now is over; `None` for a wait until it is cancelled.
pub fn wait_deadline(wait: WaitPolicy, now: Instant) -> Option<Instant> {
    match wait {
        WaitPolicy::Once => Some(now),
        WaitPolicy::UpTo(time) => Some(now + time.get()),
        WaitPolicy::UntilCancelled => None,
    }
}

/// Returns the earlier of two timeouts. `now` decides between clocks that disagree.
fn sooner(
    first: Option<(Instant, TimeoutReason)>,
    other: (Instant, TimeoutReason),
    now: Instant,
) -> (Instant, TimeoutReason) {
    first.filter(|(until, _)| now.until(*until) <= now.until(other.0)).unwrap_or(other)
}
