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
mod awaiting;
mod backoff;
mod call;
mod crowd;
mod ear;
mod gather;
mod ids;
mod keeping;
mod lease;
mod majority;
mod once;
mod question;
mod reach;
mod release;
mod renewal;
mod replicas;
mod state;
mod together;

pub use acquire::{Acquire, AcquireSpec};
pub use awaiting::Awaiting;
pub use backoff::{Pacing, SpinBackoff};
pub use crowd::Crowd;
pub use gather::{Gather, GatherSpec, Gathered, GatheredPart};
pub use ids::Entropy;
pub use keeping::Keeping;
pub(crate) use keeping::combined;
pub use lease::{Grant, Lease, LeaseState};
pub use majority::{Majority, MajoritySpec};
pub use once::Once;
pub use question::{Question, Renew, Renewed};
pub use reach::Reach;
pub use release::{Release, ReleaseAll, Released};
pub use renewal::Renewal;
pub use state::{LockState, PermitsState, SemaphoreState, number};
pub use together::Together;

use core::time::Duration;

use crate::error::{FailureKind, Refusal};
use crate::protocol::calls::Topic;
use crate::protocol::reply::Reply;
use crate::protocol::script::ScriptCall;
use crate::time::Instant;
use crate::timing::Patience;

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
    /// The subscription that was asked for stands. Whatever was published before was not heard.
    Listening,
    /// The same, and somebody else sees to what was published before.
    Hearing,
    /// Something was published on the channel that is listened to. A hint: it may be for somebody else, come twice or never.
    Notified {
        /// Others are told the same, and exclude each other: within this time it is to ask; at once for nothing.
        within: Duration,
    },
    /// One of those has it. A hint as well.
    Taken {
        /// For how long, unless it is renewed; `None` where that says nothing, since many have some of it.
        lease: Option<Duration>,
    },
    /// There is no subscription, or none any more.
    Deaf,
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
    /// Listen to this until the end, in place of what was listened to before; go on asking for more to do. Whoever cannot listen
    /// need not: a machine that is told nothing of a subscription asks in its own time.
    Listen {
        /// Where.
        to: Endpoint,
        /// What.
        topic: Topic,
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

impl<T> Output<T> {
    /// The same, ending with something else.
    pub(crate) fn map<U>(self, outcome: impl FnOnce(T) -> U) -> Output<U> {
        match self {
            Self::Call { call, to, script } => Output::Call { call, to, script },
            Self::Listen { to, topic } => Output::Listen { to, topic },
            Self::Wait { until, why } => Output::Wait { until, why },
            Self::Done(end) => Output::Done(outcome(end)),
        }
    }
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
    /// The gateway wanted to be left alone until then: nothing that is heard comes before it.
    RetryAfter,
    /// Nothing was heard for as long as a subscription is trusted.
    Silence,
    /// Something was heard, which others have heard too: its turn to ask has come, unless somebody else has it by then.
    Turn,
    /// The holder's lease runs out.
    HolderExpires,
    /// The caller's wait is over.
    WaitOver,
    /// The same, and the only try that is left belongs there: nothing that is heard comes before it.
    LastTry,
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

/// When a wait that begins now is over; `None` for one that only ends by cancelling.
pub(crate) fn wait_over(patience: Patience, now: Instant) -> Option<Instant> {
    match patience {
        Patience::Once => Some(now),
        Patience::UpTo(wait) => Some(now + wait.get()),
        Patience::UntilCancelled => None,
    }
}

/// What comes first.
fn sooner(first: Option<(Instant, Wake)>, other: (Instant, Wake), now: Instant) -> (Instant, Wake) {
    first.filter(|(until, _)| now.until(*until) <= now.until(other.0)).unwrap_or(other)
}
