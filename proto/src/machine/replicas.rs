//! Checks whether enough replicas have a grant.

use core::time::Duration;

use crate::error::{AcquireError, Refusal, RefusalKind};
use crate::protocol::reply::Reply;
use crate::protocol::script::ScriptCall;
use crate::timing::Replicas;

/// Makes a call wait for `replicas`, if any, within the time for one attempt.
pub(super) fn await_replicas(
    script: ScriptCall,
    replicas: Option<Replicas>,
    attempt_time: Duration,
) -> ScriptCall {
    match replicas {
        Some(replicas) => script.replicated(replicas, Replicas::within(attempt_time)),
        None => script,
    }
}

/// Returns the error of a grant that too few replicas have; `None` if it counts.
pub(super) fn check(reply: &Reply, replicas: Option<Replicas>) -> Option<AcquireError> {
    match (reply.acknowledged, u32::from(replicas?.get())) {
        (Some(acknowledged), wanted) if acknowledged >= wanted => None,
        (Some(acknowledged), _) => Some(AcquireError::NotReplicated { acknowledged }),
        (None, _) => Some(AcquireError::Refused(Refusal::new(RefusalKind::Unsupported, ""))),
    }
}
