//! Errors as JavaScript sees them: one class per kind, with a stable `code`.

use core::time::Duration;

use wasm_bindgen::prelude::*;

use crate::error::{
    AcquireError, EvalError, FailureKind, GuardError, InvalidOption, LossReason, Refusal,
    RefusalKind, ReleaseError, RequestError,
};
use edgelatch_proto::time::millis;

#[wasm_bindgen(module = "/pkg/errors.js")]
extern "C" {
    /// Creates an error of this kind, with this message and up to two further fields.
    #[wasm_bindgen(js_name = fail)]
    fn new(kind: u32, message: &str, first: &JsValue, second: &JsValue) -> JsValue;
}

// The indices of the classes in pkg/errors.js.
const INVALID_OPTION: u32 = 0;
const WAIT_TIMEOUT: u32 = 1;
const LEASE_LOST: u32 = 2;
const REENTRANCY: u32 = 3;
const NOT_EXECUTED: u32 = 4;
const REFUSED: u32 = 5;
const UNREACHABLE: u32 = 6;
const TOO_SLOW: u32 = 7;
const OUTCOME_UNKNOWN: u32 = 8;
const STALE_TOKEN: u32 = 9;
const SCRIPT_FAILED: u32 = 10;
const NOT_SET_UP: u32 = 13;

const NONE: JsValue = JsValue::UNDEFINED;
const NOTHING_HELD: &str = "; nothing is held";

#[expect(clippy::cast_precision_loss, reason = "some days at the most")]
pub(super) fn as_ms(duration: Duration) -> f64 {
    millis(duration) as f64
}

pub(super) fn invalid(error: &InvalidOption) -> JsValue {
    new(INVALID_OPTION, &error.message(), &error.option().into(), &error.accepted().into())
}

/// Converts an invalid option by value, as `map_err` requires.
#[expect(clippy::needless_pass_by_value, reason = "it is what map_err hands over")]
pub(super) fn option(error: InvalidOption) -> JsValue {
    invalid(&error)
}

pub(super) fn lost(reason: LossReason) -> JsValue {
    new(LEASE_LOST, reason.message(), &loss(reason).into(), &NONE)
}

pub(super) const fn loss(reason: LossReason) -> &'static str {
    match reason {
        LossReason::Expired => "expired",
        LossReason::Gone => "gone",
    }
}

/// `held` is appended to the message: it says what is held after the refusal.
fn refused(refusal: &Refusal, held: &str) -> JsValue {
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
    new(REFUSED, &[&refusal.message(), held].concat(), &reason.into(), &NONE)
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

fn plain(kind: u32, message: &str) -> JsValue {
    new(kind, message, &NONE, &NONE)
}

fn no_entropy() -> JsValue {
    plain(UNREACHABLE, "this runtime has no crypto.getRandomValues")
}

/// Creates the error for a case that the core has and this module does not know: its outcome counts
/// as unknown.
fn newer(message: &str) -> JsValue {
    plain(OUTCOME_UNKNOWN, message)
}

fn unknown(message: &str, held_at_most: Duration, cause: FailureKind) -> JsValue {
    new(OUTCOME_UNKNOWN, message, &as_ms(held_at_most).into(), &status(cause))
}

/// Converts the error of an acquisition. `reason` is the abort reason of the caller's signal, with
/// which a cancelled wait rejects; `busy` describes the obstacle in the message of a wait timeout.
pub(super) fn acquire(error: &AcquireError, reason: &JsValue, busy: &str) -> JsValue {
    let again = |reason: &str| new(REENTRANCY, &error.message(), &reason.into(), &NONE);
    let given_back = || [&error.message(), NOTHING_HELD].concat();
    match error {
        AcquireError::InvalidOption(error) => invalid(error),
        AcquireError::Busy { remaining } => {
            let remaining = remaining.map_or(NONE, |remaining| as_ms(remaining).into());
            new(WAIT_TIMEOUT, &[busy, " for the whole wait"].concat(), &remaining, &NONE)
        }
        AcquireError::NotSetUp => plain(
            NOT_SET_UP,
            "the semaphore does not exist; create it with trySetPermits(n), or with addPermits(0) to wait until permits are added",
        ),
        AcquireError::HeldAlready => again("held"),
        AcquireError::SelfDeadlock => again("reads"),
        AcquireError::Cancelled { .. } => reason.clone(),
        AcquireError::Refused(refusal) => refused(refusal, NOTHING_HELD),
        AcquireError::Unreachable(kind) => {
            new(UNREACHABLE, &error.message(), &status(*kind), &NONE)
        }
        AcquireError::TooSlow => plain(TOO_SLOW, &given_back()),
        AcquireError::NotReplicated { .. } => {
            new(REFUSED, &given_back(), &"not-replicated".into(), &NONE)
        }
        AcquireError::TokenRegressed { .. } => {
            new(REFUSED, &given_back(), &"token-regressed".into(), &NONE)
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
        RequestError::Refused(refusal) => refused(refusal, ""),
        RequestError::NotExecuted(kind) => {
            new(NOT_EXECUTED, &error.message(), &status(*kind), &NONE)
        }
        RequestError::Unreachable(kind) => new(UNREACHABLE, &kind.message(), &status(*kind), &NONE),
        RequestError::NoEntropy => no_entropy(),
        other => newer(&other.message()),
    }
}

pub(super) fn release(error: &ReleaseError) -> JsValue {
    match error {
        ReleaseError::Refused(refusal) => refused(refusal, "; the hold ends with its lease"),
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
    new(STALE_TOKEN, &error.message(), &reason.into(), &newest)
}

pub(super) fn eval(error: &EvalError) -> JsValue {
    match error {
        EvalError::ScriptFailed(_) => plain(SCRIPT_FAILED, &error.message()),
        EvalError::Request(error) => request(error),
        other => newer(&other.message()),
    }
}
