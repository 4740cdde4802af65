//! Errors as JavaScript sees them: one class per kind, with a stable `code`.

use alloc::format;
use alloc::string::ToString;
use core::time::Duration;

use wasm_bindgen::prelude::*;

use crate::error::{
    AcquireError, FailureKind, InvalidOption, LossReason, Refusal, RefusalKind, ReleaseError,
    RequestError,
};
use crate::time::millis;

#[wasm_bindgen(module = "/src/js/errors.js")]
extern "C" {
    #[wasm_bindgen(reexport)]
    type EdgelatchError;

    #[wasm_bindgen(reexport)]
    type InvalidOptionError;
    #[wasm_bindgen(constructor)]
    fn new(message: &str, option: &str, accepted: &str) -> InvalidOptionError;

    #[wasm_bindgen(reexport)]
    type WaitOverError;
    #[wasm_bindgen(constructor)]
    fn new(message: &str, remaining_ms: Option<f64>) -> WaitOverError;

    #[wasm_bindgen(reexport)]
    type LeaseLostError;
    #[wasm_bindgen(constructor)]
    fn new(message: &str, reason: &str) -> LeaseLostError;

    #[wasm_bindgen(reexport)]
    type GatewayRefusedError;
    #[wasm_bindgen(constructor)]
    fn new(message: &str, reason: &str) -> GatewayRefusedError;

    #[wasm_bindgen(reexport)]
    type GatewayUnreachableError;
    #[wasm_bindgen(constructor)]
    fn new(message: &str) -> GatewayUnreachableError;

    #[wasm_bindgen(reexport)]
    type GatewayTooSlowError;
    #[wasm_bindgen(constructor)]
    fn new(message: &str) -> GatewayTooSlowError;

    #[wasm_bindgen(reexport)]
    type OutcomeUnknownError;
    #[wasm_bindgen(constructor)]
    fn new(message: &str, free_in_ms: f64) -> OutcomeUnknownError;
}

#[expect(clippy::cast_precision_loss, reason = "some days at the most")]
pub(super) fn as_ms(duration: Duration) -> f64 {
    millis(duration) as f64
}

pub(super) fn invalid(error: &InvalidOption) -> JsValue {
    InvalidOptionError::new(&error.to_string(), error.option(), error.accepted()).into()
}

pub(super) fn lost(reason: LossReason) -> JsValue {
    let reason = match reason {
        LossReason::Expired => "expired",
        LossReason::Gone => "gone",
    };
    LeaseLostError::new("the lease was lost", reason).into()
}

fn refused(refusal: &Refusal) -> JsValue {
    let reason = match refusal.kind() {
        RefusalKind::Unauthorized => "unauthorized",
        RefusalKind::OutOfMemory => "out-of-memory",
        RefusalKind::WrongType => "wrong-type",
        RefusalKind::TokenRange => "token-range",
        RefusalKind::Unavailable => "unavailable",
        RefusalKind::Other => "other",
    };
    GatewayRefusedError::new(&refusal.to_string(), reason).into()
}

fn unreachable(kind: FailureKind) -> JsValue {
    GatewayUnreachableError::new(&kind.to_string()).into()
}

fn no_entropy() -> JsValue {
    GatewayUnreachableError::new("this runtime has no crypto.getRandomValues").into()
}

/// `reason` is the reason of the caller's signal, which a cancelled wait rejects with.
pub(super) fn acquire(error: &AcquireError, reason: &JsValue) -> JsValue {
    let message = || error.to_string();
    match error {
        AcquireError::InvalidOption(error) => invalid(error),
        AcquireError::Busy { remaining } => {
            WaitOverError::new(&format!("{error} for the whole wait"), remaining.map(as_ms)).into()
        }
        AcquireError::Cancelled { .. } => reason.clone(),
        AcquireError::Refused(refusal) => refused(refusal),
        AcquireError::Unreachable(_) => GatewayUnreachableError::new(&message()).into(),
        AcquireError::TooSlow => GatewayTooSlowError::new(&message()).into(),
        AcquireError::Unknown { held_at_most, .. } => {
            OutcomeUnknownError::new(&message(), as_ms(*held_at_most)).into()
        }
        AcquireError::NoEntropy => no_entropy(),
    }
}

pub(super) fn request(error: &RequestError) -> JsValue {
    match error {
        RequestError::InvalidOption(error) => invalid(error),
        RequestError::Lost(reason) => lost(*reason),
        RequestError::Refused(refusal) => refused(refusal),
        RequestError::Unreachable(kind) => unreachable(*kind),
        RequestError::NoEntropy => no_entropy(),
    }
}

pub(super) fn release(error: &ReleaseError) -> JsValue {
    match error {
        ReleaseError::Refused(refusal) => refused(refusal),
        ReleaseError::Unknown { held_at_most, .. } => {
            OutcomeUnknownError::new(&error.to_string(), as_ms(*held_at_most)).into()
        }
    }
}
