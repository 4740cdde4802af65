//! Fetch functions that the tests create.

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

/// The peer of the transport's suite. `shown`: redirections are visible, as in Node, instead of
/// hidden, as in browsers.
pub(super) fn peer(shown: bool) -> Function {
    made("shown", include_str!("peer.js"), shown)
}

/// A gateway with one lock, which it grants after `refusals` refused tries.
pub(super) fn gateway(refusals: u32) -> Function {
    made("refusals", include_str!("gateway.js"), refusals)
}

/// Calls a JavaScript function of one parameter, and returns the function that it returns.
fn made(parameter: &str, body: &str, value: impl Into<JsValue>) -> Function {
    let function: Function = eval(&format!("({parameter}) => {{\n{body}\n}}")).unchecked_into();
    function.call1(&JsValue::UNDEFINED, &value.into()).unwrap().unchecked_into()
}
