//! What becomes of a lease, and what a client notices, as streams.

use alloc::sync::Arc;
use core::fmt;
use core::pin::{Pin, pin};
use core::task::{Context, Poll};
use core::time::Duration;

use futures_core::Stream;

use super::hold::{Hold, Situation};
use super::notice::{First, first};
use super::{Client, Lease, Waking};
use crate::transport::Transport;

/// Each change of what is known of a hold, from how it stands when it is first looked at to its
/// end.
///
/// It only listens: renewals are made, and an expiry is noticed, while the lease is
/// [kept](Lease::keep). Changes that come faster than they are looked at are told as one.
#[must_use = "a stream does nothing unless it is polled"]
pub struct Events {
    hold: Arc<Hold>,
    seen: Option<Situation>,
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("seen", &self.seen).finish_non_exhaustive()
    }
}

impl<T: Transport, H> Lease<T, H> {
    /// What becomes of the hold: the reactive form of [`state`](Self::state).
    pub fn events(&self) -> Events {
        Events { hold: self.shared_hold(), seen: None }
    }
}

impl Stream for Events {
    type Item = Situation;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Situation>> {
        if self.seen.is_some_and(|seen| seen.is_over()) {
            return Poll::Ready(None);
        }
        // The waker stays noted when this future is dropped.
        let news = pin!(self.hold.news(self.seen)).poll(cx);
        news.map(|situation| {
            self.seen = Some(situation);
            Some(situation)
        })
    }
}

/// What a client notices of its gateway, and of the Redis behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// How those who wait learn of releases, from now on.
    Waking(Waking),
    /// Redis' clock shows less than it did: it was set back, or another Redis answers than before.
    /// What is held there, by whomever, lasts longer by that time unless it is released; tokens
    /// still rise.
    ClockSetBack {
        /// By how much at least. Less than a second is not told: clocks of which one takes over
        /// from another may be so far apart.
        by: Duration,
    },
}

/// What a client notices, whenever there is something.
///
/// How waits go on is not told before somebody has waited; clocks are looked at with each answer.
/// There is no last event: what is wanted of them is taken. It only listens, and what comes faster
/// than it is looked at is told as one.
#[must_use = "a stream does nothing unless it is polled"]
pub struct ClientEvents<T: Transport, H> {
    client: Client<T, H>,
    seen: Seen,
}

/// What was told already.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    waking: Option<Waking>,
    last_rollback: u32,
}

impl<T: Transport, H> fmt::Debug for ClientEvents<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientEvents").field("seen", &self.seen).finish_non_exhaustive()
    }
}

impl<T: Transport, H> Client<T, H> {
    /// What it notices of its gateway and of Redis.
    pub fn events(&self) -> ClientEvents<T, H> {
        ClientEvents { client: self.clone(), seen: Seen::default() }
    }

    /// The next event after what was seen; and what is seen by then.
    pub(crate) async fn event(&self, mut seen: Seen) -> (ClientEvent, Seen) {
        let link = self.link();
        let waking = link.subscriptions().waking(seen.waking);
        let event = match first(waking, link.last_rollback(seen.last_rollback)).await {
            First::A(waking) => {
                seen.waking = Some(waking);
                ClientEvent::Waking(waking)
            }
            First::B((times, by)) => {
                seen.last_rollback = times;
                ClientEvent::ClockSetBack { by }
            }
        };
        (event, seen)
    }
}

impl<T: Transport, H> Stream for ClientEvents<T, H> {
    type Item = ClientEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ClientEvent>> {
        // The waker stays noted when this future is dropped.
        let event = pin!(self.client.event(self.seen)).poll(cx);
        event.map(|(event, seen)| {
            self.seen = seen;
            Some(event)
        })
    }
}
