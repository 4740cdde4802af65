//! Fetch functions that are made in the test.

use js_sys::Function;
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    fn eval(text: &str) -> JsValue;
}

/// The address of the peer, which only its fetch function knows.
pub(super) const PEER: &str = "https://peer.example";
/// An address without a server.
pub(super) const UNREACHABLE: &str = "https://unreachable.example";

/// The peer of the transport's suite. `shown`: a redirection is seen as it is, as in Node, and not
/// hidden, as in browsers.
pub(super) fn peer(shown: bool) -> Function {
    made("shown", include_str!("peer.js"), shown)
}

/// A gateway with one lock, which is granted after so many tries.
pub(super) fn gateway(refusals: u32) -> Function {
    made("refusals", include_str!("gateway.js"), refusals)
}

/// What a function of one parameter answers to a value.
fn made(parameter: &str, body: &str, value: impl Into<JsValue>) -> Function {
    let function: Function = eval(&format!("({parameter}) => {{\n{body}\n}}")).unchecked_into();
    function.call1(&JsValue::UNDEFINED, &value.into()).unwrap().unchecked_into()
}
