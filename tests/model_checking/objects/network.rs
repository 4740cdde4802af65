//! The messages in flight. The model may lose, duplicate and reorder them.

use edgelatch_proto::machine::CallId;
use edgelatch_proto::protocol::reply::Reply;
use edgelatch_proto::protocol::script::ScriptCall;

use super::plan::owner_of;
use super::stage::MachineKind;
use super::world::World;
use crate::model_checking::hashed::Hashed;

/// The client, machine and call that a message belongs to.
pub(crate) type From = (u8, MachineKind, CallId);

/// The limit of the time for which a request may be in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeliveryLimit {
    /// Until its bound; a request without one, as long as its tombstone lasts (rule C3).
    ToItsBound,
    /// Without an end for a request without a bound (against rule C3).
    Late,
}

/// A request in flight, or a copy of a request that was executed already.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SentRequest {
    pub(crate) from: From,
    pub(crate) script: Hashed<ScriptCall>,
    pub(crate) not_after: Option<u64>,
    /// The last server time, in milliseconds, at which it may be in flight; `None` is without an
    /// end.
    delivered_until: Option<u64>,
    pub(crate) executed: bool,
}

/// A reply in flight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Answer {
    pub(crate) to: From,
    pub(crate) reply: Hashed<Reply>,
}

impl SentRequest {
    pub(crate) fn new(
        from: From,
        script: Hashed<ScriptCall>,
        world: &World,
        server_ms: u64,
    ) -> Self {
        let mut not_after = script.args()[1].parse().ok();
        let is_moved = matches!(from.1, MachineKind::Acquire | MachineKind::Once)
            && script.script().name != "cancel";
        if let Some(moving) = world.moving_bound.filter(|_| is_moved && not_after.is_some()) {
            not_after = Some(server_ms + moving * 1000);
        }
        let keep: u64 = script.args()[2].parse().unwrap();
        let delivered_until = match world.delivery_limit {
            _ if is_query(&script) => None,
            DeliveryLimit::Late => None,
            DeliveryLimit::ToItsBound if not_after.is_some() => None,
            DeliveryLimit::ToItsBound => Some(server_ms + keep),
        };
        Self { from, script, not_after, delivered_until, executed: false }
    }

    /// The owner field of the request.
    pub(crate) fn owner(&self) -> &str {
        owner_of(&self.script)
    }

    /// Whether an execution of the request can still change a client or Redis. `copied` says
    /// whether the model allows a second execution.
    pub(crate) fn can_have_effect(&self, is_awaited: bool, copied: bool, now: u64) -> bool {
        let is_in_flight = self.delivered_until.is_none_or(|until| now <= until);
        // After its bound only a release still writes.
        let late = self.not_after.is_some_and(|not_after| now > not_after);
        let writes = !late && !is_query(&self.script) || is_release(&self.script);
        is_in_flight && (is_awaited || writes) && (copied || !self.executed)
    }
}

fn is_query(script: &ScriptCall) -> bool {
    script.script().name.ends_with("_inspect")
}

fn is_release(script: &ScriptCall) -> bool {
    script.script().name.ends_with("_release")
}
