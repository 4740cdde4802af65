//! `reqwest` on top of `fetch`. It follows redirections, which it cannot refuse, so the suite of
//! transports does not apply as a whole. This file has the part that does.

use edgelatch::client::Released;
use edgelatch::error::FailureKind;
use edgelatch::host::JsHost;
use edgelatch::transport::{Request, Reqwest, Response, Transport as _};
use edgelatch::{Client, Gateway};
use js_sys::Function;
use serde_json::Value;
use wasm_bindgen::JsValue;
use wasm_bindgen_test::wasm_bindgen_test;

use super::support::{PEER, UNREACHABLE, gateway, peer};

fn request(url: &str, path: &str) -> Request {
    Request {
        url: format!("{url}{path}"),
        authorization: Some("Bearer a-token".into()),
        sync_token: Some("token-of;the=reply".into()),
        content_type: "application/json",
        body: r#"["EVALSHA","é"]"#.into(),
    }
}

async fn send(path: &str) -> Result<Response, FailureKind> {
    Reqwest::new().send(request(PEER, path)).await
}

#[wasm_bindgen_test]
async fn a_request_is_sent_unchanged() {
    let _fetch = InsteadOfFetch::put(&peer(true));
    let response = send("/mirror/a").await.unwrap();
    let mirror: Value = serde_json::from_slice(&response.body).unwrap();
    assert_eq!(mirror["line"], "POST /mirror/a HTTP/1.1");
    assert_eq!(mirror["body"], r#"["EVALSHA","é"]"#);
    let headers = mirror["headers"].as_object().unwrap();
    let mut names: Vec<&str> = headers.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["authorization", "content-type", "upstash-sync-token"]);
    assert_eq!(headers["content-type"], "application/json");
}

#[wasm_bindgen_test]
async fn results_of_each_type_are_distinguished() {
    let _fetch = InsteadOfFetch::put(&peer(true));
    for status in [200, 400, 401, 429, 503] {
        let response = send(&format!("/status/{status}")).await.unwrap();
        assert_eq!((response.status, response.body.as_slice()), (status, b"body".as_slice()));
        assert_eq!(response.sync_token, Some(format!("after-{status}")));
    }
    assert_eq!(send("/chunks/65536").await.unwrap().body.len(), Response::BODY_MAX);
    assert_eq!(send("/chunks/65537").await.unwrap_err(), FailureKind::TooLarge);
    for place in ["before", "body"] {
        assert_eq!(send(&format!("/broken/{place}")).await.unwrap_err(), FailureKind::Broken);
    }
    let nowhere = Reqwest::new().send(request(UNREACHABLE, "/")).await;
    assert_eq!(nowhere.unwrap_err(), FailureKind::Broken);
}

#[wasm_bindgen_test]
async fn a_lock_is_acquired_and_released() {
    let _fetch = InsteadOfFetch::put(&gateway(1));
    let address = Gateway::upstash("https://gateway.example", "a-token").unwrap();
    let lock = Client::new(address, Reqwest::new(), JsHost).lock("invoice:42").unwrap();
    let lease = lock.acquire().await.unwrap();
    assert_eq!(lease.release().await.unwrap(), Released::Released);
}

/// Puts a fetch function in the place of the runtime's, until it is dropped.
struct InsteadOfFetch(JsValue);

impl InsteadOfFetch {
    fn put(fetch: &Function) -> Self {
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
