//! The notification state of one waiter. Notifications are hints: a waiter without them polls.

use core::time::Duration;

use super::ids::Ids;
use super::{Endpoint, Input, Output, TimeoutReason};
use crate::protocol::calls::Topic;
use crate::time::Instant;

/// The longest time that a subscribed waiter sends nothing: a stream may die without a sign.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// The interval `T` of the generic cell rate algorithm (GCRA, ITU-T I.371).
///
/// Sustained rate of notification-triggered retries: one per 50 ms, however many messages arrive.
const INTERVAL: Duration = Duration::from_millis(50);
/// The burst: the number of such retries that may come at once. Far more than contention on a lock
/// makes a waiter retry in vain.
const BURST: u32 = 20;

/// The notification state of one machine, with a rate limiter (GCRA) for retries that messages
/// cause.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct NotificationState {
    /// The topic and its gateway.
    topic: Option<(Endpoint, Topic)>,
    /// Whether [`Output::Subscribe`] was returned for the topic.
    said: bool,
    /// Whether the subscription is confirmed.
    hears: bool,
    /// A message may have been published since the last try was sent. The next try is due within
    /// this time.
    stirred: Option<Duration>,
    /// Whether a message has caused the next try.
    caused: bool,
    /// The theoretical arrival time of GCRA: when past retries caused by messages are paid off.
    tat: Option<Instant>,
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
    pub(super) fn turn_to(&mut self, to: Endpoint, topic: Topic) {
        let topic = Some((to, topic));
        if self.topic != topic {
            (self.topic, self.said, self.hears) = (topic, false, false);
        }
    }

    /// Whether the machine has a topic, so that it was refused once.
    pub(super) const fn listens(&self) -> bool {
        self.topic.is_some()
    }

    /// Records that a try is sent: it cannot miss an earlier message.
    pub(super) fn asks(&mut self, now: Instant) {
        self.stirred = None;
        if core::mem::take(&mut self.caused) {
            let from = self.tat.filter(|good| !now.has_reached(*good)).unwrap_or(now);
            self.tat = Some(from + INTERVAL);
        }
    }

    /// Records an input.
    pub(super) const fn takes(&mut self, input: &Input) {
        match input {
            // Earlier messages were missed.
            Input::Subscribed { must_retry: true } => {
                (self.hears, self.stirred) = (true, Some(Duration::ZERO))
            }
            Input::Subscribed { must_retry: false } => self.hears = true,
            Input::Notified { within } => (self.hears, self.stirred) = (true, Some(*within)),
            Input::AcquiredByOther { .. } => {
                (self.hears, self.stirred, self.caused) = (true, None, false);
            }
            Input::Unsubscribed => self.hears = false,
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
            | (Input::Notified { .. }, TimeoutReason::Turn) => RetryDecision::Keep,
            (Input::Subscribed { must_retry: true }, _) => RetryDecision::Now,
            (Input::Subscribed { must_retry: false }, TimeoutReason::BackOff) => {
                RetryDecision::Defer(None)
            }
            (Input::Notified { within }, _) => {
                self.turn(*within, ids, now).map_or(RetryDecision::Now, RetryDecision::At)
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
    pub(super) fn next(&mut self, ids: &mut Ids, now: Instant) -> Option<(Instant, TimeoutReason)> {
        let turn = self.turn(self.stirred?, ids, now);
        Some((turn.unwrap_or(now), TimeoutReason::Turn))
    }

    /// A random time within `within`, or later if messages have caused too many retries; `None`
    /// means now.
    fn turn(&mut self, within: Duration, ids: &mut Ids, now: Instant) -> Option<Instant> {
        self.caused = true;
        if within.is_zero() {
            return self.paced(now);
        }
        let turn = ids.jitter(within);
        Some(now + turn.max(self.rest(now)))
    }

    /// When a message may cause the next retry; `None` means now.
    pub(super) fn paced(&self, now: Instant) -> Option<Instant> {
        Some(self.rest(now)).filter(|rest| !rest.is_zero()).map(|rest| now + rest)
    }

    fn rest(&self, now: Instant) -> Duration {
        let ahead = self.tat.map_or(Duration::ZERO, |good| now.until(good));
        ahead.saturating_sub(INTERVAL * (BURST - 1))
    }

    /// How long to wait for a message; `None` without a subscription.
    pub(super) fn patience(&self, ids: &mut Ids) -> Option<Duration> {
        self.hears.then(|| SILENCE_MAX - ids.jitter(SILENCE_MAX / 4))
    }

    /// Returns the subscription to make, once.
    pub(super) fn poll<T>(&mut self) -> Option<Output<T>> {
        let (to, topic) = self.topic.as_ref().filter(|_| !self.said)?;
        self.said = true;
        Some(Output::Subscribe { to: *to, topic: topic.clone() })
    }
}
