//! The lock as JavaScript sees it.

use alloc::rc::Rc;
use alloc::string::String;

use js_sys::{Function, Object, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::abort::{Signal, aborted};
use super::error;
use super::lease::{Held, Lease};
use super::options::{Options, no};
use super::promise;
use crate::client::{self, Terms};
use crate::error::AcquireError;
use crate::host::JsHost;
use crate::machine::LockState;
use crate::transport::HostFetch;

#[wasm_bindgen]
extern "C" {
    // What work answers may be a promise of the caller's own making, which may throw when it is looked at.
    #[wasm_bindgen(catch, js_namespace = Promise, js_name = resolve)]
    fn settle(value: &JsValue) -> Result<Promise, JsValue>;
}

/// A distributed re-entrant lock.
#[wasm_bindgen(skip_typescript)]
pub struct Lock {
    lock: Rc<client::Lock<HostFetch, JsHost>>,
}

impl Lock {
    pub(super) fn new(lock: client::Lock<HostFetch, JsHost>) -> Self {
        Self { lock: Rc::new(lock) }
    }
}

#[wasm_bindgen]
impl Lock {
    /// The lock's name.
    #[wasm_bindgen(getter)]
    pub fn name(&self) -> String {
        self.lock.name().as_str().into()
    }

    /// One try.
    #[wasm_bindgen(js_name = tryAcquire)]
    pub fn try_acquire(&self, options: JsValue) -> Promise {
        let lock = Rc::clone(&self.lock);
        promise(async move {
            let options = Options::new(&options)?;
            let (terms, signal) = (options.terms_once()?, options.signal()?);
            match acquire(&lock, terms, signal).await? {
                Ok(held) => Ok(Lease::new(held).into()),
                Err(_) => Ok(JsValue::NULL),
            }
        })
    }

    /// Waits.
    pub fn acquire(&self, options: JsValue) -> Promise {
        let lock = Rc::clone(&self.lock);
        promise(async move {
            acquire_or_reject(&lock, &options).await.map(|held| Lease::new(held).into())
        })
    }

    /// Acquires, calls, releases.
    pub fn run(&self, options_or_work: JsValue, work: JsValue) -> Promise {
        let lock = Rc::clone(&self.lock);
        promise(async move {
            let (options, work) = if options_or_work.is_function() {
                (JsValue::UNDEFINED, options_or_work)
            } else {
                (options_or_work, work)
            };
            let work: Function = work.dyn_into().map_err(|_| no("work", "a function"))?;
            let held = acquire_or_reject(&lock, &options).await?;
            let lease = Lease::new(Rc::clone(&held)).into();
            let result = match work.call1(&JsValue::UNDEFINED, &lease) {
                Ok(promise) => match settle(&promise) {
                    Ok(promise) => JsFuture::from(promise).await,
                    Err(thrown) => Err(thrown),
                },
                Err(thrown) => Err(thrown),
            };
            let end = held.end().await;
            // What the work threw says more than how its lease ended.
            let value = result?;
            end.map(|()| value)
        })
    }

    /// Ends whatever hold there is.
    #[wasm_bindgen(js_name = forceRelease)]
    pub fn force_release(&self) -> Promise {
        let lock = Rc::clone(&self.lock);
        promise(async move {
            lock.force_release()
                .await
                .map(JsValue::from_bool)
                .map_err(|error| error::request(&error))
        })
    }

    /// What Redis says of the lock.
    pub fn inspect(&self) -> Promise {
        let lock = Rc::clone(&self.lock);
        promise(async move {
            let state = lock.inspect().await.map_err(|error| error::request(&error))?;
            lock_state(&state)
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "tokens are below 2^53, counts far below")]
fn lock_state(state: &LockState) -> Result<JsValue, JsValue> {
    let object = Object::new();
    let remaining =
        state.remaining.map_or(JsValue::NULL, |remaining| error::as_ms(remaining).into());
    for (name, value) in [
        ("locked", state.is_locked.into()),
        ("holdCount", (state.hold_count as f64).into()),
        ("remainingMs", remaining),
        ("lastToken", (state.last_token as f64).into()),
    ] {
        Reflect::set(&object, &name.into(), &value)?;
    }
    Ok(Object::freeze(&object).into())
}

async fn acquire_or_reject(
    lock: &client::Lock<HostFetch, JsHost>,
    options: &JsValue,
) -> Result<Rc<Held>, JsValue> {
    let options = Options::new(options)?;
    let signal = options.signal()?;
    acquire(lock, options.terms(signal.is_some())?, signal)
        .await?
        .map_err(|busy| error::acquire(&busy, &JsValue::UNDEFINED))
}

/// The inner error is that the lock is busy; what it means is the caller's to say.
async fn acquire(
    lock: &client::Lock<HostFetch, JsHost>,
    terms: Terms,
    signal: Option<JsValue>,
) -> Result<Result<Rc<Held>, AcquireError>, JsValue> {
    let signal = signal.map(JsCast::unchecked_into::<Signal>);
    let mut reason = JsValue::UNDEFINED;
    let cancel = async { reason = aborted(signal.as_ref()).await };
    match lock.acquire_on(terms, cancel).await {
        Ok(lease) => Ok(Ok(Held::new(lease))),
        Err(busy @ AcquireError::Busy { .. }) => Ok(Err(busy)),
        Err(error) => Err(error::acquire(&error, &reason)),
    }
}
