//! The events of a lease or of a client, one after the other.

use alloc::rc::Rc;
use alloc::string::String;
use core::cell::Cell;

use super::error;
use super::objects::{Client, Used};
use super::records::Value;
use edgelatch_proto::engine::{Context, EndpointId, Engine, HoldId, NotificationMode, Situation};
use edgelatch_proto::machine::LeaseState;

/// Events, and those that were returned.
pub(super) enum Events {
    Lease(HoldId, Cell<Option<Situation>>),
    Client(Rc<Used<EndpointId>>, Cell<(Option<NotificationMode>, u32)>),
}

impl Events {
    pub(super) const fn of_lease(hold: HoldId) -> Self {
        Self::Lease(hold, Cell::new(None))
    }

    pub(super) fn of_client(client: &Client) -> Self {
        Self::Client(Rc::clone(&client.endpoint), Cell::new((None, 0)))
    }

    /// The next event as JSON; `null` after the last, and `None` before the next.
    pub(super) fn next(&self, engine: &Engine, cx: &Context<'_>) -> Option<String> {
        let event = match self {
            Self::Lease(hold, seen) => next_of_lease(*hold, seen, engine, cx)?,
            Self::Client(endpoint, seen) => next_of_client(endpoint.id, seen, engine)?,
        };
        Some(event.to_json())
    }
}

/// The type, the reason of a loss, and the remaining time.
fn next_of_lease(
    hold: HoldId,
    seen: &Cell<Option<Situation>>,
    engine: &Engine,
    cx: &Context<'_>,
) -> Option<Value> {
    let before = seen.get();
    if before.is_some_and(|seen| seen.is_over()) {
        return Some(Value::Nothing);
    }
    let Some(now) = engine.situation(hold) else { return Some(Value::Nothing) };
    if before == Some(now) {
        return None;
    }
    seen.set(Some(now));
    let (kind, reason) = match now.state {
        LeaseState::Lost(reason) => ("lost", Some(error::loss(reason))),
        _ if now.released => ("released", None),
        LeaseState::Held => ("held", None),
        LeaseState::Renewed => ("renewed", None),
        LeaseState::Unknown => ("unknown", None),
    };
    let remaining = error::as_ms(engine.remaining(hold, cx));
    Some(Value::List([kind.into(), Value::or_nothing(reason), remaining].into()))
}

/// The type, and the size of a clock's step back.
fn next_of_client(
    endpoint: EndpointId,
    seen: &Cell<(Option<NotificationMode>, u32)>,
    engine: &Engine,
) -> Option<Value> {
    let (mode, rollbacks) = seen.get();
    let now = engine.notification_mode(endpoint);
    if let Some(kind) = now.filter(|_| now != mode) {
        seen.set((now, rollbacks));
        let kind = match kind {
            NotificationMode::Stream => "stream",
            NotificationMode::Polling => "polling",
        };
        return Some(Value::List([kind.into()].into()));
    }
    let (rollbacks, by) = engine.last_rollback(endpoint, rollbacks)?;
    seen.set((mode, rollbacks));
    Some(Value::List(["clock-set-back".into(), error::as_ms(by)].into()))
}
