//! The parts of an `AcquireAll` or `AcquireQuorum` machine: their shared budget of calls, and the
//! pauses of the wait for one of them.
//!
//! A *pass* sends one try to each of some parts, and lasts until each has a reply or a failure. The
//! wait repeats passes. The *last pass* follows the end of the wait, so the budget must always keep
//! calls for it, and for releasing the parts that earlier passes have acquired.

use alloc::vec::Vec;
use core::time::Duration;

use super::super::backoff::{Backoff, Pacing, RetryHints, min_step, next_try};
use super::super::ids::Ids;
use super::super::notification_state::{NotificationState, RetryDecision};
use super::super::{
    AcquireParams, Endpoint, Entropy, Input, Output, TimeoutReason, sooner, wait_deadline,
};
use super::part::Part;
use super::terms::{PartStatus, SharedState, TryOptions};
use crate::error::AcquireError;
use crate::protocol::calls::Target;
use crate::protocol::reply::ServerClock;
use crate::time::Instant;

/// Attempts of a last try, which no later try repeats.
const LAST_TRY_ATTEMPTS: u8 = 2;
/// Attempts of the undoing that ends the machine: a hold that it leaves lasts for its whole lease.
const LAST_UNDO_ATTEMPTS: u8 = 3;
/// The calls that one part may need in a pass: two attempts to undo a spent owner, and two of the
/// try after it.
const CALLS_PER_TRY: u32 = 4;
/// The shortest time for an attempt whose time is cut to the end of the wait or to `keep_time`.
const MIN_ATTEMPT_TIME: Duration = Duration::from_secs(1);
/// The index of the awaited part if the machine waits for no part in particular.
pub(in crate::machine) const NO_PART: usize = usize::MAX;

/// The parts of a machine; the index of each is the endpoint of its calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::machine) struct Parts {
    list: Vec<Part>,
    shared: SharedState,
    /// The largest number of calls of the whole acquisition; `None` for no limit.
    budget: Option<u32>,
    /// The calls that a pass reserves for each part in it.
    calls_per_part: u32,
    /// The calls reserved for the last pass, for all parts together.
    reserve: u32,
    /// How the wait for each part paces its tries.
    pacing: Vec<Pacing>,
    /// The index of the awaited part, and the back-off of that wait.
    backoff: (usize, Backoff),
    notifications: NotificationState,
    /// Whether other waiters are known to compete for a part: grants are then published.
    is_contended: bool,
}

/// The number of calls to reserve for each part.
#[derive(Clone, Copy)]
pub(in crate::machine) struct ReservedCalls {
    /// In any pass but the last.
    pub(in crate::machine) pass: u32,
    /// In the last pass.
    pub(in crate::machine) last_pass: u32,
}

impl Parts {
    pub(in crate::machine) fn new(
        targets: Vec<Target>,
        params: &AcquireParams<()>,
        attempt_time: Duration,
        ReservedCalls { pass, last_pass }: ReservedCalls,
        entropy: Entropy,
        clocks: &[Option<ServerClock>],
        now: Instant,
    ) -> Self {
        let AcquireParams { lease, wait, replicas, is_contended, .. } = *params;
        let wait_deadline = wait_deadline(wait, now);
        let ids = Ids::new(entropy);
        let mut shared =
            SharedState { ids, owners: 0, lease, attempt_time, wait_deadline, replicas };
        let list: Vec<Part> = (0..)
            .zip(targets)
            .map(|(index, target)| {
                let clock = clocks.get::<usize>(index).copied().flatten();
                Part::new(target, clock, &mut shared, now)
            })
            .collect();
        let count = u32::try_from(list.len()).unwrap_or(u32::MAX);
        // A smaller budget would allow no try, so it is raised to that of one pass and the last
        // one.
        let min_budget = count.saturating_mul(pass + last_pass);
        let budget = params.budget.map(|budget| budget.get().max(min_budget));
        let reserve = count.saturating_mul(last_pass);
        let backoff = (NO_PART, Backoff::new(Pacing::Jittered));
        let (pacing, notifications) = (Vec::new(), NotificationState::default());
        Self {
            list,
            shared,
            budget,
            calls_per_part: pass,
            reserve,
            pacing,
            backoff,
            notifications,
            is_contended,
        }
    }

    /// Sets the pauses of the waits, in the order of the parts; jittered for a part without an
    /// entry.
    pub(in crate::machine) fn with_pacing(self, pacing: Vec<Pacing>) -> Self {
        Self { pacing, ..self }
    }

    pub(in crate::machine) const fn shared(&self) -> &SharedState {
        &self.shared
    }

    pub(in crate::machine) fn iter(&self) -> impl DoubleEndedIterator<Item = (usize, &Part)> {
        self.list.iter().enumerate()
    }

    pub(in crate::machine) const fn count(&self) -> usize {
        self.list.len()
    }

    pub(in crate::machine) fn get(&self, index: usize) -> Option<&Part> {
        self.list.get(index)
    }

    /// Returns the indices of the parts that match.
    pub(in crate::machine) fn indices_where(&self, matches: &dyn Fn(&Part) -> bool) -> Vec<usize> {
        self.iter().filter(|(_, part)| matches(part)).map(|(index, _)| index).collect()
    }

    /// Whether a reply is due that sets the status of a part.
    pub(in crate::machine) fn has_pending_replies(&self) -> bool {
        self.list.iter().any(Part::awaits_reply)
    }

    pub(in crate::machine) fn is_wait_over(&self, now: Instant) -> bool {
        self.shared.is_wait_over(now)
    }

    /// Whether the budget suffices for a pass over `parts` parts and for the last pass after it.
    pub(in crate::machine) fn can_afford_pass(&self, parts: usize) -> bool {
        self.can_afford(self.calls_of_pass(parts).saturating_add(self.reserve))
    }

    /// The number of calls that a pass over `parts` parts reserves.
    fn calls_of_pass(&self, parts: usize) -> u32 {
        u32::try_from(parts).unwrap_or(u32::MAX).saturating_mul(self.calls_per_part)
    }

    /// Whether the budget suffices for `calls` calls in addition to those that the requests under
    /// way may still make.
    pub(in crate::machine) fn can_afford(&self, calls: u32) -> bool {
        self.unreserved_calls().is_none_or(|unreserved| unreserved >= calls)
    }

    /// The number of calls left in the budget that no request under way may need; `None` for no
    /// limit.
    fn unreserved_calls(&self) -> Option<u32> {
        let reserved: u32 = self.list.iter().map(Part::reserved_calls).sum();
        self.budget.map(|budget| budget.saturating_sub(self.shared.ids.calls() + reserved))
    }

    /// Returns the number of attempts for each of `parts` undoings: `wanted`, or fewer if the
    /// budget is short. One is always allowed, since [`Part::reserved_calls`] contains it.
    fn attempts(&self, wanted: u8, parts: usize) -> u8 {
        let parts = u32::try_from(parts.max(1)).unwrap_or(u32::MAX);
        let spare = self
            .unreserved_calls()
            .map_or(wanted, |unreserved| u8::try_from(unreserved / parts).unwrap_or(wanted));
        wanted.min(spare.saturating_add(1))
    }

    /// Sends a try to each of these parts. A refusal ends the owner of each, except that of the
    /// part at `awaited`: the machine waits for this part if it is refused, so its owner may join a
    /// queue. `max_attempt_time` limits the time of an attempt.
    pub(in crate::machine) fn send_tries(
        &mut self,
        indices: &[usize],
        last: bool,
        awaited: Option<usize>,
        max_attempt_time: Option<Duration>,
        now: Instant,
    ) {
        self.notifications.on_try(now);
        // Only a last try needs a second attempt: the wait repeats any other. With `again`, undoing
        // and try may happen twice.
        let calls = u32::try_from(indices.len()).unwrap_or(u32::MAX).saturating_mul(CALLS_PER_TRY);
        let reserve = if last { 0 } else { self.reserve };
        let attempts = if last && self.can_afford(calls) { LAST_TRY_ATTEMPTS } else { 1 };
        let again = self.can_afford(reserve + 2 * calls);
        let mut attempt_time = self.shared.attempt_time;
        if let Some(over) = self.shared.wait_deadline.filter(|_| !last) {
            // The last try follows the end of the wait, and must not be much later.
            attempt_time = attempt_time.min(now.until(over).max(MIN_ATTEMPT_TIME));
        }
        if let Some(max) = max_attempt_time {
            attempt_time = attempt_time.min(max.max(MIN_ATTEMPT_TIME));
        }
        let announces = self.is_contended || self.notifications.has_topic();
        for index in indices {
            let last = last || awaited != Some(*index);
            let options = TryOptions { last, attempts, attempt_time, again, announces };
            if let Some(part) = self.list.get_mut(*index) {
                part.send_try(options, &mut self.shared, now);
            }
        }
    }

    /// Applies `change` to the part at `index`.
    pub(in crate::machine) fn update(
        &mut self,
        index: usize,
        change: impl FnOnce(&mut Part, &mut SharedState),
    ) {
        if let Some(part) = self.list.get_mut(index) {
            change(part, &mut self.shared);
        }
    }

    /// Releases these parts.
    pub(in crate::machine) fn undo(&mut self, indices: &[usize]) {
        for index in indices {
            let attempts = self.attempts_at_undoing_one();
            self.update(*index, |part, shared| part.undo(attempts, shared));
        }
    }

    /// Releases a part whose owner is spent, and keeps its status.
    pub(in crate::machine) fn undo_if_spent(&mut self, index: usize) {
        let attempts = self.attempts_at_undoing_one();
        self.update(index, |part, shared| part.undo_if_spent(attempts, shared));
    }

    /// The number of attempts to undo one part during the wait: two if the budget suffices, else
    /// the reserved one.
    fn attempts_at_undoing_one(&self) -> u8 {
        if self.can_afford(self.reserve + 2) { 2 } else { 1 }
    }

    /// Releases all parts for good.
    pub(in crate::machine) fn undo_all(&mut self) {
        for index in 0..self.count() {
            // The parts from here on share the rest of the budget.
            let remaining = self.count() - index;
            let attempts = self.attempts(LAST_UNDO_ATTEMPTS, remaining);
            self.update(index, |part, shared| part.undo(attempts, shared));
        }
    }

    /// Returns the error to end with: `error`, or an unknown outcome if the release of more than
    /// `tolerated` parts is unconfirmed.
    pub(in crate::machine) fn end_error(
        &self,
        error: AcquireError,
        tolerated: usize,
        now: Instant,
    ) -> AcquireError {
        let lease = self.shared.lease;
        let unconfirmed = || self.list.iter().filter_map(|part| part.unconfirmed(lease, now));
        if unconfirmed().count() <= tolerated {
            return error;
        }
        let longest = unconfirmed().max_by_key(|(held_at_most, _)| *held_at_most);
        match (longest, error) {
            (Some((held_at_most, _)), AcquireError::Cancelled { .. }) => {
                AcquireError::Cancelled { held_at_most: Some(held_at_most) }
            }
            (Some((held_at_most, cause)), _) => AcquireError::Unknown { held_at_most, cause },
            (None, error) => error,
        }
    }

    /// Returns when to retry the awaited part, in a pass over `count` parts, and the reason. If a
    /// message came since the last try, it decides; otherwise the queue's hint, the silence timeout
    /// of the subscription, or the back-off does.
    pub(in crate::machine) fn next_retry(
        &mut self,
        awaited: usize,
        count: usize,
        now: Instant,
    ) -> (Instant, TimeoutReason) {
        // The rest of the budget is reserved for the last pass, at the end of the wait.
        if let Some(over) = self.shared.wait_deadline.filter(|_| !self.can_afford_pass(count)) {
            return (over, TimeoutReason::LastTry);
        }
        let pacing = self.pacing.get(awaited).copied().unwrap_or_default();
        if self.backoff.0 != awaited {
            self.backoff = (awaited, Backoff::new(pacing));
        }
        let spins = matches!(pacing, Pacing::Spin(_));
        let status = self.get(awaited).map(Part::status);
        let (remaining, queue_hint, topic) = match status {
            Some(PartStatus::Busy { remaining, queue_hint, topic }) => {
                (*remaining, *queue_hint, topic.clone())
            }
            _ => (None, None, None),
        };
        let retry_after = match status {
            Some(PartStatus::NoReply(kind)) => kind.retry_after(),
            _ => None,
        };
        let is_busy = matches!(status, Some(PartStatus::Busy { .. }));
        let silence = topic.filter(|_| !spins).and_then(|topic| {
            self.notifications.set_topic(Endpoint(awaited), topic);
            self.notifications.silence_timeout(&mut self.shared.ids)
        });
        if let Some(retry) =
            silence.and_then(|_| self.notifications.next_retry(&mut self.shared.ids, now))
        {
            return self.within_wait(retry);
        }
        let remaining = remaining.filter(|_| queue_hint.is_none() && !spins);
        let (min_step, over) = (self.min_step(count, is_busy, now), self.shared.wait_deadline);
        let (backoff, ids) = (&mut self.backoff.1, &mut self.shared.ids);
        next_try(
            RetryHints { queue: queue_hint, silence, remaining, retry_after },
            backoff,
            min_step,
            ids,
            over,
            now,
        )
    }

    /// Handles an input while a retry for the reason `why` is due. Returns the retry's new time and
    /// reason; `None` if they do not change.
    pub(in crate::machine) fn on_input(
        &mut self,
        input: &Input,
        why: TimeoutReason,
        now: Instant,
    ) -> Option<(Instant, TimeoutReason)> {
        let ids = &mut self.shared.ids;
        let next = match self.notifications.on_input(input, why, ids, now) {
            RetryDecision::Now | RetryDecision::Poll => (now, TimeoutReason::Notification),
            RetryDecision::At(until) => (until, TimeoutReason::Notification),
            // Another client has the lock, so the retry that a message caused would be in vain.
            RetryDecision::Defer(lease) if why == TimeoutReason::Notification => {
                let silence = self.notifications.silence_timeout(ids)?;
                (now + lease.map_or(silence, |lease| silence.min(lease)), TimeoutReason::Silence)
            }
            RetryDecision::Defer(_) | RetryDecision::Keep => return None,
        };
        Some(self.within_wait(next))
    }

    /// Limits the time of a retry to the end of the wait.
    fn within_wait(&self, (until, why): (Instant, TimeoutReason)) -> (Instant, TimeoutReason) {
        (self.shared.wait_deadline.map_or(until, |deadline| until.sooner(deadline)), why)
    }

    /// Returns [`Output::Subscribe`] for the topic of the awaited part, once for each topic.
    pub(in crate::machine) fn poll_subscription<T>(&mut self) -> Option<Output<T>> {
        self.notifications.poll()
    }

    /// Returns the shortest time between passes over `count` parts with which the budget lasts for
    /// the whole wait. A part that `is_busy` is expected to refuse again, in one call; otherwise a
    /// pass is expected to need all calls that it reserves.
    fn min_step(&self, count: usize, is_busy: bool, now: Instant) -> Duration {
        let reserved = self.calls_of_pass(count).max(1);
        let expected = if is_busy { reserved.div_ceil(self.calls_per_part) } else { reserved };
        let kept = self.reserve.saturating_add(reserved - expected);
        let left = self.unreserved_calls().map(|calls| calls.saturating_sub(kept));
        min_step(self.shared.wait_deadline, left.map(|left| left / expected), now)
    }

    /// Resets the back-off, since a part was granted.
    pub(in crate::machine) const fn reset_backoff(&mut self) {
        self.backoff = (NO_PART, Backoff::new(Pacing::Jittered));
    }

    pub(in crate::machine) fn handle(&mut self, input: &Input, now: Instant) {
        self.notifications.record(input);
        for part in &mut self.list {
            part.handle(input.clone(), &mut self.shared, now);
        }
    }

    /// Returns the next call, or the earliest timeout; `None` if no request is under way.
    pub(in crate::machine) fn poll<T>(&mut self, now: Instant) -> Option<Output<T>> {
        let mut first: Option<(Instant, TimeoutReason)> = None;
        for (index, part) in self.list.iter_mut().enumerate() {
            match part.poll::<T>(&mut self.shared, now) {
                Some(Output::Call { call, script, .. }) => {
                    return Some(Output::Call { call, to: Endpoint(index), script });
                }
                Some(Output::Timeout { until, why }) => {
                    first = Some(sooner(first, (until, why), now))
                }
                Some(Output::Subscribe { .. } | Output::Done(_)) | None => {}
            }
        }
        first.map(|(until, why)| Output::Timeout { until, why })
    }
}
