//! The lease as JavaScript sees it.

use alloc::rc::Rc;
use alloc::string::String;

use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::abort::Controller;
use super::error;
use super::options::Options;
use super::promise;
use crate::client::{self, LeaseEnd};
use crate::error::LossReason;
use crate::host::JsHost;
use crate::machine::{LeaseState, Released};
use crate::transport::HostFetch;

/// A lease, and the signal that tells of its loss.
pub(super) struct Held {
    lease: client::Lease<HostFetch, JsHost>,
    controller: Controller,
}

impl Held {
    /// Keeps the lease on the caller's event loop until it ends, or nobody refers to it any more.
    pub(super) fn new(lease: client::Lease<HostFetch, JsHost>) -> Rc<Self> {
        let controller = Controller::new();
        let kept = lease.keep();
        let told: Controller = JsCast::unchecked_into(JsValue::from(&controller));
        spawn_local(async move {
            if let LeaseEnd::Lost(reason) = kept.await {
                drop(told.abort(&error::lost(reason)));
            }
        });
        Rc::new(Self { lease, controller })
    }

    /// Releases; an error when the lease did not last until here.
    pub(super) async fn end(&self) -> Result<(), JsValue> {
        // Lost once is lost for ever, also when Redis has not yet ended the hold: the work was told to stop.
        let lasted = !matches!(self.lease.state(), LeaseState::Lost(_));
        match self.lease.release().await {
            Ok(Released::Released) if lasted => Ok(()),
            // Whether it has ended is not known, but it lasted; Redis ends it by itself.
            Err(_) if lasted => Ok(()),
            Ok(_) | Err(_) => Err(error::lost(self.loss())),
        }
    }

    fn loss(&self) -> LossReason {
        match self.lease.state() {
            LeaseState::Lost(reason) => reason,
            _ => LossReason::Gone,
        }
    }
}

/// A hold on a lock, for a time.
#[wasm_bindgen(skip_typescript)]
pub struct Lease {
    held: Rc<Held>,
}

impl Lease {
    pub(super) const fn new(held: Rc<Held>) -> Self {
        Self { held }
    }
}

#[wasm_bindgen]
impl Lease {
    /// The lock's name.
    #[wasm_bindgen(getter)]
    pub fn name(&self) -> String {
        self.held.lease.name().as_str().into()
    }

    /// The fencing token.
    #[wasm_bindgen(getter)]
    #[expect(clippy::cast_precision_loss, reason = "tokens are below 2^53")]
    pub fn token(&self) -> f64 {
        self.held.lease.token().as_u64() as f64
    }

    /// Aborted when the lease is lost.
    #[wasm_bindgen(getter)]
    pub fn signal(&self) -> JsValue {
        self.held.controller.signal()
    }

    /// How many acquisitions share the hold.
    #[wasm_bindgen(getter, js_name = holdCount)]
    pub fn hold_count(&self) -> u32 {
        self.held.lease.hold_count()
    }

    /// Milliseconds for which the hold can still be trusted.
    pub fn remaining(&self) -> f64 {
        error::as_ms(self.held.lease.remaining())
    }

    /// Asks Redis.
    #[wasm_bindgen(js_name = isHeld)]
    pub fn is_held(&self) -> Promise {
        let held = Rc::clone(&self.held);
        promise(async move {
            held.lease
                .is_held()
                .await
                .map(JsValue::from_bool)
                .map_err(|error| error::request(&error))
        })
    }

    /// Prolongs the hold.
    pub fn renew(&self, options: JsValue) -> Promise {
        let held = Rc::clone(&self.held);
        promise(async move {
            let lease = Options::new(&options)?.lease()?.map(crate::timing::LeaseTime::get);
            held.lease
                .renew(lease)
                .await
                .map(|()| JsValue::UNDEFINED)
                .map_err(|error| error::request(&error))
        })
    }

    /// Ends the hold.
    pub fn release(&self) -> Promise {
        let held = Rc::clone(&self.held);
        promise(async move {
            match held.lease.release().await {
                Ok(Released::Released) => Ok("released".into()),
                Ok(Released::WasLost) => Ok("lost".into()),
                Err(error) => Err(error::release(&error)),
            }
        })
    }

    /// What `await using` calls at the end of its block.
    #[wasm_bindgen(js_name = "[Symbol.asyncDispose]")]
    pub fn dispose(&self) -> Promise {
        let held = Rc::clone(&self.held);
        promise(async move { held.end().await.map(|()| JsValue::UNDEFINED) })
    }
}
