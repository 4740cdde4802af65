//! The caller's event loop: time, sleep and entropy. This is the only module that reads a clock.

#[cfg(all(feature = "web", target_arch = "wasm32"))]
mod js;
#[cfg(all(feature = "tokio", not(target_arch = "wasm32")))]
mod tokio;

#[cfg(all(feature = "web", target_arch = "wasm32"))]
pub use js::JsHost;
#[cfg(all(feature = "tokio", not(target_arch = "wasm32")))]
pub use tokio::TokioHost;

use edgelatch_proto::time::Instant;

/// Provides time, sleep and entropy.
///
/// It has no `Send` bound and spawns nothing: a client is given the function that runs its
/// [`Driver`](crate::client::Driver).
pub trait Host {
    /// Reads both clocks: a monotonic one, and one that also advances while the machine is
    /// suspended.
    fn now(&self) -> Instant;

    /// Waits until `deadline`, or less: the caller reads the clock again. Dropping the future ends
    /// its timer.
    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()>;

    /// Returns 256 fresh bits of a cryptographic source.
    ///
    /// # Errors
    /// [`NoEntropy`] if there is no such source (yet). With a weaker source, owners could be
    /// guessed or shared.
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
