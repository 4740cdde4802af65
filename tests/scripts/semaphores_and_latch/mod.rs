//! Semaphores, permit-expirable semaphores and count-down latches.

mod access;
mod bounds;
mod full_memory;
mod idempotency;
mod many_permits;
mod permit_range;
pub(super) mod vector_runner;
mod vectors;

use edgelatch_proto::name::{LockName, OwnerId, PermitId};
use edgelatch_proto::protocol::calls::{
    BatchSize, CountDownLatchCalls, PermitCalls, PermitCount, SemaphoreCalls, Target,
};
use edgelatch_proto::protocol::reply::RespValue;
use edgelatch_proto::protocol::script::Publish;
use edgelatch_proto::timing::PeerSkew;
use std::time::Duration;

use test_support::calls::Calls;

/// The semaphore of this name, for calls about `permits` permits.
fn semaphore(name: &str, permits: u32) -> SemaphoreCalls {
    semaphore_that_publishes(name, permits, Publish::Plain)
}

pub(super) fn semaphore_that_publishes(
    name: &str,
    permits: u32,
    publish: Publish,
) -> SemaphoreCalls {
    let permits = PermitCount::new(permits).unwrap();
    SemaphoreCalls::new(LockName::parse(name).unwrap(), publish, permits)
}

/// The permit-expirable semaphore of this name, for calls about `permits` permits; Java's clocks
/// differ by at most `skew` ms.
fn permits(name: &str, permits: u16, skew: u64) -> PermitCalls {
    permits_that_publish(name, permits, skew, Publish::Plain)
}

pub(super) fn permits_that_publish(
    name: &str,
    permits: u16,
    skew: u64,
    publish: Publish,
) -> PermitCalls {
    let permits = BatchSize::new(permits).unwrap();
    let skew = PeerSkew::new(Duration::from_millis(skew)).unwrap();
    PermitCalls::new(LockName::parse(name).unwrap(), publish, permits, skew)
}

pub(super) fn latch(name: &str) -> CountDownLatchCalls {
    latch_that_publishes(name, Publish::Plain)
}

pub(super) fn latch_that_publishes(name: &str, publish: Publish) -> CountDownLatchCalls {
    CountDownLatchCalls::new(LockName::parse(name).unwrap(), publish)
}

pub(super) fn held(calls: &SemaphoreCalls) -> Calls {
    Calls(Target::Semaphore(calls.clone()))
}

pub(super) fn batch(calls: &PermitCalls) -> Calls {
    Calls(Target::Permits(calls.clone()))
}

/// The id of a permit of this owner.
pub(super) fn id(owner: OwnerId, index: usize) -> PermitId {
    permits("x", 1000, 0).ids(owner).nth(index).unwrap()
}

/// Code, value and milliseconds of a reply.
fn verdict(cells: &[RespValue]) -> (i64, String, i64) {
    match cells {
        [RespValue::Int(code), RespValue::Text(value), RespValue::Int(ms), ..] => {
            (*code, value.clone(), *ms)
        }
        other => panic!("no reply: {other:?}"),
    }
}
