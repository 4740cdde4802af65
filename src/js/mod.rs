//! The JavaScript bindings of the npm package. They contain no rule of their own; their meaning is
//! documented in `pkg/index.d.ts`, and in `objects.d.ts` and `errors.d.ts` beside it. Type
//! declarations are written only there; none are generated from this code.
//!
//! Few functions are exported, since each costs bytes on both sides. A [`Handle`] is any object of
//! the package; numbers, which `pkg/api.js` names, select what it creates, calls and reads. No
//! method holds a borrow across an `await`, so calls may overlap.

mod ask;
mod counts;
mod error;
mod guard;
mod lease;
mod make;
mod numbers;
mod options;

use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use js_sys::Function;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;

use crate::client;
use crate::host::JsHost;
use crate::transport::HostFetch;
use edgelatch_proto::protocol::calls::{CountDownLatchCalls, PermitCalls, SemaphoreCalls};
use edgelatch_proto::timing::PeerSkew;
use options::Numbers;

/// A tenth of the size of the standard allocator, which is enough for few allocations.
#[global_allocator]
static ALLOCATOR: talc::wasm::WasmDynamicTalc = talc::wasm::new_wasm_dynamic_allocator();

type Client = client::Client<HostFetch, JsHost>;
type Lock = client::Lock<HostFetch, JsHost>;

/// Creates a client of the gateway that these options describe.
#[wasm_bindgen(skip_typescript)]
pub fn connect(
    url: &str,
    token: &str,
    numbers: &[f64],
    fetch: Option<Function>,
) -> Result<Handle, JsValue> {
    let numbers = Numbers(numbers);
    let gateway = numbers.gateway(url, token).map_err(error::option)?;
    let spawn = |driver: client::Driver<_, _>| spawn_local(driver.run());
    let client = Client::with_driver(gateway, HostFetch::new(fetch), JsHost, spawn);
    let redacts = numbers.flag(numbers::client::REDACT_NAMES, false);
    Ok(Object::Client(if redacts { client.redact_names() } else { client }).into())
}

/// Any object of the package.
#[wasm_bindgen(skip_typescript)]
pub struct Handle(Rc<Object>);

/// The object behind a `Handle`.
enum Object {
    Client(Client),
    /// Every kind of lock.
    Lock(Lock),
    /// Locks that are collected for a multi-lock or a redLock.
    Several(Client, Vec<Lock>),
    Semaphore(Client, SemaphoreCalls),
    Permits(Client, PermitCalls, PeerSkew),
    Latch(Client, client::CountDownLatch<HostFetch, JsHost>, CountDownLatchCalls),
    Guard(client::Guard<HostFetch, JsHost>),
    Lease(lease::Held),
    Events(lease::Events),
}

#[wasm_bindgen]
extern "C" {
    /// The functions that settle a promise: the result of `Promise.withResolvers`.
    pub type Settle;
    #[wasm_bindgen(method)]
    fn resolve(this: &Settle, answer: &JsValue);
    #[wasm_bindgen(method)]
    fn reject(this: &Settle, error: &JsValue);
}

/// The arguments of a call, as `pkg/options.js` passes them.
struct Given {
    numbers: Vec<f64>,
    texts: Vec<String>,
    signal: JsValue,
}

impl Given {
    fn numbers(&self) -> Numbers<'_> {
        Numbers(&self.numbers)
    }

    /// The first number as a number of permits, which may be negative; 1 by default.
    fn signed(&self) -> i32 {
        self.numbers().get(0).and_then(|number| number.try_into().ok()).unwrap_or(1)
    }
}

#[wasm_bindgen]
impl Handle {
    /// Creates an object from this one, and from `other` if it takes two.
    pub fn create(
        &self,
        kind: u32,
        other: &Self,
        name: &str,
        numbers: &[f64],
        bytes: &[u8],
    ) -> Result<Self, JsValue> {
        let created = make::make(self, kind, other, name, &Numbers(numbers), bytes);
        created.map(Self::from).map_err(error::option)
    }

    /// Sends a request or waits, and settles the promise with the result.
    pub fn call(
        &self,
        what: u32,
        other: &Self,
        numbers: Vec<f64>,
        texts: Vec<String>,
        signal: JsValue,
        settle: Settle,
    ) {
        let (of, other) = (Rc::clone(&self.0), Rc::clone(&other.0));
        let given = Given { numbers, texts, signal };
        spawn_local(async move {
            match ask::answer(&of, what, &other, &given).await {
                Ok(answer) => settle.resolve(&answer),
                Err(error) => settle.reject(&error),
            }
        });
    }

    /// Returns a property that needs no request.
    pub fn get(&self, what: u32, about: &str) -> JsValue {
        ask::known(&self.0, what, about)
    }
}

impl From<Object> for Handle {
    fn from(of: Object) -> Self {
        Self(Rc::new(of))
    }
}
