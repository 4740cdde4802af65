//! The transport on top of `reqwest`: native, and on wasm32, where `reqwest` calls `fetch`.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::future::poll_fn;
use core::pin::{Pin, pin};
use core::task::{Context, Poll};
use core::time::Duration;

use futures_core::Stream;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, AsHeaderName, CONTENT_TYPE, DATE, HeaderMap, RETRY_AFTER,
};

use super::{
    ByteStream, Request, Response, StreamHead, StreamLimits, Transport, TransportResult, platform,
};
use crate::error::FailureKind;

/// Sends requests with a `reqwest` client.
///
/// On wasm32 the runtime's `fetch` follows redirections itself (without the token, as the fetch
/// standard requires), and the transport reports them afterwards; `HostFetch` does not follow them.
#[derive(Clone, Debug)]
pub struct Reqwest {
    client: reqwest::Client,
}

impl Reqwest {
    /// Creates a client that follows no redirections and retries nothing.
    ///
    /// # Panics
    /// When the system's TLS cannot be set up, as `reqwest::Client::new` does.
    pub fn new() -> Self {
        Self { client: platform::client() }
    }

    /// Wraps a client of the caller, with its pool and its proxies. It must not follow
    /// redirections: otherwise it sends the names of the locks to the target of a redirection.
    pub const fn with_client(client: reqwest::Client) -> Self {
        Self { client }
    }
}

impl Default for Reqwest {
    fn default() -> Self {
        Self::new()
    }
}

impl Reqwest {
    async fn ask(&self, request: Request, streams: bool) -> Result<reqwest::Response, FailureKind> {
        let mut builder = self.client.post(&request.url).header(CONTENT_TYPE, request.content_type);
        if let Some(authorization) = &request.authorization {
            builder = builder.header(AUTHORIZATION, authorization);
        }
        if let Some(token) = &request.sync_token {
            builder = builder.header(Request::SYNC_TOKEN, token);
        }
        if streams {
            builder = builder.header(ACCEPT, "text/event-stream");
        }
        let response =
            builder.body(request.body).send().await.map_err(|error| platform::failure(&error))?;
        let asked = reqwest::Url::parse(&request.url).ok();
        if response.status().is_redirection() || asked.as_ref() != Some(response.url()) {
            return Err(FailureKind::Redirected);
        }
        Ok(response)
    }
}

impl Transport for Reqwest {
    type Sending = ReqwestSending;

    fn send(&self, request: Request) -> ReqwestSending {
        let transport = self.clone();
        ReqwestSending(Box::pin(async move {
            let response = transport.ask(request, false).await?;
            let status = response.status().as_u16();
            let sync_token = text(response.headers(), Request::SYNC_TOKEN).map(ToString::to_string);
            let retry_after = retry_after(response.headers());
            Ok(Response { status, sync_token, retry_after, body: read(response).await? })
        }))
    }

    type Stream = ReqwestStream;

    async fn open(&self, request: Request) -> Result<(StreamHead, ReqwestStream), FailureKind> {
        let response = self.ask(request, true).await?;
        let status = response.status().as_u16();
        let head = StreamHead { status, retry_after: retry_after(response.headers()) };
        Ok((head, ReqwestStream(Box::new(Piped(Box::pin(response.bytes_stream()))))))
    }

    fn streams(&self) -> StreamLimits {
        StreamLimits { max: platform::STREAMS, shared: true }
    }
}

/// A request of `reqwest` in flight.
pub struct ReqwestSending(Pin<Box<platform::DynSending>>);

impl Future for ReqwestSending {
    type Output = TransportResult;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

/// The body of a long-lived response of `reqwest`.
pub struct ReqwestStream(Box<platform::DynByteStream>);

impl ByteStream for ReqwestStream {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, FailureKind>>> {
        self.0.poll_next(cx)
    }
}

/// The chunks of a stream whose items are bytes.
struct Piped<S>(Pin<Box<S>>);

impl<B, E, S> ByteStream for Piped<S>
where
    B: AsRef<[u8]>,
    S: Stream<Item = Result<B, E>>,
{
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, FailureKind>>> {
        let piece = |piece: Result<B, E>| match piece {
            Ok(bytes) => Ok(bytes.as_ref().to_vec()),
            Err(_) => Err(FailureKind::Broken),
        };
        self.0.as_mut().poll_next(cx).map(|next| next.map(piece))
    }
}

/// Returns how long the gateway requests no further requests (RFC 9110, section 10.2.3):
/// `Retry-After` is a number of seconds, or a time by the gateway's own clock.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let told = text(headers, RETRY_AFTER)?;
    let time = |text: &str| httpdate::parse_http_date(text).ok();
    match told.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => time(told)?.duration_since(time(text(headers, DATE)?)?).ok(),
    }
}

fn text(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

async fn read(response: reqwest::Response) -> Result<Vec<u8>, FailureKind> {
    let mut body = Vec::new();
    let mut stream = pin!(response.bytes_stream());
    while let Some(chunk) = poll_fn(|cx| stream.as_mut().poll_next(cx)).await {
        let chunk = chunk.map_err(|_| FailureKind::Broken)?;
        if body.len() + chunk.len() > Response::BODY_MAX {
            return Err(FailureKind::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
