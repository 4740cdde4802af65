//! Taking several parts: all of them or none.
//!
//! ```text
//!   Asking (all) ──all granted────────────────────────────────────────────► Over(Ok)
//!     │  ▲
//!     │  └───────────────────granted: ask for all again──────┐
//!     └─refused: let go what comes after──► Pausing ──► Asking (the first refused) ─┐
//!                                              ▲                            refused │
//!                                              └────────────────────────────────────┘
//!   wait over, cancelled, a clear no: Ending (let go everything) ──► Over(Err)
//! ```
//!
//! **The rule:** keep what comes before the first refused part, wait for that one, and ask for
//! nothing else meanwhile. The parts have the same order for everybody, so whoever waits holds only
//! parts that come before the one it waits for: no two can wait for each other. What was kept
//! longer than the caller's patience is let go as well, and the wait goes on with empty hands: for
//! those who see another order.

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

/// What a lock of several parts is to be taken with. The place of a part is the endpoint of its
/// calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AcquireAllSpec {
    /// What to take, in the order that everybody keeps to.
    pub parts: Vec<Target>,
    /// How long the hold is to last.
    pub lease: LeaseTime,
    /// How long to wait for it.
    pub patience: WaitPolicy,
    /// How many calls may be made for all parts together; `None` for no limit. Two tries of each
    /// part and their undoing, for which six calls are put by, are made whatever it says.
    pub budget: Option<RequestBudget>,
    /// How long one attempt may take.
    pub attempt: AttemptTime,
    /// For how long parts are kept while another one is waited for.
    pub keeps: Duration,
    /// How many replicas must have the grant of each part; `None` to wait for none.
    pub replicas: Option<Replicas>,
    /// How a wait for each part is paced, in the order of the parts; a part that has none here is
    /// asked with jittered pauses. One that has a queue is asked as its queue tells.
    pub pacing: Vec<Pacing>,
    /// For each part the newest fencing token that is known to have been granted for it: who is
    /// granted an older one gives all back.
    pub newest: Vec<Option<FencingToken>>,
    /// Whether others are known to want one of them as well: what is granted is told to them even
    /// if it is had at once.
    pub is_contended: bool,
}

impl AcquireAllSpec {
    /// To take all of these, so patiently, and all else as most want it: [`LeaseTime::DEFAULT`],
    /// [`AttemptTime::DEFAULT`], parts that are kept for a second, jittered pauses, no budget, no
    /// replicas, nothing known of others.
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

/// A hold as it was granted, part by part in the order asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MultiGrant {
    /// One for each part.
    pub parts: Vec<MultiGrantPart>,
    /// The fencing token of the whole: of several parts, that of the first; of a majority, the one
    /// that is stored in each part that counts.
    pub token: FencingToken,
}

/// One part of a hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MultiGrantPart {
    /// Its grant. Of one that does not count: what releases it.
    pub grant: Grant,
    /// Whether it is a part of the hold. One that is not may have been granted, or may be granted
    /// late: it is to be released, and not to be believed in.
    pub counts: bool,
}

/// What one part costs in a round: a try, its undoing, and one more that may be needed when that is
/// not confirmed.
const ROUND: u32 = 3;
/// What one part costs at last: a try and its undoing; and one more for what was kept until then.
const LAST: u32 = 3;

/// The machine that takes several parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AcquireAll {
    parts: Parts,
    keeps: Duration,
    newest: Vec<Option<FencingToken>>,
    /// Until when the kept parts are kept.
    kept_until: Option<Instant>,
    /// Whether parts that were held for too long were asked to be extended already.
    extended: bool,
    /// What it asks is its last try, or not; a pause is followed by what the answers have left to
    /// do.
    stage: Stage<bool, ()>,
}

impl AcquireAll {
    /// Begins at `now`. `clocks` are what is known of the clocks of the parts' Redis, in the order
    /// of the parts; the first round of one whose clock is not known is unbounded (rule C3).
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

    /// The first part that is not held: the one that is waited for.
    fn first_missing(&self, now: Instant) -> Option<usize> {
        self.parts.iter().find(|(_, part)| part.held(now).is_none()).map(|(place, _)| place)
    }

    /// Asks for all that is missing. Only the first of it may wait in its queue: if it is refused,
    /// it is the one waited for.
    fn ask_all(&mut self, now: Instant) {
        let places = self.parts.places(|part| part.needs(now));
        let last = self.parts.is_wait_over(now) || !self.parts.afford_round_of(places.len());
        let queues = self.first_missing(now);
        self.parts.ask(&places, last, queues, None, now);
        (self.kept_until, self.stage) = (None, Stage::Asking(last));
    }

    /// Asks for the part that is waited for, and for those kept parts whose lease is to be renewed.
    fn ask_one(&mut self, place: usize, now: Instant) {
        let kept = self.parts.iter().take(place).filter(|(_, part)| part.held(now).is_some());
        let due = kept.filter(|(_, part)| part.needs(now));
        let places: Vec<usize> = due.map(|(place, _)| place).chain([place]).collect();
        if self.parts.is_wait_over(now) || !self.parts.afford_round_of(places.len()) {
            return self.ask_all(now);
        }
        // No longer than what is kept meanwhile may be kept.
        let longest = self.kept_until.map(|_| self.keeps);
        self.parts.ask(&places, false, Some(place), longest, now);
        self.stage = Stage::Asking(false);
    }

    /// All that was asked has been answered, or will not be.
    fn decide(&mut self, last: bool, now: Instant) {
        let refused = self.parts.iter().map(|(_, part)| part.status()).find(|no| no.is_final());
        if let Some(error) = refused.map(PartStatus::error) {
            return self.end(error);
        }
        match self.first_missing(now) {
            None => self.complete(last, now),
            // What was waited for is granted; this one was not asked for meanwhile.
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

    /// All are held: a hold, if enough of each lease is left.
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
            // Kept since the wait began: extended, the whole is as good as new.
            Some(_) if !self.extended && self.parts.afford_round_of(short.len()) => {
                self.extended = true;
                self.parts.ask(&short, last, None, None, now);
                self.stage = Stage::Asking(last);
            }
            _ => self.too_slow(last, now),
        }
    }

    /// The newest token that is known of a part that is held with an older one.
    fn fell(&self, now: Instant) -> Option<FencingToken> {
        let older = |(place, part): (usize, &Part)| {
            let newest = (*self.newest.get(place)?)?;
            part.held(now).filter(|(_, token)| *token < newest).map(|_| newest)
        };
        self.parts.iter().find_map(older)
    }

    /// Round trips take too much of the lease: begins anew, if the wait allows it.
    fn too_slow(&mut self, last: bool, now: Instant) {
        if last {
            return self.end(AcquireError::TooSlow);
        }
        self.extended = false;
        let all = self.parts.places(|_| true);
        self.parts.undo(&all);
        self.pause(0, now);
    }

    /// Keeps what comes before `place`, lets go what comes after it, and waits for it.
    fn refused(&mut self, place: usize, last: bool, now: Instant) {
        let Some(part) = self.parts.get(place) else { return };
        if last {
            let error = part.status().error();
            return self.end(error);
        }
        self.extended = false;
        // Refused without a place in the queue, which only the one that is waited for may take.
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

    /// Keeps the parts before `place`, but not for longer than patience allows.
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

    /// The part that the last answer said no to; `None` when there is none, and everything begins
    /// anew.
    fn waited_for(&self, now: Instant) -> Option<usize> {
        self.parts
            .iter()
            .find(|(_, part)| part.held(now).is_none() && *part.status() != PartStatus::Idle)
            .map(|(place, _)| place)
    }

    /// Lets everything go, and then says this.
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
