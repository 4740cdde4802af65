//! The parts of a multi-lock: members that one script can acquire, in the order that all clients
//! share.

use alloc::vec::Vec;

use super::{EndpointId, Engine, MemberSpec};
use crate::machine::Pacing;
use crate::protocol::calls::{LockCalls, Member, Target};
use crate::protocol::slot::slot;

/// The sort key of a part: fair locks first, then gateway, slot and name.
type Rank<'a> = (u8, &'a str, u16, &'a str);

/// The contents of a part: plain or fenced locks that share a script, or one lock of another kind.
enum Content<'a> {
    Members(Vec<&'a Member>),
    Other(&'a Target),
}

impl Engine {
    /// Combines members that one script can acquire into parts, with `by_slot` for each slot of a
    /// cluster. All clients order their parts in the same way, so that they do not deadlock: fair
    /// locks first, then by gateway, slot and name.
    pub(super) fn combine_into_parts(
        &self,
        members: &[MemberSpec],
        by_slot: bool,
    ) -> Vec<MemberSpec> {
        let mut parts: Vec<(Rank<'_>, EndpointId, Pacing, Content<'_>)> = Vec::new();
        for MemberSpec { endpoint, target, pacing } in members {
            let (id, name) = (self.gateway_id(*endpoint), target.name().as_str());
            let slot = if by_slot { slot(name) } else { 0 };
            let (rank, content) = match target {
                Target::Lock(calls) => {
                    ((1, id, slot, ""), Content::Members(calls.members().collect()))
                }
                other => ((u8::from(!other.has_queue()), id, slot, name), Content::Other(other)),
            };
            match (parts.iter_mut().find(|(other, ..)| *other == rank), content) {
                (Some((.., common, Content::Members(there))), Content::Members(more)) => {
                    there.extend(more);
                    if common != pacing {
                        *common = Pacing::Jittered;
                    }
                }
                (_, content) => {
                    let at = parts.iter().position(|(other, ..)| *other > rank);
                    parts.insert(at.unwrap_or(parts.len()), (rank, *endpoint, *pacing, content));
                }
            }
        }
        let mut combined = Vec::new();
        for (_, endpoint, pacing, content) in parts {
            let target = match content {
                Content::Other(target) => Some(target.clone()),
                Content::Members(members) => self.endpoint(endpoint).and_then(|endpoint| {
                    let publish = endpoint.gateway.announces();
                    LockCalls::of_set(members.into_iter().cloned(), publish).map(Target::Lock)
                }),
            };
            combined.extend(target.map(|target| MemberSpec { endpoint, target, pacing }));
        }
        combined
    }
}
