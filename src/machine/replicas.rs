//! Whether a grant is with as many replicas as it has to be.

use core::time::Duration;

use crate::error::{AcquireError, Refusal, RefusalKind};
use crate::protocol::reply::Reply;
use crate::protocol::script::ScriptCall;
use crate::timing::Replicas;

/// The call that waits for so many replicas, if any; its attempts may take so long.
pub(super) fn awaiting(
    script: ScriptCall,
    replicas: Option<Replicas>,
    attempt_time: Duration,
) -> ScriptCall {
    match replicas {
        Some(replicas) => script.replicated(replicas, Replicas::within(attempt_time)),
        None => script,
    }
}

/// Why a grant does not count, if it does not.
pub(super) fn missing(reply: &Reply, replicas: Option<Replicas>) -> Option<AcquireError> {
    match (reply.acknowledged, u32::from(replicas?.get())) {
        (Some(acknowledged), wanted) if acknowledged >= wanted => None,
        (Some(acknowledged), _) => Some(AcquireError::NotReplicated { acknowledged }),
        (None, _) => Some(AcquireError::Refused(Refusal::new(RefusalKind::Unsupported, ""))),
    }
}
