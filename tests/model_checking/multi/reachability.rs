//! The events that a search has reached.

use std::sync::atomic::{AtomicBool, Ordering};

use edgelatch_proto::machine::LeaseState;

use super::client::{Client, Outcome};

/// Events that must happen in some run of a model: a model without them proves nothing about them.
#[derive(Debug, Default)]
pub(crate) struct Reachability {
    /// Every client has had a hold.
    pub(crate) all_held: AtomicBool,
    /// An acquisition has ended as busy.
    pub(crate) busy: AtomicBool,
    /// A waiter has kept a part.
    pub(crate) kept: AtomicBool,
    /// Redis has released a hold.
    pub(crate) undone: AtomicBool,
    /// An outcome was unknown.
    pub(crate) unknown: AtomicBool,
    /// A node has stored a larger token.
    pub(crate) raised: AtomicBool,
    /// A request came after the end of its owner.
    pub(crate) gone: AtomicBool,
    /// A hold was renewed.
    pub(crate) renewed: AtomicBool,
    /// A client has noticed the loss of its hold.
    pub(crate) lost: AtomicBool,
    /// A renewal had no usable reply.
    pub(crate) unsure: AtomicBool,
}

impl Reachability {
    /// Marks the events that a client's state after an input shows.
    pub(crate) fn record(&self, client: &Client) {
        match client.outcome() {
            Some(Outcome::Busy) => mark(&self.busy),
            Some(Outcome::HeldAtMost { .. }) => mark(&self.unknown),
            _ => {}
        }
        if let Some(quorum_lease) = client.quorum_lease() {
            match quorum_lease.state() {
                LeaseState::Renewed => mark(&self.renewed),
                LeaseState::Unknown => mark(&self.unsure),
                LeaseState::Lost(_) => mark(&self.lost),
                LeaseState::Held => {}
            }
        }
    }
}

pub(crate) fn mark(event: &AtomicBool) {
    event.store(true, Ordering::Relaxed);
}
