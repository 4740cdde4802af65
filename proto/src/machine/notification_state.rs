//! The notification state of one waiter. Notifications are hints: a waiter without them polls.

use core::time::Duration;

use super::ids::Ids;
use super::rate_limiter::RateLimiter;
use super::{Endpoint, Input, Output, TimeoutReason};
use crate::protocol::calls::Topic;
use crate::time::Instant;

/// The longest time that a subscribed waiter sends nothing: a stream may die without a sign.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Sustained rate of notification-triggered retries: one per 50 ms, however many messages arrive.
const INTERVAL: Duration = Duration::from_millis(50);
/// The number of such retries that may come at once. Far more than contention on a lock makes a
/// waiter retry in vain.
const BURST: u32 = 20;

/// The notification state of one machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct NotificationState {
    /// The topic and its gateway.
    topic: Option<(Endpoint, Topic)>,
    /// Whether [`Output::Subscribe`] was returned for the topic.
    has_subscribed: bool,
    /// Whether the subscription is confirmed.
    is_subscribed: bool,
    /// A message may have been published since the last try was sent. The next try is due within
    /// this time.
    retry_within: Option<Duration>,
    /// Whether a message has caused the next try.
    is_triggered: bool,
    /// Limits the tries that messages cause.
    limiter: RateLimiter,
}

impl Default for NotificationState {
    fn default() -> Self {
        Self {
            topic: None,
            has_subscribed: false,
            is_subscribed: false,
            retry_within: None,
            is_triggered: false,
            limiter: RateLimiter::new(INTERVAL, BURST),
        }
    }
}

/// The effect of an input on a pause between two tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetryDecision {
    /// The pause goes on.
    Keep,
    /// Retry now.
    Now,
    /// Retry at this time.
    At(Instant),
    /// Another client has acquired it, for this lease if the message says so: retry when that ends.
    Defer(Option<Duration>),
    /// The stream is gone: poll from now on.
    Poll,
}

impl NotificationState {
    /// Sets the topic to subscribe to.
    pub(super) fn set_topic(&mut self, to: Endpoint, topic: Topic) {
        let topic = Some((to, topic));
        if self.topic != topic {
            (self.topic, self.has_subscribed, self.is_subscribed) = (topic, false, false);
        }
    }

    /// Whether the machine has a topic, so that it was refused once.
    pub(super) const fn has_topic(&self) -> bool {
        self.topic.is_some()
    }

    /// Records that a try is sent: it cannot miss an earlier message.
    pub(super) fn on_try(&mut self, now: Instant) {
        self.retry_within = None;
        if core::mem::take(&mut self.is_triggered) {
            self.limiter.record(now);
        }
    }

    /// Records an input.
    pub(super) const fn record(&mut self, input: &Input) {
        match input {
            // Earlier messages were missed.
            Input::Subscribed { must_retry: true } => {
                (self.is_subscribed, self.retry_within) = (true, Some(Duration::ZERO));
            }
            Input::Subscribed { must_retry: false } => self.is_subscribed = true,
            Input::Notified { within } => {
                (self.is_subscribed, self.retry_within) = (true, Some(*within));
            }
            Input::AcquiredByOther { .. } => {
                (self.is_subscribed, self.retry_within) = (true, None);
                self.is_triggered = false;
            }
            Input::Unsubscribed => self.is_subscribed = false,
            _ => {}
        }
    }

    /// Decides the effect of an input on a pause that has this reason.
    pub(super) fn on_input(
        &mut self,
        input: &Input,
        why: TimeoutReason,
        ids: &mut Ids,
        now: Instant,
    ) -> RetryDecision {
        match (input, why) {
            (_, TimeoutReason::LastTry | TimeoutReason::RetryAfter)
            | (Input::Notified { .. }, TimeoutReason::Notification) => RetryDecision::Keep,
            (Input::Subscribed { must_retry: true }, _) => RetryDecision::Now,
            (Input::Subscribed { must_retry: false }, TimeoutReason::BackOff) => {
                RetryDecision::Defer(None)
            }
            (Input::Notified { within }, _) => {
                self.schedule(*within, ids, now).map_or(RetryDecision::Now, RetryDecision::At)
            }
            (Input::AcquiredByOther { .. }, TimeoutReason::BackOff) => RetryDecision::Keep,
            (Input::AcquiredByOther { lease }, _) => RetryDecision::Defer(*lease),
            (Input::Unsubscribed, TimeoutReason::Silence | TimeoutReason::WaitOver) => {
                RetryDecision::Poll
            }
            _ => RetryDecision::Keep,
        }
    }

    /// When to retry although the last try was refused, if a message calls for it.
    pub(super) fn next_retry(
        &mut self,
        ids: &mut Ids,
        now: Instant,
    ) -> Option<(Instant, TimeoutReason)> {
        let at = self.schedule(self.retry_within?, ids, now);
        Some((at.unwrap_or(now), TimeoutReason::Notification))
    }

    /// A random time within `within`, or later if messages have caused too many retries; `None`
    /// means now.
    fn schedule(&mut self, within: Duration, ids: &mut Ids, now: Instant) -> Option<Instant> {
        self.is_triggered = true;
        if within.is_zero() {
            return self.next_allowed(now);
        }
        Some(now + ids.jitter(within).max(self.limiter.delay(now)))
    }

    /// When a message may cause the next retry; `None` means now.
    pub(super) fn next_allowed(&self, now: Instant) -> Option<Instant> {
        Some(self.limiter.delay(now)).filter(|delay| !delay.is_zero()).map(|delay| now + delay)
    }

    /// How long to wait for a message; `None` without a subscription.
    pub(super) fn silence_timeout(&self, ids: &mut Ids) -> Option<Duration> {
        self.is_subscribed.then(|| SILENCE_MAX - ids.jitter(SILENCE_MAX / 4))
    }

    /// Returns the subscription to make, once.
    pub(super) fn poll<T>(&mut self) -> Option<Output<T>> {
        let (to, topic) = self.topic.as_ref().filter(|_| !self.has_subscribed)?;
        self.has_subscribed = true;
        Some(Output::Subscribe { to: *to, topic: topic.clone() })
    }
}
