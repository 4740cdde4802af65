//! The services of a JavaScript runtime. `web.js` does the work, since each call across the border
//! costs bytes and time.

pub(crate) mod names;

use core::time::Duration;

use wasm_bindgen::prelude::*;

#[wasm_bindgen(module = "/src/web.js")]
extern "C" {
    pub(crate) fn fill(bytes: &mut [u8]) -> bool;
    /// The number of the kind of runtime.
    pub(crate) fn runtime() -> u32;
}

/// A deadline that is further away than this gets no timer, so that it does not keep a program
/// running. No wait lasts that long.
pub(crate) const NEVER: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Converts a number of JavaScript to a whole one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, and is never negative"
)]
pub(crate) const fn whole(number: f64) -> u64 {
    number as u64
}
