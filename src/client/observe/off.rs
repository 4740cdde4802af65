//! The observation of a client without the features `tracing` and `metrics`: nothing.

use crate::error::{AcquireError, ReleaseError};
use crate::host::Host;
use crate::transport::Transport;
use edgelatch_proto::engine::HoldId;
use edgelatch_proto::machine::Released;

use super::lease::HoldRef;
use super::lock::Lock;
use super::shared::Shared;

pub(super) struct Acquisition;

impl Acquisition {
    pub(super) const fn begin<T: Transport, H: Host>(_: &Lock<T, H>) -> Self {
        Self
    }

    pub(super) const fn end(self, _: &Result<HoldId, AcquireError>) -> ObservedHold {
        ObservedHold
    }
}

pub(super) struct ObservedHold;

impl<T: Transport, H: Host> HoldRef<T, H> {
    pub(super) const fn observe(&self) {
        let ObservedHold = self.observed;
    }

    pub(super) const fn observe_drop(&self) {}

    pub(super) const fn observe_keep<F: Future>(&self, keep: F) -> F {
        keep
    }

    pub(super) const fn observe_release(&self) -> Release {
        Release
    }
}

pub(super) struct Release;

impl Release {
    pub(super) const fn end(self, _: &Result<Released, ReleaseError>) {}
}

pub(super) struct ObservedGateway;

impl ObservedGateway {
    pub(super) const fn new(_: &str) -> Self {
        Self
    }

    pub(super) const fn sending<F>(&self, sending: F) -> Sending<F> {
        sending
    }
}

/// A request under way.
pub(super) type Sending<F> = F;

impl<T: Transport, H: Host> Shared<T, H> {
    pub(super) const fn observe_gateways(&self) {}
}
