//! What a waiter listens to, and what it has heard. A hint and nothing else: whoever hears nothing asks in its own time.

use core::time::Duration;

use super::ids::Ids;
use super::{Endpoint, Input, Output, Wake};
use crate::protocol::calls::Topic;
use crate::time::Instant;

/// How long a waiter that hears asks nobody, at the most: a stream may have died without a sign.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Sustained rate of notification-triggered retries: one per 50 ms, however many messages arrive.
const PACE: Duration = Duration::from_millis(50);
/// How many of them may come at once all the same: far more than a crowd around a lock makes somebody ask in vain.
const AT_ONCE: u32 = 20;

/// Listens for one machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Ear {
    /// What is listened to, and at which gateway; and whether that has been said.
    topic: Option<(Endpoint, Topic)>,
    said: bool,
    hears: bool,
    /// Something may have been published since the last try has left; and within which time it is to ask then.
    stirred: Option<Duration>,
    /// The next try is one that a message has caused.
    caused: bool,
    /// When the tries that messages have caused are made good.
    good_at: Option<Instant>,
}

/// What an input makes of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stir {
    /// Nothing.
    Nothing,
    /// It is worth to ask now.
    Ask,
    /// It is worth to ask then.
    Turn(Instant),
    /// There is nothing to ask for now: somebody has it, for so long if that is told.
    Calm(Option<Duration>),
    /// Nothing will be heard any more: it asks in its own time again.
    Deaf,
}

impl Ear {
    /// Listens to this from now on.
    pub(super) fn turn_to(&mut self, to: Endpoint, topic: Topic) {
        let topic = Some((to, topic));
        if self.topic != topic {
            (self.topic, self.said, self.hears) = (topic, false, false);
        }
    }

    /// Whether others are known to want the same.
    pub(super) const fn listens(&self) -> bool {
        self.topic.is_some()
    }

    /// A try leaves: what was published before cannot be missed by it.
    pub(super) fn asks(&mut self, now: Instant) {
        self.stirred = None;
        if core::mem::take(&mut self.caused) {
            let from = self.good_at.filter(|good| !now.has_reached(*good)).unwrap_or(now);
            self.good_at = Some(from + PACE);
        }
    }

    /// Takes note of what an input says.
    pub(super) const fn takes(&mut self, input: &Input) {
        match input {
            // What was published before nobody has heard.
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

    /// What an input makes of a pause that was to last for this reason.
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

    /// When to ask again although the last try was refused, if that is worth it.
    pub(super) fn next(&mut self, ids: &mut Ids, now: Instant) -> Option<(Instant, Wake)> {
        let turn = self.turn(self.stirred?, ids, now);
        Some((turn.unwrap_or(now), Wake::Turn))
    }

    /// A turn within this time, or later if messages have caused too many tries already; `None` for at once.
    fn turn(&mut self, within: Duration, ids: &mut Ids, now: Instant) -> Option<Instant> {
        self.caused = true;
        if within.is_zero() {
            return self.paced(now);
        }
        let turn = ids.jitter(within);
        Some(now + turn.max(self.rest(now)))
    }

    /// When a message may cause the next try; `None` for at once.
    pub(super) fn paced(&self, now: Instant) -> Option<Instant> {
        Some(self.rest(now)).filter(|rest| !rest.is_zero()).map(|rest| now + rest)
    }

    fn rest(&self, now: Instant) -> Duration {
        let ahead = self.good_at.map_or(Duration::ZERO, |good| now.until(good));
        ahead.saturating_sub(PACE * (AT_ONCE - 1))
    }

    /// How long to wait for a message; `None` when there will be none.
    pub(super) fn patience(&self, ids: &mut Ids) -> Option<Duration> {
        self.hears.then(|| SILENCE_MAX - ids.jitter(SILENCE_MAX / 4))
    }

    /// What is to be listened to, said once.
    pub(super) fn poll<T>(&mut self) -> Option<Output<T>> {
        let (to, topic) = self.topic.as_ref().filter(|_| !self.said)?;
        self.said = true;
        Some(Output::Listen { to: *to, topic: topic.clone() })
    }
}
