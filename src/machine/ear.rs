//! The notification state of one waiter. Notifications are hints: a waiter without them polls.

use core::time::Duration;

use super::ids::Ids;
use super::{Endpoint, Input, Output, Wake};
use crate::protocol::calls::Topic;
use crate::time::Instant;

/// The longest time that a subscribed waiter sends nothing: a stream may die without a sign.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Sustained rate of notification-triggered retries: one per 50 ms, however many messages arrive.
const PACE: Duration = Duration::from_millis(50);
/// The burst: the number of such retries that may come at once. Far more than contention on a lock
/// makes a waiter retry in vain.
const AT_ONCE: u32 = 20;

/// The notification state of one machine, with a rate limiter (GCRA) for retries that messages
/// cause.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Ear {
    /// The topic and its gateway.
    topic: Option<(Endpoint, Topic)>,
    /// Whether [`Output::Listen`] was returned for the topic.
    said: bool,
    /// Whether the subscription is confirmed.
    hears: bool,
    /// A message may have been published since the last try was sent. The next try is due within
    /// this time.
    stirred: Option<Duration>,
    /// Whether a message has caused the next try.
    caused: bool,
    /// The theoretical arrival time of GCRA: when past retries caused by messages are paid off.
    good_at: Option<Instant>,
}

/// The effect of an input on a pause between two tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stir {
    /// The pause goes on.
    Nothing,
    /// Retry now.
    Ask,
    /// Retry at this time.
    Turn(Instant),
    /// Another client has acquired it, for this lease if the message says so: retry when that ends.
    Calm(Option<Duration>),
    /// The stream is gone: poll from now on.
    Deaf,
}

impl Ear {
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
            let from = self.good_at.filter(|good| !now.has_reached(*good)).unwrap_or(now);
            self.good_at = Some(from + PACE);
        }
    }

    /// Records an input.
    pub(super) const fn takes(&mut self, input: &Input) {
        match input {
            // Earlier messages were missed.
            Input::Listening => (self.hears, self.stirred) = (true, Some(Duration::ZERO)),
            Input::Hearing => self.hears = true,
            Input::Notified { within } => (self.hears, self.stirred) = (true, Some(*within)),
            Input::Taken { .. } => {
                (self.hears, self.stirred, self.caused) = (true, None, false);
            }
            Input::Deaf => self.hears = false,
            _ => {}
        }
    }

    /// Decides the effect of an input on a pause that has this reason.
    pub(super) fn stirs(&mut self, input: &Input, why: Wake, ids: &mut Ids, now: Instant) -> Stir {
        match (input, why) {
            (_, Wake::LastTry | Wake::RetryAfter) | (Input::Notified { .. }, Wake::Turn) => {
                Stir::Nothing
            }
            (Input::Listening, _) => Stir::Ask,
            (Input::Hearing, Wake::BackOff) => Stir::Calm(None),
            (Input::Notified { within }, _) => {
                self.turn(*within, ids, now).map_or(Stir::Ask, Stir::Turn)
            }
            (Input::Taken { .. }, Wake::BackOff) => Stir::Nothing,
            (Input::Taken { lease }, _) => Stir::Calm(*lease),
            (Input::Deaf, Wake::Silence | Wake::WaitOver) => Stir::Deaf,
            _ => Stir::Nothing,
        }
    }

    /// When to retry although the last try was refused, if a message calls for it.
    pub(super) fn next(&mut self, ids: &mut Ids, now: Instant) -> Option<(Instant, Wake)> {
        let turn = self.turn(self.stirred?, ids, now);
        Some((turn.unwrap_or(now), Wake::Turn))
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
        let ahead = self.good_at.map_or(Duration::ZERO, |good| now.until(good));
        ahead.saturating_sub(PACE * (AT_ONCE - 1))
    }

    /// How long to wait for a message; `None` without a subscription.
    pub(super) fn patience(&self, ids: &mut Ids) -> Option<Duration> {
        self.hears.then(|| SILENCE_MAX - ids.jitter(SILENCE_MAX / 4))
    }

    /// Returns the subscription to make, once.
    pub(super) fn poll<T>(&mut self) -> Option<Output<T>> {
        let (to, topic) = self.topic.as_ref().filter(|_| !self.said)?;
        self.said = true;
        Some(Output::Listen { to: *to, topic: topic.clone() })
    }
}
