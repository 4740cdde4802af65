//! The messages in flight. The model may lose, duplicate and reorder them.

use std::sync::Arc;

use edgelatch_proto::machine::CallId;
use edgelatch_proto::protocol::reply::Reply;
use edgelatch_proto::protocol::script::ScriptCall;

use super::plan::owner_of;
use super::stage::Leg;
use super::world::World;

/// The client, machine and call that a message belongs to.
pub(crate) type From = (u8, Leg, CallId);

/// How long a request may be in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Travel {
    /// Until its bound; a request without one, as long as its tombstone lasts (rule C3).
    ToItsBound,
    /// A request without a bound, without an end (against rule C3).
    Late,
}

/// A request in flight, or a copy of a request that was executed already.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Letter {
    pub(crate) from: From,
    pub(crate) script: Arc<ScriptCall>,
    pub(crate) not_after: Option<u64>,
    /// The last server time, in milliseconds, at which it may be in flight; `None` is without an
    /// end.
    travels_until: Option<u64>,
    pub(crate) executed: bool,
}

/// A reply in flight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Answer {
    pub(crate) to: From,
    pub(crate) reply: Reply,
}

impl Letter {
    pub(crate) fn new(from: From, script: Arc<ScriptCall>, world: &World, server_ms: u64) -> Self {
        let mut not_after = script.args()[1].parse().ok();
        let is_moved =
            matches!(from.1, Leg::Acquire | Leg::Once) && script.script().name != "cancel";
        if let Some(moving) = world.moving_bound.filter(|_| is_moved && not_after.is_some()) {
            not_after = Some(server_ms + moving * 1000);
        }
        let keep: u64 = script.args()[2].parse().unwrap();
        let travels_until = match world.travel {
            _ if is_question(&script) => None,
            Travel::Late => None,
            Travel::ToItsBound if not_after.is_some() => None,
            Travel::ToItsBound => Some(server_ms + keep),
        };
        Self { from, script, not_after, travels_until, executed: false }
    }

    /// The owner field of the request.
    pub(crate) fn owner(&self) -> &str {
        owner_of(&self.script)
    }

    /// Whether the request's execution can still change a client or Redis. With `copied`, this
    /// includes a second execution.
    pub(crate) fn matters(&self, is_awaited: bool, copied: bool, now: u64) -> bool {
        let travels = self.travels_until.is_none_or(|until| now <= until);
        // After its bound only a release still writes.
        let late = self.not_after.is_some_and(|not_after| now > not_after);
        let writes = !late && !is_question(&self.script) || is_release(&self.script);
        travels && (is_awaited || writes) && (copied || !self.executed)
    }
}

fn is_question(script: &ScriptCall) -> bool {
    script.script().name.ends_with("_inspect")
}

fn is_release(script: &ScriptCall) -> bool {
    script.script().name.ends_with("_release")
}
