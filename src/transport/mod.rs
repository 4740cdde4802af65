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
pub use host_fetch::{FetchStream, HostFetch};
#[cfg(feature = "reqwest")]
pub use reqwest::{Reqwest, ReqwestSending, ReqwestStream};

use alloc::vec::Vec;
use core::task::{Context, Poll};
use core::time::Duration;

use crate::error::FailureKind;
use crate::protocol::gateway::{Request, Response};

/// What came of a request.
type Carried = Result<Response, FailureKind>;

/// Carries requests.
///
/// No `Send` bound: the future of a native transport is `Send` by itself, that of a JavaScript one
/// is not.
pub trait Transport {
    /// One request on its way. It carries the calls of all who share it, and is polled by any of
    /// them.
    type Sending: Future<Output = Carried> + Unpin;

    /// Carries one request: a POST to `request.url` with exactly the headers that it names.
    ///
    /// Once. It does not repeat, redirect, wait, cache or read the body for meaning; a status of
    /// any kind is a response. Dropping the future gives the request up.
    ///
    /// # Errors
    /// * [`FailureKind::NotSent`] when it certainly did not leave,
    /// * [`FailureKind::Broken`] when it may have,
    /// * [`FailureKind::Redirected`] for a redirection, which is not followed,
    /// * [`FailureKind::TooLarge`] for a body of more than [`Response::BODY_MAX`] bytes, which is not read to its end.
    fn send(&self, request: Request) -> Self::Sending;

    /// The body of a response that goes on for long. Dropping it closes it.
    type Stream: Chunks + Unpin;

    /// Carries one request whose response goes on for long, with `accept: text/event-stream`:
    /// returns its head as soon as that is there, and its body. As careful as [`send`](Self::send)
    /// otherwise.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    fn open(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<(StreamHead, Self::Stream), FailureKind>>;

    /// How many streams may be open, and for whom.
    fn streams(&self) -> Streams;
}

/// The head of a response whose body goes on for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamHead {
    /// The status.
    pub status: u16,
    /// The `Retry-After` header, as in [`Response::retry_after`].
    pub retry_after: Option<Duration>,
}

impl StreamHead {
    /// The status as a plain number: only the dialect knows what it means.
    pub(crate) const fn code(self) -> u16 {
        self.status
    }
}

/// How streams may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    /// How many may be open at a time for one gateway: requests need connections too. 0 where none
    /// should be.
    pub most: usize,
    /// Whether all who wait in a client may share one. Not where a stream belongs to the request
    /// that a program serves.
    pub shared: bool,
}

/// A body, piece by piece.
pub trait Chunks {
    /// The next piece; `None` at the end.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, FailureKind>>>;
}

impl<T: Transport> Transport for &T {
    type Sending = T::Sending;
    type Stream = T::Stream;

    fn send(&self, request: Request) -> Self::Sending {
        (**self).send(request)
    }

    fn open(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<(StreamHead, Self::Stream), FailureKind>> {
        (**self).open(request)
    }

    fn streams(&self) -> Streams {
        (**self).streams()
    }
}
