//! The responses that an outcome must rest on.

use std::time::Duration;

use edgelatch_proto::error::AcquireError;
use edgelatch_proto::machine::{Grant, Lease};
use edgelatch_proto::name::{FencingToken, OwnerId};
use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::time::Instant;
use edgelatch_proto::timing::{LeaseTime, Replicas, RequestBudget};

use super::CODES;
use super::log::{Called, Log, Received};
use crate::kit::field;
use crate::time_math::trusted;

/// Whether a script acquires a hold.
fn takes(call: &Called) -> bool {
    call.script.script().name.ends_with("_acquire")
}

/// Whether a call concerns this owner: one of its keys is the owner's latch.
fn is_of(call: &Called, owner: &str) -> bool {
    call.script.keys().iter().any(|key| key.ends_with(owner))
}

/// A lease ends no later than one of these requests allows: it counts from the sending.
pub(super) fn rests_on(lease: &Lease, sent: impl IntoIterator<Item = (Instant, LeaseTime)>) {
    let ends = lease.expires_at();
    let latest =
        |(sent_at, time): (Instant, LeaseTime)| ends.sooner(sent_at + trusted(time)) == ends;
    assert!(sent.into_iter().any(latest), "{lease:?} rests on nothing");
}

/// A hold was granted by Redis, in a reply to a request of this owner, with this token and this
/// number of replicas.
pub(super) fn granted(
    grant: &Grant,
    place: usize,
    time: LeaseTime,
    replicas: Option<Replicas>,
    log: &Log,
) {
    let owner = field(grant.owner);
    let grants: Vec<(&Called, &Reply)> = log
        .replies()
        .filter(|(call, reply)| {
            call.place == place
                && takes(call)
                && is_of(call, &owner)
                && matches!(reply.code, Code::Done | Code::AlreadyYours)
                && FencingToken::MAX.as_u64() >= reply.value.parse().unwrap_or(u64::MAX)
                && replicas.is_none_or(|wanted| reply.acknowledged >= Some(u32::from(wanted.get())))
        })
        .collect();
    assert!(!grants.is_empty(), "no reply granted it: {:?}", log.responses());
    rests_on(&grant.lease, grants.iter().map(|(call, _)| (call.sent_at, time)));
}

/// The token occurs in a reply of Redis.
pub(super) fn stored_token(token: FencingToken, log: &Log) {
    let text = token.to_string();
    assert!(log.replies().any(|(_, reply)| reply.value == text), "no reply had the token {text}");
}

/// More than half of a granted lease remains.
pub(super) fn is_worth_it(lease: &Lease, time: LeaseTime, log: &Log) {
    let left = lease.remaining(log.ended_at.unwrap());
    assert!(left >= time.get() / 2, "{left:?} are left of {time:?}");
}

/// An acquisition that failed has left nothing behind, unless its error says so.
pub(super) fn left_nothing(error: &AcquireError, time: LeaseTime, log: &Log) {
    match error {
        AcquireError::Unknown { held_at_most, .. }
        | AcquireError::Cancelled { held_at_most: Some(held_at_most) } => {
            assert!(*held_at_most >= time.get(), "a copy may be granted for longer");
        }
        _ => {
            for place in log.calls.iter().map(|call| call.place) {
                let mut taking = log.calls.iter().filter(|call| call.place == place && takes(call));
                assert!(
                    taking.all(|call| is_closed(call, log)),
                    "{error:?} after {:?}",
                    log.responses()
                );
            }
        }
    }
    if matches!(error, AcquireError::Cancelled { .. }) {
        assert!(log.cancelled, "it was not cancelled");
    }
}

/// Whether an acquiring request can have no more effect: it was not executed, its own reply says
/// so, or a later request with a reply has ended its owner.
fn is_closed(call: &Called, log: &Log) -> bool {
    let replied = |of: &Called, codes: &[Code]| matches!(&of.response, Some(Received::Reply(reply)) if codes.contains(&reply.code));
    let never_done =
        matches!(call.response, Some(Received::Refused | Received::Failed { unsure: false }))
            || replied(call, &[Code::Gone, Code::BoundRequired]);
    // The latch of its owner.
    let latch = &call.script.keys()[0];
    let mut later = log.calls.iter().skip_while(|other| !std::ptr::eq(*other, call));
    never_done
        || later.any(|other| {
            let is_same = other.place == call.place && other.script.keys().contains(latch);
            let releases = other.script.script().name.ends_with("_release");
            // A refused last try has ended its owner itself; and a script that requires a bound
            // refuses all calls without one.
            let of_taking = [Code::No, Code::Gone, Code::TooYoung, Code::BoundRequired];
            let ended = if releases { &CODES[..] } else { &of_taking[..] };
            is_same && replied(other, ended)
        })
}

/// The number of calls is within the budget.
pub(super) fn within(budget: Option<RequestBudget>, log: &Log) {
    if let Some(budget) = budget {
        let count = log.calls.len();
        assert!(count <= usize::try_from(budget.get()).unwrap(), "{count} calls of {budget:?}");
    }
}

/// The reported time of a hold with an unknown outcome is at least the lease.
pub(super) fn lasts(held_at_most: Duration, lease: LeaseTime) {
    assert!(held_at_most >= lease.get(), "{held_at_most:?} of a lease of {lease:?}");
}

/// The reply was received.
pub(super) fn was_received(reply: &Reply, log: &Log) {
    assert!(log.replies().any(|(_, response)| response == reply), "{reply:?} was not received");
}

/// Whether a call concerns this owner.
pub(super) fn was_requested(owner: OwnerId, log: &Log) -> bool {
    let owner = field(owner);
    log.calls.iter().any(|call| is_of(call, &owner))
}
