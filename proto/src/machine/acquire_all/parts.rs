//! The parts of a machine, their common budget of calls, and the pauses of the wait for one of
//! them.

use alloc::vec::Vec;
use core::time::Duration;

use super::super::backoff::{Backoff, Pacing, RetryHints, min_step, next_try};
use super::super::ids::Ids;
use super::super::notification_state::{NotificationState, RetryDecision};
use super::super::{
    AcquireParams, Endpoint, Entropy, Input, Output, TimeoutReason, sooner, wait_over,
};
use super::part::Part;
use super::terms::{PartStatus, SharedState, TryOptions};
use crate::error::{AcquireError, FailureKind};
use crate::protocol::calls::Target;
use crate::protocol::reply::ServerClock;
use crate::time::Instant;

/// Attempts of a last try, which no later try repeats.
const ATTEMPTS: u8 = 2;
/// Attempts of the undoing that ends the machine: a hold that it leaves lasts for its whole lease.
const ATTEMPTS_AT_UNDOING: u8 = 3;
/// The least time for an attempt whose time is cut to the end of the wait or to `keep_time`.
const OVERHANG: Duration = Duration::from_secs(1);
/// The awaited place of a machine that waits for no part in particular.
pub(in crate::machine) const NOTHING: usize = usize::MAX;

/// The parts of a machine; the place of each is the endpoint of its calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::machine) struct Parts {
    list: Vec<Part>,
    shared: SharedState,
    /// The largest number of calls of the whole acquisition; `None` for no limit.
    budget: Option<u32>,
    /// The calls that a round reserves for each part in it.
    round: u32,
    /// The calls reserved for the last round, for all parts together.
    reserve: u32,
    /// How the wait for each part paces its tries.
    pacing: Vec<Pacing>,
    /// The place of the awaited part, and the back-off of that wait.
    backoff: (usize, Backoff),
    notifications: NotificationState,
    /// Whether other waiters are known to compete for a part: grants are then published.
    is_contended: bool,
}

/// The calls reserved per part.
#[derive(Clone, Copy)]
pub(in crate::machine) struct ReservedCalls {
    /// For a round.
    pub(in crate::machine) round: u32,
    /// For the last round.
    pub(in crate::machine) last_round: u32,
}

impl Parts {
    pub(in crate::machine) fn new(
        targets: Vec<Target>,
        params: &AcquireParams<()>,
        attempt_time: Duration,
        ReservedCalls { round, last_round }: ReservedCalls,
        entropy: Entropy,
        clocks: &[Option<ServerClock>],
        now: Instant,
    ) -> Self {
        let AcquireParams { lease, wait, replicas, is_contended, .. } = *params;
        let wait_over = wait_over(wait, now);
        let ids = Ids::new(entropy);
        let mut shared = SharedState { ids, owners: 0, lease, attempt_time, wait_over, replicas };
        let list: Vec<Part> = (0..)
            .zip(targets)
            .map(|(place, target)| {
                let clock = clocks.get::<usize>(place).copied().flatten();
                Part::new(target, clock, &mut shared, now)
            })
            .collect();
        let count = u32::try_from(list.len()).unwrap_or(u32::MAX);
        // The least budget of one round and the last one, whatever the caller's budget is: with
        // less, no try would be possible.
        let at_least = count.saturating_mul(round + last_round);
        let budget = params.budget.map(|budget| budget.get().max(at_least));
        let reserve = count.saturating_mul(last_round);
        let backoff = (NOTHING, Backoff::new(Pacing::Jittered));
        let (pacing, notifications) = (Vec::new(), NotificationState::default());
        Self { list, shared, budget, round, reserve, pacing, backoff, notifications, is_contended }
    }

    /// Sets the pauses of the waits, in the order of the parts; jittered for a part without an
    /// entry.
    pub(in crate::machine) fn paced(self, pacing: Vec<Pacing>) -> Self {
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

    pub(in crate::machine) fn get(&self, place: usize) -> Option<&Part> {
        self.list.get(place)
    }

    /// Returns the places of the parts that match `of`.
    pub(in crate::machine) fn places(&self, of: impl Fn(&Part) -> bool) -> Vec<usize> {
        self.iter().filter(|(_, part)| of(part)).map(|(place, _)| place).collect()
    }

    /// Whether a reply is due that sets the status of a part.
    pub(in crate::machine) fn await_replies(&self) -> bool {
        self.list.iter().any(Part::awaits_reply)
    }

    pub(in crate::machine) fn is_wait_over(&self, now: Instant) -> bool {
        self.shared.is_wait_over(now)
    }

    /// Whether the budget has room for a round of `parts` parts and for the last round after it.
    pub(in crate::machine) fn afford_round_of(&self, parts: usize) -> bool {
        let round = u32::try_from(parts).unwrap_or(u32::MAX).saturating_mul(self.round);
        self.affords(round.saturating_add(self.reserve))
    }

    /// Whether the budget has room for `calls` more calls, besides those reserved for requests
    /// begun.
    pub(in crate::machine) fn affords(&self, calls: u32) -> bool {
        self.free().is_none_or(|free| free >= calls)
    }

    fn free(&self) -> Option<u32> {
        let owed: u32 = self.list.iter().map(Part::reserved_calls).sum();
        self.budget.map(|budget| budget.saturating_sub(self.shared.ids.calls() + owed))
    }

    /// Returns the attempts of each of `among` undoings: `wanted`, or fewer if the budget is short.
    /// One is always allowed, since `reserved_calls` contains it.
    fn attempts(&self, wanted: u8, among: usize) -> u8 {
        let among = u32::try_from(among.max(1)).unwrap_or(u32::MAX);
        let spare = self.free().map_or(wanted, |free| u8::try_from(free / among).unwrap_or(wanted));
        wanted.min(spare.saturating_add(1))
    }

    /// Tries these parts. Only the owner of the part at `queues` outlives a refusal, and may so
    /// keep a place in a queue. `longest` limits the time of an attempt.
    pub(in crate::machine) fn send_tries(
        &mut self,
        places: &[usize],
        last: bool,
        queues: Option<usize>,
        longest: Option<Duration>,
        now: Instant,
    ) {
        self.notifications.on_try(now);
        // Any but the last try needs no second attempt: the wait tries again. For each part, a try
        // with two attempts and the undoing of a spent owner before it take up to four calls, and
        // `again` takes them twice.
        let calls = u32::try_from(places.len()).unwrap_or(u32::MAX);
        let reserve = if last { 0 } else { self.reserve };
        let attempts = if last && self.affords(calls * 4) { ATTEMPTS } else { 1 };
        let again = self.affords(reserve + calls * 8);
        let mut attempt_time = self.shared.attempt_time;
        if let Some(over) = self.shared.wait_over.filter(|_| !last) {
            // The last try follows the end of the wait, and must not be much later.
            attempt_time = attempt_time.min(now.until(over).max(OVERHANG));
        }
        if let Some(longest) = longest {
            attempt_time = attempt_time.min(longest.max(OVERHANG));
        }
        let announces = self.is_contended || self.notifications.has_topic();
        for place in places {
            let last = last || queues != Some(*place);
            let options = TryOptions { last, attempts, attempt_time, again, announces };
            if let Some(part) = self.list.get_mut(*place) {
                part.send_try(options, &mut self.shared, now);
            }
        }
    }

    /// Changes one part.
    pub(in crate::machine) fn with(
        &mut self,
        place: usize,
        change: impl FnOnce(&mut Part, &mut SharedState),
    ) {
        if let Some(part) = self.list.get_mut(place) {
            change(part, &mut self.shared);
        }
    }

    /// Releases these parts.
    pub(in crate::machine) fn undo(&mut self, places: &[usize]) {
        for place in places {
            let attempts = self.attempts_at_undoing_one();
            self.with(*place, |part, shared| part.undo(attempts, shared));
        }
    }

    /// Releases a part whose owner is spent, and keeps its status.
    pub(in crate::machine) fn undo_if_spent(&mut self, place: usize) {
        let attempts = self.attempts_at_undoing_one();
        self.with(place, |part, shared| part.undo_if_spent(attempts, shared));
    }

    /// The attempts to undo one part during the wait: two if the budget has room, else the reserved
    /// one.
    fn attempts_at_undoing_one(&self) -> u8 {
        if self.affords(self.reserve + 2) { 2 } else { 1 }
    }

    /// Releases all parts for good.
    pub(in crate::machine) fn undo_all(&mut self) {
        for place in 0..self.count() {
            let left = self.count() - place;
            let attempts = self.attempts(ATTEMPTS_AT_UNDOING, left);
            self.with(place, |part, shared| part.undo(attempts, shared));
        }
    }

    /// Returns the error to end with: `error`, or an unknown outcome if the release of more than
    /// `tolerated` parts is unconfirmed.
    pub(in crate::machine) fn ended(
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

    /// Returns when to retry the awaited part, in a round of `count` parts, and the reason. A
    /// message since the last try comes first; without one, the queue, the trust in a subscription,
    /// or the back-off decides.
    pub(in crate::machine) fn pause(
        &mut self,
        waits_for: usize,
        count: usize,
        now: Instant,
    ) -> (Instant, TimeoutReason) {
        // The budget has room only for the last try, which is sent at the end of the wait.
        if let Some(over) = self.shared.wait_over.filter(|_| !self.afford_round_of(count)) {
            return (over, TimeoutReason::LastTry);
        }
        let pacing = self.pacing.get(waits_for).copied().unwrap_or_default();
        if self.backoff.0 != waits_for {
            self.backoff = (waits_for, Backoff::new(pacing));
        }
        let spins = matches!(pacing, Pacing::Spin(_));
        let status = self.get(waits_for).map(Part::status);
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
        let silence = topic.filter(|_| !spins).and_then(|topic| {
            self.notifications.set_topic(Endpoint(waits_for), topic);
            self.notifications.silence_timeout(&mut self.shared.ids)
        });
        if let Some(turn) =
            silence.and_then(|_| self.notifications.next_retry(&mut self.shared.ids, now))
        {
            return self.within_wait(turn);
        }
        let remaining = remaining.filter(|_| queue_hint.is_none() && !spins);
        let (min_step, over) = (self.min_step(count, now), self.shared.wait_over);
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

    /// Handles an input during a pause with this reason. Returns the new time of the retry and its
    /// reason; `None` if the pause does not change.
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
        (self.shared.wait_over.map_or(until, |over| until.sooner(over)), why)
    }

    /// Returns [`Output::Subscribe`] for the awaited part, once.
    pub(in crate::machine) fn listen<T>(&mut self) -> Option<Output<T>> {
        self.notifications.poll()
    }

    /// Returns the least step with which the budget lasts for the whole wait.
    fn min_step(&self, count: usize, now: Instant) -> Duration {
        let round = u32::try_from(count).unwrap_or(u32::MAX).saturating_mul(self.round);
        let free = self.free().map(|free| free.saturating_sub(self.reserve));
        let rounds = free.map(|free| free / round.max(1));
        min_step(self.shared.wait_over, rounds, now)
    }

    /// Resets the back-off, since a part was granted.
    pub(in crate::machine) const fn reset_backoff(&mut self) {
        self.backoff = (NOTHING, Backoff::new(Pacing::Jittered));
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
        for (place, part) in self.list.iter_mut().enumerate() {
            match part.poll::<T>(&mut self.shared, now) {
                Some(Output::Call { call, script, .. }) => {
                    return Some(Output::Call { call, to: Endpoint(place), script });
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

impl PartStatus {
    /// The error of an acquisition that ends because of a part with this status.
    pub(in crate::machine) fn error(&self) -> AcquireError {
        match self {
            Self::Busy { remaining, .. } | Self::Young { remaining } => {
                AcquireError::Busy { remaining: *remaining }
            }
            Self::Refused(refusal) => AcquireError::Refused(refusal.clone()),
            Self::NotReplicated(error) => error.clone(),
            Self::NoReply(kind) => AcquireError::Unreachable(*kind),
            Self::Idle | Self::Held { .. } | Self::TooSlow => AcquireError::TooSlow,
        }
    }

    /// Whether it is a refusal that does not pass by itself.
    pub(in crate::machine) fn is_final(&self) -> bool {
        match self {
            Self::Refused(refusal) => !refusal.kind().is_transient(),
            other => matches!(other, Self::NotReplicated(_)),
        }
    }

    /// The failure that replaced a usable reply; `None` for all other statuses.
    pub(in crate::machine) const fn silence(&self) -> Option<FailureKind> {
        if let Self::NoReply(kind) = self { Some(*kind) } else { None }
    }
}
