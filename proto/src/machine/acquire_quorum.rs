//! Acquires a lock with one node on each of several independent gateways: a majority of nodes makes
//! the hold.
//!
//! ```text
//!   Requesting ──a majority granted──► raising where another token is stored ──► Over(Ok)
//!     │ ▲
//!     │ └─ Pausing: for all nodes while the lowest is held, else for the lowest node alone
//!     └─wait over, cancelled, refused by too many: Ending ──► Over(Err)
//! ```
//!
//! **Split votes:** if no client gets a majority, the holder of the lowest node that replies keeps
//! its nodes and retries the rest. Other clients release theirs and wait for that node alone. A
//! node that is too young to vote is never the lowest.
//!
//! **Grace:** once a majority is held, the other nodes get as long again to reply, at least 10 ms,
//! before the machine decides. All that have granted by then count for the hold, so that it can
//! lose nodes that were among the fastest.
//!
//! **The token** is returned when a majority *stores* this very one under this hold. The largest of
//! tokens that nodes mint themselves would not rise: another majority may have minted smaller ones.
//! All nodes are proposed one token to store; where that was not possible, the largest is stored
//! afterwards, in one more request. A node rejects a token far ahead of its clock, so the largest
//! is one that a majority accepts: a node with a token beyond it has no vote.

mod tokens;

use alloc::vec::Vec;
use core::time::Duration;

use super::acquire_all::{
    MultiGrant, MultiGrantPart, NO_PART, Part, PartStatus, Parts, ReservedCalls, Stage,
};
use super::{
    AcquireQuorumSpec, Entropy, Input, Lease, Machine, Output, QuorumNodes, TimeoutReason,
    combined, sooner,
};
use crate::error::{AcquireError, Refusal, RefusalKind};
use crate::name::FencingToken;
use crate::protocol::calls::Target;
use crate::protocol::reply::ServerClock;
use crate::time::Instant;

/// The shortest and the longest time for one attempt at a node: a tenth of the lease within these.
const NODE_ATTEMPT_MIN: Duration = Duration::from_millis(100);
const NODE_ATTEMPT_MAX: Duration = Duration::from_secs(1);
/// The shortest grace: in a local network a majority may reply within a millisecond.
const GRACE_MIN: Duration = Duration::from_millis(10);
/// The calls of one node. In a pass: a try, a raise of its token, the undoing, and a second undoing
/// in case the first is not confirmed. In the last pass: the undoing of an owner kept until then, a
/// try, a raise, the undoing.
const RESERVED: ReservedCalls = ReservedCalls { pass: 4, last_pass: 4 };

/// The machine that acquires a majority of nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AcquireQuorum {
    parts: Parts,
    keep_time: Duration,
    kept_until: Option<Instant>,
    /// When the machine decides although replies are due; set once a majority is held.
    grace_until: Option<Instant>,
    /// Whether short leases were already extended since the last pause. They are extended only
    /// once: if that is not enough, round trips take too long for this lease.
    extended: bool,
    /// `Requesting((nodes, last))`: the tried nodes, and whether this is the last pass. `Pausing`
    /// has the nodes to try after the pause.
    stage: Stage<(NodeSet, bool), NodeSet>,
}

/// The nodes whose replies decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum NodeSet {
    All,
    /// The lowest node that replies.
    Lowest(usize),
}

impl AcquireQuorum {
    /// Starts at `now`. `clocks` are the nodes' clocks, as last known, in the order of the nodes;
    /// without its clock the first round of a node is unbounded (rule C3).
    pub fn new(
        spec: AcquireQuorumSpec,
        entropy: Entropy,
        clocks: Vec<Option<ServerClock>>,
        now: Instant,
    ) -> Self {
        let (QuorumNodes { parts, keep_time }, params) = spec.split();
        let node_attempt = (params.lease.get() / 10).clamp(NODE_ATTEMPT_MIN, NODE_ATTEMPT_MAX);
        let attempt_time = node_attempt.min(params.attempt_time.within(params.lease));
        let targets = parts.into_iter().map(Target::Lock).collect();
        let parts = Parts::new(targets, &params, attempt_time, RESERVED, entropy, &clocks, now);
        let stage = Stage::Requesting((NodeSet::All, false));
        let (kept_until, grace_until) = (None, None);
        let mut machine =
            Self { parts, keep_time, kept_until, grace_until, extended: false, stage };
        machine.try_all(now);
        machine
    }

    const fn quorum(&self) -> usize {
        self.parts.count() / 2 + 1
    }

    /// The largest number of nodes that a majority can do without.
    const fn max_missing(&self) -> usize {
        self.parts.count().saturating_sub(self.quorum())
    }

    /// Tries all nodes that are not held, and extends those whose renewal is due.
    fn try_all(&mut self, now: Instant) {
        let indices = self.parts.indices_where(&|part| part.needs_try(now));
        let last = self.parts.is_wait_over(now) || !self.parts.can_afford_pass(indices.len());
        self.send_tries(&indices, last, now);
        self.stage = Stage::Requesting((NodeSet::All, last));
    }

    /// Sends a try to each of these nodes, with one proposed token. A refusal ends the owner of
    /// each node; if no node is held, the lowest of them keeps its owner, for the wait for that
    /// node.
    fn send_tries(&mut self, indices: &[usize], last: bool, now: Instant) {
        self.grace_until = None;
        // By the clock that is most ahead, so that no node has a larger token already.
        let clocks = self.parts.iter().filter_map(|(_, part)| part.clock());
        let latest_ms = clocks.map(|clock| clock.after(Duration::ZERO, now)).max();
        let token = latest_ms.map(|ms| (ms + 1).saturating_mul(1000));
        for index in indices {
            self.parts.update(*index, |part, _| part.propose(token));
        }
        let lowest = self.held(now).next().is_none().then(|| indices.first().copied()).flatten();
        self.parts.send_tries(indices, last, lowest, None, now);
    }

    /// Tries only the lowest node, for which this client waits.
    fn try_lowest(&mut self, index: usize, now: Instant) {
        if self.parts.is_wait_over(now) || !self.parts.can_afford_pass(1) {
            return self.try_all(now);
        }
        self.send_tries(&[index], false, now);
        self.stage = Stage::Requesting((NodeSet::Lowest(index), false));
    }

    /// Decides after all replies, or at the end of the grace if a majority is held.
    fn decide(&mut self, nodes: NodeSet, last: bool, now: Instant) {
        if self.parts.has_pending_replies() && !self.is_grace_over(now) {
            return;
        }
        let held: Vec<FencingToken> = self.held(now).map(|(.., token)| token).collect();
        // The token of a node that is being raised is unknown until its reply.
        let with_known_token = || self.held(now).filter(|(index, ..)| !self.awaits_reply(*index));
        let votes = |token| with_known_token().filter(|(.., stored)| *stored == token).count();
        if let Some(token) = held.iter().copied().find(|token| votes(*token) >= self.quorum()) {
            return self.complete(token, nodes, last, now);
        }
        if let Some(token) = self.majority_token(now) {
            return self.raise(token, nodes, last, now);
        }
        if self.parts.has_pending_replies() {
            return;
        }
        match nodes {
            NodeSet::Lowest(index) if self.is_held(index, now) => {
                self.parts.reset_backoff();
                self.kept_until = None;
                self.try_all(now);
            }
            NodeSet::All | NodeSet::Lowest(_) => self.on_refused(last, now),
        }
    }

    /// Whether a majority is held, and the other nodes have had as long again to reply as its last
    /// grant took. The grace is shorter if the leases of the majority would become too short.
    fn is_grace_over(&mut self, now: Instant) -> bool {
        let settled = self.held(now).filter(|(index, ..)| !self.awaits_reply(*index));
        let leases: Vec<Lease> = settled.map(|(_, lease, _)| lease).collect();
        let taken = leases.iter().map(|lease| lease.sent_at().until(now)).min();
        let majority = combined(leases.into_iter(), self.quorum());
        let (Some(majority), Some(taken)) = (majority, taken) else { return false };
        let min_validity = self.parts.shared().lease.validity_min();
        let spare = majority.remaining(now).saturating_sub(min_validity);
        let grace_end = now + taken.max(GRACE_MIN).min(spare);
        now.has_reached(*self.grace_until.get_or_insert(grace_end))
    }

    /// Returns the held nodes, with their leases and the tokens that they store.
    fn held(&self, now: Instant) -> impl Iterator<Item = (usize, Lease, FencingToken)> {
        self.parts.iter().filter_map(move |(index, part)| {
            part.held(now).map(|(lease, token)| (index, lease, token))
        })
    }

    fn is_held(&self, index: usize, now: Instant) -> bool {
        self.held(now).any(|(held, ..)| held == index)
    }

    fn awaits_reply(&self, index: usize) -> bool {
        self.parts.get(index).is_some_and(Part::awaits_reply)
    }

    /// Continues when a majority stores this token: ends with the hold if enough nodes have enough
    /// of their leases left, and otherwise extends the short leases once.
    fn complete(&mut self, token: FencingToken, nodes: NodeSet, last: bool, now: Instant) {
        let min_validity = self.parts.shared().lease.validity_min();
        let voters: Vec<_> = self
            .held(now)
            .filter(|(index, _, stored)| *stored == token && !self.awaits_reply(*index))
            .collect();
        let is_valid = |lease: &Lease| lease.remaining(now) >= min_validity;
        if voters.iter().filter(|(_, lease, _)| is_valid(lease)).count() >= self.quorum() {
            let counts = |index| voters.iter().any(|(voter, ..)| *voter == index);
            let parts = self.parts.iter().map(|(index, part)| MultiGrantPart {
                grant: part.grant(self.parts.shared(), token),
                counts: counts(index),
            });
            let parts = parts.collect();
            self.stage = Stage::Over(Ok(MultiGrant { parts, token }));
        } else if !self.parts.has_pending_replies() {
            let short = voters.iter().filter(|(_, lease, _)| !is_valid(lease));
            let short: Vec<usize> = short.map(|(index, ..)| *index).collect();
            if self.extended || !self.parts.can_afford_pass(short.len()) {
                return self.on_too_slow(last, now);
            }
            self.extended = true;
            self.send_tries(&short, last, now);
            self.stage = Stage::Requesting((nodes, last));
            // Nodes with another token may be a majority already, once they are raised.
            self.decide(nodes, last, now);
        }
    }

    /// Continues when round trips leave too little of the leases: releases all nodes, and starts
    /// again after a pause unless this was the last pass.
    fn on_too_slow(&mut self, last: bool, now: Instant) {
        if last {
            return self.stage.end(&mut self.parts, AcquireError::TooSlow);
        }
        self.release_all_except(None);
        self.pause(NodeSet::All, now);
    }

    /// Continues without a majority, when no reply is due any more.
    fn on_refused(&mut self, last: bool, now: Instant) {
        self.extended = false;
        let is_final = |part: &Part| part.status().is_final();
        let is_over = last || self.cannot_agree(now);
        if is_over || self.parts.indices_where(&is_final).len() > self.max_missing() {
            let error = self.error(now);
            return self.stage.end(&mut self.parts, error);
        }
        // A node that is too young to vote is passed over: a majority may exist without it.
        let lowest = self.parts.iter().find(|(_, part)| {
            matches!(part.status(), PartStatus::Busy { .. } | PartStatus::Held { .. })
        });
        match lowest.map(|(index, _)| index) {
            Some(index) if self.is_held(index, now) => {
                let until = *self.kept_until.get_or_insert(now + self.keep_time);
                if now.has_reached(until) {
                    self.release_all_except(None);
                } else {
                    let missing = self.parts.indices_where(&|part| part.held(now).is_none());
                    missing.into_iter().for_each(|index| self.parts.undo_if_spent(index));
                }
                self.pause(NodeSet::All, now);
            }
            Some(index) => {
                self.release_all_except(Some(index));
                self.pause(NodeSet::Lowest(index), now);
            }
            None => {
                self.release_all_except(None);
                self.pause(NodeSet::All, now);
            }
        }
    }

    /// Releases all nodes, except `kept`.
    fn release_all_except(&mut self, kept: Option<usize>) {
        (self.kept_until, self.extended) = (None, false);
        let others: Vec<usize> =
            (0..self.parts.count()).filter(|index| Some(*index) != kept).collect();
        self.parts.undo(&others);
    }

    /// The reason why there is no majority.
    fn error(&self, now: Instant) -> AcquireError {
        let statuses = || self.parts.iter().map(|(_, part)| part.status());
        if statuses().filter(|status| status.is_final()).count() > self.max_missing()
            && let Some(refusal) = statuses().find(|status| status.is_final())
        {
            return refusal.error();
        }
        if self.cannot_agree(now) {
            return AcquireError::Refused(Refusal::new(RefusalKind::TokenRange, ""));
        }
        let has_replied = |status: &&PartStatus| {
            use PartStatus::{Busy, Held, Young};
            matches!(status, Busy { .. } | Young { .. } | Held { .. })
        };
        if statuses().filter(has_replied).count() < self.quorum()
            && let Some(kind) = statuses().find_map(PartStatus::failure)
        {
            return AcquireError::Unreachable(kind);
        }
        // The time until enough nodes are free for a majority. A hold without an end counts as the
        // last to expire.
        let ends = || {
            statuses().filter_map(|status| match status {
                PartStatus::Busy { remaining, .. } | PartStatus::Young { remaining } => {
                    Some(remaining.unwrap_or(Duration::MAX))
                }
                _ => None,
            })
        };
        let missing = self.quorum().saturating_sub(self.held(now).count()).max(1);
        let frees_enough = |end: &Duration| ends().filter(|other| other <= end).count() >= missing;
        match ends().filter(frees_enough).min() {
            Some(Duration::MAX) => AcquireError::Busy { remaining: None },
            Some(end) => AcquireError::Busy { remaining: Some(end) },
            None => statuses().map(PartStatus::error).next_back().unwrap_or(AcquireError::TooSlow),
        }
    }

    /// Pauses, and then tries these nodes.
    fn pause(&mut self, then: NodeSet, now: Instant) {
        let (index, nodes) = match then {
            NodeSet::All => (NO_PART, self.parts.count()),
            NodeSet::Lowest(index) => (index, 1),
        };
        let (until, why) = self.parts.next_retry(index, nodes, now);
        self.pause_until(until, why, then, now);
    }

    /// Pauses until then, or until the held nodes have to be released if that is earlier.
    fn pause_until(
        &mut self,
        mut until: Instant,
        mut why: TimeoutReason,
        then: NodeSet,
        now: Instant,
    ) {
        if let Some(kept) = self.kept_until.filter(|kept| until.has_reached(*kept)) {
            (until, why) = (kept, TimeoutReason::BackOff);
        }
        if now.has_reached(until) {
            return self.on_timeout(then, now);
        }
        self.stage = Stage::Pausing { until, why, then };
    }

    fn on_timeout(&mut self, then: NodeSet, now: Instant) {
        match then {
            NodeSet::All => self.try_all(now),
            NodeSet::Lowest(index) => self.try_lowest(index, now),
        }
    }
}

impl Machine for AcquireQuorum {
    type Outcome = Result<MultiGrant, AcquireError>;

    fn handle(&mut self, input: Input, now: Instant) {
        if !self.stage.handle(&mut self.parts, &input, now) {
            return;
        }
        match self.stage {
            Stage::Requesting((nodes, last)) => self.decide(nodes, last, now),
            Stage::Pausing { until, then, .. } if now.has_reached(until) => {
                self.on_timeout(then, now)
            }
            Stage::Pausing { why, then, .. } => {
                if let Some((until, why)) = self.parts.on_input(&input, why, now) {
                    self.pause_until(until, why, then, now);
                }
            }
            Stage::Ending(_) | Stage::Over(_) => {}
        }
    }

    fn poll(&mut self, now: Instant) -> Output<Self::Outcome> {
        let max_missing = self.max_missing();
        let output = self.stage.poll(&mut self.parts, max_missing, now);
        let grace = self.grace_until.filter(|grace| !now.has_reached(*grace));
        match (output, grace, &self.stage) {
            (Output::Timeout { until, why }, Some(grace), Stage::Requesting(_)) => {
                let grace = (grace, TimeoutReason::ReplyDue);
                let (until, why) = sooner(Some((until, why)), grace, now);
                Output::Timeout { until, why }
            }
            (output, ..) => output,
        }
    }
}
