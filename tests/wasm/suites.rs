//! The conformance suites of transports and hosts, for those that a JavaScript runtime has.

use edgelatch::host::JsHost;
use edgelatch::transport::HostFetch;
use wasm_bindgen_test::wasm_bindgen_test;

use super::support::{PEER, UNREACHABLE, peer};
use crate::{host_suite as host, transport_suite as transport};

/// `fetch` does not report whether it sent the request, and adds no header that a fetch function
/// would see.
const AROUND: transport::Surroundings<'_> = transport::Surroundings {
    peer: PEER,
    unreachable: UNREACHABLE,
    reports_unsent: false,
    adds: &[],
};

#[wasm_bindgen_test]
async fn a_fetch_function_is_a_transport() {
    let transport = HostFetch::new(Some(peer(true)));
    transport::check(&transport, &AROUND).await;
    transport::check(&&transport, &AROUND).await;
}

#[wasm_bindgen_test]
async fn a_fetch_function_that_hides_redirections_is_a_transport() {
    transport::check(&HostFetch::new(Some(peer(false))), &AROUND).await;
}

#[wasm_bindgen_test]
async fn the_event_loop_is_a_host() {
    host::check(&JsHost, |_| ()).await;
}
