//! The host inside a JavaScript runtime: `performance.now`, `Date.now`, `setTimeout`, `crypto`.

use core::future::pending;
use core::time::Duration;

use wasm_bindgen::prelude::*;

use super::{Host, NoEntropy};
use crate::awaited::{Awaited, sleep};
use crate::web::{self, NEVER, whole};
use edgelatch_proto::time::{Instant, millis};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    fn monotonic_now() -> f64;
    #[wasm_bindgen(js_namespace = Date, js_name = now)]
    fn wall_now() -> f64;
}

/// The event loop of a browser, a Worker, Node, Deno or Bun.
///
/// In a Worker both clocks stand still while code computes, and advance at the next I/O.
#[derive(Clone, Copy, Debug, Default)]
pub struct JsHost;

/// The longest timer that is set at once. Timers do not run while the machine is suspended; after
/// it has resumed, an expired lease is detected within this time.
const TIMER_MAX: Duration = Duration::from_secs(5);

impl Host for JsHost {
    fn now(&self) -> Instant {
        Instant::from_millis(whole(monotonic_now()), whole(wall_now()))
    }

    async fn sleep_until(&self, deadline: Instant) {
        let left = self.now().until(deadline);
        if left > NEVER {
            return pending().await;
        }
        // Not a promise: a promise that never settles would keep its callbacks for ever.
        #[expect(clippy::cast_precision_loss, reason = "some seconds at the most")]
        let ms = millis(left.min(TIMER_MAX)) as f64;
        Awaited::new(&|wake| sleep(ms, wake)).await;
    }

    fn entropy(&self) -> Result<[u8; 32], NoEntropy> {
        let mut bytes = [0; 32];
        if web::fill(&mut bytes) { Ok(bytes) } else { Err(NoEntropy) }
    }
}
