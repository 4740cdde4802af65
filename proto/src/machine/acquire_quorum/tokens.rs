//! The choice of a token that a majority of the nodes can store.

use alloc::vec::Vec;
use core::time::Duration;

use super::super::Lease;
use super::super::acquire_all::Part;
use super::{AcquireQuorum, NodeSet, Stage};
use crate::name::FencingToken;
use crate::time::Instant;

/// The largest distance by which a token may be ahead of a node's clock: `lock_raise`.
const TOKEN_AHEAD: Duration = Duration::from_secs(60);

impl AcquireQuorum {
    /// Returns the largest token of a held node that a majority of nodes stores or can store;
    /// `None` if there is none. It is larger than every token that was returned to a caller before:
    /// a majority stored that one, at least one of its nodes is in this majority, and each node
    /// mints tokens above its last.
    pub(super) fn majority_token(&self, now: Instant) -> Option<FencingToken> {
        let votes = |token| self.held(now).filter(|held| self.can_store(held, token, now)).count();
        let has_majority = |token: &FencingToken| votes(*token) >= self.quorum();
        self.held(now).map(|(.., token)| token).filter(has_majority).max()
    }

    /// Whether all nodes are held, and too few of them can store the same token: their clocks are
    /// too far apart. A retry would not help, since clocks do not correct such a difference soon.
    pub(super) fn cannot_agree(&self, now: Instant) -> bool {
        self.held(now).count() == self.parts.count() && self.majority_token(now).is_none()
    }

    /// Whether a held node stores this token, or would store it on request.
    fn can_store(
        &self,
        (index, _, stored): &(usize, Lease, FencingToken),
        token: FencingToken,
        now: Instant,
    ) -> bool {
        let clock = self.parts.get(*index).and_then(Part::clock);
        let max_ms = clock.map(|clock| clock.after(TOKEN_AHEAD, now));
        *stored == token || *stored < token && max_ms.is_none_or(|ms| token.as_u64() / 1000 <= ms)
    }

    /// Stores `token` in the held nodes that have a smaller one: a majority of nodes is held, but
    /// their tokens differ.
    pub(super) fn raise(&mut self, token: FencingToken, nodes: NodeSet, last: bool, now: Instant) {
        let smaller: Vec<usize> = self
            .held(now)
            .filter(|held| held.2 < token && self.can_store(held, token, now))
            .filter(|(index, ..)| !self.awaits_reply(*index))
            .map(|(index, ..)| index)
            .collect();
        let calls = u32::try_from(smaller.len()).unwrap_or(u32::MAX);
        if !smaller.is_empty() && self.parts.can_afford(calls) {
            self.grace_until = None;
            for index in smaller {
                self.parts.update(index, |part, shared| part.raise(token, shared));
            }
        } else if !self.parts.has_pending_replies() {
            return self.on_refused(last, now);
        }
        self.stage = Stage::Requesting((nodes, last));
    }
}
