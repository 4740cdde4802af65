//! What a waiter listens to, and what it has heard. A hint and nothing else: whoever hears nothing asks in its own time.

use core::time::Duration;

use super::ids::Ids;
use super::{Endpoint, Input, Output, Wake};
use crate::protocol::calls::Topic;
use crate::time::Instant;

/// How long a waiter that hears asks nobody, at the most: a stream may have died without a sign.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Listens for one machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Ear {
    /// What is listened to, and at which gateway; and whether that has been said.
    topic: Option<(Endpoint, Topic)>,
    said: bool,
    hears: bool,
    /// Something may have been published since the last try has left; and within which time it is to ask then.
    stirred: Option<Duration>,
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
    pub(super) const fn asks(&mut self) {
        self.stirred = None;
    }

    /// Takes note of what an input says.
    pub(super) const fn takes(&mut self, input: &Input) {
        match input {
            // What was published before nobody has heard.
            Input::Listening => (self.hears, self.stirred) = (true, Some(Duration::ZERO)),
            Input::Hearing => self.hears = true,
            Input::Notified { within } => (self.hears, self.stirred) = (true, Some(*within)),
            Input::Taken { .. } => (self.hears, self.stirred) = (true, None),
            Input::Deaf => self.hears = false,
            _ => {}
        }
    }

    /// What an input makes of a pause that was to last for this reason.
    pub(super) fn stirs(&self, input: &Input, why: Wake, ids: &mut Ids, now: Instant) -> Stir {
        match (input, why) {
            (_, Wake::LastTry) | (Input::Notified { .. }, Wake::Turn) => Stir::Nothing,
            (Input::Listening, _) => Stir::Ask,
            (Input::Hearing, Wake::BackOff) => Stir::Calm(None),
            (Input::Notified { within }, _) => {
                turn(*within, ids, now).map_or(Stir::Ask, Stir::Turn)
            }
            (Input::Taken { .. }, Wake::BackOff) => Stir::Nothing,
            (Input::Taken { lease }, _) => Stir::Calm(*lease),
            (Input::Deaf, Wake::Silence | Wake::WaitOver) => Stir::Deaf,
            _ => Stir::Nothing,
        }
    }

    /// When to ask again although the last try was refused, if that is worth it.
    pub(super) fn next(&self, ids: &mut Ids, now: Instant) -> Option<(Instant, Wake)> {
        let turn = turn(self.stirred?, ids, now);
        Some((turn.unwrap_or(now), Wake::Turn))
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

/// A turn within this time; `None` for at once.
fn turn(within: Duration, ids: &mut Ids, now: Instant) -> Option<Instant> {
    (!within.is_zero()).then(|| now + ids.jitter(within))
}
