//! Subscriptions to release messages: the streams of a client, and the waiters of each.
//!
//! Waiters for the same channel share one subscription, which is opened with the first of them and
//! closed with the last; nothing else keeps it open. It has no task of its own: each waiter that is
//! polled reads the stream for all. A message is only a hint. A waiter that was woken by a message
//! and leaves before its retry has a reply passes the message on, so that no message is lost with a
//! waiter.

mod crowd;
mod health;
mod subscription;
mod waiters;

use alloc::string::{String, ToString};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::task::{Context, Poll};
use std::sync::{Mutex, PoisonError};

use super::link::Link;
use crate::transport::{StreamLimits, Transport};
use crowd::{Crowds, Shared};
use edgelatch_proto::machine::{Input, TimeoutReason};
use edgelatch_proto::protocol::calls::Topic;
use edgelatch_proto::time::Instant;
use health::{Health, SharedHealth};
use subscription::{Open, Opening, Subscription};

/// How the waiters at a gateway learn that a retry may succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waking {
    /// A subscription is confirmed: messages wake the waiters, which do not poll.
    Stream,
    /// The waiters retry at intervals: the gateway has no streams, or none at present, or this
    /// runtime opens none, or the client's options disable them.
    Polling,
}

/// All subscriptions of a client at one gateway.
pub(super) struct Subscriptions<S> {
    all: Mutex<Vec<Weak<Subscription<S>>>>,
    crowds: Mutex<Crowds>,
    health: SharedHealth,
}

impl<S> Default for Subscriptions<S> {
    fn default() -> Self {
        Self { all: Mutex::default(), crowds: Mutex::default(), health: SharedHealth::default() }
    }
}

impl<S> core::fmt::Debug for Subscriptions<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Subscriptions").finish_non_exhaustive()
    }
}

impl<S> Subscriptions<S> {
    /// Waits until the mode of the waits differs from `seen`, and returns it.
    pub(super) async fn waking(&self, seen: Option<Waking>) -> Waking {
        self.health.waking(seen).await
    }

    fn crowds<R>(&self, access: impl FnOnce(&mut Crowds) -> R) -> R {
        access(&mut self.crowds.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether this client has a waiter at one of these channels, or has received a message there a
    /// moment ago.
    pub(super) fn is_contended(
        &self,
        channels: impl FnOnce() -> Vec<String>,
        now: Instant,
    ) -> bool {
        self.crowds(|crowds| crowds.is_at(channels, now))
    }

    /// Returns the subscription with this key if subscriptions are shared, else a new one; `None`
    /// if there are already as many as the transport allows.
    fn find(
        &self,
        key: &str,
        StreamLimits { max: most, shared }: StreamLimits,
        now: Instant,
        crowd: impl FnOnce() -> Arc<Shared>,
    ) -> Option<Arc<Subscription<S>>> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|one| one.upgrade().is_some_and(|one| !one.is_abandoned(now)));
        let same = |all: &[Weak<Subscription<S>>]| {
            all.iter().filter_map(Weak::upgrade).find(|one| one.key() == key)
        };
        if let Some(same) = same(&all).filter(|_| shared) {
            return Some(same);
        }
        if all.len() >= most {
            return None;
        }
        let one = Arc::new(Subscription::new(key.to_string(), crowd()));
        all.push(Arc::downgrade(&one));
        Some(one)
    }
}

/// A waiter's registration at a subscription, which ends when it is dropped.
pub(super) struct Listener<'a, T: Transport> {
    link: &'a Link<T>,
    subscription: Arc<Subscription<T::Stream>>,
    place: u64,
    topic: Topic,
}

/// The next action of a waiter that was polled.
pub(super) enum Turn {
    /// Open the stream, for all waiters of the subscription.
    Open,
    /// Pass this input to the machine.
    Tell(Input),
}

impl<'a, T: Transport> Listener<'a, T> {
    /// Registers the waiter of a machine whose last attempt was sent at `asked_at`. Returns `None`
    /// if it cannot subscribe: wake-ups are disabled, the gateway has no streams, or there are
    /// already as many as the transport allows.
    pub(super) fn new(link: &'a Link<T>, topic: &Topic, asked_at: Instant) -> Option<Self> {
        let subscriptions = link.subscriptions();
        let may =
            link.gateway().wakes() && !subscriptions.health.with(|health| health.is_hopeless());
        let key: String = [topic.verb(), " ", topic.channel()].concat();
        let crowd = || subscriptions.crowds(|crowds| crowds.at(topic.channel(), asked_at));
        let streams = link.transport().streams();
        let found = may.then(|| subscriptions.find(&key, streams, asked_at, crowd)).flatten();
        let Some(subscription) = found else {
            subscriptions.health.with(Health::polls);
            return None;
        };
        let place = subscription.enter(topic.wakes(), asked_at);
        Some(Self { link, subscription, place, topic: topic.clone() })
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>, now: Instant) -> Poll<Turn> {
        self.subscription.poll(self.place, cx, now, &self.link.subscriptions().health)
    }

    /// Records that the waiter's machine sends an attempt.
    pub(super) fn asks(&self) {
        self.subscription.waiters(|waiters| waiters.asks(self.place));
    }

    /// Records the reason of the timeout that the waiter's machine has set, whatever input it
    /// received before.
    pub(super) fn waits(&self, why: TimeoutReason) {
        self.subscription.waiters(|waiters| waiters.waits(self.place, why));
    }

    /// Records that the waiter's machine has acquired what it was woken for.
    pub(super) fn served(&self) {
        self.subscription.waiters(|waiters| waiters.tried(self.place, false));
    }

    /// Opens the stream for all waiters of this subscription. If the future is dropped before it
    /// ends, another waiter opens the stream. `seed` starts the jitter's generator; `clock` reads
    /// the host's clocks.
    pub(super) fn opening<C: Fn() -> Instant>(
        &self,
        clock: C,
        seed: u64,
    ) -> impl Future<Output = ()> + use<'a, T, C> {
        let (link, topic) = (self.link, self.topic.clone());
        // Created before the first poll, since the future may be dropped without one.
        let opening = Opening(Arc::clone(&self.subscription));
        async move {
            let (request, frames) = link.gateway().listen(&topic);
            let since = clock();
            let opened = link.transport().open(request).await;
            let until = link.subscriptions().health.with(|health| {
                health.opens(seed);
                match &opened {
                    Ok((head, _)) => health.opened(*head, clock()),
                    Err(_) => {
                        health.failed(clock());
                        None
                    }
                }
            });
            let open = opened.ok().zip(until).map(|((_, stream), until)| Open {
                stream,
                frames,
                since,
                until,
                stands: None,
                heard_at: since,
            });
            opening.over(open);
        }
    }
}

impl<T: Transport> Drop for Listener<'_, T> {
    fn drop(&mut self) {
        self.subscription.leave(self.place);
    }
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;
    use core::mem;

    use super::Subscriptions;
    use crate::transport::StreamLimits;
    use edgelatch_proto::protocol::calls::Wakes;
    use edgelatch_proto::time::Instant;

    #[test]
    fn a_request_that_was_ended_without_a_word_keeps_no_place() {
        let subscriptions = Subscriptions::<()>::default();
        let at = |seconds: u64| Instant::from_millis(seconds * 1000, seconds * 1000);
        let enter = |seconds| {
            let streams = StreamLimits { max: 1, shared: false };
            let found = subscriptions.find("SUBSCRIBE a", streams, at(seconds), Arc::default)?;
            found.enter(Wakes::One, at(seconds));
            Some(found)
        };
        mem::forget(enter(0).unwrap());
        assert!(enter(30).is_none());
        let next = enter(31).unwrap();
        assert!(enter(32).is_none());
        drop(next);
        assert!(enter(33).is_some());
    }
}
