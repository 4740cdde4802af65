//! `AbortSignal` both ways: the caller's ends a wait, a lease's tells of its loss.

use alloc::rc::Rc;
use core::cell::RefCell;
use core::future::{pending, poll_fn};
use core::task::{Poll, Waker};

use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// A signal that the caller handed in.
    #[wasm_bindgen(js_name = AbortSignal)]
    pub(super) type Signal;
    #[wasm_bindgen(method, getter, catch)]
    fn aborted(this: &Signal) -> Result<JsValue, JsValue>;
    #[wasm_bindgen(method, getter, catch)]
    fn reason(this: &Signal) -> Result<JsValue, JsValue>;
    #[wasm_bindgen(method, catch, js_name = addEventListener)]
    fn add_event_listener(
        this: &Signal,
        kind: &str,
        callback: &Closure<dyn FnMut()>,
    ) -> Result<(), JsValue>;
    // Outside of the request that it belongs to, a Worker's runtime refuses; it forgets the listener by itself then.
    #[wasm_bindgen(method, catch, js_name = removeEventListener)]
    fn remove_event_listener(
        this: &Signal,
        kind: &str,
        callback: &Closure<dyn FnMut()>,
    ) -> Result<(), JsValue>;

    /// What aborts a signal of ours.
    #[wasm_bindgen(js_name = AbortController)]
    pub(super) type Controller;
    #[wasm_bindgen(constructor, js_class = "AbortController")]
    pub(super) fn new() -> Controller;
    #[wasm_bindgen(method, getter)]
    pub(super) fn signal(this: &Controller) -> JsValue;
    // A listener of the caller that throws is heard of here in some runtimes.
    #[wasm_bindgen(method, catch)]
    pub(super) fn abort(this: &Controller, reason: &JsValue) -> Result<(), JsValue>;
}

/// Ends when the signal is aborted, with its reason; never without a signal.
///
/// A signal that cannot be read (a Worker's, of another request) ends it as well, with what was thrown.
pub(super) async fn aborted(signal: Option<&Signal>) -> JsValue {
    let Some(signal) = signal else { return pending().await };
    let ended = async {
        let waker: Rc<RefCell<Option<Waker>>> = Rc::default();
        let listener = Listener::new(signal, Rc::clone(&waker))?;
        poll_fn(|cx| {
            if listener.signal.aborted()?.is_truthy() {
                return Poll::Ready(listener.signal.reason());
            }
            waker.replace(Some(cx.waker().clone()));
            Poll::Pending
        })
        .await
    };
    ended.await.unwrap_or_else(|thrown: JsValue| thrown)
}

/// Listens, and leaves nothing behind on a signal that may live for long.
struct Listener<'a> {
    signal: &'a Signal,
    callback: Closure<dyn FnMut()>,
}

impl<'a> Listener<'a> {
    fn new(signal: &'a Signal, waker: Rc<RefCell<Option<Waker>>>) -> Result<Self, JsValue> {
        let callback = Closure::new(move || {
            if let Some(waker) = waker.take() {
                waker.wake();
            }
        });
        signal.add_event_listener("abort", &callback)?;
        Ok(Self { signal, callback })
    }
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        drop(self.signal.remove_event_listener("abort", &self.callback));
    }
}
