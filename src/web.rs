//! What is waited for inside a JavaScript runtime. The work is done by `web.js`, since whatever
//! crosses the border costs bytes and time; on this side there is one future for all of it.

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
    /// Something that is under way, or over.
    pub(crate) type Pending;
    #[wasm_bindgen(method, getter)]
    fn over(this: &Pending) -> bool;
    #[wasm_bindgen(method)]
    fn quit(this: &Pending);

    /// What went wrong with a request, if something did.
    #[wasm_bindgen(method, getter)]
    pub(crate) fn failure(this: &Pending) -> Option<u32>;
    #[wasm_bindgen(method, getter)]
    pub(crate) fn status(this: &Pending) -> u16;
    #[wasm_bindgen(method, getter)]
    pub(crate) fn token(this: &Pending) -> Option<String>;
    /// For how many seconds the gateway wants to be left alone, if it says so.
    #[wasm_bindgen(method, getter)]
    pub(crate) fn rest(this: &Pending) -> Option<u32>;
    #[wasm_bindgen(method, getter)]
    pub(crate) fn bytes(this: &Pending) -> Option<Vec<u8>>;
    /// Why a signal was aborted.
    #[wasm_bindgen(method, getter)]
    pub(crate) fn reason(this: &Pending) -> JsValue;

    pub(crate) fn sleep(ms: f64, wake: &Wake) -> Pending;
    pub(crate) fn fill(bytes: &mut [u8]) -> bool;
    /// What this runs in.
    pub(crate) fn runtime() -> u32;
    pub(crate) fn send(
        fetch: Option<&Function>,
        url: &str,
        authorization: Option<&str>,
        content_type: &str,
        token: Option<&str>,
        accept: Option<&str>,
        body: &str,
        most: u32,
        wake: &Wake,
    ) -> Pending;
    pub(crate) fn read(stream: &Pending, most: u32, wake: &Wake) -> Pending;
    pub(crate) fn heed(signal: &JsValue, wake: &Wake) -> Pending;
}

/// What JavaScript calls when something is over.
pub(crate) type Wake = Closure<dyn FnMut()>;

/// Ends when something is over. Dropped earlier, it is given up.
pub(crate) struct Awaited {
    pending: Pending,
    waker: Rc<RefCell<Option<Waker>>>,
    _wake: Wake,
}

impl Awaited {
    pub(crate) fn new(begin: &dyn Fn(&Wake) -> Pending) -> Self {
        let waker: Rc<RefCell<Option<Waker>>> = Rc::default();
        let heard = Rc::clone(&waker);
        let wake = Closure::new(move || {
            if let Some(waker) = heard.take() {
                waker.wake();
            }
        });
        Self { pending: begin(&wake), waker, _wake: wake }
    }

    /// What came of it.
    pub(crate) const fn result(&self) -> &Pending {
        &self.pending
    }
}

impl Future for Awaited {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.pending.over() {
            return Poll::Ready(());
        }
        self.waker.replace(Some(cx.waker().clone()));
        Poll::Pending
    }
}

/// What comes of it later wakes nobody.
impl Drop for Awaited {
    fn drop(&mut self) {
        self.pending.quit();
    }
}
