//! The parts of a machine, and their common budget.

use alloc::vec::Vec;
use core::time::Duration;

use super::super::backoff::{Backoff, Pacing, RetryHints, min_step, next_try};
use super::super::ids::Ids;
use super::super::notification_state::{NotificationState, RetryDecision};
use super::super::{Endpoint, Entropy, Input, Output, TimeoutReason, sooner, wait_over};
use super::part::Part;
use super::terms::{Ask, PartStatus, SharedState};
use crate::error::{AcquireError, FailureKind};
use crate::protocol::calls::Target;
use crate::protocol::reply::ServerClock;
use crate::time::Instant;
use crate::timing::{LeaseTime, Replicas, RequestBudget, WaitPolicy};

/// Attempts for a last try, and for undoing.
const ATTEMPTS: u8 = 2;
const ATTEMPTS_AT_UNDOING: u8 = 3;
/// How far a try that is under way may reach beyond the end of the wait.
const OVERHANG: Duration = Duration::from_secs(1);
/// The place to wait for when the machine waits for no part in particular.
pub(in crate::machine) const NOTHING: usize = usize::MAX;

/// The parts of a machine; the place of each is the endpoint of its calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::machine) struct Parts {
    list: Vec<Part>,
    shared: SharedState,
    /// The largest number of calls; `None` for no limit.
    budget: Option<u32>,
    /// The calls reserved for a round per part, and for the last round of all parts.
    round: u32,
    reserve: u32,
    /// The pauses of the wait for each part.
    pacing: Vec<Pacing>,
    /// The place of the awaited part, and the back-off of that wait.
    backoff: (usize, Backoff),
    notifications: NotificationState,
    /// Whether other waiters are known to compete for a part.
    is_contended: bool,
}

/// The parameters of all parts.
pub(in crate::machine) struct MultiConfig {
    pub(in crate::machine) lease: LeaseTime,
    pub(in crate::machine) patience: WaitPolicy,
    pub(in crate::machine) budget: Option<RequestBudget>,
    /// The calls reserved per part for a round, and for the last round.
    pub(in crate::machine) round: u32,
    pub(in crate::machine) last_round: u32,
    pub(in crate::machine) attempt_time: Duration,
    pub(in crate::machine) replicas: Option<Replicas>,
    /// Whether other waiters are known to compete for a part.
    pub(in crate::machine) is_contended: bool,
}

impl Parts {
    pub(in crate::machine) fn new(
        targets: Vec<Target>,
        config: &MultiConfig,
        entropy: Entropy,
        clocks: &[Option<ServerClock>],
        now: Instant,
    ) -> Self {
        let wait_over = wait_over(config.patience, now);
        let MultiConfig { lease, attempt_time, replicas, .. } = *config;
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
        let MultiConfig { round, last_round, is_contended, .. } = *config;
        // The least budget of one round and the last one, whatever the caller's budget is: with
        // less, no try would be possible.
        let at_least = count.saturating_mul(round + last_round);
        let budget = config.budget.map(|budget| budget.get().max(at_least));
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
    pub(in crate::machine) fn are_asked(&self) -> bool {
        self.list.iter().any(Part::is_asked)
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

    /// Attempts for each of `among` requests that decide something: `wanted`, or fewer if the
    /// budget is short, but at least one.
    fn attempts(&self, wanted: u8, among: usize) -> u8 {
        let among = u32::try_from(among.max(1)).unwrap_or(u32::MAX);
        let spare = self.free().map_or(wanted, |free| u8::try_from(free / among).unwrap_or(wanted));
        wanted.min(spare.saturating_add(1))
    }

    /// Tries these parts. `queues` is the place of the one that may keep a seat in its queue.
    pub(in crate::machine) fn ask(
        &mut self,
        places: &[usize],
        last: bool,
        queues: Option<usize>,
        longest: Option<Duration>,
        now: Instant,
    ) {
        self.notifications.asks(now);
        // A try that is not the last one is itself repeated by the wait.
        let calls = u32::try_from(places.len()).unwrap_or(u32::MAX);
        let reserve = if last { 0 } else { self.reserve };
        let attempts = if last && self.affords(calls * 4) { ATTEMPTS } else { 1 };
        let again = self.affords(reserve + calls * 8);
        let mut attempt_time = self.shared.attempt_time;
        if let Some(over) = self.shared.wait_over.filter(|_| !last) {
            // Not much beyond the end of the wait, which the last try follows.
            attempt_time = attempt_time.min(now.until(over).max(OVERHANG));
        }
        if let Some(longest) = longest {
            attempt_time = attempt_time.min(longest.max(OVERHANG));
        }
        let announces = self.is_contended || self.notifications.listens();
        for place in places {
            let last = last || queues != Some(*place);
            let ask = Ask { last, attempts, attempt_time, again, announces };
            if let Some(part) = self.list.get_mut(*place) {
                part.ask(ask, &mut self.shared, now);
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

    /// One attempt more than the reserved one if the budget has room, since it may fail.
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

    /// Returns when to retry the awaited part, in a round of `asked` parts, and the reason.
    pub(in crate::machine) fn pause(
        &mut self,
        waits_for: usize,
        asked: usize,
        now: Instant,
    ) -> (Instant, TimeoutReason) {
        // The budget has room only for the last try, which is sent at the end of the wait.
        if let Some(over) = self.shared.wait_over.filter(|_| !self.afford_round_of(asked)) {
            return (over, TimeoutReason::LastTry);
        }
        let pacing = self.pacing.get(waits_for).copied().unwrap_or_default();
        if self.backoff.0 != waits_for {
            self.backoff = (waits_for, Backoff::new(pacing));
        }
        let spins = matches!(pacing, Pacing::Spin(_));
        let status = self.get(waits_for).map(Part::status);
        let (remaining, told, topic) = match status {
            Some(PartStatus::Busy { remaining, told, topic }) => (*remaining, *told, topic.clone()),
            _ => (None, None, None),
        };
        let rest = match status {
            Some(PartStatus::Unheard(kind)) => kind.retry_after(),
            _ => None,
        };
        let silence = topic.filter(|_| !spins).and_then(|topic| {
            self.notifications.turn_to(Endpoint(waits_for), topic);
            self.notifications.patience(&mut self.shared.ids)
        });
        if let Some(turn) = silence.and_then(|_| self.notifications.next(&mut self.shared.ids, now))
        {
            return self.within_wait(turn);
        }
        let remaining = remaining.filter(|_| told.is_none() && !spins);
        let (min_step, over) = (self.min_step(asked, now), self.shared.wait_over);
        let (backoff, ids) = (&mut self.backoff.1, &mut self.shared.ids);
        next_try(
            RetryHints { queue: told, silence, remaining, rest },
            backoff,
            min_step,
            ids,
            over,
            now,
        )
    }

    /// Handles an input during a pause with this reason. Returns the new time of the retry and its
    /// reason; `None` if the pause does not change.
    pub(in crate::machine) fn hears(
        &mut self,
        input: &Input,
        why: TimeoutReason,
        now: Instant,
    ) -> Option<(Instant, TimeoutReason)> {
        let ids = &mut self.shared.ids;
        let next = match self.notifications.on_input(input, why, ids, now) {
            RetryDecision::Now | RetryDecision::Poll => (now, TimeoutReason::Turn),
            RetryDecision::At(until) => (until, TimeoutReason::Turn),
            // Another client has the lock, so this waiter skips its retry.
            RetryDecision::Defer(lease) if why == TimeoutReason::Turn => {
                let silence = self.notifications.patience(ids)?;
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

    /// Returns the subscription that the awaited part needs, once.
    pub(in crate::machine) fn listen<T>(&mut self) -> Option<Output<T>> {
        self.notifications.poll()
    }

    /// Returns the least step with which the budget lasts for the whole wait.
    fn min_step(&self, asked: usize, now: Instant) -> Duration {
        let round = u32::try_from(asked).unwrap_or(u32::MAX).saturating_mul(self.round);
        let free = self.free().map(|free| free.saturating_sub(self.reserve));
        let rounds = free.map(|free| free / round.max(1));
        min_step(self.shared.wait_over, rounds, now)
    }

    /// Resets the back-off, since a part was granted.
    pub(in crate::machine) const fn rest(&mut self) {
        self.backoff = (NOTHING, Backoff::new(Pacing::Jittered));
    }

    pub(in crate::machine) fn handle(&mut self, input: &Input, now: Instant) {
        self.notifications.takes(input);
        for part in &mut self.list {
            part.handle(input.clone(), &mut self.shared, now);
        }
    }

    /// Returns the next call or the earliest timeout; `None` if no part has anything to do.
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
            Self::Unheard(kind) => AcquireError::Unreachable(*kind),
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

    /// The failure because of which there was no usable reply, if so.
    pub(in crate::machine) const fn silence(&self) -> Option<FailureKind> {
        if let Self::Unheard(kind) = self { Some(*kind) } else { None }
    }
}
