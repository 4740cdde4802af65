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
pub(super) struct Deadlines(Vec<Tree>);

/// The operations of one scope, by their leaves.
#[derive(Clone, Debug)]
struct Tree {
    scope: ScopeId,
    /// A complete binary tree: the node `n` has the children `2n` and `2n + 1`, and is the sooner
    /// of them. The root is node 1. The leaves are the second half, one for each operation.
    nodes: Vec<Instant>,
    /// By the number of the leaf.
    ops: Vec<OpId>,
    /// The leaves of operations that have ended. Their deadlines are `NEVER`.
    free: Vec<u32>,
}

impl Tree {
    /// Adds an operation without a deadline, and returns the number of its leaf.
    fn insert(&mut self, op: OpId) -> u32 {
        let free = self.free.pop();
        if let Some((leaf, slot)) = free.zip(free.and_then(|at| self.ops.get_mut(at as usize))) {
            *slot = op;
            return leaf;
        }
        self.ops.push(op);
        let leaves = self.nodes.len() / 2;
        if self.ops.len() > leaves {
            let nodes = vec![NEVER; 4 * leaves];
            let before = core::mem::replace(&mut self.nodes, nodes);
            for (leaf, deadline) in before.into_iter().skip(leaves).enumerate() {
                self.set(leaf, deadline);
            }
        }
        u32::try_from(self.ops.len() - 1).unwrap_or(u32::MAX)
    }

    fn set(&mut self, leaf: usize, deadline: Instant) {
        let (mut at, mut sooner) = (self.nodes.len() / 2 + leaf, deadline);
        while at > 0
            && let Some(node) = self.nodes.get_mut(at).filter(|node| **node != sooner)
        {
            *node = sooner;
            // Node 0, the sibling of the root, stays `NEVER`.
            sooner = self.nodes.get(at ^ 1).map_or(sooner, |other| other.sooner(sooner));
            at /= 2;
        }
    }

    fn next(&self) -> Option<Instant> {
        self.nodes.get(1).copied().filter(|next| *next != NEVER)
    }
}

impl Deadlines {
    fn get(&self, scope: ScopeId) -> Option<&Tree> {
        self.0.get(self.find(scope)?)
    }

    fn find(&self, scope: ScopeId) -> Option<usize> {
        self.0.iter().position(|tree| tree.scope == scope)
    }

    /// Adds an operation without a deadline, and returns the number of its leaf in the scope.
    pub(super) fn insert(&mut self, scope: ScopeId, op: OpId) -> u32 {
        let at = self.find(scope).unwrap_or_else(|| {
            let nodes = vec![NEVER; 2];
            self.0.push(Tree { scope, nodes, ops: Vec::new(), free: Vec::new() });
            self.0.len() - 1
        });
        self.0.get_mut(at).map_or(0, |tree| tree.insert(op))
    }

    /// Sets the deadline of the operation with this leaf.
    fn set(&mut self, scope: ScopeId, leaf: u32, deadline: Option<Instant>) {
        if let Some(tree) = self.find(scope).and_then(|at| self.0.get_mut(at)) {
            tree.set(leaf as usize, deadline.unwrap_or(NEVER));
        }
    }

    /// Removes the operation with this leaf. Without a leaf, it was removed before.
    pub(super) fn remove(&mut self, scope: ScopeId, leaf: Option<u32>) {
        let (Some(leaf), Some(at)) = (leaf, self.find(scope)) else { return };
        let Some(tree) = self.0.get_mut(at) else { return };
        tree.set(leaf as usize, NEVER);
        tree.free.push(leaf);
        if tree.free.len() == tree.ops.len() {
            self.0.swap_remove(at);
        }
    }

    /// Whether an operation of the scope has not ended.
    pub(super) fn has(&self, scope: ScopeId) -> bool {
        self.get(scope).is_some()
    }

    /// The first deadline of a scope, by each clock.
    pub(super) fn next(&self, scope: ScopeId) -> Option<Instant> {
        self.get(scope)?.next()
    }

    /// The operations of a scope whose deadlines are reached, in the order of their leaves.
    pub(super) fn due(&self, scope: ScopeId, now: Instant) -> impl Iterator<Item = OpId> {
        let tree =
            self.get(scope).filter(|tree| tree.next().is_some_and(|next| now.has_reached(next)));
        tree.into_iter().flat_map(move |tree| {
            let leaves = tree.nodes.iter().skip(tree.nodes.len() / 2).zip(&tree.ops);
            leaves.filter(move |(deadline, _)| now.has_reached(**deadline)).map(|(_, op)| *op)
        })
    }
}

impl Engine {
    /// Sets the deadline of an operation that has not ended.
    pub(super) fn set_deadline(&mut self, op: OpId, deadline: Option<(Instant, TimeoutReason)>) {
        let Some(operation) = self.ops.get_mut(op.0) else { return };
        operation.deadline = deadline;
        if let Some(leaf) = operation.leaf {
            self.deadlines.set(operation.scope, leaf, deadline.map(|(until, _)| until));
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
