//! A gateway, and what was learned from its replies.

use super::contention::Contention;
use super::health::Health;
use super::rollback::RollbackDetector;
use crate::protocol::calls::Target;
use crate::protocol::gateway::{Gateway, GatewayCapabilities};
use crate::protocol::reply::ServerClock;
use crate::time::Instant;

#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    pub(super) gateway: Gateway,
    pub(super) streams_max: usize,
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
