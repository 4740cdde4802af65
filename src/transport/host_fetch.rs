//! The transport on top of a `fetch` function: the caller's, or the runtime's.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use js_sys::Function;

use super::{ByteStream, Request, Response, StreamHead, StreamLimits, Transport, TransportResult};
use crate::error::FailureKind;
use crate::web::{self, Awaited, Pending, names};

/// Where the numbers of failures and of kinds of runtimes are written.
const WEB_JS: &str = include_str!("../web.js");

const NO_STREAMS: StreamLimits = StreamLimits { max: 0, shared: true };

/// Returns the limits on streams in the kind of runtime with this number.
const fn stream_limits(runtime: u32) -> StreamLimits {
    const PROGRAM: u32 = names::number(WEB_JS, "const PROGRAM = ");
    const WORKER: u32 = names::number(WEB_JS, "const WORKER = ");
    const PAGE: u32 = names::number(WEB_JS, "const PAGE = ");
    const SLOTS: usize = names::number(WEB_JS, "const STREAM_SLOTS = ") as usize;
    match runtime {
        // Node, Deno, Bun.
        PROGRAM => StreamLimits { max: 64, shared: true },
        // Each request has six connections of its own, and no other request may use them.
        WORKER => StreamLimits { max: 4, shared: false },
        // For all clients and tabs together, a limit that `web.js` enforces.
        PAGE => StreamLimits { max: SLOTS, shared: true },
        // A page without `navigator.locks`: it cannot know how many streams other pages have open.
        _ => NO_STREAMS,
    }
}

/// `web.js` reads as many bytes of a body as any other transport.
const _: () = assert!(names::number(WEB_JS, "const BODY_MAX = ") as usize == Response::BODY_MAX);

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

    /// Returns the failure with this number.
    pub(crate) const fn failure(number: u32) -> FailureKind {
        const NOT_SENT: u32 = names::number(WEB_JS, "const NOT_SENT = ");
        const REDIRECTED: u32 = names::number(WEB_JS, "const REDIRECTED = ");
        const GARBLED: u32 = names::number(WEB_JS, "const GARBLED = ");
        const TOO_LARGE: u32 = names::number(WEB_JS, "const TOO_LARGE = ");
        match number {
            NOT_SENT => FailureKind::NotSent,
            REDIRECTED => FailureKind::Redirected,
            GARBLED => FailureKind::Garbled { status: 0 },
            TOO_LARGE => FailureKind::TooLarge,
            _ => FailureKind::Broken,
        }
    }

    /// Sends a request and returns its response; for a stream, the head of the response.
    async fn ask(&self, request: &Request, accept: Option<&str>) -> Result<Awaited, FailureKind> {
        let fetch = self.fetch.as_ref();
        let Request { url, authorization, sync_token, content_type, body } = request;
        let (authorization, token) = (authorization.as_deref(), sync_token.as_deref());
        let mut answer = Awaited::new(&|wake| {
            web::send(fetch, url, authorization, content_type, token, accept, body, wake)
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
        stream_limits(web::runtime())
    }
}

fn retry_after(answer: &Awaited) -> Option<Duration> {
    answer.result().retry_after().map(|seconds| Duration::from_secs(seconds.into()))
}

fn failed(pending: &Pending) -> Result<(), FailureKind> {
    match pending.failure() {
        None => Ok(()),
        Some(number) => Err(HostFetch::failure(number)),
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
        let next =
            part.get_or_insert_with(|| Awaited::new(&|wake| web::read(answer.result(), wake)));
        ready!(Pin::new(&mut *next).poll(cx));
        let read = failed(next.result()).map(|()| next.result().bytes()).transpose();
        *part = None;
        Poll::Ready(read)
    }
}
