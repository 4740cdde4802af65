//! Acquires several parts: all of them or none.
//!
//! ```text
//!   Asking (all) ──all granted────────────────────────────────────────────► Over(Ok)
//!     │  ▲
//!     │  └───────────────────granted: retry all parts────────┐
//!     └─refused: release the parts after──► Pausing ──► Asking (the first refused) ─┐
//!                                              ▲                            refused │
//!                                              └────────────────────────────────────┘
//!   wait over, cancelled, refused for good: Ending (release all parts) ──► Over(Err)
//! ```
//!
//! **The rule:** keep the parts before the first refused one, wait for that one, and try no other
//! part meanwhile. All clients use the same order of parts, so a waiter holds only parts that come
//! before the one it waits for, and no two waiters can wait for each other. Parts held for longer
//! than `keeps` are released as well, and the wait goes on without them, in case another client
//! uses another order.

mod answer;
mod part;
mod parts;
mod stage;
mod terms;
mod turn;

use alloc::vec::Vec;
use core::time::Duration;

pub(super) use part::Part;
pub(super) use parts::{MultiConfig, NOTHING, Parts};
pub(super) use stage::{CANCELLED, InputTarget, Stage};
pub(super) use terms::PartStatus;

use super::{Entropy, Grant, Input, Machine, Output, Pacing, TimeoutReason, sooner};
use crate::error::AcquireError;
use crate::name::FencingToken;
use crate::protocol::calls::Target;
use crate::protocol::reply::ServerClock;
use crate::time::Instant;
use crate::timing::{AttemptTime, LeaseTime, Replicas, RequestBudget, WaitPolicy};

/// The parameters of an acquisition of several parts. The place of a part is the endpoint of its
/// calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AcquireAllSpec {
    /// The parts, in an order that all clients share.
    pub parts: Vec<Target>,
    /// The lease of the hold.
    pub lease: LeaseTime,
    /// How long to wait for the grant.
    pub patience: WaitPolicy,
    /// The largest number of calls for all parts together; `None` for no limit. Two tries of each
    /// part and their undoing, for which six calls are reserved, are made in any case.
    pub budget: Option<RequestBudget>,
    /// The longest time for one attempt.
    pub attempt: AttemptTime,
    /// How long parts are kept while the machine waits for another one.
    pub keeps: Duration,
    /// The number of replicas that must have the grant of each part; `None` to wait for none.
    pub replicas: Option<Replicas>,
    /// The pauses of the wait for each part, in the order of the parts; jittered for a part without
    /// an entry. A part with a queue is retried at the times that the queue sets.
    pub pacing: Vec<Pacing>,
    /// For each part, the newest fencing token known to have been granted for it. If a part is
    /// granted with an older one, all parts are given back.
    pub newest: Vec<Option<FencingToken>>,
    /// Whether other waiters are known to compete for a part: grants are then published even if the
    /// first try gets them.
    pub is_contended: bool,
}

impl AcquireAllSpec {
    /// Creates the parameters with the defaults: [`LeaseTime::DEFAULT`], [`AttemptTime::DEFAULT`],
    /// one second for `keeps`, jittered pauses, no budget, no replicas, no known tokens and no
    /// known contention.
    pub const fn new(parts: Vec<Target>, patience: WaitPolicy) -> Self {
        Self {
            parts,
            lease: LeaseTime::DEFAULT,
            patience,
            budget: None,
            attempt: AttemptTime::DEFAULT,
            keeps: Duration::from_secs(1),
            replicas: None,
            pacing: Vec::new(),
            newest: Vec::new(),
            is_contended: false,
        }
    }
}

/// The grant of a hold, part by part in the order of the parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MultiGrant {
    /// The grants of the parts.
    pub parts: Vec<MultiGrantPart>,
    /// The fencing token of the hold: that of the first part, or for a majority the one that each
    /// counting part stores.
    pub token: FencingToken,
}

/// One part of a hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MultiGrantPart {
    /// Its grant; for a part that does not count, the data to release it.
    pub grant: Grant,
    /// Whether it counts for the hold. A part that does not may have been granted, or may be
    /// granted late: release it, and do not rely on it.
    pub counts: bool,
}

/// Calls per part in a round: a try, its undoing, and one more in case that is not confirmed.
const ROUND: u32 = 3;
/// Calls per part in the last round: a try, its undoing, and one more for a part kept until then.
const LAST: u32 = 3;

/// The machine that acquires several parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AcquireAll {
    parts: Parts,
    keeps: Duration,
    newest: Vec<Option<FencingToken>>,
    /// When the parts that are kept have to be released.
    kept_until: Option<Instant>,
    /// Whether parts that were held for too long were already extended.
    extended: bool,
    /// The state while replies are due is whether this is the last try; the step after a pause
    /// follows from the status of the parts.
    stage: Stage<bool, ()>,
}

impl AcquireAll {
    /// Starts at `now`. `clocks` are the clocks of the parts' Redis, as last known, in the order of
    /// the parts; without its clock the first round of a part is unbounded (rule C3).
    pub fn new(
        spec: AcquireAllSpec,
        entropy: Entropy,
        clocks: Vec<Option<ServerClock>>,
        now: Instant,
    ) -> Self {
        let config = MultiConfig {
            lease: spec.lease,
            patience: spec.patience,
            budget: spec.budget,
            round: ROUND,
            last_round: LAST,
            attempt_time: spec.attempt.within(spec.lease),
            replicas: spec.replicas,
            is_contended: spec.is_contended,
        };
        let parts = Parts::new(spec.parts, &config, entropy, &clocks, now).paced(spec.pacing);
        let stage = Stage::Asking(false);
        let (keeps, newest) = (spec.keeps, spec.newest);
        let mut machine = Self { parts, keeps, newest, kept_until: None, extended: false, stage };
        machine.ask_all(now);
        machine
    }

    /// Returns the first part that is not held: the machine waits for it.
    fn first_missing(&self, now: Instant) -> Option<usize> {
        self.parts.iter().find(|(_, part)| part.held(now).is_none()).map(|(place, _)| place)
    }

    /// Tries all missing parts. Only the first of them may keep a seat in its queue: if it is
    /// refused, the machine waits for it.
    fn ask_all(&mut self, now: Instant) {
        let places = self.parts.places(|part| part.needs(now));
        let last = self.parts.is_wait_over(now) || !self.parts.afford_round_of(places.len());
        let queues = self.first_missing(now);
        self.parts.ask(&places, last, queues, None, now);
        (self.kept_until, self.stage) = (None, Stage::Asking(last));
    }

    /// Tries the part that the machine waits for, and extends the kept parts that are due.
    fn ask_one(&mut self, place: usize, now: Instant) {
        let kept = self.parts.iter().take(place).filter(|(_, part)| part.held(now).is_some());
        let due = kept.filter(|(_, part)| part.needs(now));
        let places: Vec<usize> = due.map(|(place, _)| place).chain([place]).collect();
        if self.parts.is_wait_over(now) || !self.parts.afford_round_of(places.len()) {
            return self.ask_all(now);
        }
        // Attempts take no longer than the other parts may be kept.
        let longest = self.kept_until.map(|_| self.keeps);
        self.parts.ask(&places, false, Some(place), longest, now);
        self.stage = Stage::Asking(false);
    }

    /// Decides the next step when no reply is due any more.
    fn decide(&mut self, last: bool, now: Instant) {
        let refused = self.parts.iter().map(|(_, part)| part.status()).find(|no| no.is_final());
        if let Some(error) = refused.map(PartStatus::error) {
            return self.end(error);
        }
        match self.first_missing(now) {
            None => self.complete(last, now),
            // The awaited part is granted; this one was not tried meanwhile.
            Some(place) if self.was_not_asked(place) => {
                self.parts.rest();
                self.ask_all(now);
            }
            Some(place) => self.refused(place, last, now),
        }
    }

    fn was_not_asked(&self, place: usize) -> bool {
        let status = self.parts.get(place).map(Part::status);
        matches!(status, Some(PartStatus::Idle | PartStatus::Held { .. }))
    }

    /// Ends with the hold if enough of each lease is left: all parts are held.
    fn complete(&mut self, last: bool, now: Instant) {
        let least = self.parts.shared().lease.validity_min();
        let short = self
            .parts
            .places(|part| part.held(now).is_none_or(|(lease, _)| lease.remaining(now) < least));
        if let Some(newest) = self.fell(now) {
            return self.end(AcquireError::TokenRegressed { newest: newest.as_u64() });
        }
        let token = self.parts.get(0).and_then(|part| part.held(now)).map(|(_, token)| token);
        match token {
            Some(token) if short.is_empty() => {
                let parts = self.parts.iter();
                let parts = parts.map(|(_, part)| MultiGrantPart {
                    grant: part.grant(self.parts.shared(), token),
                    counts: true,
                });
                self.stage = Stage::Over(Ok(MultiGrant { parts: parts.collect(), token }));
            }
            // Some were kept since the wait began: extended, the whole hold has its full lease.
            Some(_) if !self.extended && self.parts.afford_round_of(short.len()) => {
                self.extended = true;
                self.parts.ask(&short, last, None, None, now);
                self.stage = Stage::Asking(last);
            }
            _ => self.too_slow(last, now),
        }
    }

    /// Returns the newest known token of a part that was granted with an older one.
    fn fell(&self, now: Instant) -> Option<FencingToken> {
        let older = |(place, part): (usize, &Part)| {
            let newest = (*self.newest.get(place)?)?;
            part.held(now).filter(|(_, token)| *token < newest).map(|_| newest)
        };
        self.parts.iter().find_map(older)
    }

    /// Round trips take too much of the lease: releases all parts, and starts again if the wait
    /// allows it.
    fn too_slow(&mut self, last: bool, now: Instant) {
        if last {
            return self.end(AcquireError::TooSlow);
        }
        self.extended = false;
        let all = self.parts.places(|_| true);
        self.parts.undo(&all);
        self.pause(0, now);
    }

    /// Keeps the parts before `place`, releases those after it, and waits for it.
    fn refused(&mut self, place: usize, last: bool, now: Instant) {
        let Some(part) = self.parts.get(place) else { return };
        if last {
            let error = part.status().error();
            return self.end(error);
        }
        self.extended = false;
        // It was refused without a seat in its queue, which only the awaited part may take.
        let joins = part.was_turned_away();
        self.parts.undo_if_spent(place);
        let after: Vec<usize> = (place + 1..self.parts.count()).collect();
        self.parts.undo(&after);
        self.keep(place, now);
        if joins && self.parts.afford_round_of(place + 1) {
            self.ask_one(place, now);
        } else {
            self.pause(place, now);
        }
    }

    /// Keeps the parts before `place`, but not for longer than `keeps`.
    fn keep(&mut self, place: usize, now: Instant) {
        let until = *self.kept_until.get_or_insert(now + self.keeps);
        if now.has_reached(until) {
            let before: Vec<usize> = (0..place).collect();
            self.parts.undo(&before);
        }
        let keeps_some = self.parts.iter().take(place).any(|(_, part)| part.held(now).is_some());
        if !keeps_some {
            self.kept_until = None;
        }
    }

    fn pause(&mut self, place: usize, now: Instant) {
        let (until, why) = self.parts.pause(place, 1, now);
        self.pause_until(until, why, now);
    }

    fn pause_until(&mut self, mut until: Instant, mut why: TimeoutReason, now: Instant) {
        if let Some(kept) = self.kept_until.filter(|kept| until.has_reached(*kept)) {
            (until, why) = (kept, TimeoutReason::BackOff);
        }
        if now.has_reached(until) {
            return self.woken(now);
        }
        self.stage = Stage::Pausing { until, why, then: () };
    }

    fn woken(&mut self, now: Instant) {
        match self.waited_for(now) {
            Some(place) => self.ask_one(place, now),
            None => self.ask_all(now),
        }
    }

    /// Returns the part that was refused last; `None` if there is none, and all parts are tried
    /// again.
    fn waited_for(&self, now: Instant) -> Option<usize> {
        self.parts
            .iter()
            .find(|(_, part)| part.held(now).is_none() && *part.status() != PartStatus::Idle)
            .map(|(place, _)| place)
    }

    /// Releases all parts, then ends with `error`.
    fn end(&mut self, error: AcquireError) {
        self.parts.undo_all();
        self.stage = Stage::Ending(error);
    }
}

impl Machine for AcquireAll {
    type Outcome = Result<MultiGrant, AcquireError>;

    fn handle(&mut self, input: Input, now: Instant) {
        match self.stage.hears(&input) {
            InputTarget::Nothing => return,
            InputTarget::All => return self.end(CANCELLED),
            InputTarget::Parts => self.parts.handle(&input, now),
        }
        match self.stage {
            Stage::Asking(last) if !self.parts.are_asked() => self.decide(last, now),
            Stage::Pausing { until, .. } if now.has_reached(until) => self.woken(now),
            Stage::Pausing { why, .. } => {
                if let Some((until, why)) = self.parts.hears(&input, why, now) {
                    self.pause_until(until, why, now);
                }
            }
            Stage::Asking(_) | Stage::Ending(_) | Stage::Over(_) => {}
        }
    }

    fn poll(&mut self, now: Instant) -> Output<Self::Outcome> {
        self.stage.poll(&mut self.parts, 0, now)
    }
}
