//! The pauses of a waiter, and the messages that it receives in them.

use core::time::Duration;

use super::{Acquire, State};
use crate::machine::backoff::{Pacing, RetryHints, min_step, next_try};
use crate::machine::notification_state::RetryDecision;
use crate::machine::{Endpoint, Input, TimeoutReason};
use crate::protocol::reply::Reply;
use crate::time::Instant;

impl Acquire {
    /// Pauses after a refusal: another owner has the lock, or too few permits are free.
    pub(super) fn pause(&mut self, busy: &Reply, now: Instant) {
        if self.pause_for_last_try() {
            return;
        }
        let spins = matches!(self.pacing, Pacing::Spin(_));
        let silence = if spins {
            None
        } else {
            self.notifications
                .set_topic(Endpoint::ONLY, self.target.topic(self.current.owner, busy));
            self.notifications.silence_timeout(&mut self.ids)
        };
        let paced = |pacing| Some(busy).filter(|_| self.pacing == pacing);
        let queue = paced(Pacing::Queue).and_then(Reply::place_in_queue);
        let remaining = paced(Pacing::Jittered).and_then(Reply::remaining);
        self.holder_ends = remaining.map(|remaining| now + remaining);
        match silence.and_then(|_| self.notifications.next_retry(&mut self.ids, now)) {
            Some((until, why)) => self.pause_until(until, why),
            None => self.pause_for(RetryHints { queue, silence, ..RetryHints::default() }, now),
        }
    }

    /// Pauses after a try without a usable reply. `retry_after` is the gateway's `Retry-After`.
    pub(super) fn pause_after_failure(&mut self, retry_after: Option<Duration>, now: Instant) {
        if !self.pause_for_last_try() {
            self.holder_ends = None;
            self.pause_for(RetryHints { retry_after, ..RetryHints::default() }, now);
        }
    }

    /// Pauses until the end of the wait if the rest of the budget is reserved for the last try;
    /// returns whether it does.
    fn pause_for_last_try(&mut self) -> bool {
        let over = self.wait_deadline.filter(|_| !self.affords_another());
        if let Some(over) = over {
            self.state = State::Pausing { until: over, why: TimeoutReason::LastTry };
        }
        over.is_some()
    }

    /// Pauses for the time that the hints and the end of the holder's lease suggest.
    fn pause_for(&mut self, hints: RetryHints, now: Instant) {
        let min_step = match hints.queue {
            Some(_) => Duration::ZERO,
            None => min_step(self.wait_deadline, self.budget_left(), now),
        };
        let hints = RetryHints { remaining: self.holder_ends.map(|ends| now.until(ends)), ..hints };
        let (backoff, ids) = (&mut self.backoff, &mut self.ids);
        let (until, why) = next_try(hints, backoff, min_step, ids, self.wait_deadline, now);
        self.state = State::Pausing { until, why };
    }

    fn pause_until(&mut self, until: Instant, why: TimeoutReason) {
        let until = self.wait_deadline.map_or(until, |deadline| until.sooner(deadline));
        self.state = State::Pausing { until, why };
    }

    /// Handles an input that arrives during a pause.
    pub(super) fn on_input(&mut self, input: &Input, why: TimeoutReason, now: Instant) {
        match self.notifications.on_input(input, why, &mut self.ids, now) {
            RetryDecision::Keep => {}
            // A waiter in a queue retries at the times that the queue sets.
            RetryDecision::Defer(None) if self.target.has_queue() => {}
            RetryDecision::Now => self.on_timeout(now),
            RetryDecision::At(until) => self.pause_until(until, TimeoutReason::Notification),
            RetryDecision::Defer(lease) => {
                self.holder_ends = lease.map_or(self.holder_ends, |lease| Some(now + lease));
                let silence = self.notifications.silence_timeout(&mut self.ids);
                self.pause_for(RetryHints { silence, ..RetryHints::default() }, now);
            }
            RetryDecision::Poll => self.pause_for(RetryHints::default(), now),
        }
    }
}
