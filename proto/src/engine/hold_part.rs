//! A part of a hold: the grant of one script at one gateway.

use super::EndpointId;
use crate::machine::{Grant, Lease, OutstandingBound};
use crate::name::FencingToken;
use crate::protocol::calls::Target;

/// A grant by one script at one gateway.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) endpoint: EndpointId,
    pub(super) target: Target,
    pub(super) grant: Grant,
    /// Whether the part counts for the hold. A part without a usable confirmation does not: it may
    /// be held, or granted late, so it is only released.
    pub(super) counts: bool,
    /// The lease as last confirmed.
    pub(super) lease: Lease,
    /// The token as last confirmed.
    pub(super) token: FencingToken,
    /// How long delayed copies of its requests may still extend it. A request is recorded before it
    /// is sent, since its reply may be lost.
    pub(super) outstanding: OutstandingBound,
}

impl Part {
    pub(super) const fn new(
        endpoint: EndpointId,
        target: Target,
        grant: Grant,
        counts: bool,
    ) -> Self {
        let (lease, token, outstanding) = (grant.lease, grant.token, grant.outstanding());
        Self { endpoint, target, grant, counts, lease, token, outstanding }
    }
}
