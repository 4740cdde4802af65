//! The pauses of a waiter, and what it hears in them.

use core::time::Duration;

use super::{Acquire, State};
use crate::machine::backoff::{Pacing, RetryHints, min_step, next_try};
use crate::machine::notification_state::RetryDecision;
use crate::machine::{Endpoint, Input, TimeoutReason};
use crate::protocol::reply::Reply;
use crate::time::Instant;

impl Acquire {
    /// Pauses since somebody else has it.
    pub(super) fn pause(&mut self, busy: &Reply, now: Instant) {
        if self.waits_for_the_last() {
            return;
        }
        let spins = matches!(self.spec.pacing, Pacing::Spin(_));
        let silence = if spins {
            None
        } else {
            self.notifications
                .turn_to(Endpoint::ONLY, self.spec.target.topic(self.round.owner, busy));
            self.notifications.patience(&mut self.ids)
        };
        let paced = |pacing| Some(busy).filter(|_| self.spec.pacing == pacing);
        let queue = paced(Pacing::Queue).and_then(Reply::place_in_queue);
        let remaining = paced(Pacing::Jittered).and_then(Reply::remaining);
        self.holder_ends = remaining.map(|remaining| now + remaining);
        match silence.and_then(|_| self.notifications.next(&mut self.ids, now)) {
            Some((until, why)) => self.pause_until(until, why),
            None => self.pause_for(RetryHints { queue, silence, ..RetryHints::default() }, now),
        }
    }

    /// Pauses since nothing was learnt. `rest`: for how long the gateway wants to be left alone.
    pub(super) fn pause_unheard(&mut self, rest: Option<Duration>, now: Instant) {
        if !self.waits_for_the_last() {
            self.holder_ends = None;
            self.pause_for(RetryHints { rest, ..RetryHints::default() }, now);
        }
    }

    /// Whether only the last try is left, which belongs to the end of the wait: then it waits for
    /// that.
    fn waits_for_the_last(&mut self) -> bool {
        let over = self.wait_over.filter(|_| !self.affords_another());
        if let Some(over) = over {
            self.state = State::Pausing { until: over, why: TimeoutReason::LastTry };
        }
        over.is_some()
    }

    /// Pauses for as long as what is known allows, which includes when the holder's lease ends.
    fn pause_for(&mut self, hints: RetryHints, now: Instant) {
        let min_step = match hints.queue {
            Some(_) => Duration::ZERO,
            None => min_step(self.wait_over, self.budget_left(), now),
        };
        let hints = RetryHints { remaining: self.holder_ends.map(|ends| now.until(ends)), ..hints };
        let (backoff, ids) = (&mut self.backoff, &mut self.ids);
        let (until, why) = next_try(hints, backoff, min_step, ids, self.wait_over, now);
        self.state = State::Pausing { until, why };
    }

    fn pause_until(&mut self, until: Instant, why: TimeoutReason) {
        let until = self.wait_over.map_or(until, |over| until.sooner(over));
        self.state = State::Pausing { until, why };
    }

    /// What is heard during a pause.
    pub(super) fn hears(&mut self, input: &Input, why: TimeoutReason, now: Instant) {
        match self.notifications.on_input(input, why, &mut self.ids, now) {
            RetryDecision::Keep => {}
            // A queue wants to be asked in its own time.
            RetryDecision::Defer(None) if self.spec.target.has_queue() => {}
            RetryDecision::Now => self.woken(now),
            RetryDecision::At(until) => self.pause_until(until, TimeoutReason::Turn),
            RetryDecision::Defer(lease) => {
                self.holder_ends = lease.map_or(self.holder_ends, |lease| Some(now + lease));
                let silence = self.notifications.patience(&mut self.ids);
                self.pause_for(RetryHints { silence, ..RetryHints::default() }, now);
            }
            RetryDecision::Poll => self.pause_for(RetryHints::default(), now),
        }
    }
}
