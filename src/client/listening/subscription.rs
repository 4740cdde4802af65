//! One stream and its waiters.

use alloc::string::String;
use alloc::sync::Arc;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use super::Turn;
use super::crowd::Shared;
use super::health::{Health, SharedHealth};
use super::waiters::Waiters;
use crate::transport::ByteStream;
use edgelatch_proto::protocol::calls::WakePolicy;
use edgelatch_proto::protocol::gateway::{StreamEvent, StreamParser};
use edgelatch_proto::time::Instant;

/// Longest time until the gateway acknowledges the subscription.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(10);
/// Time without a poll after which the waiters are gone; a waiter is polled more often than that,
/// whatever it waits for.
const ABANDONED_AFTER: Duration = Duration::from_secs(30);

pub(super) struct Subscription<S> {
    key: String,
    inner: Mutex<Inner<S>>,
}

struct Inner<S> {
    stream: State<S>,
    waiters: Waiters,
    /// When a waiter was last added or polled.
    attended_at: Option<Instant>,
}

enum State<S> {
    Closed,
    Opening,
    Open(Open<S>),
}

/// A stream that was opened.
pub(super) struct Open<S> {
    pub(super) stream: S,
    pub(super) frames: StreamParser,
    pub(super) since: Instant,
    /// When the stream is to be reopened.
    pub(super) until: Instant,
    /// When the subscription was confirmed.
    pub(super) stands: Option<Instant>,
    /// When bytes last arrived.
    pub(super) heard_at: Instant,
}

impl<S> Subscription<S> {
    pub(super) fn new(key: String, crowd: Arc<Shared>) -> Self {
        let waiters = Waiters::of(crowd);
        let inner = Inner { stream: State::Closed, waiters, attended_at: None };
        Self { key, inner: Mutex::new(inner) }
    }

    /// Whether the waiters are gone without having been dropped: a runtime that ends the request of
    /// a Worker drops nothing.
    pub(super) fn is_abandoned(&self, now: Instant) -> bool {
        let attended_at = self.change(|inner| inner.attended_at);
        attended_at.is_some_and(|at| now.max_elapsed(at) > ABANDONED_AFTER)
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// Changes the state, then wakes the waiters that have an event.
    fn change<R>(&self, change: impl FnOnce(&mut Inner<S>) -> R) -> R {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut inner);
        let woken = inner.waiters.due();
        drop(inner);
        woken.into_iter().for_each(core::task::Waker::wake);
        result
    }

    /// Changes the waiters, then wakes those that have an event.
    pub(super) fn waiters<R>(&self, change: impl FnOnce(&mut Waiters) -> R) -> R {
        self.change(|inner| change(&mut inner.waiters))
    }

    /// Adds a waiter and returns its place.
    pub(super) fn enter(&self, wakes: WakePolicy, asked_at: Instant) -> u64 {
        self.change(|inner| {
            inner.attended_at = Some(asked_at);
            let stands = match &inner.stream {
                State::Open(open) => open.stands,
                State::Closed | State::Opening => None,
            };
            inner.waiters.enter(wakes, asked_at, stands)
        })
    }

    pub(super) fn leave(&self, place: u64) {
        self.change(|inner| {
            if !inner.waiters.leave(place) {
                inner.stream = State::Closed;
            }
        });
    }
}

impl<S: ByteStream> Subscription<S> {
    /// Reads the bytes that have arrived, for all waiters, and returns the next action of this
    /// waiter.
    pub(super) fn poll(
        &self,
        place: u64,
        cx: &mut Context<'_>,
        now: Instant,
        health: &SharedHealth,
    ) -> Poll<Turn> {
        self.change(|inner| {
            inner.attended_at = Some(now);
            inner.read(cx, now, health);
            if let Some(input) = inner.waiters.news(place) {
                return Poll::Ready(Turn::Tell(input));
            }
            let is_closed = matches!(inner.stream, State::Closed);
            if is_closed && health.with(|health| health.may_open(now)) {
                inner.stream = State::Opening;
                return Poll::Ready(Turn::Open);
            }
            inner.waiters.keep_waker(place, cx.waker());
            Poll::Pending
        })
    }
}

impl<S> Inner<S> {
    fn closed(&mut self) {
        self.stream = State::Closed;
        self.waiters.grow_deaf();
    }
}

impl<S: ByteStream> Inner<S> {
    fn read(&mut self, cx: &mut Context<'_>, now: Instant, health: &SharedHealth) {
        loop {
            let State::Open(open) = &mut self.stream else { return };
            if open.stands.is_none() && now.max_elapsed(open.since) >= ACKNOWLEDGED_WITHIN {
                health.with(|health| health.hung(now));
                return self.closed();
            }
            if now.has_reached(open.until) {
                // The waiters are notified only if the stream cannot be reopened. Once it is
                // confirmed again, one of them retries on behalf of all.
                self.stream = State::Closed;
                return;
            }
            match open.stream.poll_next(cx) {
                Poll::Pending => {
                    let silent = now.max_elapsed(open.heard_at);
                    if !health.with(|health| health.is_dead(silent)) {
                        return;
                    }
                }
                Poll::Ready(Some(Ok(bytes))) => {
                    self.heard(&bytes, now, health);
                    continue;
                }
                Poll::Ready(Some(Err(_)) | None) => {}
            }
            health.with(|health| health.failed(now));
            return self.closed();
        }
    }

    fn heard(&mut self, bytes: &[u8], now: Instant, health: &SharedHealth) {
        let State::Open(open) = &mut self.stream else { return };
        let silent = now.max_elapsed(core::mem::replace(&mut open.heard_at, now));
        let (mut rest, mut says_something) = (bytes, false);
        while let Some((heard, after)) = open.frames.next(rest) {
            (rest, says_something) = (after, true);
            match heard {
                StreamEvent::Subscribed => {
                    open.stands = Some(now);
                    health.with(Health::stands);
                    self.waiters.listen();
                }
                StreamEvent::Message(message) => self.waiters.message(message, now),
            }
        }
        if !says_something && open.stands.is_some() {
            health.with(|health| health.beats(silent));
        }
    }
}

/// A subscription whose stream a waiter is opening. If this is dropped before `over`, another
/// waiter may open the stream.
pub(super) struct Opening<S>(pub(super) Arc<Subscription<S>>);

impl<S> Opening<S> {
    /// Stores the stream that was opened; with `None` the subscription is closed.
    pub(super) fn over(self, opened: Option<Open<S>>) {
        if let Some(open) = opened {
            self.0.change(|inner| inner.stream = State::Open(open));
        }
    }
}

impl<S> Drop for Opening<S> {
    fn drop(&mut self) {
        self.0.change(|inner| {
            if matches!(inner.stream, State::Opening) {
                inner.closed();
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use core::task::Waker;
    use std::collections::VecDeque;

    use super::*;
    use crate::error::FailureKind;
    use edgelatch_proto::machine::{Input, TimeoutReason};
    use edgelatch_proto::name::{LockName, OwnerId};
    use edgelatch_proto::protocol::calls::{LockCalls, Target};
    use edgelatch_proto::protocol::gateway::Gateway;
    use edgelatch_proto::protocol::reply::{Code, Reply};
    use edgelatch_proto::protocol::script::Publish;

    const SUBSCRIBED: &str = "data: subscribe,redisson_lock__channel:{job},1\n\n";
    const RELEASED: &str = "data: message,redisson_lock__channel:{job},0\n\n";

    /// Pieces that have arrived and are not read yet.
    #[derive(Clone, Default)]
    struct Fed(Arc<Mutex<VecDeque<&'static str>>>);

    impl ByteStream for Fed {
        fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, FailureKind>>> {
            let piece = self.0.lock().unwrap().pop_front();
            piece.map_or(Poll::Pending, |piece| Poll::Ready(Some(Ok(piece.into()))))
        }
    }

    struct Bench {
        subscription: Arc<Subscription<Fed>>,
        health: SharedHealth,
        fed: Fed,
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_millis(seconds * 1000, seconds * 1000)
    }

    impl Bench {
        fn new() -> Self {
            let subscription = Arc::new(Subscription::new(String::new(), Arc::default()));
            Self { subscription, health: SharedHealth::default(), fed: Fed::default() }
        }

        fn poll(&self, place: u64, seconds: u64) -> Option<&'static str> {
            let cx = &mut Context::from_waker(Waker::noop());
            match self.subscription.poll(place, cx, at(seconds), &self.health) {
                Poll::Pending => None,
                Poll::Ready(Turn::Open) => Some("open"),
                Poll::Ready(Turn::Tell(Input::Subscribed { must_retry: true })) => {
                    Some("listening")
                }
                Poll::Ready(Turn::Tell(Input::Subscribed { must_retry: false })) => Some("hearing"),
                Poll::Ready(Turn::Tell(Input::Notified { .. })) => Some("notified"),
                Poll::Ready(Turn::Tell(Input::Unsubscribed)) => Some("deaf"),
                Poll::Ready(Turn::Tell(other)) => panic!("{other:?}"),
            }
        }

        /// Opens the stream, on which these pieces have arrived.
        fn opened(&self, seconds: u64, pieces: &[&'static str]) {
            let target = LockCalls::new(LockName::parse("job").unwrap(), Publish::Plain);
            let value = "1".into();
            let busy = Reply { code: Code::No, value, ms: 1, server_ms: 1, acknowledged: None };
            let topic = Target::Lock(target).topic(OwnerId::new([0; 16], 1), &busy);
            let gateway = Gateway::upstash("http://localhost", "t").unwrap();
            let (stream, frames) = (self.fed.clone(), gateway.listen(&topic).1);
            let (since, until) = (at(seconds), at(seconds + 50));
            let open = Open { stream, frames, since, until, stands: None, heard_at: since };
            Opening(Arc::clone(&self.subscription)).over(Some(open));
            self.fed.0.lock().unwrap().extend(pieces);
        }

        fn says(&self, piece: &'static str) {
            self.fed.0.lock().unwrap().push_back(piece);
        }
    }

    /// S72.
    #[test]
    fn a_stream_without_its_signs_of_life_is_dead() {
        let bench = Bench::new();
        let place = bench.subscription.enter(WakePolicy::One, at(0));
        assert_eq!(bench.poll(place, 0), Some("open"));
        bench.opened(0, &[SUBSCRIBED]);
        assert_eq!(bench.poll(place, 0), Some("listening"));
        assert_eq!(bench.poll(place, 30), None, "it may have no habit of giving any");
        bench.says(":\n\n");
        assert_eq!((bench.poll(place, 35), bench.poll(place, 36)), (None, None));
        bench.opened(100, &[SUBSCRIBED]);
        assert_eq!(bench.poll(place, 100), Some("listening"));
        bench.says(":\n\n");
        assert_eq!((bench.poll(place, 105), bench.poll(place, 149)), (None, None));
        let bench = Bench { health: SharedHealth::default(), ..bench };
        bench.opened(200, &[SUBSCRIBED]);
        assert_eq!(bench.poll(place, 200), Some("listening"));
        bench.says(":\n\n");
        assert_eq!((bench.poll(place, 205), bench.poll(place, 215)), (None, None));
        assert_eq!(bench.poll(place, 216), Some("deaf"), "more than twice as long as before");
        assert_eq!((bench.poll(place, 216), bench.poll(place, 217)), (None, Some("open")));
    }

    #[test]
    fn when_it_is_opened_anew_one_asks_for_all() {
        let bench = Bench::new();
        let places: Vec<u64> =
            (0..3).map(|_| bench.subscription.enter(WakePolicy::One, at(0))).collect();
        assert_eq!(bench.poll(0, 0), Some("open"));
        bench.opened(0, &[SUBSCRIBED]);
        let told = |seconds| places.iter().map(move |place| (*place, seconds));
        let told = |seconds| told(seconds).map(|(place, at)| bench.poll(place, at)).collect();
        let first: Vec<_> = told(0);
        assert_eq!(first, [Some("listening"), Some("hearing"), Some("hearing")]);
        assert_eq!(bench.poll(1, 50), Some("open"), "no waiter learns that it is closed");
        bench.opened(50, &[SUBSCRIBED]);
        let again: Vec<_> = told(50);
        assert_eq!(again, [Some("listening"), Some("hearing"), Some("hearing")]);
    }

    /// Wants differ: permits that are too few for the waiter that retries may suffice for another.
    #[test]
    fn a_refusal_after_the_stream_was_reopened_passes_the_retry_to_the_next_waiter() {
        let bench = Bench::new();
        let enter = |permits| bench.subscription.enter(WakePolicy::Permits(permits), at(0));
        let [large, small, smaller] = [3, 2, 1].map(enter);
        assert_eq!(bench.poll(large, 0), Some("open"));
        bench.opened(0, &[SUBSCRIBED]);
        let poll = |place, seconds| bench.poll(place, seconds);
        let each = |seconds| [large, small, smaller].map(|place| poll(place, seconds));
        assert_eq!(each(0), [Some("listening"); 3]);
        let is_refused = |place| {
            bench
                .subscription
                .waiters(|waiters| waiters.waits(place, TimeoutReason::HolderExpires));
        };
        is_refused(large);
        assert_eq!(each(1), [None; 3], "each has retried on its own behalf");
        assert_eq!(poll(large, 50), Some("open"));
        bench.opened(50, &[SUBSCRIBED]);
        assert_eq!(each(50), [Some("listening"), Some("hearing"), Some("hearing")]);
        is_refused(large);
        assert_eq!(each(51), [None, Some("notified"), None]);
        bench.subscription.leave(small);
        assert_eq!((poll(large, 52), poll(smaller, 52)), (Some("notified"), None));
        is_refused(large);
        assert_eq!((poll(large, 53), poll(smaller, 53)), (None, Some("notified")));
        is_refused(smaller);
        // A waiter that leaves before it has retried passes the retry on too.
        assert_eq!(poll(large, 100), Some("open"));
        bench.opened(100, &[SUBSCRIBED]);
        assert_eq!(poll(smaller, 100), Some("hearing"));
        bench.subscription.leave(large);
        assert_eq!(poll(smaller, 101), Some("notified"));
    }

    #[test]
    fn a_joining_waiter_retries_if_it_may_have_missed_a_message_for_all() {
        let bench = Bench::new();
        let first = bench.subscription.enter(WakePolicy::All, at(0));
        assert_eq!(bench.poll(first, 0), Some("open"));
        bench.opened(0, &[SUBSCRIBED]);
        assert_eq!(bench.poll(first, 1), Some("listening"));
        let joins = |wakes, asked_at, seconds| {
            let place = bench.subscription.enter(wakes, at(asked_at));
            bench.poll(place, seconds)
        };
        assert_eq!(joins(WakePolicy::All, 2, 3), Some("hearing"));
        assert_eq!(joins(WakePolicy::All, 1, 3), Some("listening"), "asked before it stood");
        bench.says(RELEASED);
        assert_eq!(bench.poll(first, 5), Some("notified"));
        assert_eq!(joins(WakePolicy::All, 4, 6), Some("listening"), "asked before the message");
        assert_eq!(joins(WakePolicy::Permits(1), 4, 6), Some("listening"));
        assert_eq!(joins(WakePolicy::One, 4, 6), Some("hearing"), "another waiter was notified");
    }
}
