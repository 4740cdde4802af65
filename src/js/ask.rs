//! All asynchronous calls behind one future, so that the code of a future is generated once.

use alloc::rc::Rc;

use wasm_bindgen::prelude::*;

use super::lease::Held;
use super::make::stray;
use super::numbers::{method, property, wait};
use super::{Given, Handle, Lock, Object, counts, error, guard};
use crate::error::{AcquireError, InvalidOption};
use crate::web::{self, Awaited};
use edgelatch_proto::protocol::calls::{
    BatchSize, PermitCalls, PermitCount, SemaphoreCalls, Target,
};

/// Executes a call, and returns its result.
pub(super) async fn answer(
    of: &Rc<Object>,
    what: u32,
    other: &Object,
    given: &Given,
) -> Result<JsValue, JsValue> {
    match &**of {
        Object::Lease(held) => held.answer(what, given).await,
        Object::Events(events) => Ok(events.next().await),
        Object::Guard(on) => guard::answer(on, what, other, given).await,
        _ if matches!(what, method::ACQUIRE | method::TRY_ACQUIRE | method::RUN | method::WAIT) => {
            wait(of, what, given).await
        }
        _ => {
            let (client, request) = counts::request(of, what, given).map_err(error::option)?;
            let reply = match request.send {
                counts::Send::Once(call) => client.once(call).await,
                counts::Send::Question(ask) => client.query(ask).await,
            };
            reply.and_then(|reply| (request.read)(&reply)).map_err(|error| error::request(&error))
        }
    }
}

/// Returns a property that needs no request.
pub(super) fn known(of: &Object, what: u32, about: &str) -> JsValue {
    match of {
        Object::Lease(held) => held.known(what, about),
        Object::Guard(guard) => guard.key().as_str().into(),
        Object::Lock(lock) if what == property::NAME => lock.name().as_str().into(),
        Object::Semaphore(_, calls) => calls.name().as_str().into(),
        Object::Permits(_, calls, _) => calls.name().as_str().into(),
        Object::Latch(_, latch, _) => latch.name().as_str().into(),
        _ => JsValue::UNDEFINED,
    }
}

/// Acquires, or waits for a latch.
async fn wait(of: &Object, what: u32, given: &Given) -> Result<JsValue, JsValue> {
    let once = what == method::TRY_ACQUIRE;
    let terms = given.numbers().terms(once).map_err(error::option)?;
    let mut reason = JsValue::UNDEFINED;
    let cancel = async { reason = aborted(&given.signal).await };
    let end = match of {
        Object::Latch(_, latch, _) => {
            latch.wait_on(terms, cancel).await.map(|()| JsValue::UNDEFINED)
        }
        _ => taken(of, given)
            .map_err(error::option)?
            .acquire_on(terms, cancel)
            .await
            .map(|lease| Handle::from(Object::Lease(Held::new(lease))).into()),
    };
    match end {
        Err(AcquireError::Busy { .. }) if once => Ok(JsValue::NULL),
        end => end.map_err(|error| error::acquire(&error, &reason, busy(of))),
    }
}

/// Describes the obstacle of a wait, for its timeout error.
const fn busy(of: &Object) -> &'static str {
    match of {
        Object::Latch(..) => "the latch was closed",
        Object::Semaphore(..) | Object::Permits(..) => "too few permits were available",
        _ => "another client held the lock",
    }
}

/// Waits until the signal is aborted, and returns its reason; without a signal it never ends.
async fn aborted(signal: &JsValue) -> JsValue {
    if signal.is_undefined() {
        return core::future::pending().await;
    }
    let mut abort = Awaited::new(&|wake| web::on_abort(signal, wake));
    core::pin::Pin::new(&mut abort).await;
    abort.result().reason()
}

/// Returns the lock to acquire; for permits, with their number.
fn taken(of: &Object, given: &Given) -> Result<Lock, InvalidOption> {
    let permits = given.numbers().get(wait::PERMITS).unwrap_or(1);
    let (target, client) = match of {
        Object::Lock(lock) => return Ok(lock.clone()),
        Object::Semaphore(client, calls) => {
            let count = PermitCount::new(u32::try_from(permits).unwrap_or_default())?;
            let calls = SemaphoreCalls::new(calls.name().clone(), client.announces(), count);
            (Target::Semaphore(calls), client)
        }
        Object::Permits(client, calls, skew) => {
            let count = BatchSize::new(u16::try_from(permits).unwrap_or_default())?;
            let calls = PermitCalls::new(calls.name().clone(), client.announces(), count, *skew);
            (Target::Permits(calls), client)
        }
        _ => return Err(stray()),
    };
    Ok(client.taking(target))
}
