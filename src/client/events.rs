//! Streams of events: the changes of a lease, and the events of a client.

use alloc::sync::Arc;
use core::fmt;
use core::pin::{Pin, pin};
use core::task::{Context, Poll};
use core::time::Duration;

use futures_core::Stream;

use edgelatch_proto::engine::Engine;

use super::lease::HoldRef;
use super::requests::ONLY_ENDPOINT;
use super::shared::Source;
use super::{Client, Lease, NotificationMode, Situation};
use crate::host::Host;
use crate::transport::Transport;

/// A stream of the changes of a hold, from its situation at the first poll to its end.
///
/// The stream only observes: the lease is renewed, and its expiry is noticed, while it is
/// [kept](Lease::keep). Changes between two polls are merged into one item.
#[must_use = "a stream does nothing unless it is polled"]
pub struct Events<T: Transport, H: Host> {
    hold: Arc<HoldRef<T, H>>,
    seen: Option<Situation>,
}

impl<T: Transport, H: Host> fmt::Debug for Events<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("seen", &self.seen).finish_non_exhaustive()
    }
}

impl<T: Transport, H: Host> Lease<T, H> {
    /// Returns a stream of the situations of the hold: the present one, and each later one.
    /// [`state`](Self::state) returns the state of the present situation.
    pub fn events(&self) -> Events<T, H> {
        Events { hold: self.hold_ref(), seen: None }
    }
}

impl<T: Transport, H: Host> Stream for Events<T, H> {
    type Item = Situation;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Situation>> {
        if self.seen.is_some_and(|seen| seen.is_over()) {
            return Poll::Ready(None);
        }
        // The hold keeps the waker after this future is dropped.
        let changed = pin!(self.hold.situation_changed(self.seen)).poll(cx);
        changed.map(|situation| {
            self.seen = Some(situation);
            Some(situation)
        })
    }
}

/// An event about the gateway, or about Redis behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// From now on, waiters learn of releases in this way.
    NotificationMode(NotificationMode),
    /// Redis' clock went backwards: it was set back, or another Redis replies than before. Unless
    /// it is released, each hold in that Redis, of any client, lasts longer by the size of the
    /// step. Fencing tokens still rise.
    ClockSetBack {
        /// The lower bound of the step. Steps of up to 1 s are not reported: the clocks of a failed
        /// primary and its replacement may differ by as much.
        by: Duration,
    },
}

/// A stream of the events of a client. It never ends.
///
/// There is no [`ClientEvent::NotificationMode`] before the client's first wait. Redis' clock is
/// checked with each reply. The stream only observes and sends nothing. Events of one kind between
/// two polls are merged: only the newest is emitted.
#[must_use = "a stream does nothing unless it is polled"]
pub struct ClientEvents<T: Transport, H: Host> {
    client: Client<T, H>,
    seen: Seen,
}

/// The events that the stream has emitted.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    notification_mode: Option<NotificationMode>,
    /// The number of steps back of Redis' clock.
    clock_set_backs: u32,
}

impl<T: Transport, H: Host> fmt::Debug for ClientEvents<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientEvents").field("seen", &self.seen).finish_non_exhaustive()
    }
}

impl<T: Transport, H: Host> Client<T, H> {
    /// Returns a stream of events about the gateway and Redis.
    pub fn events(&self) -> ClientEvents<T, H> {
        ClientEvents { client: self.clone(), seen: Seen::default() }
    }

    /// Waits for the next event after `seen`; returns it together with the updated `seen`.
    async fn event(&self, mut seen: Seen) -> (ClientEvent, Seen) {
        let look = |engine: &mut Engine| {
            let mode = engine.notification_mode(ONLY_ENDPOINT);
            if let Some(mode) = mode.filter(|_| mode != seen.notification_mode) {
                seen.notification_mode = Some(mode);
                return Some(ClientEvent::NotificationMode(mode));
            }
            let (count, by) = engine.last_rollback(ONLY_ENDPOINT, seen.clock_set_backs)?;
            seen.clock_set_backs = count;
            Some(ClientEvent::ClockSetBack { by })
        };
        let event = self.shared().until(Source::Endpoint(ONLY_ENDPOINT), look).await;
        (event, seen)
    }
}

impl<T: Transport, H: Host> Stream for ClientEvents<T, H> {
    type Item = ClientEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ClientEvent>> {
        // The client keeps the waker after this future is dropped.
        let event = pin!(self.client.event(self.seen)).poll(cx);
        event.map(|(event, seen)| {
            self.seen = seen;
            Some(event)
        })
    }
}
