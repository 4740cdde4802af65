//! The way out: what carries one request to the gateway and its response back.

#[cfg(all(feature = "web", target_arch = "wasm32"))]
mod host_fetch;
#[cfg(all(feature = "reqwest", not(target_arch = "wasm32")))]
#[path = "reqwest_native.rs"]
mod platform;
#[cfg(all(feature = "reqwest", target_arch = "wasm32"))]
#[path = "reqwest_wasm.rs"]
mod platform;
#[cfg(feature = "reqwest")]
mod reqwest;

#[cfg(all(feature = "web", target_arch = "wasm32"))]
pub use host_fetch::HostFetch;
#[cfg(feature = "reqwest")]
pub use reqwest::Reqwest;

use crate::error::FailureKind;
use crate::protocol::gateway::{Request, Response};

/// Carries requests.
///
/// No `Send` bound: the future of a native transport is `Send` by itself, that of a JavaScript one is not.
pub trait Transport {
    /// Carries one request: a POST to `request.url` with exactly the headers that it names.
    ///
    /// Once. It does not repeat, redirect, wait, cache or read the body for meaning; a status of any kind is a response.
    /// Dropping the future gives the request up.
    ///
    /// # Errors
    /// * [`FailureKind::NotSent`] when it certainly did not leave,
    /// * [`FailureKind::Broken`] when it may have,
    /// * [`FailureKind::Redirected`] for a redirection, which is not followed,
    /// * [`FailureKind::TooLarge`] for a body of more than [`Response::BODY_MAX`] bytes, which is not read to its end.
    fn send(&self, request: Request) -> impl Future<Output = Result<Response, FailureKind>>;
}

impl<T: Transport> Transport for &T {
    fn send(&self, request: Request) -> impl Future<Output = Result<Response, FailureKind>> {
        (**self).send(request)
    }
}
