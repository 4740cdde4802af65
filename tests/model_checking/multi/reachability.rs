//! The events of a search.

use std::sync::atomic::{AtomicBool, Ordering};

use edgelatch_proto::machine::LeaseState;

use super::client::{Client, Outcome};

/// Events that must happen in some run of a model: a model without them proves nothing about them.
#[derive(Debug, Default)]
pub(crate) struct Reachability {
    pub(crate) all_held: AtomicBool,
    pub(crate) busy: AtomicBool,
    pub(crate) kept: AtomicBool,
    pub(crate) undone: AtomicBool,
    pub(crate) unknown: AtomicBool,
    pub(crate) raised: AtomicBool,
    pub(crate) gone: AtomicBool,
    pub(crate) renewed: AtomicBool,
    pub(crate) lost: AtomicBool,
    pub(crate) unsure: AtomicBool,
}

impl Reachability {
    /// Notes the events in a client's state after an input.
    pub(crate) fn of(&self, client: &Client) {
        match client.outcome() {
            Some(Outcome::Busy) => note(&self.busy),
            Some(Outcome::HeldAtMost { .. }) => note(&self.unknown),
            _ => {}
        }
        if let Some(quorum_lease) = client.quorum_lease() {
            match quorum_lease.state() {
                LeaseState::Renewed => note(&self.renewed),
                LeaseState::Unknown => note(&self.unsure),
                LeaseState::Lost(_) => note(&self.lost),
                LeaseState::Held => {}
            }
        }
    }
}

pub(crate) fn note(point: &AtomicBool) {
    point.store(true, Ordering::Relaxed);
}
