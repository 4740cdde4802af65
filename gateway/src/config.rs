//! The configuration of a gateway.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use axum::http::{HeaderValue, Uri};

use crate::observe::AccessLog;
use crate::policy::AllowedCommand;
use crate::scoped::ScopeKeys;
use crate::tokens::Tokens;

/// The configuration of a gateway. [`Config::new`] sets the defaults.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The address to listen on. With port 0 the system chooses a free port. Default `127.0.0.1:0`.
    pub listen: SocketAddr,
    /// A second address, where `GET /metrics` returns metrics for Prometheus without a token. With
    /// port 0 the system chooses a free port. `None` by default: the gateway then offers no
    /// metrics.
    pub metrics: Option<SocketAddr>,
    /// The log that gets a line of JSON for each request. None by default.
    pub access_log: Option<AccessLog>,
    /// The Redis behind the gateway.
    pub redis: RedisSource,
    /// The tokens that give full access.
    pub tokens: Tokens,
    /// The web origins whose pages may call the gateway. None by default.
    pub origins: Vec<Origin>,
    /// The largest request body, in bytes. Default 10 MiB, as Upstash allows. A larger one gets the
    /// status 413.
    pub body_limit: usize,
    /// The largest request body of a client with a scoped token, in bytes. Default 1 MiB, and never
    /// more than [`body_limit`](Self::body_limit). A larger one gets the status 413.
    pub client_body_limit: usize,
    /// The most commands in one pipeline or transaction. Default 1000. A longer one gets the status
    /// 413.
    pub pipeline_limit: usize,
    /// The most connections of clients at once. Default 4000. Further ones get the status 503 and
    /// are closed.
    pub connection_limit: usize,
    /// How long a connection may take from a response to the end of the next head before it is
    /// closed. Default 60 s. Behind a reverse proxy, set it to more than the time that the proxy
    /// keeps idle connections.
    pub idle_time: Duration,
    /// How long the head of a request may take from its first byte to its last before the
    /// connection is closed; for the first request, from the start of the connection. Default 10 s.
    pub head_time: Duration,
    /// How long a request may take from its headers to its response. Default 10 s. It is also the
    /// longest time limit of a `WAIT`.
    pub request_time: Duration,
    /// The interval of the comments that keep an idle stream open. Default 15 s, since proxies and
    /// clients close a silent stream after 30 s or more.
    pub keep_alive: Duration,
    /// The most connections of one address (for IPv6: a network of 64 bits) at once. Default 1000.
    /// Further ones get the status 503 and are closed. Not applied with
    /// [`trusted_proxies`](Self::trusted_proxies).
    pub address_connections: usize,
    /// The limits of an address, as a multiple of each `client_…` limit: all clients with scoped
    /// tokens at one address share them. Default 8. Of [`body_memory`](Self::body_memory) and
    /// [`wait_limit`](Self::wait_limit) an address may use half at most.
    pub address_clients: NonZeroU32,
    /// The most bytes of request bodies in memory at once. Default 64 MiB. One client with a scoped
    /// token may use a sixteenth of it. Beyond it a request gets the status 503, or 429 if the
    /// limit is that of its client or address.
    pub body_memory: usize,
    /// Requests per second of one client with a scoped token, with bursts of four times this
    /// number. Default 100. Further ones get the status 429. Tokens with the same prefixes and the
    /// same `sub` are one client; a token without `sub` is a client of its own.
    pub client_requests: NonZeroU32,
    /// Commands per second of one client with a scoped token, with bursts of four times this
    /// number, or of one request if that is more. Each 4 KiB of a body, each 64 words of a command,
    /// and each name of a command beyond its first count as one more. Default 1000. Further ones
    /// get the status 429.
    pub client_commands: NonZeroU32,
    /// The most requests of one client with a scoped token in flight at once. Default 32. Further
    /// ones get the status 429.
    pub client_concurrency: usize,
    /// The most names of locks and other objects that one client with a scoped token may use in a
    /// day, since each locked name leaves a fencing token in Redis for a day. Default 10,000. A
    /// call with a further name gets the status 429.
    pub client_names: usize,
    /// The most streams of one client with a scoped token at once. Default 32. Further ones get the
    /// status 429.
    pub client_streams: usize,
    /// The most streams of all clients at once. Each costs Redis a connection. Default 1000.
    pub stream_limit: usize,
    /// The most requests with a `WAIT` at once. Each costs Redis a connection, and on a cluster one
    /// per node. Default 64. One client with a scoped token may have a sixteenth of them. Further
    /// ones get the status 503, or 429 if the limit is that of their client or address.
    pub wait_limit: usize,
    /// The number of reverse proxies in front of the gateway. Each must append its client's address
    /// to `X-Forwarded-For`, and clients must not be able to bypass them. Default 0: a client's
    /// address is that of its connection.
    pub trusted_proxies: usize,
    /// The allowed ones of the commands that delete the data of all clients, or stop what other
    /// clients run. None by default.
    pub allowed: Vec<AllowedCommand>,
    /// The keys that sign scoped tokens. `None` by default: the gateway then accepts no scoped
    /// token.
    pub scope_keys: Option<ScopeKeys>,
    /// The longest time that a scoped token may still be valid. Default 24 h.
    pub scope_time: Duration,
    /// The number of connections to Redis that the commands share, on a cluster to each node.
    /// Default 1. More help only when replies are large, because one connection carries the
    /// commands of many requests at once.
    pub connections: usize,
}

impl Config {
    /// Creates a configuration with the defaults.
    #[must_use]
    pub fn new(redis: RedisSource, tokens: Tokens) -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            metrics: None,
            access_log: None,
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

/// The Redis behind the gateway.
#[derive(Clone)]
#[non_exhaustive]
pub enum RedisSource {
    /// A `redis-server` that the gateway starts on a private socket and ends with itself. It stores
    /// nothing on disk: for demos and tests.
    Private,
    /// The URL of a running Redis:
    ///
    /// - `redis://USER:PASSWORD@HOST:PORT/DATABASE`, or `unix:PATH`;
    /// - `redis+cluster://USER:PASSWORD@HOST:PORT,HOST:PORT`: some nodes of a cluster, which name
    ///   the other ones;
    /// - `redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/MASTER/DATABASE`: the Sentinels, and
    ///   their name for the master. The login is that of the master; that of the Sentinels follows,
    ///   `?sentinel-user=USER&sentinel-password=PASSWORD`.
    ///
    /// With the feature `tls`, `rediss` in place of `redis` uses TLS for all of them.
    Url(String),
}

/// Omits the URL, since it may contain a password.
impl fmt::Debug for RedisSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Private => "Private",
            Self::Url(_) => "Url(hidden)",
        })
    }
}

/// A web origin, as a browser sends it in the header `Origin`.
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
        // Origins are compared byte by byte, so a text that no browser sends is a mistake.
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

/// The error for a text that is not a web origin.
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
    fn an_origin_has_the_form_that_a_browser_sends() {
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
