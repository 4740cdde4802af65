//! The transport on top of a `fetch` function: the caller's, or the runtime's.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use js_sys::Function;

use super::{
    ByteStream, Request, Response, StreamHead, StreamLimits, Transport, TransportResult, runtime,
};
use crate::awaited::{Awaited, Pending, read, send};
use crate::error::FailureKind;

/// Sends requests with `fetch(url, init)`.
#[derive(Clone, Debug, Default)]
pub struct HostFetch {
    fetch: Option<Function>,
}

impl HostFetch {
    /// Creates a transport over a function of the caller, or over the value of `globalThis.fetch`
    /// at each request.
    pub const fn new(fetch: Option<Function>) -> Self {
        Self { fetch }
    }

    /// Sends a request and returns its response; for a stream, the head of the response.
    async fn ask(&self, request: &Request, accept: Option<&str>) -> Result<Awaited, FailureKind> {
        let fetch = self.fetch.as_ref();
        let Request { url, authorization, sync_token, content_type, body } = request;
        let (authorization, token) = (authorization.as_deref(), sync_token.as_deref());
        let mut answer = Awaited::new(&|wake| {
            send(fetch, url, authorization, content_type, token, accept, body, wake)
        });
        Pin::new(&mut answer).await;
        failed(answer.result())?;
        Ok(answer)
    }

    async fn carry(self, request: Request) -> TransportResult {
        let answer = self.ask(&request, None).await?;
        let retry_after = retry_after(&answer);
        let answer = answer.result();
        let body = answer.bytes().unwrap_or_default();
        let (status, sync_token) = (answer.status(), answer.token());
        Ok(Response { status, sync_token, retry_after, body })
    }
}

impl Transport for HostFetch {
    type Sending = Pin<Box<dyn Future<Output = TransportResult>>>;

    fn send(&self, request: Request) -> Self::Sending {
        Box::pin(self.clone().carry(request))
    }

    type Stream = FetchStream;

    async fn open(&self, request: Request) -> Result<(StreamHead, FetchStream), FailureKind> {
        let answer = self.ask(&request, Some("text/event-stream")).await?;
        let head =
            StreamHead { status: answer.result().status(), retry_after: retry_after(&answer) };
        Ok((head, FetchStream { answer, part: None }))
    }

    fn streams(&self) -> StreamLimits {
        runtime::stream_limits()
    }
}

fn retry_after(answer: &Awaited) -> Option<Duration> {
    answer.result().retry_after().map(|seconds| Duration::from_secs(seconds.into()))
}

fn failed(pending: &Pending) -> Result<(), FailureKind> {
    match pending.failure() {
        None => Ok(()),
        Some(number) => Err(runtime::failure(number)),
    }
}

/// The body of a response, read chunk by chunk. Dropping it cancels the response.
pub struct FetchStream {
    answer: Awaited,
    part: Option<Awaited>,
}

impl ByteStream for FetchStream {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, FailureKind>>> {
        let Self { answer, part } = self;
        let next = part.get_or_insert_with(|| Awaited::new(&|wake| read(answer.result(), wake)));
        ready!(Pin::new(&mut *next).poll(cx));
        let read = failed(next.result()).map(|()| next.result().bytes()).transpose();
        *part = None;
        Poll::Ready(read)
    }
}
