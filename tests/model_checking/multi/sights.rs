//! What was come across in a search.

use std::sync::atomic::{AtomicBool, Ordering};

use edgelatch::machine::LeaseState;

use super::client::{Client, Told};

/// What must happen in some run of a model, or the model shows nothing.
#[derive(Debug, Default)]
pub(crate) struct Sights {
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

impl Sights {
    /// What a client makes of what it has just heard.
    pub(crate) fn of(&self, client: &Client) {
        match client.told() {
            Some(Told::Busy) => note(&self.busy),
            Some(Told::HeldAtMost { .. }) => note(&self.unknown),
            _ => {}
        }
        if let Some(keeping) = client.keeping() {
            match keeping.state() {
                LeaseState::Renewed => note(&self.renewed),
                LeaseState::Unknown => note(&self.unsure),
                LeaseState::Lost(_) => note(&self.lost),
                LeaseState::Held => {}
            }
        }
    }
}

pub(crate) fn note(sight: &AtomicBool) {
    sight.store(true, Ordering::Relaxed);
}
