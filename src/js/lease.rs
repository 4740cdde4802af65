//! The lease as JavaScript sees it.

use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, OnceCell};

use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::counts::as_number;
use super::numbers::{method, property};
use super::options::first;
use super::{Given, Object, error};
use crate::client::{self, ClientEvent, LeaseEnd, NotificationMode, Seen, Situation};
use crate::error::{InvalidOption, LossReason, RequestError};
use crate::host::JsHost;
use crate::transport::HostFetch;
use edgelatch_proto::machine::{LeaseState, Released};
use edgelatch_proto::protocol::calls::OwnScript;
use edgelatch_proto::timing::LeaseTime;

#[wasm_bindgen(module = "/pkg/errors.js")]
extern "C" {
    /// The controller of a lease's signal.
    #[wasm_bindgen(js_name = LossController)]
    type Controller;
    #[wasm_bindgen(constructor, js_class = "LossController")]
    fn new() -> Controller;
    #[wasm_bindgen(method, getter)]
    fn signal(this: &Controller) -> JsValue;
    // In some runtimes `abort` throws the exception of a listener.
    #[wasm_bindgen(method, catch)]
    fn abort(this: &Controller, reason: &JsValue) -> Result<(), JsValue>;
}

#[wasm_bindgen(module = "/pkg/errors.js")]
extern "C" {
    /// Creates the event of a lease.
    #[wasm_bindgen(js_name = leaseEvent)]
    fn lease_event(kind: &str, reason: Option<&str>, remaining: f64) -> JsValue;
    /// Creates the event of a client.
    #[wasm_bindgen(js_name = clientEvent)]
    fn client_event(kind: &str, by: Option<f64>) -> JsValue;
}

/// A lease, and the signal that is aborted when it is lost.
pub(super) struct Held {
    lease: client::Lease<HostFetch, JsHost>,
    loss: Rc<Loss>,
}

/// The loss of a lease, if any. The signal is created on first access, since most callers do not
/// use it and it is expensive.
#[derive(Default)]
struct Loss {
    controller: OnceCell<Controller>,
    reason: Cell<Option<LossReason>>,
}

impl Loss {
    fn signal(&self) -> JsValue {
        let controller = self.controller.get_or_init(Controller::new);
        self.tell();
        controller.signal()
    }

    /// Aborts the signal if it exists and the lease is lost. A repeated call changes nothing.
    fn tell(&self) {
        if let (Some(controller), Some(reason)) = (self.controller.get(), self.reason.get()) {
            drop(controller.abort(&error::lost(reason)));
        }
    }
}

impl Held {
    /// Keeps (renews or watches) the lease on the caller's event loop until it ends or is no longer
    /// referenced.
    pub(super) fn new(lease: client::Lease<HostFetch, JsHost>) -> Self {
        let kept = lease.keep();
        let loss: Rc<Loss> = Rc::default();
        let noted = Rc::clone(&loss);
        spawn_local(async move {
            if let LeaseEnd::Lost(reason) = kept.await {
                noted.reason.set(Some(reason));
                noted.tell();
            }
        });
        Self { lease, loss }
    }

    pub(super) const fn lease(&self) -> &client::Lease<HostFetch, JsHost> {
        &self.lease
    }

    /// Returns a property that needs no request.
    pub(super) fn known(&self, what: u32, about: &str) -> JsValue {
        let lease = &self.lease;
        let number = match what {
            property::NAME => return lease.name().as_str().into(),
            property::SIGNAL => return self.loss.signal(),
            property::PERMIT_IDS => {
                let ids: Vec<String> =
                    lease.permit_ids().into_iter().map(|id| id.to_text()).collect();
                return ids.join(",").into();
            }
            property::TOKEN => as_number(lease.token().as_u64()),
            property::HOLD_COUNT => lease.hold_count().into(),
            property::REMAINING => error::as_ms(lease.remaining()),
            _ => match lease.token_of(about) {
                Some(token) => as_number(token.as_u64()),
                None => return JsValue::NULL,
            },
        };
        number.into()
    }

    /// Executes a call that sends a request.
    pub(super) async fn answer(&self, what: u32, given: &Given) -> Result<JsValue, JsValue> {
        let lease = &self.lease;
        let numbers = given.numbers();
        match what {
            method::IS_HELD => {
                let is_held = lease.query_hold().await.map_err(|error| error::request(&error))?;
                Ok(is_held.into())
            }
            method::RENEW => {
                let time = numbers.lease(0).map_err(error::option)?.map(LeaseTime::get);
                let renewed = lease.extend(time).await.map_err(|error| match &error {
                    RequestError::InvalidOption(bad) => {
                        error::option(InvalidOption::new("leaseMs", bad.accepted()))
                    }
                    other => error::request(other),
                });
                renewed.map(|()| JsValue::UNDEFINED)
            }
            method::EVAL => {
                let names = numbers.small(1) as usize;
                let keys = given.texts.iter().skip(1).take(names).cloned().collect();
                let words = given.texts.iter().skip(1 + names).cloned().collect();
                let script = OwnScript::new(first(&given.texts), keys, words);
                let mut script = script.map_err(error::option)?;
                if !numbers.flag(0, true) {
                    script = script.repeatable();
                }
                Ok(lease.run_script(&script).await.map_err(|error| error::eval(&error))?.into())
            }
            _ => {
                // A lost lease stays lost, even if Redis has not ended the hold yet: the signal has
                // already stopped the work.
                let lasted = !matches!(lease.state(), LeaseState::Lost(_));
                let released = lease.end().await;
                if what == method::END {
                    self.end(lasted, released.ok())
                } else {
                    let released = released.map_err(|error| error::release(&error))?;
                    Ok(match released {
                        Released::Released => "released",
                        Released::WasLost => "lost",
                    }
                    .into())
                }
            }
        }
    }

    /// Returns the result at the end of a callback or block: an error if the lease was lost before.
    fn end(&self, lasted: bool, released: Option<Released>) -> Result<JsValue, JsValue> {
        match released {
            // Without a reply the release is unconfirmed, but the lease lasted until here, and
            // Redis ends the hold by itself.
            Some(Released::Released) | None if lasted => Ok(JsValue::UNDEFINED),
            _ => Err(error::lost(self.lease.loss())),
        }
    }
}

/// The events of a lease or of a client, one after the other.
pub(super) struct Events {
    of: Rc<Object>,
    seen: Cell<Option<Situation>>,
    noticed: Cell<Seen>,
}

impl Events {
    pub(super) fn new(of: Rc<Object>) -> Self {
        Self { of, seen: Cell::new(None), noticed: Cell::default() }
    }

    /// Waits for the next event and returns it; undefined after the last.
    pub(super) async fn next(&self) -> JsValue {
        let lease = match &*self.of {
            Object::Lease(Held { lease, .. }) => lease,
            Object::Client(client) => {
                let (event, seen) = client.event(self.noticed.get()).await;
                self.noticed.set(seen);
                return match event {
                    ClientEvent::NotificationMode(NotificationMode::Stream) => {
                        client_event("stream", None)
                    }
                    ClientEvent::NotificationMode(NotificationMode::Polling) => {
                        client_event("polling", None)
                    }
                    ClientEvent::ClockSetBack { by } => {
                        client_event("clock-set-back", Some(error::as_ms(by)))
                    }
                };
            }
            _ => return JsValue::UNDEFINED,
        };
        let seen = self.seen.get();
        if seen.is_some_and(|seen| seen.is_over()) {
            return JsValue::UNDEFINED;
        }
        let now = lease.news(seen).await;
        self.seen.set(Some(now));
        let (kind, reason) = match now.state {
            LeaseState::Lost(reason) => ("lost", Some(error::loss(reason))),
            _ if now.released => ("released", None),
            LeaseState::Held => ("held", None),
            LeaseState::Renewed => ("renewed", None),
            LeaseState::Unknown => ("unknown", None),
        };
        lease_event(kind, reason, error::as_ms(lease.remaining()))
    }
}
