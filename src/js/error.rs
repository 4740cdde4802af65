//! Errors as JavaScript sees them: one class per kind, with a stable `code`.

use core::time::Duration;

use wasm_bindgen::prelude::*;

use super::numbers::class;
use crate::error::{
    AcquireError, EvalError, FailureKind, GuardError, InvalidOption, LossReason, Refusal,
    RefusalKind, ReleaseError, RequestError,
};
use edgelatch_proto::time::millis;

#[wasm_bindgen(module = "/pkg/errors.js")]
extern "C" {
    /// Creates an error of the class with this number: with a message and up to two more fields.
    #[wasm_bindgen(js_name = fail)]
    fn new(class: u32, message: &str, first: &JsValue, second: &JsValue) -> JsValue;
}

const NONE: JsValue = JsValue::UNDEFINED;

#[expect(clippy::cast_precision_loss, reason = "some days at the most")]
pub(super) fn as_ms(duration: Duration) -> f64 {
    millis(duration) as f64
}

pub(super) fn invalid(error: &InvalidOption) -> JsValue {
    new(class::INVALID_OPTION, &error.message(), &error.option().into(), &error.accepted().into())
}

/// Converts an invalid option by value, as `map_err` requires.
#[expect(clippy::needless_pass_by_value, reason = "it is what map_err hands over")]
pub(super) fn option(error: InvalidOption) -> JsValue {
    invalid(&error)
}

pub(super) fn lost(reason: LossReason) -> JsValue {
    new(class::LEASE_LOST, reason.message(), &loss(reason).into(), &NONE)
}

pub(super) const fn loss(reason: LossReason) -> &'static str {
    match reason {
        LossReason::Expired => "expired",
        LossReason::Gone => "gone",
    }
}

fn refused(refusal: &Refusal, message: &str) -> JsValue {
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
    new(class::REFUSED, message, &reason.into(), &refusal.status().into())
}

/// The HTTP status of the response that could not be used, if there was one.
fn status(kind: FailureKind) -> JsValue {
    match kind {
        FailureKind::Garbled { status }
        | FailureKind::WebPage { status }
        | FailureKind::Gateway { status, .. } => status.into(),
        _ => NONE,
    }
}

fn plain(class: u32, message: &str) -> JsValue {
    new(class, message, &NONE, &NONE)
}

fn no_entropy() -> JsValue {
    plain(class::UNREACHABLE, "this runtime has no crypto.getRandomValues")
}

/// Creates the error for a case that the core has and this module does not know: its outcome counts
/// as unknown.
fn newer(message: &str) -> JsValue {
    plain(class::OUTCOME_UNKNOWN, message)
}

fn unknown(message: &str, held_at_most: Duration, cause: FailureKind) -> JsValue {
    new(class::OUTCOME_UNKNOWN, message, &as_ms(held_at_most).into(), &status(cause))
}

/// Converts the error of an acquisition. `reason` is the abort reason of the caller's signal, with
/// which a cancelled wait rejects; `busy` describes the obstacle in the message of a wait timeout.
pub(super) fn acquire(error: &AcquireError, reason: &JsValue, busy: &str) -> JsValue {
    let again = |reason: &str| new(class::REENTRANCY, &error.message(), &reason.into(), &NONE);
    match error {
        AcquireError::InvalidOption(error) => invalid(error),
        AcquireError::Busy { remaining } => {
            let remaining = remaining.map_or(NONE, |remaining| as_ms(remaining).into());
            new(class::WAIT_TIMEOUT, &[busy, " for the whole wait"].concat(), &remaining, &NONE)
        }
        AcquireError::NotSetUp => plain(
            class::NOT_SET_UP,
            "the semaphore does not exist; create it with trySetPermits(n), or with addPermits(0) to wait until permits are added",
        ),
        AcquireError::HeldAlready => again("held"),
        AcquireError::SelfDeadlock => again("reads"),
        AcquireError::Cancelled { .. } => reason.clone(),
        AcquireError::Refused(refusal) => refused(refusal, &error.message()),
        AcquireError::Unreachable(kind) => {
            new(class::UNREACHABLE, &error.message(), &status(*kind), &NONE)
        }
        AcquireError::TooSlow => plain(class::TOO_SLOW, &error.message()),
        AcquireError::NotReplicated { .. } => {
            new(class::REFUSED, &error.message(), &"not-replicated".into(), &NONE)
        }
        AcquireError::TokenRegressed { .. } => {
            new(class::REFUSED, &error.message(), &"token-regressed".into(), &NONE)
        }
        AcquireError::Unknown { held_at_most, cause } => {
            unknown(&error.message(), *held_at_most, *cause)
        }
        AcquireError::NoEntropy => no_entropy(),
        other => newer(&other.message()),
    }
}

pub(super) fn request(error: &RequestError) -> JsValue {
    match error {
        RequestError::InvalidOption(error) => invalid(error),
        RequestError::Lost(reason) => lost(*reason),
        RequestError::Refused(refusal) => refused(refusal, &error.message()),
        RequestError::NotExecuted(kind) => {
            new(class::NOT_EXECUTED, &error.message(), &status(*kind), &NONE)
        }
        RequestError::Unreachable(kind) => {
            new(class::UNREACHABLE, &kind.message(), &status(*kind), &NONE)
        }
        RequestError::NoEntropy => no_entropy(),
        other => newer(&other.message()),
    }
}

pub(super) fn release(error: &ReleaseError) -> JsValue {
    match error {
        ReleaseError::Refused(refusal) => refused(refusal, &error.message()),
        ReleaseError::Unknown { held_at_most, cause } => {
            unknown(&error.message(), *held_at_most, *cause)
        }
        other => newer(&other.message()),
    }
}

pub(super) fn guard(error: &GuardError) -> JsValue {
    let (reason, newest) = match error {
        GuardError::InvalidOption(error) => return invalid(error),
        GuardError::Lost(reason) => return lost(*reason),
        GuardError::Request(error) => return request(error),
        GuardError::Stale { newest } => ("superseded", super::counts::as_number(*newest).into()),
        GuardError::TooOld { .. } => ("too-old", NONE),
        GuardError::TokenAhead => ("token-ahead", NONE),
        other => return newer(&other.message()),
    };
    new(class::STALE_TOKEN, &error.message(), &reason.into(), &newest)
}

pub(super) fn eval(error: &EvalError) -> JsValue {
    match error {
        EvalError::ScriptFailed(_) => plain(class::SCRIPT_FAILED, &error.message()),
        EvalError::Request(error) => request(error),
        other => newer(&other.message()),
    }
}
