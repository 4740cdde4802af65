//! Fetch functions that are made in the test.

use js_sys::Function;
use wasm_bindgen::prelude::*;

/// The address of the peer, which only its fetch function knows.
pub(super) const PEER: &str = "https://peer.example";
/// An address where nobody listens.
pub(super) const NOBODY: &str = "https://nobody.example";

/// The peer of the transport's suite. `shown`: a redirection is seen as it is, as in Node, and not hidden, as in browsers.
pub(super) fn peer(shown: bool) -> Function {
    made(&["shown"], include_str!("peer.js"), &[shown.into()])
}

/// A gateway with one lock, which is granted after so many tries.
pub(super) fn gateway(refusals: u32) -> Function {
    made(&["refusals"], include_str!("gateway.js"), &[refusals.into()])
}

/// What the body of a function answers.
fn made(names: &[&str], body: &str, values: &[JsValue]) -> Function {
    let function = Function::new_with_args(&names.join(","), body);
    let values: js_sys::Array = values.iter().collect();
    function.apply(&JsValue::UNDEFINED, &values).unwrap().unchecked_into()
}

/// Puts a fetch function in the place of the runtime's, until it is dropped.
pub(super) struct InsteadOfFetch(JsValue);

impl InsteadOfFetch {
    pub(super) fn put(fetch: &Function) -> Self {
        let global = js_sys::global();
        let before = js_sys::Reflect::get(&global, &"fetch".into()).unwrap();
        js_sys::Reflect::set(&global, &"fetch".into(), fetch).unwrap();
        Self(before)
    }
}

impl Drop for InsteadOfFetch {
    fn drop(&mut self) {
        js_sys::Reflect::set(&js_sys::global(), &"fetch".into(), &self.0).unwrap();
    }
}
