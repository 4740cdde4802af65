//! The transport on top of `reqwest`: native, and on wasm32, where `reqwest` calls `fetch`.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::future::poll_fn;
use core::pin::pin;

use futures_core::Stream as _;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};

use super::{Transport, platform};
use crate::error::FailureKind;
use crate::protocol::gateway::{Request, Response};

/// Carries requests by a `reqwest` client.
///
/// On wasm32 the runtime's `fetch` follows redirections by itself (without the token, as the fetch standard has it), which
/// is then noticed and reported; `HostFetch` is stricter there.
#[derive(Clone, Debug)]
pub struct Reqwest {
    client: reqwest::Client,
}

impl Reqwest {
    /// A client that follows no redirections and repeats nothing.
    ///
    /// # Panics
    /// When the system's TLS cannot be set up, as `reqwest::Client::new` does.
    pub fn new() -> Self {
        Self { client: platform::client() }
    }

    /// Wraps a client of your own, with its pool and its proxies. It must not follow redirections: one that does hands the
    /// names of your locks to wherever a redirection points.
    pub const fn with_client(client: reqwest::Client) -> Self {
        Self { client }
    }
}

impl Default for Reqwest {
    fn default() -> Self {
        Self::new()
    }
}

impl Transport for Reqwest {
    async fn send(&self, request: Request) -> Result<Response, FailureKind> {
        let mut builder = self
            .client
            .post(&request.url)
            .header(AUTHORIZATION, &request.authorization)
            .header(CONTENT_TYPE, Request::CONTENT_TYPE);
        if let Some(token) = &request.sync_token {
            builder = builder.header(Request::SYNC_TOKEN, token);
        }
        let response =
            builder.body(request.body).send().await.map_err(|error| platform::failure(&error))?;
        let asked = reqwest::Url::parse(&request.url).ok();
        if response.status().is_redirection() || asked.as_ref() != Some(response.url()) {
            return Err(FailureKind::Redirected);
        }
        let status = response.status().as_u16();
        let sync_token = response.headers().get(Request::SYNC_TOKEN);
        let sync_token = sync_token.and_then(|value| value.to_str().ok()).map(ToString::to_string);
        Ok(Response { status, sync_token, body: read(response).await? })
    }
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
