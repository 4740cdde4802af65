//! The JavaScript door: what the npm package exports. It has no rule of its own; what everything means stands in
//! `pkg/index.d.ts`, which is also its only type declaration.
//!
//! No method holds a borrow across an `await`, so calls may overlap.

mod abort;
mod env;
mod error;
mod lease;
mod lock;
mod options;

use alloc::boxed::Box;
use core::pin::Pin;

use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::client;
use crate::host::JsHost;
use crate::transport::HostFetch;
pub use lease::Lease;
pub use lock::Lock;
use options::{Options, no};

/// A tenth of the bytes of the standard one, and there is little to allocate.
#[global_allocator]
static ALLOCATOR: talc::wasm::WasmDynamicTalc = talc::wasm::new_wasm_dynamic_allocator();

type Client = client::Client<HostFetch, JsHost>;

/// A client of the gateway that the options describe.
#[wasm_bindgen(skip_typescript)]
pub fn connect(options: JsValue) -> Result<Locks, JsValue> {
    if !options.is_object() {
        return Err(no("options", "an object with url and token"));
    }
    let options = Options::new(&options)?;
    let url = options.text("url", "a string")?.ok_or_else(|| no("url", "a string"))?;
    let token = options.text("token", "a string")?.ok_or_else(|| no("token", "a string"))?;
    Locks::new(&options, &url, &token)
}

/// The same, with address and token from an environment.
#[wasm_bindgen(skip_typescript, js_name = fromEnv)]
pub fn from_env(env: JsValue, options: JsValue) -> Result<Locks, JsValue> {
    let options = Options::new(&options)?;
    let prefix = options.text("prefix", "a string")?.unwrap_or_default();
    let (url, token) = env::read(&env, &prefix)?;
    Locks::new(&options, &url, &token)
}

/// A client of one gateway.
#[wasm_bindgen(skip_typescript)]
pub struct Locks {
    client: Client,
}

impl Locks {
    fn new(options: &Options<'_>, url: &str, token: &str) -> Result<Self, JsValue> {
        let gateway = options.gateway(url, token)?;
        Ok(Self { client: Client::new(gateway, HostFetch::new(options.fetch()?), JsHost) })
    }
}

#[wasm_bindgen]
impl Locks {
    /// The lock of this name.
    pub fn lock(&self, name: JsValue) -> Result<Lock, JsValue> {
        let name = options::name(&name)?;
        self.client.lock(&name).map(Lock::new).map_err(|error| error::invalid(&error))
    }

    /// An owner whose acquisitions of one lock share one hold.
    pub fn owner(&self) -> Owner {
        Owner { owner: self.client.owner() }
    }
}

/// Acquisitions made through one owner re-enter each other.
#[wasm_bindgen(skip_typescript)]
pub struct Owner {
    owner: client::Owner<HostFetch, JsHost>,
}

#[wasm_bindgen]
impl Owner {
    /// The lock of this name, for this owner.
    pub fn lock(&self, name: JsValue) -> Result<Lock, JsValue> {
        let name = options::name(&name)?;
        self.owner.lock(&name).map(Lock::new).map_err(|error| error::invalid(&error))
    }
}

/// A promise of what the work comes to. Behind one type, since what settles a promise is generated for each.
fn promise(work: impl Future<Output = Result<JsValue, JsValue>> + 'static) -> Promise {
    let work: Pin<Box<dyn Future<Output = _>>> = Box::pin(work);
    future_to_promise(work)
}
