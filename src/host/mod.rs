//! The caller's event loop: what lends time, sleep and entropy. The only room that reads a clock.

#[cfg(all(feature = "web", target_arch = "wasm32"))]
mod js;
#[cfg(all(feature = "tokio", not(target_arch = "wasm32")))]
mod tokio;

#[cfg(all(feature = "web", target_arch = "wasm32"))]
pub use js::JsHost;
#[cfg(all(feature = "tokio", not(target_arch = "wasm32")))]
pub use tokio::TokioHost;

use crate::time::Instant;

/// Lends time, sleep and entropy.
///
/// No `Send` bound, and it spawns nothing: the caller polls each operation. (A client from
/// `Client::connect` spawns the undoing of an acquisition that was dropped.)
pub trait Host {
    /// Reads both clocks: one that never goes back, and one that goes on while the machine sleeps.
    fn now(&self) -> Instant;

    /// Ends when `deadline` is reached, or earlier: whoever sleeps looks at the clock again.
    /// Dropping the future ends its timer.
    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()>;

    /// 256 fresh bits of a cryptographic source.
    ///
    /// # Errors
    /// [`NoEntropy`] when there is no such source (yet). Anything weaker in its place would let
    /// owners be guessed or shared.
    fn entropy(&self) -> Result<[u8; 32], NoEntropy>;
}

/// The host has no cryptographic source of entropy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoEntropy;

impl core::fmt::Display for NoEntropy {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the host has no entropy")
    }
}

impl core::error::Error for NoEntropy {}

impl<H: Host> Host for &H {
    fn now(&self) -> Instant {
        (**self).now()
    }

    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> {
        (**self).sleep_until(deadline)
    }

    fn entropy(&self) -> Result<[u8; 32], NoEntropy> {
        (**self).entropy()
    }
}
