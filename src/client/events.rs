//! What becomes of a lease, and how waits go on, as streams.

use alloc::sync::Arc;
use core::fmt;
use core::pin::{Pin, pin};
use core::task::{Context, Poll};

use futures_core::Stream;

use super::hold::{Hold, Situation};
use super::{Client, Lease, Waking};
use crate::transport::Transport;

/// Each change of what is known of a hold, from how it stands when it is first looked at to its end.
///
/// It only listens: renewals are made, and an expiry is noticed, while the lease is [kept](Lease::keep). Changes that come faster
/// than they are looked at are told as one.
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

/// How waits go on at a client's gateway, whenever that changes: by a stream, or by polling.
///
/// Nothing is told before somebody has waited, and there is no last: what is wanted of it is taken. It only listens; what is
/// told holds until the next.
#[must_use = "a stream does nothing unless it is polled"]
pub struct WakingEvents<T: Transport, H> {
    client: Client<T, H>,
    seen: Option<Waking>,
}

impl<T: Transport, H> fmt::Debug for WakingEvents<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WakingEvents").field("seen", &self.seen).finish_non_exhaustive()
    }
}

impl<T: Transport, H> Client<T, H> {
    /// How those who wait learn of releases, whenever that changes.
    pub fn events(&self) -> WakingEvents<T, H> {
        WakingEvents { client: self.clone(), seen: None }
    }

    /// The next such change after `seen`.
    pub(crate) async fn waking(&self, seen: Option<Waking>) -> Waking {
        self.link().subscriptions().waking(seen).await
    }
}

impl<T: Transport, H> Stream for WakingEvents<T, H> {
    type Item = Waking;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Waking>> {
        // The waker stays noted when this future is dropped.
        let waking = pin!(self.client.waking(self.seen)).poll(cx);
        waking.map(|waking| {
            self.seen = Some(waking);
            Some(waking)
        })
    }
}
