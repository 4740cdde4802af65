//! Subscriptions to release messages: the stream of a channel, and the waiters that share it.
//!
//! A subscription is opened with its first waiter and closed with its last. A message is only a
//! hint. A waiter that was woken by a message and leaves before its retry has a reply passes the
//! message on, so that no message is lost with a waiter.

use alloc::vec::Vec;
use core::time::Duration;

use super::health::Health;
use super::waiters::{WaiterId, Waiters};
use super::{Context, EndpointId, Engine, Event, Key, OpId, ScopeId, StreamId, Transmit};
use crate::protocol::calls::Topic;
use crate::time::Instant;

mod stream;

use stream::{Open, Stream};

/// Longest time from the request to the confirmation of the subscription.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(10);
/// How long past its deadline an operation counts as ended, and leaves its stream's place to
/// others: a runtime that ends the request of a Worker does not report it.
const ABANDONED_AFTER: Duration = Duration::from_secs(30);

/// One channel at one gateway, for the waiters of one scope.
#[derive(Clone, Debug)]
pub(super) struct Subscription {
    pub(super) endpoint: EndpointId,
    pub(super) scope: ScopeId,
    topic: Topic,
    /// The number of streams requested so far, which is the number of the newest one.
    requested: u32,
    stream: Stream,
    pub(super) waiters: Waiters,
}

impl Subscription {
    /// The stream that is open or being opened.
    pub(super) fn stream_id(&self, subscription: Key) -> Option<StreamId> {
        let is_closed = matches!(self.stream, Stream::Closed);
        (!is_closed).then_some(StreamId { subscription, number: self.requested })
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
            Stream::Closed if health.has_no_streams() => None,
            Stream::Closed => health.retry_at(),
            Stream::Opening { requested_at, .. } => Some(*requested_at + CONFIRMED_WITHIN),
            Stream::Open(Open { requested_at, confirmed_at: None, .. }) => {
                Some(*requested_at + CONFIRMED_WITHIN)
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

/// Where an operation waits: a subscription, and its waiter there.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaiterRef {
    pub(super) subscription: Key,
    pub(super) waiter: WaiterId,
}

impl Engine {
    /// Subscribes an operation whose last attempt was sent at `sent_at`. Returns `None` if it has
    /// to poll: wake-ups are disabled, the gateway has no streams, or the limit of open streams is
    /// reached.
    pub(super) fn subscribe(
        &mut self,
        (op, scope): (OpId, ScopeId),
        (to, topic): &(EndpointId, Topic),
        sent_at: Instant,
        cx: &mut Context<'_>,
    ) -> Option<WaiterRef> {
        let endpoint = self.endpoint(*to)?;
        let has_streams = endpoint.gateway.can_subscribe() && !endpoint.health.has_no_streams();
        let Some(key) =
            has_streams.then(|| self.find_or_add_subscription(scope, *to, topic, cx.now)).flatten()
        else {
            if let Some(endpoint) = self.endpoint_mut(*to) {
                endpoint.may_have_pollers = true;
            }
            self.change_health(*to, &mut Health::on_polling);
            return None;
        };
        let subscription = self.subscriptions.get_mut(key)?;
        let confirmed_at = subscription.confirmed_at();
        let waiter = subscription.waiters.enter(op, topic.wake_policy(), sent_at, confirmed_at);
        self.to_notify.push(key);
        self.open_stream(key, cx);
        Some(WaiterRef { subscription: key, waiter })
    }

    /// The subscription to this topic, or a new one; `None` if the limit of open streams is
    /// reached. Waiters that count as ended are removed first.
    fn find_or_add_subscription(
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
                // The same channel may be subscribed by SUBSCRIBE and by SSUBSCRIBE.
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
            requested: 0,
            stream: Stream::Closed,
            waiters: Waiters::default(),
        }))
    }

    /// Removes the waiters whose operation is so late that it counts as ended. A scope that lives
    /// as long as the program does not end.
    fn remove_abandoned(&mut self, now: Instant) {
        let late = |op: &OpId| {
            let deadline = self.ops.get(op.0).and_then(|op| op.deadline);
            deadline.is_some_and(|(until, _)| now.max_elapsed(until) > ABANDONED_AFTER)
        };
        let mut abandoned = Vec::new();
        for (_, one) in self.subscriptions.iter() {
            if one.scope != ScopeId::GLOBAL {
                abandoned.extend(one.waiters.ops().filter(late));
            }
        }
        for op in abandoned {
            self.unsubscribe(op);
        }
    }

    /// Removes an operation from the waiters of its subscription, and closes the subscription after
    /// its last waiter.
    pub(super) fn unsubscribe(&mut self, op: OpId) {
        let waiter_ref = self.ops.get_mut(op.0).and_then(|op| op.waiter_ref.take());
        let Some(WaiterRef { subscription: key, waiter }) = waiter_ref else { return };
        let Some(subscription) = self.subscriptions.get_mut(key) else { return };
        if subscription.waiters.leave(waiter) {
            self.to_notify.push(key);
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
            // Competing clients retry at a random time within this.
            let retry_spread = contention.map_or(Duration::ZERO, |it| it.retry_spread());
            let Some(waiter) = subscription.waiters.next_with_event() else { return };
            if let Some((op, input)) = subscription.waiters.take_input(waiter, retry_spread) {
                self.on_input(op, input, cx);
            }
        }
    }

    /// Changes the health of an endpoint's streams; emits an event if clients now poll that were
    /// notified, or the other way round.
    fn change_health(&mut self, id: EndpointId, change: &mut dyn FnMut(&mut Health)) {
        let Some(endpoint) = self.endpoint_mut(id) else { return };
        let before = endpoint.health.notification_mode();
        change(&mut endpoint.health);
        if endpoint.health.notification_mode() != before {
            self.events.push_back(Event::Endpoint(id));
        }
    }

    /// Gives mutable access to the waiters of an operation's subscription, with the operation's own
    /// id among them. The events that result are delivered.
    pub(super) fn waiters_of(
        &mut self,
        waiter_ref: Option<WaiterRef>,
    ) -> Option<(&mut Waiters, WaiterId)> {
        let WaiterRef { subscription: key, waiter } = waiter_ref?;
        let subscription = self.subscriptions.get_mut(key)?;
        self.to_notify.push(key);
        Some((&mut subscription.waiters, waiter))
    }
}

#[cfg(test)]
mod tests;
