//! An owner: the identity of a client whose acquisitions are re-entrant.

use alloc::sync::Arc;
use alloc::vec::Vec;
use std::sync::{Mutex, PoisonError};

use super::shared::Shared;
use crate::host::Host;
use crate::transport::Transport;
use edgelatch_proto::engine::OwnerHandle;

/// The owner in the engine of each lock that it has acquired: locks of several gateways have an
/// engine of their own.
pub(super) struct Owner<T: Transport, H: Host>(Mutex<Vec<Known<T, H>>>);

/// An engine, and the owner in it.
type Known<T, H> = (Arc<Shared<T, H>>, OwnerHandle);

impl<T: Transport, H: Host> Owner<T, H> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::default()))
    }

    /// The owner in this engine.
    pub(super) fn of(&self, shared: &Arc<Shared<T, H>>) -> OwnerHandle {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().find(|(other, _)| Arc::ptr_eq(other, shared));
        if let Some((_, handle)) = found {
            return *handle;
        }
        let handle = shared.change(|engine, _| engine.new_owner());
        known.push((Arc::clone(shared), handle));
        handle
    }
}

impl<T: Transport, H: Host> Drop for Owner<T, H> {
    fn drop(&mut self) {
        for (shared, handle) in self.0.get_mut().unwrap_or_else(PoisonError::into_inner) {
            shared.change(|engine, _| engine.forget_owner(*handle));
        }
    }
}
