//! Failures, from which `pkg/errors.js` creates errors: one class per kind, with a stable `code`.

use alloc::string::String;
use core::time::Duration;

use super::numbers::class;
use super::records::Value;
use crate::error::{
    AcquireError, EvalError, FailureKind, GuardError, InvalidOption, LossReason, Refusal,
    RefusalKind, ReleaseError, RequestError,
};
use edgelatch_proto::time::millis;

/// Why a call has no result.
pub(super) enum Failure {
    /// An error of the class with this number, with up to two fields beside its message.
    Error { class: u32, message: String, fields: [Value; 2] },
    /// The caller's signal was aborted, whose reason the call rejects with.
    Aborted,
}

fn new(class: u32, message: &str, first: Value, second: Value) -> Failure {
    Failure::Error { class, message: message.into(), fields: [first, second] }
}

const NONE: Value = Value::Nothing;

pub(super) fn as_ms(duration: Duration) -> Value {
    millis(duration).into()
}

pub(super) fn invalid(error: &InvalidOption) -> Failure {
    new(class::INVALID_OPTION, &error.message(), error.option().into(), error.accepted().into())
}

impl From<InvalidOption> for Failure {
    fn from(error: InvalidOption) -> Self {
        invalid(&error)
    }
}

pub(super) fn lost(reason: LossReason) -> Failure {
    new(class::LEASE_LOST, reason.message(), loss(reason).into(), NONE)
}

pub(super) const fn loss(reason: LossReason) -> &'static str {
    match reason {
        LossReason::Expired => "expired",
        LossReason::Gone => "gone",
        LossReason::Stolen => "stolen",
    }
}

fn refused(refusal: &Refusal, message: &str) -> Failure {
    let reason = match refusal.kind() {
        RefusalKind::Unauthorized => "unauthorized",
        RefusalKind::OutOfMemory => "out-of-memory",
        RefusalKind::WrongType => "wrong-type",
        RefusalKind::TokenRange => "token-range",
        RefusalKind::Unavailable => "unavailable",
        RefusalKind::NotAGateway => "not-a-gateway",
        RefusalKind::Unsupported => "unsupported",
        _ => "other",
    };
    new(class::REFUSED, message, reason.into(), Value::or_nothing(refusal.status()))
}

/// The HTTP status of the response that could not be used, if there was one.
fn status(kind: FailureKind) -> Value {
    match kind {
        FailureKind::Garbled { status }
        | FailureKind::WebPage { status }
        | FailureKind::Gateway { status, .. } => status.into(),
        _ => NONE,
    }
}

fn plain(class: u32, message: &str) -> Failure {
    new(class, message, NONE, NONE)
}

fn no_entropy() -> Failure {
    plain(class::UNREACHABLE, "this runtime has no crypto.getRandomValues")
}

/// The class for a case that the core has and this module does not know: its outcome counts as
/// unknown.
const NEWER: u32 = class::OUTCOME_UNKNOWN;

fn newer(message: &str) -> Failure {
    plain(NEWER, message)
}

fn unknown(message: &str, held_at_most: Duration, cause: FailureKind) -> Failure {
    new(class::OUTCOME_UNKNOWN, message, as_ms(held_at_most), status(cause))
}

/// Converts the error of an acquisition. `busy` describes the obstacle in the message of a wait
/// timeout.
pub(super) fn acquire(error: &AcquireError, busy: &str) -> Failure {
    let (class, first) = match error {
        AcquireError::InvalidOption(error) => return invalid(error),
        AcquireError::Busy { remaining } => {
            let remaining = remaining.map_or(NONE, as_ms);
            return new(
                class::WAIT_TIMEOUT,
                &[busy, " for the whole wait"].concat(),
                remaining,
                NONE,
            );
        }
        AcquireError::NotSetUp => {
            let message = "the semaphore does not exist; create it with trySetPermits(n), or with addPermits(0) to wait until permits are added";
            return plain(class::NOT_SET_UP, message);
        }
        AcquireError::Cancelled { .. } => return Failure::Aborted,
        AcquireError::Refused(refusal) => return refused(refusal, &error.message()),
        AcquireError::Unknown { held_at_most, cause } => {
            return unknown(&error.message(), *held_at_most, *cause);
        }
        AcquireError::NoEntropy => return no_entropy(),
        AcquireError::QueueFull => (class::QUEUE_FULL, NONE),
        AcquireError::HeldAlready => (class::REENTRANCY, "held".into()),
        AcquireError::SelfDeadlock => (class::REENTRANCY, "reads".into()),
        AcquireError::Unreachable(kind) => (class::UNREACHABLE, status(*kind)),
        AcquireError::TooSlow => (class::TOO_SLOW, NONE),
        AcquireError::NotReplicated { .. } => (class::REFUSED, "not-replicated".into()),
        AcquireError::TokenRegressed { .. } => (class::REFUSED, "token-regressed".into()),
        _ => (NEWER, NONE),
    };
    new(class, &error.message(), first, NONE)
}

pub(super) fn request(error: &RequestError) -> Failure {
    match error {
        RequestError::InvalidOption(error) => invalid(error),
        RequestError::Lost(reason) => lost(*reason),
        RequestError::Refused(refusal) => refused(refusal, &error.message()),
        RequestError::NotExecuted(kind) => {
            new(class::NOT_EXECUTED, &error.message(), status(*kind), NONE)
        }
        RequestError::Unreachable(kind) => {
            new(class::UNREACHABLE, &kind.message(), status(*kind), NONE)
        }
        RequestError::NoEntropy => no_entropy(),
        other => newer(&other.message()),
    }
}

pub(super) fn release(error: &ReleaseError) -> Failure {
    match error {
        ReleaseError::Refused(refusal) => refused(refusal, &error.message()),
        ReleaseError::Unknown { held_at_most, cause } => {
            unknown(&error.message(), *held_at_most, *cause)
        }
        other => newer(&other.message()),
    }
}

pub(super) fn guard(error: &GuardError) -> Failure {
    let (reason, newest) = match error {
        GuardError::InvalidOption(error) => return invalid(error),
        GuardError::Lost(reason) => return lost(*reason),
        GuardError::Request(error) => return request(error),
        GuardError::Stale { newest } => ("superseded", Value::from(*newest)),
        GuardError::TooOld { .. } => ("too-old", NONE),
        GuardError::TokenAhead => ("token-ahead", NONE),
        other => return newer(&other.message()),
    };
    new(class::STALE_TOKEN, &error.message(), reason.into(), newest)
}

pub(super) fn eval(error: &EvalError) -> Failure {
    match error {
        EvalError::ScriptFailed(_) => plain(class::SCRIPT_FAILED, &error.message()),
        EvalError::Request(error) => request(error),
        other => newer(&other.message()),
    }
}
