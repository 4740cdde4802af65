//! All parts of a machine, and what they may spend together.

use alloc::vec::Vec;
use core::time::Duration;

use super::super::backoff::{Backoff, Pacing, Told, next_try, stretch};
use super::super::ear::{Ear, Stir};
use super::super::ids::Ids;
use super::super::{Endpoint, Entropy, Input, Output, Wake, sooner, wait_over};
use super::part::Part;
use super::terms::{Ask, Common, Standing};
use crate::error::{AcquireError, FailureKind};
use crate::protocol::calls::Target;
use crate::protocol::reply::ServerClock;
use crate::time::Instant;
use crate::timing::{LeaseTime, Patience, Replicas, RequestBudget};

/// Attempts at a try that decides, and at undoing something.
const ATTEMPTS: u8 = 2;
const ATTEMPTS_AT_UNDOING: u8 = 3;
/// How far a try that is under way may reach beyond the end of the wait.
const OVERHANG: Duration = Duration::from_secs(1);
/// The place of what is waited for while it is no part in particular.
pub(in crate::machine) const NOTHING: usize = usize::MAX;

/// Parts side by side; the place of each is the endpoint of its calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::machine) struct Parts {
    list: Vec<Part>,
    common: Common,
    /// How many calls may be made; `None` for no limit.
    budget: Option<u32>,
    /// What a round costs for each part, and what the last one costs for all.
    round: u32,
    reserve: u32,
    /// How a wait for each is paced.
    pacing: Vec<Pacing>,
    /// What is waited for, and the pauses of that wait.
    backoff: (usize, Backoff),
    ear: Ear,
    /// Whether others are known to want one of them as well.
    is_crowded: bool,
}

/// What parts are made with.
pub(in crate::machine) struct Outline {
    pub(in crate::machine) lease: LeaseTime,
    pub(in crate::machine) patience: Patience,
    pub(in crate::machine) budget: Option<RequestBudget>,
    /// What a round costs for each part, and what the last one costs.
    pub(in crate::machine) round: u32,
    pub(in crate::machine) last_round: u32,
    pub(in crate::machine) attempt_time: Duration,
    pub(in crate::machine) replicas: Option<Replicas>,
    /// Whether others are known to want one of them as well.
    pub(in crate::machine) is_crowded: bool,
}

impl Parts {
    pub(in crate::machine) fn new(
        targets: Vec<Target>,
        outline: &Outline,
        entropy: Entropy,
        clocks: &[Option<ServerClock>],
        now: Instant,
    ) -> Self {
        let wait_over = wait_over(outline.patience, now);
        let Outline { lease, attempt_time, replicas, .. } = *outline;
        let ids = Ids::new(entropy);
        let mut common = Common { ids, owners: 0, lease, attempt_time, wait_over, replicas };
        let list: Vec<Part> = (0..)
            .zip(targets)
            .map(|(place, target)| {
                let clock = clocks.get::<usize>(place).copied().flatten();
                Part::new(target, clock, &mut common, now)
            })
            .collect();
        let count = u32::try_from(list.len()).unwrap_or(u32::MAX);
        let Outline { round, last_round, is_crowded, .. } = *outline;
        // So much may be spent, whatever the budget says: or it could not even be tried.
        let at_least = count.saturating_mul(round + last_round);
        let budget = outline.budget.map(|budget| budget.get().max(at_least));
        let reserve = count.saturating_mul(last_round);
        let backoff = (NOTHING, Backoff::new(Pacing::Jittered));
        let (pacing, ear) = (Vec::new(), Ear::default());
        Self { list, common, budget, round, reserve, pacing, backoff, ear, is_crowded }
    }

    /// The same where a wait for a part is paced so, in the order of the parts; one that has none
    /// is jittered.
    pub(in crate::machine) fn paced(self, pacing: Vec<Pacing>) -> Self {
        Self { pacing, ..self }
    }

    pub(in crate::machine) const fn common(&self) -> &Common {
        &self.common
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

    /// The places of those of which this holds.
    pub(in crate::machine) fn places(&self, of: impl Fn(&Part) -> bool) -> Vec<usize> {
        self.iter().filter(|(_, part)| of(part)).map(|(place, _)| place).collect()
    }

    /// Whether an answer is awaited that says how a part stands.
    pub(in crate::machine) fn are_asked(&self) -> bool {
        self.list.iter().any(Part::is_asked)
    }

    pub(in crate::machine) fn is_wait_over(&self, now: Instant) -> bool {
        self.common.is_wait_over(now)
    }

    /// Whether there is budget for a round of so many parts, and for the last one after it.
    pub(in crate::machine) fn afford_round_of(&self, parts: usize) -> bool {
        let round = u32::try_from(parts).unwrap_or(u32::MAX).saturating_mul(self.round);
        self.affords(round.saturating_add(self.reserve))
    }

    /// Whether so many more calls may be made, and what was begun be undone.
    pub(in crate::machine) fn affords(&self, calls: u32) -> bool {
        self.free().is_none_or(|free| free >= calls)
    }

    fn free(&self) -> Option<u32> {
        let owed: u32 = self.list.iter().map(Part::owes).sum();
        self.budget.map(|budget| budget.saturating_sub(self.common.ids.calls() + owed))
    }

    /// How often each of `among` requests may be sent on which something hangs.
    fn attempts(&self, wanted: u8, among: usize) -> u8 {
        let among = u32::try_from(among.max(1)).unwrap_or(u32::MAX);
        let spare = self.free().map_or(wanted, |free| u8::try_from(free / among).unwrap_or(wanted));
        wanted.min(spare.saturating_add(1))
    }

    /// Asks for these parts. `queues`: the place of the one that may wait in its queue.
    pub(in crate::machine) fn ask(
        &mut self,
        places: &[usize],
        last: bool,
        queues: Option<usize>,
        longest: Option<Duration>,
        now: Instant,
    ) {
        self.ear.asks(now);
        // A try that is not the last one is itself repeated by the wait.
        let calls = u32::try_from(places.len()).unwrap_or(u32::MAX);
        let reserve = if last { 0 } else { self.reserve };
        let attempts = if last && self.affords(calls * 4) { ATTEMPTS } else { 1 };
        let again = self.affords(reserve + calls * 8);
        let mut attempt_time = self.common.attempt_time;
        if let Some(over) = self.common.wait_over.filter(|_| !last) {
            // Not much beyond the end of the wait, which the last try follows.
            attempt_time = attempt_time.min(now.until(over).max(OVERHANG));
        }
        if let Some(longest) = longest {
            attempt_time = attempt_time.min(longest.max(OVERHANG));
        }
        let announces = self.is_crowded || self.ear.listens();
        for place in places {
            let last = last || queues != Some(*place);
            let ask = Ask { last, attempts, attempt_time, again, announces };
            if let Some(part) = self.list.get_mut(*place) {
                part.ask(ask, &mut self.common, now);
            }
        }
    }

    /// What changes one part.
    pub(in crate::machine) fn with(
        &mut self,
        place: usize,
        change: impl FnOnce(&mut Part, &mut Common),
    ) {
        if let Some(part) = self.list.get_mut(place) {
            change(part, &mut self.common);
        }
    }

    /// Lets these parts go.
    pub(in crate::machine) fn undo(&mut self, places: &[usize]) {
        for place in places {
            let attempts = self.attempts_at_undoing_one();
            self.with(*place, |part, common| part.undo(attempts, common));
        }
    }

    /// Lets a part go whose owner is of no use any more. How it stands is not forgotten.
    pub(in crate::machine) fn undo_if_spent(&mut self, place: usize) {
        let attempts = self.attempts_at_undoing_one();
        self.with(place, |part, common| part.undo_if_spent(attempts, common));
    }

    /// One more than what is put by for it, since it may be in vain.
    fn attempts_at_undoing_one(&self) -> u8 {
        if self.affords(self.reserve + 2) { 2 } else { 1 }
    }

    /// Lets all parts go, for good.
    pub(in crate::machine) fn undo_all(&mut self) {
        for place in 0..self.count() {
            let left = self.count() - place;
            let attempts = self.attempts(ATTEMPTS_AT_UNDOING, left);
            self.with(place, |part, common| part.undo(attempts, common));
        }
    }

    /// What is told at the end when the undoing of more than so many parts was not confirmed.
    pub(in crate::machine) fn ended(
        &self,
        error: AcquireError,
        tolerated: usize,
        now: Instant,
    ) -> AcquireError {
        let lease = self.common.lease;
        let residues = || self.list.iter().filter_map(|part| part.residue(lease, now));
        if residues().count() <= tolerated {
            return error;
        }
        let longest = residues().max_by_key(|(held_at_most, _)| *held_at_most);
        match (longest, error) {
            (Some((held_at_most, _)), AcquireError::Cancelled { .. }) => {
                AcquireError::Cancelled { held_at_most: Some(held_at_most) }
            }
            (Some((held_at_most, cause)), _) => AcquireError::Unknown { held_at_most, cause },
            (None, error) => error,
        }
    }

    /// When what is waited for is to be asked again, with `asked` parts, and why then.
    pub(in crate::machine) fn pause(
        &mut self,
        waits_for: usize,
        asked: usize,
        now: Instant,
    ) -> (Instant, Wake) {
        // Only the last try is left: it belongs to the end of the wait.
        if let Some(over) = self.common.wait_over.filter(|_| !self.afford_round_of(asked)) {
            return (over, Wake::LastTry);
        }
        let pacing = self.pacing.get(waits_for).copied().unwrap_or_default();
        if self.backoff.0 != waits_for {
            self.backoff = (waits_for, Backoff::new(pacing));
        }
        let spins = matches!(pacing, Pacing::Spin(_));
        let standing = self.get(waits_for).map(Part::standing);
        let (remaining, told, topic) = match standing {
            Some(Standing::Busy { remaining, told, topic }) => (*remaining, *told, topic.clone()),
            _ => (None, None, None),
        };
        let rest = match standing {
            Some(Standing::Unheard(kind)) => kind.retry_after(),
            _ => None,
        };
        let silence = topic.filter(|_| !spins).and_then(|topic| {
            self.ear.turn_to(Endpoint(waits_for), topic);
            self.ear.patience(&mut self.common.ids)
        });
        if let Some(turn) = silence.and_then(|_| self.ear.next(&mut self.common.ids, now)) {
            return self.within_wait(turn);
        }
        let remaining = remaining.filter(|_| told.is_none() && !spins);
        let (stretch, over) = (self.stretch(asked, now), self.common.wait_over);
        let (backoff, ids) = (&mut self.backoff.1, &mut self.common.ids);
        next_try(Told { queue: told, silence, remaining, rest }, backoff, stretch, ids, over, now)
    }

    /// What an input makes of a pause that was to last for this reason: when to ask again then, and
    /// why. `None`: nothing.
    pub(in crate::machine) fn hears(
        &mut self,
        input: &Input,
        why: Wake,
        now: Instant,
    ) -> Option<(Instant, Wake)> {
        let ids = &mut self.common.ids;
        let next = match self.ear.stirs(input, why, ids, now) {
            Stir::Ask | Stir::Deaf => (now, Wake::Turn),
            Stir::Turn(until) => (until, Wake::Turn),
            // It lets its turn pass.
            Stir::Calm(lease) if why == Wake::Turn => {
                let silence = self.ear.patience(ids)?;
                (now + lease.map_or(silence, |lease| silence.min(lease)), Wake::Silence)
            }
            Stir::Calm(_) | Stir::Nothing => return None,
        };
        Some(self.within_wait(next))
    }

    /// When to ask again, but not beyond the end of the wait.
    fn within_wait(&self, (until, why): (Instant, Wake)) -> (Instant, Wake) {
        (self.common.wait_over.map_or(until, |over| until.sooner(over)), why)
    }

    /// What is to be listened to, said once.
    pub(in crate::machine) fn listen<T>(&mut self) -> Option<Output<T>> {
        self.ear.poll()
    }

    /// The step that is long enough for the budget to last for the whole wait.
    fn stretch(&self, asked: usize, now: Instant) -> Duration {
        let round = u32::try_from(asked).unwrap_or(u32::MAX).saturating_mul(self.round);
        let free = self.free().map(|free| free.saturating_sub(self.reserve));
        let rounds = free.map(|free| free / round.max(1));
        stretch(self.common.wait_over, rounds, now)
    }

    /// The pauses begin anew: something has been granted.
    pub(in crate::machine) const fn rest(&mut self) {
        self.backoff = (NOTHING, Backoff::new(Pacing::Jittered));
    }

    pub(in crate::machine) fn handle(&mut self, input: &Input, now: Instant) {
        self.ear.takes(input);
        for part in &mut self.list {
            part.handle(input.clone(), &mut self.common, now);
        }
    }

    /// The next call, or for what the first of them waits. `None`: all are at rest.
    pub(in crate::machine) fn poll<T>(&mut self, now: Instant) -> Option<Output<T>> {
        let mut first: Option<(Instant, Wake)> = None;
        for (place, part) in self.list.iter_mut().enumerate() {
            match part.poll::<T>(&mut self.common, now) {
                Some(Output::Call { call, script, .. }) => {
                    return Some(Output::Call { call, to: Endpoint(place), script });
                }
                Some(Output::Wait { until, why }) => first = Some(sooner(first, (until, why), now)),
                Some(Output::Listen { .. } | Output::Done(_)) | None => {}
            }
        }
        first.map(|(until, why)| Output::Wait { until, why })
    }
}

impl Standing {
    /// What an acquisition ends with because of a part that stands so.
    pub(in crate::machine) fn error(&self) -> AcquireError {
        match self {
            Self::Busy { remaining, .. } | Self::Young { remaining } => {
                AcquireError::Busy { remaining: *remaining }
            }
            Self::Refused(refusal) => AcquireError::Refused(refusal.clone()),
            Self::NotReplicated(error) => error.clone(),
            Self::Unheard(kind) => AcquireError::Unreachable(*kind),
            Self::Apart | Self::Held { .. } | Self::TooSlow => AcquireError::TooSlow,
        }
    }

    /// A clear no that does not pass by itself.
    pub(in crate::machine) fn is_final(&self) -> bool {
        match self {
            Self::Refused(refusal) => !refusal.kind().is_transient(),
            other => matches!(other, Self::NotReplicated(_)),
        }
    }

    /// Why nothing was heard of the part.
    pub(in crate::machine) const fn silence(&self) -> Option<FailureKind> {
        if let Self::Unheard(kind) = self { Some(*kind) } else { None }
    }
}
