//! An owner: the identity of a client whose acquisitions are re-entrant.

use alloc::sync::Arc;
use alloc::vec::Vec;
use std::sync::{Mutex, PoisonError};

use super::shared::Shared;
use crate::host::Host;
use crate::transport::Transport;
use edgelatch_proto::engine::OwnerHandle;

/// The handles of one owner, in the engine of each lock that it has acquired: a lock on several
/// gateways has an engine of its own.
pub(super) struct Owner<T: Transport, H: Host>(Mutex<Vec<EngineHandle<T, H>>>);

/// An engine, and the owner's handle in it.
type EngineHandle<T, H> = (Arc<Shared<T, H>>, OwnerHandle);

impl<T: Transport, H: Host> Owner<T, H> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::default()))
    }

    /// Returns the owner's handle in this engine, and creates it if there is none yet.
    pub(super) fn handle_in(&self, shared: &Arc<Shared<T, H>>) -> OwnerHandle {
        let mut handles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = handles.iter().find(|(other, _)| Arc::ptr_eq(other, shared));
        if let Some((_, handle)) = found {
            return *handle;
        }
        let handle = shared.change(|engine, _| engine.new_owner());
        handles.push((Arc::clone(shared), handle));
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
