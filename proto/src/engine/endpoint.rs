//! A gateway, and what was learned from its replies.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::EndpointId;
use super::contention::Contention;
use super::health::Health;
use super::rollback::RollbackDetector;
use crate::protocol::calls::Target;
use crate::protocol::gateway::{Gateway, GatewayCapabilities};
use crate::protocol::reply::ServerClock;
use crate::time::Instant;

/// The gateways by their index, which is used again after a gateway was removed.
#[derive(Clone, Debug, Default)]
pub(super) struct Endpoints(Vec<Option<Box<Endpoint>>>);

impl Endpoints {
    pub(super) fn insert(&mut self, endpoint: Endpoint) -> EndpointId {
        let free = self.0.iter().position(Option::is_none).unwrap_or_else(|| {
            self.0.push(None);
            self.0.len() - 1
        });
        if let Some(slot) = self.0.get_mut(free) {
            *slot = Some(Box::new(endpoint));
        }
        EndpointId(u32::try_from(free).unwrap_or(u32::MAX))
    }

    pub(super) fn remove(&mut self, EndpointId(index): EndpointId) {
        if let Some(slot) = self.0.get_mut(index as usize) {
            *slot = None;
        }
    }

    pub(super) fn get(&self, EndpointId(index): EndpointId) -> Option<&Endpoint> {
        self.0.get(index as usize)?.as_deref()
    }

    pub(super) fn get_mut(&mut self, EndpointId(index): EndpointId) -> Option<&mut Endpoint> {
        self.0.get_mut(index as usize)?.as_deref_mut()
    }
}

#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    pub(super) gateway: Gateway,
    pub(super) streams_max: usize,
    /// Whether an operation may be polling since it got no subscription. If none is, the end of
    /// another subscription concerns no operation.
    pub(super) may_have_pollers: bool,
    pub(super) capabilities: GatewayCapabilities,
    pub(super) rollback: RollbackDetector,
    pub(super) health: Health,
    pub(super) contention: Contention,
    /// Whether it has refused a call with keys in two slots.
    pub(super) is_cluster: bool,
    /// A request has ended otherwise than unsent or with a web page, so a gateway may have executed
    /// it.
    pub(super) may_be_gateway: bool,
}

impl Endpoint {
    pub(super) fn new(gateway: Gateway, streams_max: usize) -> Self {
        Self {
            gateway,
            streams_max,
            may_have_pollers: false,
            capabilities: GatewayCapabilities::default(),
            rollback: RollbackDetector::default(),
            health: Health::default(),
            contention: Contention::default(),
            is_cluster: false,
            may_be_gateway: false,
        }
    }

    /// Redis' clock, as last known.
    pub(super) const fn clock(&self) -> Option<ServerClock> {
        self.rollback.clock()
    }

    /// Whether other waiters are known to compete for `target`.
    pub(super) fn is_contended(&mut self, target: &Target, now: Instant) -> bool {
        self.contention.is_at(|| target.announcements(), now)
    }
}
