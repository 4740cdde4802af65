//! The host inside a JavaScript runtime: `performance.now`, `Date.now`, `setTimeout`, `crypto`.

use alloc::rc::Rc;
use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::task::{Poll, Waker};
use core::time::Duration;

use wasm_bindgen::prelude::*;

use super::{Host, NoEntropy};
use crate::time::{Instant, millis};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    fn monotonic_now() -> f64;
    #[wasm_bindgen(catch, js_name = setTimeout)]
    fn set_timeout(callback: &Closure<dyn FnMut()>, ms: f64) -> Result<JsValue, JsValue>;
    // A Worker's lease may be collected when its request is over, and then no timer may be touched any more.
    #[wasm_bindgen(catch, js_name = clearTimeout)]
    fn clear_timeout(timer: &JsValue) -> Result<(), JsValue>;
}

/// The event loop of a browser, a Worker, Node, Deno or Bun.
///
/// In a Worker both clocks stand still while code computes, and go on at the next I/O.
#[derive(Clone, Copy, Debug, Default)]
pub struct JsHost;

/// The longest timer that is set at once: timers do not run while the machine sleeps, and after it has woken a lease that
/// has run out is noticed within this time.
const TIMER_MAX: Duration = Duration::from_secs(5);

impl Host for JsHost {
    fn now(&self) -> Instant {
        Instant::from_millis(whole_ms(monotonic_now()), whole_ms(js_sys::Date::now()))
    }

    async fn sleep_until(&self, deadline: Instant) {
        let timer = Timer::set(self.now().until(deadline).min(TIMER_MAX));
        poll_fn(|cx| timer.state.poll(cx.waker())).await;
    }

    fn entropy(&self) -> Result<[u8; 32], NoEntropy> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|_| NoEntropy)?;
        Ok(bytes)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, and time is never negative"
)]
const fn whole_ms(ms: f64) -> u64 {
    ms as u64
}

/// A timer that is taken back when it is dropped.
///
/// Not a promise: one that is never settled would keep its callbacks for ever.
struct Timer {
    id: JsValue,
    state: Rc<TimerState>,
    _callback: Closure<dyn FnMut()>,
}

#[derive(Default)]
struct TimerState {
    fired: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Timer {
    fn set(duration: Duration) -> Self {
        let state = Rc::new(TimerState::default());
        let callback = {
            let state = Rc::clone(&state);
            Closure::new(move || {
                state.fired.set(true);
                if let Some(waker) = state.waker.take() {
                    waker.wake();
                }
            })
        };
        #[expect(clippy::cast_precision_loss, reason = "an hour at the most")]
        let id = set_timeout(&callback, millis(duration) as f64).unwrap_or_default();
        Self { id, state, _callback: callback }
    }
}

impl TimerState {
    fn poll(&self, waker: &Waker) -> Poll<()> {
        if self.fired.get() {
            return Poll::Ready(());
        }
        self.waker.replace(Some(waker.clone()));
        Poll::Pending
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        drop(clear_timeout(&self.id));
    }
}
