//! Subscriptions to release messages: the stream of a channel, and the waiters that share it.
//!
//! A subscription is opened with its first waiter and closed with its last. A message is only a
//! hint. A waiter that was woken by a message and leaves before its retry has a reply passes the
//! message on, so that no message is lost with a waiter.

use alloc::vec::Vec;
use core::mem;
use core::time::Duration;

use super::health::Health;
use super::waiters::{WaiterId, Waiters};
use super::{
    Context, EndpointId, Engine, Event, Key, OpId, ScopeId, StreamId, StreamInput, Transmit,
};
use crate::machine::Entropy;
use crate::protocol::calls::Topic;
use crate::protocol::gateway::{StreamEvent, StreamParser};
use crate::time::Instant;

/// Longest time until the gateway acknowledges the subscription.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(10);
/// How long a waiter may be late before its stream is given to another one: a runtime that ends the
/// request of a Worker reports nothing.
const ABANDONED_AFTER: Duration = Duration::from_secs(30);

/// One channel at one gateway, for the waiters of one scope.
#[derive(Clone, Debug)]
pub(super) struct Subscription {
    pub(super) endpoint: EndpointId,
    pub(super) scope: ScopeId,
    topic: Topic,
    /// The number of streams opened so far.
    opened: u32,
    stream: Stream,
    pub(super) waiters: Waiters,
}

#[derive(Clone, Debug)]
enum Stream {
    Closed,
    Opening { since: Instant, frames: StreamParser },
    Open(Open),
}

/// A stream whose response has begun.
#[derive(Clone, Debug)]
struct Open {
    frames: StreamParser,
    since: Instant,
    /// When the stream is to be reopened.
    until: Instant,
    /// When the subscription was confirmed.
    confirmed_at: Option<Instant>,
    /// When bytes last arrived.
    received_at: Instant,
}

impl Subscription {
    /// The stream that is open or being opened.
    pub(super) fn stream_id(&self, subscription: Key) -> Option<StreamId> {
        let is_closed = matches!(self.stream, Stream::Closed);
        (!is_closed).then_some(StreamId { subscription, number: self.opened })
    }

    const fn confirmed_at(&self) -> Option<Instant> {
        match &self.stream {
            Stream::Open(open) => open.confirmed_at,
            Stream::Closed | Stream::Opening { .. } => None,
        }
    }

    /// When to look at the stream again.
    pub(super) fn deadline(&self, health: &Health) -> Option<Instant> {
        match &self.stream {
            Stream::Closed if health.is_unsupported() => None,
            Stream::Closed => health.retry_at(),
            Stream::Opening { since, .. } => Some(*since + ACKNOWLEDGED_WITHIN),
            Stream::Open(Open { since, confirmed_at: None, .. }) => {
                Some(*since + ACKNOWLEDGED_WITHIN)
            }
            Stream::Open(Open { until, received_at, .. }) => {
                let silent_until = health.silence_max().map(|most| {
                    // It may be silent for exactly that time.
                    *received_at + most + Duration::from_millis(1)
                });
                Some(silent_until.map_or(*until, |silent| silent.sooner(*until)))
            }
        }
    }
}

/// An operation as a waiter of a subscription.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listener {
    pub(super) subscription: Key,
    pub(super) waiter: WaiterId,
}

impl Engine {
    /// Subscribes an operation whose last attempt was sent at `sent_at`. Returns `None` if it has
    /// to poll: wake-ups are disabled, the gateway has no streams, or there are as many as may be
    /// open.
    pub(super) fn subscribe(
        &mut self,
        (op, scope): (OpId, ScopeId),
        (to, topic): &(EndpointId, Topic),
        sent_at: Instant,
        cx: &mut Context<'_>,
    ) -> Option<Listener> {
        let endpoint = self.endpoint(*to)?;
        let may = endpoint.gateway.can_subscribe() && !endpoint.health.is_unsupported();
        let Some(key) = may.then(|| self.find_subscription(scope, *to, topic, cx.now)).flatten()
        else {
            if let Some(endpoint) = self.endpoint_mut(*to) {
                endpoint.may_poll = true;
            }
            self.change_health(*to, &mut Health::on_polling);
            return None;
        };
        let subscription = self.subscriptions.get_mut(key)?;
        let confirmed_at = subscription.confirmed_at();
        let waiter = subscription.waiters.enter(op, topic.wake_policy(), sent_at, confirmed_at);
        self.notified.push(key);
        self.open_stream(key, cx);
        Some(Listener { subscription: key, waiter })
    }

    /// The subscription to this topic, or a new one unless there are as many as may be open.
    fn find_subscription(
        &mut self,
        scope: ScopeId,
        to: EndpointId,
        topic: &Topic,
        now: Instant,
    ) -> Option<Key> {
        self.remove_abandoned(now);
        let of_endpoint = || self.subscriptions.iter().filter(|(_, one)| one.endpoint == to);
        let same = |(_, one): &(Key, &Subscription)| {
            one.scope == scope
                && one.topic.channel() == topic.channel()
                && one.topic.verb() == topic.verb()
        };
        if let Some((key, _)) = of_endpoint().find(same) {
            return Some(key);
        }
        let count = of_endpoint().count();
        let endpoint = self.endpoints.get_mut(to)?;
        if count >= endpoint.streams_max {
            return None;
        }
        endpoint.contention.subscribed(topic.channel(), now);
        Some(self.subscriptions.insert(Subscription {
            endpoint: to,
            scope,
            topic: topic.clone(),
            opened: 0,
            stream: Stream::Closed,
            waiters: Waiters::default(),
        }))
    }

    /// Removes the waiters of scopes that have ended without a sign.
    fn remove_abandoned(&mut self, now: Instant) {
        let late = |op: &OpId| {
            let deadline = self.ops.get(op.0).and_then(|op| op.deadline);
            deadline.is_some_and(|(until, _)| now.max_elapsed(until) > ABANDONED_AFTER)
        };
        let mut abandoned = Vec::new();
        for (_, one) in self.subscriptions.iter() {
            if one.scope != ScopeId::SHARED {
                abandoned.extend(one.waiters.ops().filter(late));
            }
        }
        for op in abandoned {
            self.unsubscribe(op);
        }
    }

    /// Removes an operation from the waiters of its subscription.
    pub(super) fn unsubscribe(&mut self, op: OpId) {
        let listener = self.ops.get_mut(op.0).and_then(|op| op.listener.take());
        let Some(Listener { subscription: key, waiter }) = listener else { return };
        let Some(subscription) = self.subscriptions.get_mut(key) else { return };
        if subscription.waiters.leave(waiter) {
            self.notified.push(key);
            return;
        }
        let stream = subscription.stream_id(key);
        let (scope, endpoint) = (subscription.scope, subscription.endpoint);
        let removed = self.subscriptions.remove(key);
        if let Some((removed, endpoint)) = removed.zip(self.endpoint_mut(endpoint)) {
            endpoint.contention.unsubscribed(removed.topic.channel());
            self.freed_endpoints.push(removed.endpoint);
        }
        if let Some(id) = stream {
            self.transmit(scope, Transmit::Close { id });
        }
    }

    /// Passes the events of waiters to their operations.
    pub(super) fn notify(&mut self, key: Key, cx: &mut Context<'_>) {
        while let Some(subscription) = self.subscriptions.get_mut(key) {
            let endpoint = self.endpoints.get_mut(subscription.endpoint);
            let contention =
                endpoint.and_then(|endpoint| endpoint.contention.at(subscription.topic.channel()));
            let within = contention.map_or(Duration::ZERO, |contention| contention.within());
            let Some(waiter) = subscription.waiters.next_with_event() else { return };
            if let Some((op, input)) = subscription.waiters.take_input(waiter, within) {
                self.on_input(op, input, cx);
            }
        }
    }

    fn change_health(&mut self, id: EndpointId, change: &mut dyn FnMut(&mut Health)) {
        let Some(endpoint) = self.endpoint_mut(id) else { return };
        let before = endpoint.health.notification_mode();
        change(&mut endpoint.health);
        if endpoint.health.notification_mode() != before {
            self.events.push_back(Event::Endpoint(id));
        }
    }

    /// Opens the stream of a subscription, if it is closed and may be opened.
    fn open_stream(&mut self, key: Key, cx: &mut Context<'_>) {
        let Some(subscription) = self.subscriptions.get_mut(key) else { return };
        let Some(endpoint) = self.endpoints.get_mut(subscription.endpoint) else {
            return;
        };
        let is_closed = matches!(subscription.stream, Stream::Closed);
        if !is_closed || !endpoint.health.can_open(cx.now) {
            return;
        }
        endpoint.health.on_opening(cx.draw().as_ref().map_or(0, Entropy::seed));
        let (request, frames) = endpoint.gateway.listen(&subscription.topic);
        subscription.opened = subscription.opened.wrapping_add(1);
        subscription.stream = Stream::Opening { since: cx.now, frames };
        let id = StreamId { subscription: key, number: subscription.opened };
        let (scope, to) = (subscription.scope, subscription.endpoint);
        self.transmit(scope, Transmit::Open { id, to, request });
    }

    /// Ends a stream that is silent, hangs, or is to be reopened; opens one that is closed.
    pub(super) fn check_stream(&mut self, key: Key, cx: &mut Context<'_>) {
        let Some(subscription) = self.subscriptions.get_mut(key) else { return };
        let (endpoint, now) = (subscription.endpoint, cx.now);
        let is_overdue = |since| now.max_elapsed(since) >= ACKNOWLEDGED_WITHIN;
        match &subscription.stream {
            Stream::Closed => {}
            Stream::Opening { since, .. }
            | Stream::Open(Open { since, confirmed_at: None, .. })
                if is_overdue(*since) =>
            {
                self.change_health(endpoint, &mut |health| health.on_ack_timeout(now));
                self.close_stream(key, true);
            }
            Stream::Open(Open { until, .. }) if now.has_reached(*until) => {
                // The waiters are notified only if the stream cannot be reopened. Once it is
                // confirmed again, one of them retries on behalf of all.
                self.close_stream(key, false);
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
            self.notified.push(key);
        }
        if let Some(id) = id {
            self.transmit(scope, Transmit::Close { id });
        }
    }

    pub(super) fn stream_input(
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
                self.notified.push(key);
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
            Stream::Opening { since, frames } => {
                Stream::Open(Open { frames, since, until, confirmed_at: None, received_at: since })
            }
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
        while let Some((event, after)) = open.frames.next(rest) {
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
        let is_sign_of_life = !has_event && open.confirmed_at.is_some();
        self.notified.push(key);
        self.change_health(endpoint, &mut |health| {
            if is_confirmed {
                health.on_confirmed();
            }
            if is_sign_of_life {
                health.on_heartbeat(silent);
            }
        });
    }

    /// Returns the waiters of an operation's subscription for a change, and the operation's id
    /// among them. The events that the change causes are passed on.
    pub(super) fn waiters_of(
        &mut self,
        listener: Option<Listener>,
    ) -> Option<(&mut Waiters, WaiterId)> {
        let Listener { subscription: key, waiter } = listener?;
        let subscription = self.subscriptions.get_mut(key)?;
        self.notified.push(key);
        Some((&mut subscription.waiters, waiter))
    }
}

#[cfg(test)]
mod tests;
