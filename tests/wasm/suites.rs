//! The conformance suites of transports and hosts, for those that a JavaScript runtime has.

use edgelatch::host::JsHost;
use edgelatch::transport::HostFetch;
use wasm_bindgen_test::wasm_bindgen_test;

use super::support::{PEER, UNREACHABLE, peer};
use crate::{host_suite as host, transport_suite as transport};

/// `fetch` does not report whether it sent the request, and adds no header that a fetch function
/// would see.
const ENV: transport::TransportEnv<'_> = transport::TransportEnv {
    peer: PEER,
    unreachable: UNREACHABLE,
    reports_unsent: false,
    added_headers: &[],
};

#[wasm_bindgen_test]
async fn a_fetch_function_passes_the_suite_of_transports() {
    let transport = HostFetch::new(Some(peer(true)));
    transport::check(&transport, &ENV).await;
    transport::check(&&transport, &ENV).await;
}

#[wasm_bindgen_test]
async fn a_fetch_function_that_hides_redirections_passes_the_suite_of_transports() {
    transport::check(&HostFetch::new(Some(peer(false))), &ENV).await;
}

#[wasm_bindgen_test]
async fn the_event_loop_passes_the_suite_of_hosts() {
    host::check(&JsHost, |_| ()).await;
}
