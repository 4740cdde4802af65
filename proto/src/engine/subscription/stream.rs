//! The stream of a subscription: opened, confirmed, watched, and closed.

use core::mem;
use core::time::Duration;

use super::super::{Context, Engine, Key, StreamId, StreamInput, Transmit};
use super::CONFIRMED_WITHIN;
use crate::machine::Entropy;
use crate::protocol::gateway::{StreamEvent, StreamParser};
use crate::time::Instant;

#[derive(Clone, Debug)]
pub(super) enum Stream {
    Closed,
    Opening { requested_at: Instant, parser: StreamParser },
    Open(Open),
}

/// A stream whose response has begun.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub(super) parser: StreamParser,
    pub(super) requested_at: Instant,
    /// When the stream is to be reopened.
    pub(super) until: Instant,
    /// When the subscription was confirmed.
    pub(super) confirmed_at: Option<Instant>,
    /// When bytes last arrived; before any has, when the stream was requested.
    pub(super) received_at: Instant,
}

impl Engine {
    /// Opens the stream of a subscription, if it is closed and may be opened.
    pub(super) fn open_stream(&mut self, key: Key, cx: &mut Context<'_>) {
        let Some(subscription) = self.subscriptions.get_mut(key) else { return };
        let Some(endpoint) = self.endpoints.get_mut(subscription.endpoint) else {
            return;
        };
        let is_closed = matches!(subscription.stream, Stream::Closed);
        if !is_closed || !endpoint.health.can_open(cx.now) {
            return;
        }
        endpoint.health.on_opening(cx.draw().as_ref().map_or(0, Entropy::seed));
        let (request, parser) = endpoint.gateway.listen(&subscription.topic);
        subscription.requested = subscription.requested.wrapping_add(1);
        subscription.stream = Stream::Opening { requested_at: cx.now, parser };
        let id = StreamId { subscription: key, number: subscription.requested };
        let (scope, to) = (subscription.scope, subscription.endpoint);
        self.transmit(scope, Transmit::Open { id, to, request });
    }

    /// Ends a stream that is silent, hangs, or is to be reopened; opens one that is closed.
    pub(in super::super) fn check_stream(&mut self, key: Key, cx: &mut Context<'_>) {
        let Some(subscription) = self.subscriptions.get_mut(key) else { return };
        let (endpoint, now) = (subscription.endpoint, cx.now);
        let is_overdue = |requested_at| now.max_elapsed(requested_at) >= CONFIRMED_WITHIN;
        match &subscription.stream {
            Stream::Closed => {}
            Stream::Opening { requested_at, .. }
            | Stream::Open(Open { requested_at, confirmed_at: None, .. })
                if is_overdue(*requested_at) =>
            {
                self.change_health(endpoint, &mut |health| health.on_ack_timeout(now));
                self.close_stream(key, true);
            }
            Stream::Open(Open { until, .. }) if now.has_reached(*until) => {
                // The waiters are notified only if the stream cannot be reopened at once. Otherwise
                // one of them retries on behalf of all when the new stream is confirmed.
                let reopens = self.endpoint(endpoint).is_some_and(|it| it.health.can_open(now));
                self.close_stream(key, !reopens);
            }
            Stream::Open(Open { received_at, .. }) => {
                let silent = now.max_elapsed(*received_at);
                if self.endpoint(endpoint).is_some_and(|it| it.health.is_dead(silent)) {
                    self.change_health(endpoint, &mut |health| health.on_failure(now));
                    self.close_stream(key, true);
                }
            }
            Stream::Opening { .. } => {}
        }
        self.open_stream(key, cx);
    }

    /// Closes the stream of a subscription; notifies the waiters if they have to poll.
    fn close_stream(&mut self, key: Key, waiters_poll: bool) {
        let Some(subscription) = self.subscriptions.get_mut(key) else { return };
        let (scope, id) = (subscription.scope, subscription.stream_id(key));
        subscription.stream = Stream::Closed;
        if waiters_poll {
            subscription.waiters.on_unsubscribed();
            self.to_notify.push(key);
        }
        if let Some(id) = id {
            self.transmit(scope, Transmit::Close { id });
        }
    }

    /// Passes on what arrived on a stream; ignored if the stream is not the subscription's newest.
    pub(in super::super) fn stream_input(
        &mut self,
        id: StreamId,
        input: StreamInput<'_>,
        cx: &mut Context<'_>,
    ) {
        let key = id.subscription;
        let Some(subscription) = self.subscriptions.get_mut(key) else { return };
        if subscription.stream_id(key) != Some(id) {
            return;
        }
        match input {
            StreamInput::Head { status, retry_after } => {
                self.on_stream_response(key, status, retry_after, cx)
            }
            StreamInput::Bytes(bytes) => self.on_stream_bytes(key, bytes, cx.now),
            StreamInput::End => {
                subscription.stream = Stream::Closed;
                subscription.waiters.on_unsubscribed();
                self.to_notify.push(key);
                let endpoint = subscription.endpoint;
                self.change_health(endpoint, &mut |health| health.on_failure(cx.now));
            }
        }
        if let Some(subscription) = self.subscriptions.get(key) {
            let scope = subscription.scope;
            self.wake(scope);
        }
    }

    fn on_stream_response(
        &mut self,
        key: Key,
        status: u16,
        retry_after: Option<Duration>,
        cx: &mut Context<'_>,
    ) {
        let Some(subscription) = self.subscriptions.get_mut(key) else { return };
        let mut until = None;
        let endpoint = subscription.endpoint;
        self.change_health(endpoint, &mut |health| {
            until = health.on_response(status, retry_after, cx.now)
        });
        let Some(until) = until else { return self.close_stream(key, true) };
        let Some(subscription) = self.subscriptions.get_mut(key) else { return };
        subscription.stream = match mem::replace(&mut subscription.stream, Stream::Closed) {
            Stream::Opening { requested_at, parser } => Stream::Open(Open {
                parser,
                requested_at,
                until,
                confirmed_at: None,
                received_at: requested_at,
            }),
            other => other,
        };
    }

    fn on_stream_bytes(&mut self, key: Key, bytes: &[u8], now: Instant) {
        let Some(subscription) = self.subscriptions.get_mut(key) else { return };
        let endpoint = subscription.endpoint;
        let Stream::Open(open) = &mut subscription.stream else { return };
        let silent = now.max_elapsed(mem::replace(&mut open.received_at, now));
        let mut contention = self
            .endpoints
            .get_mut(endpoint)
            .and_then(|endpoint| endpoint.contention.at(subscription.topic.channel()));
        let (mut rest, mut has_event, mut is_confirmed) = (bytes, false, false);
        while let Some((event, after)) = open.parser.next(rest) {
            (rest, has_event) = (after, true);
            match event {
                StreamEvent::Subscribed => {
                    open.confirmed_at = Some(now);
                    is_confirmed = true;
                    subscription.waiters.on_subscribed();
                }
                StreamEvent::Message(message) => {
                    let contention = contention.as_deref_mut();
                    subscription.waiters.on_message(message, contention, now);
                }
            }
        }
        // Bytes without an event are a comment of the event stream.
        let is_heartbeat = !has_event && open.confirmed_at.is_some();
        self.to_notify.push(key);
        self.change_health(endpoint, &mut |health| {
            if is_confirmed {
                health.on_confirmed();
            }
            if is_heartbeat {
                health.on_heartbeat(silent);
            }
        });
    }
}
