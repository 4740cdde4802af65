//! What a gateway is told when it starts.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use axum::http::{HeaderValue, Uri};

use crate::policy::AllowedCommand;
use crate::scoped::ScopeKeys;
use crate::tokens::Tokens;

/// Everything a gateway needs to know. [`Config::new`] fills in the defaults.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Where to listen; port 0 asks the system for a free one. Default `127.0.0.1:0`.
    pub listen: SocketAddr,
    /// The Redis behind the gateway.
    pub redis: RedisSource,
    /// The tokens that open it.
    pub tokens: Tokens,
    /// The web origins whose pages may call the gateway. None by default.
    pub origins: Vec<Origin>,
    /// The largest request body, in bytes. Default 10 MiB, as Upstash allows; a larger one is
    /// answered 413.
    pub body_limit: usize,
    /// The largest request body of a client with a scoped token, in bytes. Default 1 MiB, and never
    /// more than [`body_limit`](Self::body_limit); a larger one is answered 413.
    pub client_body_limit: usize,
    /// The most commands in one pipeline or transaction. Default 1000; more are answered 413.
    pub pipeline_limit: usize,
    /// The most connections of clients at once. Default 4000; one more is closed with 503.
    pub connection_limit: usize,
    /// How long a connection may be idle between an answer and the end of the next head. Default 60
    /// s; then it is closed. Behind a proxy that keeps connections, longer than it keeps them.
    pub idle_time: Duration,
    /// How long the head of a request may take, from its first byte to its last; for the first
    /// request of a connection, from the connection's begin. Default 10 s; then the connection is
    /// closed.
    pub head_time: Duration,
    /// How long a request may take from its headers to its answer. Default 10 s; also the most
    /// that a `WAIT` may ask for.
    pub request_time: Duration,
    /// How often an idle stream says that it lives. Default 15 s: proxies and clients give a
    /// silent stream up after 30 s or more.
    pub keep_alive: Duration,
    /// The most connections of one address (of IPv6: a network of 64 bits) at once. Default 1000;
    /// one more is closed with 503. Not applied behind [`trusted_proxies`](Self::trusted_proxies).
    pub address_connections: usize,
    /// As much as this many clients with scoped tokens may take, all of one address may together.
    /// Default 8. It applies to each `client_…` limit; of [`body_memory`](Self::body_memory) and
    /// [`wait_limit`](Self::wait_limit) an address has half at most.
    pub address_clients: NonZeroU32,
    /// The most bytes of request bodies in memory at once. Default 64 MiB; one client with a scoped
    /// token has a sixteenth of it. More are answered 503, or 429 if it is the client's own limit.
    pub body_memory: usize,
    /// Requests per second of one client with a scoped token, with bursts of four times as many.
    /// Default 100; one more is answered
    /// 429. Tokens with the same prefixes and the same `sub` are one client; one without `sub` is a client of its own.
    pub client_requests: NonZeroU32,
    /// Commands per second of one client with a scoped token, with bursts of four times as many or
    /// one request. Each 4 KiB of a body, each 64 words of a command, and each name beyond its
    /// first count as one more. Default 1000; more are answered 429.
    pub client_commands: NonZeroU32,
    /// The most requests of one client with a scoped token under way at once. Default 32; one more
    /// is answered 429.
    pub client_concurrency: usize,
    /// The most names of locks and other objects that one client with a scoped token may use in a
    /// day, since each that was locked leaves a fencing token in Redis for as long. Default 10,000;
    /// a call about another one is answered 429.
    pub client_names: usize,
    /// The most streams of one client with a scoped token at once. Default 32; one more is answered 429.
    pub client_streams: usize,
    /// How many streams may be open at once; each costs Redis a connection. Default 1000.
    pub stream_limit: usize,
    /// The most requests with a `WAIT` at once; each costs Redis a connection (on a cluster one per
    /// node). Default 64; one client with a scoped token has a sixteenth of them. One more is
    /// answered 503, or 429 if it is the client's own limit.
    pub wait_limit: usize,
    /// How many reverse proxies stand in front of the gateway, each of which appends its client's
    /// address to `X-Forwarded-For`. Default 0: a client's address is that of its connection.
    /// Otherwise clients must not reach the gateway past these proxies.
    pub trusted_proxies: usize,
    /// Commands that delete everybody's data or stop what others run: none are allowed by default.
    pub allowed: Vec<AllowedCommand>,
    /// The keys that scoped tokens are signed with. Default none: there are no such tokens then.
    pub scope_keys: Option<ScopeKeys>,
    /// For how long at most a scoped token may still be valid. Default 24 h.
    pub scope_time: Duration,
    /// How many connections to Redis the commands share. Default 1; more help only when replies
    /// are large, because one connection carries the commands of many requests at once.
    pub connections: usize,
}

impl Config {
    /// The defaults, for this Redis and these tokens.
    #[must_use]
    pub fn new(redis: RedisSource, tokens: Tokens) -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            redis,
            tokens,
            origins: Vec::new(),
            body_limit: 10 << 20,
            client_body_limit: 1 << 20,
            pipeline_limit: 1000,
            connection_limit: 4000,
            idle_time: Duration::from_secs(60),
            head_time: Duration::from_secs(10),
            request_time: Duration::from_secs(10),
            keep_alive: Duration::from_secs(15),
            address_connections: 1000,
            address_clients: const { NonZeroU32::new(8).unwrap() },
            body_memory: 64 << 20,
            client_requests: const { NonZeroU32::new(100).unwrap() },
            client_commands: const { NonZeroU32::new(1000).unwrap() },
            client_concurrency: 32,
            client_names: 10_000,
            client_streams: 32,
            stream_limit: 1000,
            wait_limit: 64,
            trusted_proxies: 0,
            allowed: Vec::new(),
            scope_keys: None,
            scope_time: Duration::from_secs(24 * 60 * 60),
            connections: 1,
        }
    }
}

/// Which Redis stands behind the gateway.
#[derive(Clone)]
#[non_exhaustive]
pub enum RedisSource {
    /// A `redis-server` of the gateway's own, on a private socket, ended with the gateway. It
    /// keeps nothing: for demos and tests.
    Private,
    /// One that runs already:
    ///
    /// - `redis://USER:PASSWORD@HOST:PORT/DATABASE`, or `unix:PATH`;
    /// - `redis+cluster://USER:PASSWORD@HOST:PORT,HOST:PORT`: some nodes of a cluster, which
    ///   know the others;
    /// - `redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/MASTER/DATABASE`: the Sentinels, and
    ///   what they call the master. The login is that of the master; the Sentinels' own is
    ///   written behind it, `?sentinel-user=USER&sentinel-password=PASSWORD`.
    ///
    /// With the feature `tls`, `rediss` in place of `redis` takes TLS to all of them.
    Url(String),
}

/// Leaves the URL out: it may hold a password.
impl fmt::Debug for RedisSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Private => "Private",
            Self::Url(_) => "Url(hidden)",
        })
    }
}

/// A web origin, as a browser writes it into the header of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(HeaderValue);

impl Origin {
    pub(crate) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl FromStr for Origin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Self, OriginError> {
        // A browser compares byte by byte, so whatever it would never send is a mistake here.
        let lower = text.to_ascii_lowercase();
        let parts = Uri::from_str(text).map_err(|_| OriginError)?.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err(OriginError);
        };
        let is_web = matches!(scheme.as_str(), "http" | "https");
        if !is_web || lower != text || text != format!("{scheme}://{authority}") {
            return Err(OriginError);
        }
        if authority.as_str().contains('@') || authority.host() == "*" {
            return Err(OriginError);
        }
        HeaderValue::from_str(text).map(Self).map_err(|_| OriginError)
    }
}

/// The text is not a web origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "an origin is written like https://example.org: small letters, no path; `*` is not possible"
)]
#[non_exhaustive]
pub struct OriginError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_what_a_browser_sends() {
        for good in ["https://example.org", "http://localhost:8787", "http://127.0.0.1:1"] {
            assert!(good.parse::<Origin>().is_ok(), "{good}");
        }
        for bad in [
            "*",
            "null",
            "",
            "example.org",
            "https://example.org/",
            "https://example.org/path",
            "https://Example.org",
            "https://*",
            "https://user@example.org",
            "ftp://example.org",
        ] {
            assert!(bad.parse::<Origin>().is_err(), "{bad}");
        }
    }

    #[test]
    fn debug_output_hides_the_password_in_a_url() {
        let source = RedisSource::Url("redis://:secret@localhost".to_owned());
        let config = Config::new(source, Tokens::new(["hush-hush-hush-hush"]).unwrap());
        let text = format!("{config:?}");
        assert!(!text.contains("secret") && !text.contains("hush"));
    }
}
