//! The operations that have not ended, and their deadlines: the next one of a scope is found
//! without a look at each operation.

use alloc::vec;
use alloc::vec::Vec;

use super::{Engine, OpId, ScopeId};
use crate::machine::TimeoutReason;
use crate::time::Instant;

/// The deadline of an operation that waits for no time.
const NEVER: Instant = Instant::from_millis(u64::MAX, u64::MAX);

/// The operations of each scope. A scope without operations has no entry.
#[derive(Clone, Debug, Default)]
pub(super) struct Deadlines {
    /// Sorted by scope.
    scopes: Vec<(ScopeId, Tree)>,
}

/// The operations of one scope, by their places.
#[derive(Clone, Debug, Default)]
struct Tree {
    /// A complete binary tree: the node `n` has the children `2n` and `2n + 1`, and is the sooner
    /// of them. The root is node 1. The leaves are the second half, one for each place.
    nodes: Vec<Instant>,
    ops: Vec<Option<OpId>>,
    /// The places of operations that have ended.
    free: Vec<u32>,
}

impl Tree {
    /// Adds an operation without a deadline, and returns its place.
    fn insert(&mut self, op: OpId) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.ops.push(None);
            if self.ops.len() > self.nodes.len() / 2 {
                self.grow();
            }
            u32::try_from(self.ops.len() - 1).unwrap_or(u32::MAX)
        });
        if let Some(slot) = self.ops.get_mut(place as usize) {
            *slot = Some(op);
        }
        place
    }

    /// Doubles the number of leaves.
    fn grow(&mut self) {
        let leaves = self.nodes.len() / 2;
        let before = core::mem::replace(&mut self.nodes, vec![NEVER; 2 * (2 * leaves).max(1)]);
        for (place, deadline) in before.into_iter().skip(leaves).enumerate() {
            self.set(place, deadline);
        }
    }

    fn set(&mut self, place: usize, deadline: Instant) {
        let (mut at, mut sooner) = (self.nodes.len() / 2 + place, deadline);
        while at > 0
            && let Some(node) = self.nodes.get_mut(at).filter(|node| **node != sooner)
        {
            *node = sooner;
            // Node 0, which would be the root's other half, stays `NEVER`.
            sooner = self.nodes.get(at ^ 1).map_or(sooner, |other| other.sooner(sooner));
            at /= 2;
        }
    }

    fn remove(&mut self, place: u32) {
        self.set(place as usize, NEVER);
        if let Some(slot) = self.ops.get_mut(place as usize) {
            *slot = None;
            self.free.push(place);
        }
    }

    fn next(&self) -> Option<Instant> {
        self.nodes.get(1).copied().filter(|next| *next != NEVER)
    }

    /// The operations whose deadlines are reached, in the order of their places.
    fn due(&self, now: Instant) -> Vec<OpId> {
        let (leaves, mut due, mut open) = (self.nodes.len() / 2, Vec::new(), vec![1]);
        while let Some(at) = open.pop() {
            let is_due = self.nodes.get(at).is_some_and(|node| now.has_reached(*node));
            match at.checked_sub(leaves) {
                _ if !is_due => {}
                Some(place) => due.extend(self.ops.get(place).copied().flatten()),
                None => open.extend([2 * at + 1, 2 * at]),
            }
        }
        due
    }
}

impl Deadlines {
    fn find(&self, scope: ScopeId) -> Result<usize, usize> {
        self.scopes.binary_search_by_key(&scope, |(scope, _)| *scope)
    }

    fn tree(&self, scope: ScopeId) -> Option<&Tree> {
        self.find(scope).ok().and_then(|at| self.scopes.get(at)).map(|(_, tree)| tree)
    }

    /// Adds an operation without a deadline, and returns its place in the scope.
    pub(super) fn insert(&mut self, scope: ScopeId, op: OpId) -> u32 {
        let at = self.find(scope).unwrap_or_else(|at| {
            self.scopes.insert(at, (scope, Tree::default()));
            at
        });
        self.scopes.get_mut(at).map_or(0, |(_, tree)| tree.insert(op))
    }

    /// Sets the deadline of the operation in this place.
    fn set(&mut self, scope: ScopeId, place: u32, deadline: Option<Instant>) {
        if let Some((_, tree)) = self.find(scope).ok().and_then(|at| self.scopes.get_mut(at)) {
            tree.set(place as usize, deadline.unwrap_or(NEVER));
        }
    }

    /// Removes the operation in this place, if it has one.
    pub(super) fn remove(&mut self, scope: ScopeId, place: Option<u32>) {
        let (Some(place), Ok(at)) = (place, self.find(scope)) else { return };
        let Some((_, tree)) = self.scopes.get_mut(at) else { return };
        tree.remove(place);
        if tree.free.len() == tree.ops.len() {
            self.scopes.remove(at);
        }
    }

    /// Whether an operation of the scope has not ended.
    pub(super) fn has(&self, scope: ScopeId) -> bool {
        self.find(scope).is_ok()
    }

    /// The first deadline of a scope, by each clock.
    pub(super) fn next(&self, scope: ScopeId) -> Option<Instant> {
        self.tree(scope)?.next()
    }

    /// The operations of a scope whose deadlines are reached.
    pub(super) fn due(&self, scope: ScopeId, now: Instant) -> Vec<OpId> {
        self.tree(scope).map_or_else(Vec::new, |tree| tree.due(now))
    }
}

impl Engine {
    /// Sets the deadline of an operation that has not ended.
    pub(super) fn set_deadline(&mut self, op: OpId, deadline: Option<(Instant, TimeoutReason)>) {
        let Some(operation) = self.ops.get_mut(op.0) else { return };
        operation.deadline = deadline;
        if let Some(place) = operation.place {
            self.deadlines.set(operation.scope, place, deadline.map(|(until, _)| until));
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
