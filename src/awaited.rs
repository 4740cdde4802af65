//! A future for operations of a JavaScript runtime: one type for all of them.

use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use js_sys::Function;
use wasm_bindgen::prelude::*;

#[wasm_bindgen(module = "/src/web.js")]
extern "C" {
    /// An operation that is pending or has ended.
    pub(crate) type Pending;
    #[wasm_bindgen(method, getter)]
    fn done(this: &Pending) -> bool;
    #[wasm_bindgen(method)]
    fn cancel(this: &Pending);

    /// The number of a request's failure, if it failed.
    #[wasm_bindgen(method, getter)]
    pub(crate) fn failure(this: &Pending) -> Option<u32>;
    #[wasm_bindgen(method, getter)]
    pub(crate) fn status(this: &Pending) -> u16;
    #[wasm_bindgen(method, getter)]
    pub(crate) fn token(this: &Pending) -> Option<String>;
    /// The seconds of the gateway's `Retry-After`, if it sent one.
    #[wasm_bindgen(method, getter, js_name = retryAfter)]
    pub(crate) fn retry_after(this: &Pending) -> Option<u32>;
    #[wasm_bindgen(method, getter)]
    pub(crate) fn bytes(this: &Pending) -> Option<Vec<u8>>;

    pub(crate) fn sleep(ms: f64, wake: &Wake) -> Pending;
    pub(crate) fn send(
        fetch: Option<&Function>,
        url: &str,
        authorization: Option<&str>,
        content_type: &str,
        token: Option<&str>,
        accept: Option<&str>,
        body: &str,
        wake: &Wake,
    ) -> Pending;
    pub(crate) fn read(stream: &Pending, wake: &Wake) -> Pending;
}

/// The function that JavaScript calls when an operation has ended.
pub(crate) type Wake = Closure<dyn FnMut()>;

/// A future that ends when the operation has. Dropping it cancels the operation.
pub(crate) struct Awaited {
    pending: Pending,
    waker: Rc<RefCell<Option<Waker>>>,
    _wake: Wake,
}

impl Awaited {
    pub(crate) fn new(begin: &dyn Fn(&Wake) -> Pending) -> Self {
        let waker: Rc<RefCell<Option<Waker>>> = Rc::default();
        let to_wake = Rc::clone(&waker);
        let wake = Closure::new(move || {
            if let Some(waker) = to_wake.take() {
                waker.wake();
            }
        });
        Self { pending: begin(&wake), waker, _wake: wake }
    }

    /// The result of the operation.
    pub(crate) const fn result(&self) -> &Pending {
        &self.pending
    }
}

impl Future for Awaited {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.pending.done() {
            return Poll::Ready(());
        }
        self.waker.replace(Some(cx.waker().clone()));
        Poll::Pending
    }
}

/// A later end of the operation wakes no task.
impl Drop for Awaited {
    fn drop(&mut self) {
        self.pending.cancel();
    }
}
