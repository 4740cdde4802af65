//! Requests that do not concern a hold: each is one call, and a function that reads its reply.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use wasm_bindgen::prelude::*;

use super::make::stray;
use super::numbers::{self, method};
use super::{Client, Given, Object, error};
use crate::error::{InvalidOption, RequestError};
use edgelatch_proto::machine::{LockState, PermitsState, SemaphoreState};
use edgelatch_proto::name::{PermitId, RequestId};
use edgelatch_proto::protocol::calls::{
    CountDownLatchCalls, IdempotentCall, LatchCount, PermitCalls, PermitCount, PermitTotal,
    SemaphoreCalls, Target,
};
use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::ScriptCall;
use edgelatch_proto::timing::LeaseTime;

#[wasm_bindgen(module = "/pkg/errors.js")]
extern "C" {
    /// Creates a snapshot object from these numbers, in the order of its fields.
    fn snapshot(kind: u32, numbers: &[f64]) -> JsValue;
}

/// A request, and the function that reads its reply.
pub(super) struct Request {
    pub(super) send: Send,
    pub(super) read: Read,
}

/// The call that a request sends.
pub(super) enum Send {
    Once(IdempotentCall),
    Question(Box<dyn FnOnce(RequestId) -> ScriptCall>),
}

type Read = fn(&Reply) -> Result<JsValue, RequestError>;

/// Returns the request for the call `what`, and the client that sends it.
pub(super) fn request(
    of: &Object,
    what: u32,
    given: &Given,
) -> Result<(Client, Request), InvalidOption> {
    match of {
        Object::Semaphore(client, calls) => Ok((client.clone(), of_semaphore(calls, what, given)?)),
        Object::Permits(client, calls, _) => Ok((client.clone(), of_permits(calls, what, given)?)),
        Object::Latch(client, _, calls) => Ok((client.clone(), of_latch(calls, what, given)?)),
        Object::Lock(lock) => {
            let target = lock.single()?.target.clone();
            Ok((lock.client(), of_lock(target, what)))
        }
        _ => Err(stray()),
    }
}

fn of_lock(target: Target, what: u32) -> Request {
    match what {
        method::INSPECT => question(move |request| target.inspect(request, None), lock_state),
        _ => once(target.force_release(), done),
    }
}

fn of_semaphore(
    calls: &SemaphoreCalls,
    what: u32,
    given: &Given,
) -> Result<Request, InvalidOption> {
    let numbers = given.numbers();
    Ok(match what {
        method::ADD_PERMITS => once(calls.add(given.signed()), told),
        method::RELEASE => once(calls.add(given.signed()), nothing),
        method::RELEASE_IF_EXISTS => {
            once(calls.add_if_exists(PermitCount::new(given.signed().unsigned_abs())?), done)
        }
        method::DRAIN_PERMITS => once(calls.drain(), told),
        method::TRY_SET_PERMITS => {
            once(calls.try_set(PermitTotal::new(numbers.small(0))?, numbers.life(1)?), done)
        }
        method::FORCE_RELEASE => once(Target::Semaphore(calls.clone()).force_release(), done),
        _ => {
            let target = Target::Semaphore(calls.clone());
            let read = if what == method::INSPECT { semaphore_state } else { available };
            question(move |request| target.inspect(request, None), read)
        }
    })
}

fn of_permits(calls: &PermitCalls, what: u32, given: &Given) -> Result<Request, InvalidOption> {
    let numbers = given.numbers();
    let ids = given.texts.iter().map(|id| PermitId::parse(id)).collect::<Result<Vec<_>, _>>()?;
    Ok(match what {
        method::ADD_PERMITS => once(calls.add(given.signed()), told),
        method::RELEASE => once(calls.release_ids(&ids), told),
        method::UPDATE_LEASE_TIME => {
            once(calls.update_lease(&ids, numbers.lease(0)?.unwrap_or(LeaseTime::DEFAULT)), done)
        }
        method::SET_PERMITS => once(calls.set(PermitTotal::new(numbers.small(0))?), told),
        method::TRY_SET_PERMITS => once(calls.try_set(PermitTotal::new(numbers.small(0))?), done),
        method::FORCE_RELEASE => once(Target::Permits(calls.clone()).force_release(), done),
        _ => {
            let read = if what == method::INSPECT { permits_state } else { available };
            let calls = calls.clone();
            question(move |request| calls.inspect_ids(request, &ids), read)
        }
    })
}

fn of_latch(
    calls: &CountDownLatchCalls,
    what: u32,
    given: &Given,
) -> Result<Request, InvalidOption> {
    Ok(match what {
        method::TRY_SET_COUNT => {
            let count = given.numbers().get(0).unwrap_or_default().unsigned_abs();
            once(calls.try_set(LatchCount::new(count)?), done)
        }
        method::COUNT_DOWN => once(calls.count_down(), told),
        method::DELETE => once(calls.delete(), done),
        _ => {
            let calls = calls.clone();
            question(move |request| calls.inspect(request), told)
        }
    })
}

const fn once(call: IdempotentCall, read: Read) -> Request {
    Request { send: Send::Once(call), read }
}

fn question(ask: impl FnOnce(RequestId) -> ScriptCall + 'static, read: Read) -> Request {
    Request { send: Send::Question(Box::new(ask)), read }
}

fn nothing(_: &Reply) -> Result<JsValue, RequestError> {
    Ok(JsValue::UNDEFINED)
}

fn done(reply: &Reply) -> Result<JsValue, RequestError> {
    Ok((reply.code == Code::Done).into())
}

fn told(reply: &Reply) -> Result<JsValue, RequestError> {
    edgelatch_proto::machine::number(reply).map(|number| as_number(number).into())
}

/// Reads the number of available permits.
fn available(reply: &Reply) -> Result<JsValue, RequestError> {
    Ok(as_number(SemaphoreState::read(reply)?.available).into())
}

fn semaphore_state(reply: &Reply) -> Result<JsValue, RequestError> {
    let SemaphoreState { available, leases, held, .. } = SemaphoreState::read(reply)?;
    Ok(snapshot(
        numbers::snapshot::SEMAPHORE,
        &[as_number(available), as_number(leases), as_number(held)],
    ))
}

fn permits_state(reply: &Reply) -> Result<JsValue, RequestError> {
    let state = PermitsState::read(reply)?;
    let figures = [
        as_number(state.available),
        as_number(state.acquired),
        as_number(state.total),
        remaining(state.remaining),
        f64::from(u8::from(state.are_held)),
    ];
    Ok(snapshot(numbers::snapshot::PERMITS, &figures))
}

/// Reads the state of a lock.
fn lock_state(reply: &Reply) -> Result<JsValue, RequestError> {
    let state = LockState::read(reply)?;
    let figures = [
        f64::from(u8::from(state.is_locked)),
        as_number(state.hold_count),
        remaining(state.remaining),
        as_number(state.last_token),
    ];
    Ok(snapshot(numbers::snapshot::LOCK, &figures))
}

fn remaining(time: Option<Duration>) -> f64 {
    time.map_or(f64::NAN, error::as_ms)
}

/// Converts a count or a token to a JavaScript number, which represents it exactly.
#[expect(clippy::cast_precision_loss, reason = "tokens are below 2^53, counts far below")]
pub(super) fn as_number(number: impl TryInto<i64>) -> f64 {
    number.try_into().unwrap_or_default() as f64
}
