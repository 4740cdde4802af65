//! Listening for releases: the streams of a client, and who waits at each.
//!
//! Those who wait for the same share one subscription, opened with the first and closed with the
//! last; nothing else keeps it. There is no task of its own: whoever waits reads the stream when
//! polled, for all. What is heard is a hint. Whoever is woken by it and goes without having asked
//! hands it on, so that no message is lost with a waiter.

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
use crate::machine::{Input, TimeoutReason};
use crate::protocol::calls::Topic;
use crate::time::Instant;
use crate::transport::{StreamLimits, Transport};
use crowd::{Crowds, Shared};
use health::{Health, SharedHealth};
use subscription::{Open, Opening, Subscription};

/// How those who wait at a gateway learn that it may be worth to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waking {
    /// A subscription stands: they are told, and ask nobody meanwhile.
    Stream,
    /// They ask at intervals: the gateway has no streams or not now, or this runtime opens none, or
    /// it is not wanted.
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
    /// How waits go on, once that is another than `seen`.
    pub(super) async fn waking(&self, seen: Option<Waking>) -> Waking {
        self.health.waking(seen).await
    }

    fn crowds<R>(&self, access: impl FnOnce(&mut Crowds) -> R) -> R {
        access(&mut self.crowds.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether somebody of this client waits at one of these channels, or has waited a moment ago.
    pub(super) fn is_contended(
        &self,
        channels: impl FnOnce() -> Vec<String>,
        now: Instant,
    ) -> bool {
        self.crowds(|crowds| crowds.is_at(channels, now))
    }

    /// The one under this key, or a new one; `None` where there are as many as there may be.
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

/// One waiter's place at a subscription. Given up when it is dropped.
pub(super) struct Listener<'a, T: Transport> {
    link: &'a Link<T>,
    subscription: Arc<Subscription<T::Stream>>,
    place: u64,
    topic: Topic,
}

/// What a waiter that is polled has to do or to know.
pub(super) enum Turn {
    /// Open the stream, for all.
    Open,
    /// Tell the machine.
    Tell(Input),
}

impl<'a, T: Transport> Listener<'a, T> {
    /// For a machine whose last try left at `asked_at`. `None` where nobody can listen: the gateway
    /// is not to be asked, has no streams, or there are as many as there may be.
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

    /// Its machine asks.
    pub(super) fn asks(&self) {
        self.subscription.waiters(|waiters| waiters.asks(self.place));
    }

    /// Its machine waits for this, whatever it was told.
    pub(super) fn waits(&self, why: TimeoutReason) {
        self.subscription.waiters(|waiters| waiters.waits(self.place, why));
    }

    /// Its machine has what it was woken for.
    pub(super) fn served(&self) {
        self.subscription.waiters(|waiters| waiters.tried(self.place, false));
    }

    /// Opens the stream, for all who wait at this subscription. Given up half-way, somebody else
    /// does. What is drawn for it begins with `seed`. `clock` reads the host's clocks.
    pub(super) fn opening<C: Fn() -> Instant>(
        &self,
        clock: C,
        seed: u64,
    ) -> impl Future<Output = ()> + use<'a, T, C> {
        let (link, topic) = (self.link, self.topic.clone());
        // Before the first poll: it may never come to that.
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
    use crate::protocol::calls::Wakes;
    use crate::time::Instant;
    use crate::transport::StreamLimits;

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
