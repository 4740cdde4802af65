//! The notification state of a machine that waits for a lock, permits or a latch: its subscription,
//! and the retry that a message has caused.
//!
//! Notifications are hints that shorten a pause. No promise depends on them: a machine without a
//! subscription polls, and a subscribed one retries after [`SILENCE_MAX`] even without a message;
//! later only if its request budget or the gateway's `Retry-After` requires it.
//!
//! A machine passes each input to [`record`](NotificationState::record), and during a pause also to
//! [`on_input`](NotificationState::on_input). A message that arrives while a try is under way can
//! only be recorded; [`next_retry`](NotificationState::next_retry) uses it once that try is
//! refused.

use core::time::Duration;

use super::ids::Ids;
use super::rate_limiter::RateLimiter;
use super::{Endpoint, Input, Output, TimeoutReason};
use crate::protocol::calls::Topic;
use crate::time::Instant;

/// The longest pause of a subscribed machine without a message. Then it retries, since a stream may
/// die without an error; the subscription still counts as confirmed.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Sustained rate of notification-triggered retries: one per 50 ms, however many messages arrive.
const INTERVAL: Duration = Duration::from_millis(50);
/// The number of notification-triggered retries before the limiter delays them. A waiter needs far
/// fewer in ordinary contention; only a flood of messages reaches the limit.
const BURST: u32 = 20;

/// The subscription of one machine, and the retry that a message has caused.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct NotificationState {
    /// The topic and its gateway; `None` before the first refusal.
    topic: Option<(Endpoint, Topic)>,
    /// Whether [`poll`](Self::poll) has returned [`Output::Subscribe`] for this topic.
    has_subscribed: bool,
    subscription: Subscription,
    /// `Some` if a message arrived after the last try was sent, or may have been missed before the
    /// subscription was confirmed. If that try is refused, the next one follows after a random
    /// pause of at most this length, or later if the limiter requires it.
    retry_within: Option<Duration>,
    /// Whether the limiter counts the next try. Set when a message shortens the pause before it, or
    /// when a confirmation arrived during the last try.
    is_triggered: bool,
    /// Limits the rate of the tries that messages cause.
    limiter: RateLimiter,
}

/// The state of the subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Subscription {
    /// Not confirmed: the last [`Input::Unsubscribed`], if any, ended nothing.
    Missing,
    /// The gateway has confirmed it, or a message has proved it.
    Confirmed,
    /// The last [`Input::Unsubscribed`] ended it.
    Lost,
}

impl Default for NotificationState {
    fn default() -> Self {
        Self {
            topic: None,
            has_subscribed: false,
            subscription: Subscription::Missing,
            retry_within: None,
            is_triggered: false,
            limiter: RateLimiter::new(INTERVAL, BURST),
        }
    }
}

/// The effect of an input on the pause between two tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetryDecision {
    /// The pause does not change.
    Keep,
    /// Retry now.
    Now,
    /// Retry at this time: at random, or when the rate limiter allows it.
    At(Instant),
    /// Replace the pause by a wait for a message. With a lease, another client has acquired the
    /// object: retry when that lease ends, at the latest.
    Defer(Option<Duration>),
    /// The subscription has ended: replace the wait for a message by a back-off pause.
    Poll,
}

impl NotificationState {
    /// Sets the topic to subscribe to. A topic that differs from the earlier one needs a new
    /// subscription. A retry that a message of the earlier topic has caused is not cancelled: it is
    /// superfluous but harmless.
    pub(super) fn set_topic(&mut self, to: Endpoint, topic: Topic) {
        let topic = Some((to, topic));
        if self.topic != topic {
            (self.topic, self.has_subscribed) = (topic, false);
            self.subscription = Subscription::Missing;
        }
    }

    /// Whether a topic was set. The first refusal sets it: other clients compete for the object, so
    /// the grant of this machine must be published to them.
    pub(super) const fn has_topic(&self) -> bool {
        self.topic.is_some()
    }

    /// Records that a try is sent, and counts it if a message has triggered it. Earlier messages
    /// are forgotten: Redis executes a release before it publishes it, so this try sees it.
    pub(super) fn on_try(&mut self, now: Instant) {
        self.retry_within = None;
        if core::mem::take(&mut self.is_triggered) {
            self.limiter.record(now);
        }
    }

    /// Records an input, in every state of the machine. An input about anything other than the
    /// subscription changes nothing.
    pub(super) const fn record(&mut self, input: &Input) {
        use Subscription::{Confirmed, Lost, Missing};
        match input {
            // The machine may have missed messages that were published before the confirmation.
            Input::Subscribed { must_retry: true } => {
                (self.subscription, self.retry_within) = (Confirmed, Some(Duration::ZERO));
            }
            Input::Subscribed { must_retry: false } => self.subscription = Confirmed,
            Input::Notified { within } => {
                (self.subscription, self.retry_within) = (Confirmed, Some(*within));
            }
            Input::AcquiredByOther { .. } => {
                (self.subscription, self.retry_within) = (Confirmed, None);
                self.is_triggered = false;
            }
            Input::Unsubscribed => {
                let is_lost = matches!(self.subscription, Confirmed);
                self.subscription = if is_lost { Lost } else { Missing };
            }
            _ => {}
        }
    }

    /// Decides the effect of an input on a pause with the reason `why`. The caller has passed the
    /// input to [`record`](Self::record) first.
    ///
    /// * No input shortens the gateway's `Retry-After` or the pause before the last try.
    /// * A confirmed subscription with `must_retry` causes a retry at once, which the limiter does
    ///   not delay. Without `must_retry` it replaces a back-off pause by a wait for a message.
    /// * A message schedules a retry, unless one is scheduled: that one sees the release too.
    /// * A grant to another client cancels the scheduled retry, but it does not lengthen a back-off
    ///   pause.
    /// * The loss of the subscription matters only to pauses that rely on it: waits for a message,
    ///   for the end of the holder's lease, or for the end of the caller's wait.
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
            (
                Input::Unsubscribed,
                TimeoutReason::Silence | TimeoutReason::HolderExpires | TimeoutReason::WaitOver,
            ) if self.subscription == Subscription::Lost => RetryDecision::Poll,
            _ => RetryDecision::Keep,
        }
    }

    /// When to retry after a refusal, and the reason; `None` if no message has arrived since the
    /// refused try was sent, so that an ordinary pause follows.
    pub(super) fn next_retry(
        &mut self,
        ids: &mut Ids,
        now: Instant,
    ) -> Option<(Instant, TimeoutReason)> {
        let at = self.schedule(self.retry_within?, ids, now);
        Some((at.unwrap_or(now), TimeoutReason::Notification))
    }

    /// Schedules a retry that a message has caused, at a random time up to `within` from now, or
    /// later if the rate limiter requires it; `None` means now. The random time spreads the retries
    /// of competing clients.
    fn schedule(&mut self, within: Duration, ids: &mut Ids, now: Instant) -> Option<Instant> {
        self.is_triggered = true;
        if within.is_zero() {
            return self.next_allowed(now);
        }
        Some(now + ids.jitter(within).max(self.limiter.delay(now)))
    }

    /// When the rate limiter allows the next retry; `None` means now. Waiters of a latch need no
    /// random time, since one message serves them all.
    pub(super) fn next_allowed(&self, now: Instant) -> Option<Instant> {
        Some(self.limiter.delay(now)).filter(|delay| !delay.is_zero()).map(|delay| now + delay)
    }

    /// How long to wait for a message: 7.5 to 10 s, at random, so that waiters do not retry
    /// together. `None` without a confirmed subscription: the machine polls.
    pub(super) fn silence_timeout(&self, ids: &mut Ids) -> Option<Duration> {
        let is_subscribed = self.subscription == Subscription::Confirmed;
        is_subscribed.then(|| SILENCE_MAX - ids.jitter(SILENCE_MAX / 4))
    }

    /// Returns the [`Output::Subscribe`] of the topic, once for each topic; `None` if there is no
    /// topic, or it was returned before.
    pub(super) fn poll<T>(&mut self) -> Option<Output<T>> {
        let (to, topic) = self.topic.as_ref().filter(|_| !self.has_subscribed)?;
        self.has_subscribed = true;
        Some(Output::Subscribe { to: *to, topic: topic.clone() })
    }
}
