//! What is under way: it may be lost, doubled and reordered.

use std::sync::Arc;

use edgelatch::machine::CallId;
use edgelatch::protocol::reply::Reply;
use edgelatch::protocol::script::ScriptCall;

use super::plan::owner_of;
use super::stage::Leg;
use super::world::World;

/// Which call of which client.
pub(crate) type From = (u8, Leg, CallId);

/// For how long a request may be on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Travel {
    /// To its bound; without one for as long as its tombstone lives (C3).
    ToItsBound,
    /// Without an end if it has no bound (against C3).
    Late,
}

/// A request on its way to Redis, or a copy of one that was executed already.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Letter {
    pub(crate) from: From,
    pub(crate) script: Arc<ScriptCall>,
    pub(crate) not_after: Option<u64>,
    /// Until when it may be on its way.
    travels_until: Option<u64>,
    pub(crate) executed: bool,
}

/// A reply on its way back.
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

    /// The owner that it is about.
    pub(crate) fn owner(&self) -> &str {
        owner_of(&self.script)
    }

    /// Whether its execution can still matter; `copied`: also if it was executed before.
    pub(crate) fn matters(&self, is_awaited: bool, copied: bool, now: u64) -> bool {
        let travels = self.travels_until.is_none_or(|until| now <= until);
        // Late for good: then only a release writes anything.
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
