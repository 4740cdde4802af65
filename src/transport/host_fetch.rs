//! The transport over a `fetch` function: the caller's, or the runtime's.

use alloc::string::String;
use alloc::vec::Vec;

use js_sys::{Function, Object, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::Transport;
use crate::error::FailureKind;
use crate::protocol::gateway::{Request, Response};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(catch, js_name = fetch)]
    fn global_fetch(url: &str, init: &Object) -> Result<JsValue, JsValue>;

    #[wasm_bindgen(js_name = AbortController)]
    type Controller;
    #[wasm_bindgen(constructor, js_class = "AbortController")]
    fn new() -> Controller;
    #[wasm_bindgen(method, getter)]
    fn signal(this: &Controller) -> JsValue;
    // Outside of the request that it belongs to, a Worker's runtime refuses.
    #[wasm_bindgen(method, catch)]
    fn abort(this: &Controller) -> Result<(), JsValue>;

    // What a fetch function gives is taken for what it shows itself to be: it may be the caller's own.
    #[wasm_bindgen(extends = Object)]
    type Answer;
    #[wasm_bindgen(method, getter, catch)]
    fn status(this: &Answer) -> Result<JsValue, JsValue>;
    #[wasm_bindgen(method, getter, catch)]
    fn headers(this: &Answer) -> Result<Headers, JsValue>;
    #[wasm_bindgen(method, getter, catch)]
    fn body(this: &Answer) -> Result<Option<Stream>, JsValue>;
    type Headers;
    #[wasm_bindgen(method, catch)]
    fn get(this: &Headers, name: &str) -> Result<JsValue, JsValue>;
    type Stream;
    #[wasm_bindgen(method, catch, js_name = getReader)]
    fn reader(this: &Stream) -> Result<Reader, JsValue>;
    type Reader;
    #[wasm_bindgen(method, catch)]
    fn read(this: &Reader) -> Result<JsValue, JsValue>;
}

/// Carries requests by `fetch(url, init)`.
#[derive(Clone, Debug, Default)]
pub struct HostFetch {
    fetch: Option<Function>,
}

impl HostFetch {
    /// By a function of the caller, or by `globalThis.fetch` as it is at each request.
    pub const fn new(fetch: Option<Function>) -> Self {
        Self { fetch }
    }

    fn fetch(&self, url: &str, init: &Object) -> Result<Promise, JsValue> {
        let answer = match &self.fetch {
            None => global_fetch(url, init),
            Some(fetch) => fetch.call2(&JsValue::UNDEFINED, &JsValue::from_str(url), init),
        }?;
        Ok(Promise::resolve(&answer))
    }
}

impl Transport for HostFetch {
    async fn send(&self, request: Request) -> Result<Response, FailureKind> {
        let abort = AbortOnDrop(Some(Controller::new()));
        let init = init(&request, &abort).map_err(|_| FailureKind::NotSent)?;
        // A fetch that throws at once has not begun; one that fails later does not tell how far it came.
        let promise = self.fetch(&request.url, &init).map_err(|_| FailureKind::NotSent)?;
        let answer = JsFuture::from(promise).await.map_err(|_| FailureKind::Broken)?;
        let response = read(answer).await?;
        abort.disarm();
        Ok(response)
    }
}

fn init(request: &Request, abort: &AbortOnDrop) -> Result<Object, JsValue> {
    let set = |object: &Object, name: &str, value: &JsValue| {
        Reflect::set(object, &name.into(), value).map(drop)
    };
    let headers = Object::new();
    set(&headers, "authorization", &request.authorization.as_str().into())?;
    set(&headers, "content-type", &Request::CONTENT_TYPE.into())?;
    if let Some(token) = &request.sync_token {
        set(&headers, Request::SYNC_TOKEN, &token.as_str().into())?;
    }
    let init = Object::new();
    set(&init, "method", &"POST".into())?;
    set(&init, "headers", &headers)?;
    set(&init, "body", &request.body.as_str().into())?;
    set(&init, "redirect", &"manual".into())?;
    set(&init, "signal", &abort.signal())?;
    // Runtimes without these options throw at them; they are in no need of them either.
    let prototype = Reflect::get(&js_sys::global(), &"Request".into())
        .and_then(|class| Reflect::get(&class, &"prototype".into()))?;
    for (option, value) in
        [("cache", "no-store"), ("credentials", "omit"), ("referrerPolicy", "no-referrer")]
    {
        if Reflect::has(&prototype, &option.into()).unwrap_or(false) {
            set(&init, option, &value.into())?;
        }
    }
    Ok(init)
}

async fn read(answer: JsValue) -> Result<Response, FailureKind> {
    let answer: Answer = answer.unchecked_into();
    let garbled = |_| FailureKind::Garbled { status: 0 };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let status = answer.status().map_err(garbled)?.as_f64().unwrap_or_default() as u16;
    // A redirection that is not followed is shown as what it is, or by browsers as status 0.
    if status == 0 || (300..400).contains(&status) {
        return Err(FailureKind::Redirected);
    }
    let header =
        answer.headers().and_then(|headers| headers.get(Request::SYNC_TOKEN)).map_err(garbled)?;
    let sync_token: Option<String> = header.as_string();
    let mut body = Vec::new();
    if let Some(stream) = answer.body().map_err(garbled)? {
        let reader = stream.reader().map_err(garbled)?;
        while let Some(chunk) = next(&reader).await? {
            if body.len() + chunk.byte_length() as usize > Response::BODY_MAX {
                return Err(FailureKind::TooLarge);
            }
            body.extend(chunk.to_vec());
        }
    }
    Ok(Response { status, sync_token, body })
}

async fn next(reader: &Reader) -> Result<Option<Uint8Array>, FailureKind> {
    let broken = |_| FailureKind::Broken;
    let part = Promise::resolve(&reader.read().map_err(broken)?);
    let part = JsFuture::from(part).await.map_err(broken)?;
    let field = |name: &str| Reflect::get(&part, &name.into()).map_err(broken);
    if field("done")?.is_truthy() {
        return Ok(None);
    }
    field("value")?.dyn_into().map(Some).map_err(broken)
}

/// Gives a request up, and its body, when the future that carries it is dropped or fails.
struct AbortOnDrop(Option<Controller>);

impl AbortOnDrop {
    fn signal(&self) -> JsValue {
        self.0.as_ref().map_or(JsValue::UNDEFINED, Controller::signal)
    }

    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        if let Some(controller) = &self.0 {
            drop(controller.abort());
        }
    }
}
