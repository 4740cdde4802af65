//! The JavaScript door: what the npm package is made of. It has no rule of its own; what everything
//! means stands in `pkg/index.d.ts` and in `objects.d.ts` and `errors.d.ts` beside it. Type
//! declarations are written there alone; none are made of this code.
//!
//! Few functions come out of here, since each costs bytes on both sides: a [`Thing`] is any object
//! of the package, and is made, asked and told of by numbers, to which `pkg/api.js` gives names. No
//! method holds a borrow across an `await`, so calls may overlap.

mod ask;
mod counts;
mod error;
mod guard;
mod host;
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
use crate::protocol::calls::{CountDownLatchCalls, PermitCalls, SemaphoreCalls};
use crate::timing::PeerSkew;
use crate::transport::HostFetch;
use host::NpmHost;
use options::Numbers;

/// A tenth of the bytes of the standard one, and there is little to allocate.
#[global_allocator]
static ALLOCATOR: talc::wasm::WasmDynamicTalc = talc::wasm::new_wasm_dynamic_allocator();

type Client = client::Client<HostFetch, NpmHost>;
type Lock = client::Lock<HostFetch, NpmHost>;

/// A client of the gateway that these describe.
#[wasm_bindgen(skip_typescript)]
pub fn connect(
    url: &str,
    token: &str,
    numbers: &[f64],
    fetch: Option<Function>,
) -> Result<Thing, JsValue> {
    let gateway = Numbers(numbers).gateway(url, token).map_err(error::option)?;
    Ok(Of::Client(Client::new(gateway, HostFetch::new(fetch), NpmHost)).into())
}

/// Any object of the package.
#[wasm_bindgen(skip_typescript)]
pub struct Thing(Rc<Of>);

/// What a thing is.
enum Of {
    Client(Client),
    /// All that is acquired as it is.
    Lock(Lock),
    /// Locks that are to be one.
    Several(Client, Vec<Lock>),
    Semaphore(Client, SemaphoreCalls),
    Permits(Client, PermitCalls, PeerSkew),
    Latch(Client, client::CountDownLatch<HostFetch, NpmHost>, CountDownLatchCalls),
    /// With whether its errors leave names out.
    Guard(client::Guard<HostFetch, NpmHost>, bool),
    Lease(lease::Held),
    Events(lease::Events),
}

#[wasm_bindgen]
extern "C" {
    /// A promise from inside: what `Promise.withResolvers` gives.
    pub type Settle;
    #[wasm_bindgen(method)]
    fn resolve(this: &Settle, answer: &JsValue);
    #[wasm_bindgen(method)]
    fn reject(this: &Settle, error: &JsValue);
}

/// What was handed in for a question, as `pkg/options.js` gives it.
struct Given {
    numbers: Vec<f64>,
    texts: Vec<String>,
    signal: JsValue,
}

impl Given {
    fn numbers(&self) -> Numbers<'_> {
        Numbers(&self.numbers)
    }

    /// A number of permits, also a negative one; 1 unless said.
    fn signed(&self) -> i32 {
        self.numbers().get(0).and_then(|number| number.try_into().ok()).unwrap_or(1)
    }
}

#[wasm_bindgen]
impl Thing {
    /// A thing that comes of this one, and of another where it takes two.
    pub fn make(
        &self,
        kind: u32,
        other: &Self,
        name: &str,
        numbers: &[f64],
        bytes: &[u8],
    ) -> Result<Self, JsValue> {
        let made = make::make(self, kind, other, name, &Numbers(numbers), bytes);
        made.map(Self::from).map_err(error::option)
    }

    /// What takes time: everything that Redis is asked for.
    pub fn ask(
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

    /// What is known at once.
    pub fn tell(&self, what: u32, about: &str) -> JsValue {
        ask::known(&self.0, what, about)
    }
}

impl From<Of> for Thing {
    fn from(of: Of) -> Self {
        Self(Rc::new(of))
    }
}
