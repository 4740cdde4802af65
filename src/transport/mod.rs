//! Transports: each sends one request to the gateway and returns its response.

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
#[cfg(all(any(feature = "js", feature = "web"), target_arch = "wasm32"))]
mod runtime;

#[cfg(all(feature = "web", target_arch = "wasm32"))]
pub use host_fetch::{FetchStream, HostFetch};
#[cfg(feature = "reqwest")]
pub use reqwest::{Reqwest, ReqwestSending, ReqwestStream};
#[cfg(all(feature = "js", target_arch = "wasm32"))]
pub(crate) use runtime::{failure, stream_limits};

pub use edgelatch_proto::protocol::gateway::{Request, Response};

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::task::{Context, Poll};
use core::time::Duration;

use crate::error::FailureKind;

/// The result of a request.
type TransportResult = Result<Response, FailureKind>;

/// The transport's own error of a request. It contains no token.
pub type Cause = Arc<dyn core::error::Error + Send + Sync>;

/// Sends requests.
///
/// It has no `Send` bound: the future of a native transport is `Send` by itself, that of a
/// JavaScript one is not.
pub trait Transport {
    /// A request in flight. All callers of its batch share it, and any of them polls it.
    type Sending: Future<Output = TransportResult> + Unpin;

    /// Sends one request: a POST to `request.url` with exactly the headers that the request names.
    ///
    /// Once: it does not retry, follow redirections, wait, cache or interpret the body, and returns
    /// a response of any status. Dropping the future cancels the request.
    ///
    /// # Errors
    /// * [`FailureKind::NotSent`] if the request certainly was not sent.
    /// * [`FailureKind::Broken`] if the request may have been sent.
    /// * [`FailureKind::Redirected`] for a redirection, which is not followed.
    /// * [`FailureKind::TooLarge`] for a body of more than [`Response::BODY_MAX`] bytes, which is
    ///   not read to its end.
    fn send(&self, request: Request) -> Self::Sending;

    /// The body of a long-lived response. Dropping it closes it.
    type Stream: ByteStream + Unpin;

    /// Sends one request with `accept: text/event-stream`, whose response is long-lived: returns
    /// its head as soon as it arrives, and its body. Otherwise the rules of [`send`](Self::send)
    /// apply.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    fn open(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<(StreamHead, Self::Stream), FailureKind>>;

    /// Returns the limits on streams.
    fn streams(&self) -> StreamLimits;

    /// Returns the transport's own error of the last request that was not sent or broke, for the
    /// `source` of an error; a stream's error is left out, since it may quote the name of a lock.
    fn last_error(&self) -> Option<Cause> {
        None
    }
}

/// The head of a long-lived response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamHead {
    /// The HTTP status.
    pub status: u16,
    /// The `Retry-After` header, as in [`Response::retry_after`].
    pub retry_after: Option<Duration>,
}

/// Limits on streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// The largest number of streams that may be open at a time for one gateway, since requests
    /// need connections too. 0 if no stream should be open.
    pub max: usize,
    /// Whether all waiters of a client may share a stream. Not if a stream belongs to the request
    /// that a program serves, as in a Worker.
    pub shared: bool,
}

/// The body of a response, chunk by chunk.
pub trait ByteStream {
    /// Returns the next chunk; `None` at the end.
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

    fn streams(&self) -> StreamLimits {
        (**self).streams()
    }

    fn last_error(&self) -> Option<Cause> {
        (**self).last_error()
    }
}
