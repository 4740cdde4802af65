//! Acquires several locks or other objects, the *parts*: all of them or none (a multi-lock). Each
//! part has its own owner and may be on its own gateway. `AcquireQuorum` uses the same parts.
//!
//! ```text
//!   Requesting (all) ──all granted────────────────────────────────────────► Over(Ok)
//!     │  ▲
//!     │  └──────────────────granted: try missing parts───────┐
//!     └─refused: release the parts after──► Pausing ──► Requesting (the first) ─────┐
//!                                              ▲                            refused │
//!                                              └────────────────────────────────────┘
//!   wait over, cancelled, refused for good: Ending (release all parts) ──► Over(Err)
//! ```
//!
//! **The rule:** keep the parts before the first refused one, wait for that one, and try no other
//! part meanwhile. All clients use the same order of parts, so a waiter holds only parts that come
//! before the one it waits for, and no two waiters can wait for each other. Parts held for longer
//! than `keep_time` are released as well, and the wait goes on without them, in case another client
//! uses another order.

mod answer;
mod part;
mod parts;
mod stage;
mod terms;

use alloc::vec::Vec;
use core::time::Duration;

pub(super) use part::Part;
pub(super) use parts::{NO_PART, Parts, ReservedCalls};
pub(super) use stage::Stage;
pub(super) use terms::PartStatus;

use super::{
    AcquireAllSpec, AllTargets, Entropy, Grant, Input, Machine, Output, TimeoutReason, sooner,
};
use crate::error::AcquireError;
use crate::name::FencingToken;
use crate::protocol::reply::ServerClock;
use crate::time::Instant;

/// The grant of a hold, part by part in the order of the parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MultiGrant {
    /// The grants of the parts.
    pub parts: Vec<MultiGrantPart>,
    /// The fencing token of the hold. For [`AcquireAll`] it is the token of the first part; for a
    /// quorum it is the one token that all parts with `counts` store.
    pub token: FencingToken,
}

/// One part of a hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MultiGrantPart {
    /// The grant of the part; for a part without `counts`, the data to release it.
    pub grant: Grant,
    /// Whether the part counts for the hold; always true for [`AcquireAll`]. A part that does not
    /// count may have been granted, or may be granted late: release it, and do not rely on it.
    pub counts: bool,
}

/// The calls of one part. In a pass: a try, its undoing, and a second undoing in case the first is
/// not confirmed. In the last pass: the undoing of an owner kept until then, a try, its undoing.
const RESERVED: ReservedCalls = ReservedCalls { pass: 3, last_pass: 3 };

/// The machine that acquires several parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AcquireAll {
    parts: Parts,
    /// How long the parts before the awaited one are kept, from the first refusal.
    keep_time: Duration,
    /// For each part, the newest token that the caller knows of.
    newest_tokens: Vec<Option<FencingToken>>,
    /// When the kept parts are released, if any are kept.
    kept_until: Option<Instant>,
    /// Whether short leases were already extended since all parts were held. That happens only
    /// once: if it is not enough, round trips take too long for this lease.
    extended: bool,
    /// `Requesting(true)` during the last pass. `Pausing` stores no next step: it follows from the
    /// status of the parts.
    stage: Stage<bool, ()>,
}

impl AcquireAll {
    /// Starts at `now`, and tries all parts. `clocks` are the clocks of the parts' Redis, as last
    /// known, in the order of the parts. Without its clock, a part's first owner has no `not_after`
    /// (rule C3 of the protocol).
    pub fn new(
        spec: AcquireAllSpec,
        entropy: Entropy,
        clocks: Vec<Option<ServerClock>>,
        now: Instant,
    ) -> Self {
        let (targets, params) = spec.split();
        let AllTargets { parts, keep_time, pacing, newest_tokens } = targets;
        let attempt_time = params.attempt_time.within(params.lease);
        let parts = Parts::new(parts, &params, attempt_time, RESERVED, entropy, &clocks, now)
            .with_pacing(pacing);
        let stage = Stage::Requesting(false);
        let mut machine =
            Self { parts, keep_time, newest_tokens, kept_until: None, extended: false, stage };
        machine.try_all(now);
        machine
    }

    /// Returns the first part that is not held: the machine waits for it.
    fn first_missing(&self, now: Instant) -> Option<usize> {
        self.parts.iter().find(|(_, part)| part.held(now).is_none()).map(|(index, _)| index)
    }

    /// Tries all parts that are not held, and extends those whose renewal is due. Only the first
    /// that is not held may join a queue, since the machine waits for that one if it is refused.
    fn try_all(&mut self, now: Instant) {
        let indices = self.parts.indices_where(&|part| part.needs_try(now));
        let last = self.parts.is_wait_over(now) || !self.parts.can_afford_pass(indices.len());
        let awaited = self.first_missing(now);
        self.parts.send_tries(&indices, last, awaited, None, now);
        (self.kept_until, self.stage) = (None, Stage::Requesting(last));
    }

    /// Tries the part that the machine waits for, and extends the kept parts that are due.
    fn try_one(&mut self, index: usize, now: Instant) {
        let kept = self.parts.iter().take(index).filter(|(_, part)| part.held(now).is_some());
        let due = kept.filter(|(_, part)| part.needs_try(now));
        let indices: Vec<usize> = due.map(|(index, _)| index).chain([index]).collect();
        if self.parts.is_wait_over(now) || !self.parts.can_afford_pass(indices.len()) {
            return self.try_all(now);
        }
        // While parts are kept, a lost reply must not delay their release by much more than
        // `keep_time`.
        let max_attempt_time = self.kept_until.map(|_| self.keep_time);
        self.parts.send_tries(&indices, false, Some(index), max_attempt_time, now);
        self.stage = Stage::Requesting(false);
    }

    /// Decides the next step when no reply is due any more.
    fn decide(&mut self, last: bool, now: Instant) {
        let refused = self.parts.iter().map(|(_, part)| part.status()).find(|no| no.is_final());
        if let Some(error) = refused.map(PartStatus::error) {
            return self.stage.end(&mut self.parts, error);
        }
        match self.first_missing(now) {
            None => self.complete(last, now),
            // The awaited part is granted. The part at `index` was not tried in this pass: it was
            // released before the wait, or its lease has expired since.
            Some(index) if self.was_not_tried(index) => {
                self.parts.reset_backoff();
                self.try_all(now);
            }
            Some(index) => self.on_refused(index, last, now),
        }
    }

    /// Whether the pass that has just ended has not refused the part: it is idle, or its hold has
    /// expired.
    fn was_not_tried(&self, index: usize) -> bool {
        let status = self.parts.get(index).map(Part::status);
        matches!(status, Some(PartStatus::Idle | PartStatus::Held { .. }))
    }

    /// Continues when all parts are held: returns the hold if enough of each lease is left, and
    /// otherwise extends the short leases once.
    fn complete(&mut self, last: bool, now: Instant) {
        let min_validity = self.parts.shared().lease.validity_min();
        let short = self.parts.indices_where(&|part| {
            part.held(now).is_none_or(|(lease, _)| lease.remaining(now) < min_validity)
        });
        if let Some(newest) = self.regressed_token(now) {
            let error = AcquireError::TokenRegressed { newest: newest.as_u64() };
            return self.stage.end(&mut self.parts, error);
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
            // Parts that were kept during the wait have used up much of their leases.
            Some(_) if !self.extended && self.parts.can_afford_pass(short.len()) => {
                self.extended = true;
                self.parts.send_tries(&short, last, None, None, now);
                self.stage = Stage::Requesting(last);
            }
            _ => self.on_too_slow(last, now),
        }
    }

    /// Returns the newest known token of a part that was granted with an older one: its Redis has
    /// lost data, and a fenced store would reject the holder.
    fn regressed_token(&self, now: Instant) -> Option<FencingToken> {
        let older = |(index, part): (usize, &Part)| {
            let newest = (*self.newest_tokens.get(index)?)?;
            part.held(now).filter(|(_, token)| *token < newest).map(|_| newest)
        };
        self.parts.iter().find_map(older)
    }

    /// Continues when round trips leave too little of a lease: releases all parts, and starts again
    /// after a pause unless this was the last pass.
    fn on_too_slow(&mut self, last: bool, now: Instant) {
        if last {
            return self.stage.end(&mut self.parts, AcquireError::TooSlow);
        }
        (self.kept_until, self.extended) = (None, false);
        let all = self.parts.indices_where(&|_| true);
        self.parts.undo(&all);
        self.pause(0, now);
    }

    /// Keeps the parts before `index`, releases those after it, and waits for it.
    fn on_refused(&mut self, index: usize, last: bool, now: Instant) {
        let Some(part) = self.parts.get(index) else { return };
        if last {
            let error = part.status().error();
            return self.stage.end(&mut self.parts, error);
        }
        self.extended = false;
        // `try_all` let another part join its queue, and this one's owner has ended without a
        // place. As the awaited part it may join now, so it is tried again at once.
        let joins = part.was_refused_without_place();
        self.parts.undo_if_spent(index);
        let after: Vec<usize> = (index + 1..self.parts.count()).collect();
        self.parts.undo(&after);
        self.keep(index, now);
        if joins && self.parts.can_afford_pass(index + 1) {
            self.try_one(index, now);
        } else {
            self.pause(index, now);
        }
    }

    /// Keeps the parts before `index`, or releases them once `keep_time` has passed since the first
    /// refusal.
    fn keep(&mut self, index: usize, now: Instant) {
        let until = *self.kept_until.get_or_insert(now + self.keep_time);
        if now.has_reached(until) {
            let before: Vec<usize> = (0..index).collect();
            self.parts.undo(&before);
        }
        let keeps_some = self.parts.iter().take(index).any(|(_, part)| part.held(now).is_some());
        if !keeps_some {
            self.kept_until = None;
        }
    }

    /// Pauses until the retry of the awaited part is due.
    fn pause(&mut self, index: usize, now: Instant) {
        let (until, why) = self.parts.next_retry(index, 1, now);
        self.pause_until(until, why, now);
    }

    /// Pauses until then, or until the kept parts have to be released if that is earlier.
    fn pause_until(&mut self, mut until: Instant, mut why: TimeoutReason, now: Instant) {
        if let Some(kept) = self.kept_until.filter(|kept| until.has_reached(*kept)) {
            (until, why) = (kept, TimeoutReason::BackOff);
        }
        if now.has_reached(until) {
            return self.on_timeout(now);
        }
        self.stage = Stage::Pausing { until, why, then: () };
    }

    /// Continues after a pause.
    fn on_timeout(&mut self, now: Instant) {
        match self.awaited_part(now) {
            Some(index) => self.try_one(index, now),
            None => self.try_all(now),
        }
    }

    /// Returns the awaited part: the first that was tried and is not held. `None` if all parts that
    /// are not held are idle; then all are tried again.
    fn awaited_part(&self, now: Instant) -> Option<usize> {
        self.parts
            .iter()
            .find(|(_, part)| part.held(now).is_none() && *part.status() != PartStatus::Idle)
            .map(|(index, _)| index)
    }
}

impl Machine for AcquireAll {
    type Outcome = Result<MultiGrant, AcquireError>;

    fn handle(&mut self, input: Input, now: Instant) {
        if !self.stage.handle(&mut self.parts, &input, now) {
            return;
        }
        match self.stage {
            Stage::Requesting(last) if !self.parts.has_pending_replies() => self.decide(last, now),
            Stage::Pausing { until, .. } if now.has_reached(until) => self.on_timeout(now),
            Stage::Pausing { why, .. } => {
                if let Some((until, why)) = self.parts.on_input(&input, why, now) {
                    self.pause_until(until, why, now);
                }
            }
            Stage::Requesting(_) | Stage::Ending(_) | Stage::Over(_) => {}
        }
    }

    fn poll(&mut self, now: Instant) -> Output<Self::Outcome> {
        self.stage.poll(&mut self.parts, 0, now)
    }
}
