//! The pauses of a waiter, and what it hears in them.

use core::time::Duration;

use super::{Acquire, State};
use crate::machine::backoff::{Pacing, Told, next_try, stretch};
use crate::machine::ear::Stir;
use crate::machine::{Endpoint, Input, Wake};
use crate::protocol::reply::Reply;
use crate::time::Instant;

impl Acquire {
    pub(super) fn pause(&mut self, busy: Option<&Reply>, now: Instant) {
        // Only the last try is left: it belongs to the end of the wait.
        if let Some(over) = self.wait_over.filter(|_| !self.affords_another()) {
            self.state = State::Pausing { until: over, why: Wake::LastTry };
            return;
        }
        let spins = matches!(self.spec.pacing, Pacing::Spin(_));
        let silence = busy.filter(|_| !spins).and_then(|busy| {
            self.ear.turn_to(Endpoint::ONLY, self.spec.target.topic(self.round.owner, busy));
            self.ear.patience(&mut self.ids)
        });
        let paced = |pacing| busy.filter(|_| self.spec.pacing == pacing);
        let queue = paced(Pacing::Queue).and_then(Reply::place_in_queue);
        let remaining = paced(Pacing::Jittered).and_then(Reply::remaining);
        self.holder_ends = remaining.map(|remaining| now + remaining);
        match silence.and_then(|_| self.ear.next(&mut self.ids, now)) {
            Some((until, why)) => self.pause_until(until, why),
            None => self.rest(queue, silence, now),
        }
    }

    /// Pauses for as long as what is known allows.
    fn rest(&mut self, queue: Option<(u64, Duration)>, silence: Option<Duration>, now: Instant) {
        let stretch = match queue {
            Some(_) => Duration::ZERO,
            None => stretch(self.wait_over, self.budget_left(), now),
        };
        let remaining = self.holder_ends.map(|ends| now.until(ends));
        let told = Told { queue, silence, remaining };
        let (backoff, ids) = (&mut self.backoff, &mut self.ids);
        let (until, why) = next_try(told, backoff, stretch, ids, self.wait_over, now);
        self.state = State::Pausing { until, why };
    }

    fn pause_until(&mut self, until: Instant, why: Wake) {
        let until = self.wait_over.map_or(until, |over| until.sooner(over));
        self.state = State::Pausing { until, why };
    }

    /// What is heard during a pause.
    pub(super) fn hears(&mut self, input: &Input, why: Wake, now: Instant) {
        match self.ear.stirs(input, why, &mut self.ids, now) {
            Stir::Nothing => {}
            // A queue wants to be asked in its own time.
            Stir::Calm(None) if self.spec.target.has_queue() => {}
            Stir::Ask => self.woken(now),
            Stir::Turn(until) => self.pause_until(until, Wake::Turn),
            Stir::Calm(lease) => {
                self.holder_ends = lease.map_or(self.holder_ends, |lease| Some(now + lease));
                let silence = self.ear.patience(&mut self.ids);
                self.rest(None, silence, now);
            }
            Stir::Deaf => self.rest(None, None, now),
        }
    }
}
