//! Gateways to Redis over HTTP: their addresses and their dialects.

mod address;
mod authorization;
mod body;
mod capabilities;
mod pipeline;
mod stream;
mod upstash;
mod variables;
mod verdict;
mod webdis;

pub use capabilities::{Form, GatewayCapabilities};
pub use pipeline::PipelineOutcome;
pub use stream::{StreamEvent, StreamParser, StreamStatus};
pub(crate) use verdict::Decoded;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::error::{FailureKind, InvalidOption};
use crate::protocol::calls::Topic;
use crate::protocol::script::{Publish, ScriptCall};
use crate::timing::AttemptTime;
use authorization::{basic, bearer};

/// Whether scripts begin with the line that makes Upstash lock only the declared keys, not the
/// whole database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyLocking {
    /// On for hosts below `upstash.io` until the gateway refuses it, off for other hosts.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never. Any other Redis rejects the line.
    Off,
}

/// The protocol of a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    Upstash,
    Webdis,
}

/// The address of a gateway, its credentials and its options.
#[derive(Clone)]
pub struct Gateway {
    dialect: Dialect,
    url: String,
    authorization: Option<String>,
    upstash_host: bool,
    key_locking: KeyLocking,
    publish: Publish,
    attempt: AttemptTime,
    wakeups: bool,
    id: String,
}

/// Omits the token.
impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Gateway {
    /// Creates a gateway that speaks Upstash's REST protocol: Upstash, `edgelatch-gateway`, SRH and
    /// others.
    ///
    /// `url` is `https://host[:port][/path]`, or `http://` on loopback; no user, query or fragment.
    /// White space around `url` and `token` is removed, since both are often pasted.
    ///
    /// # Errors
    /// [`InvalidOption`] names `url` or `token`, and describes the accepted values.
    pub fn upstash(url: &str, token: &str) -> Result<Self, InvalidOption> {
        Self::new(Dialect::Upstash, url, token, false)
    }

    /// Like [`upstash`](Self::upstash), but accepts `http://` beyond loopback. For private networks
    /// only: the token is not encrypted.
    ///
    /// # Errors
    /// As [`upstash`](Self::upstash).
    pub fn upstash_over_http(url: &str, token: &str) -> Result<Self, InvalidOption> {
        Self::new(Dialect::Upstash, url, token, true)
    }

    /// Creates a gateway that is a Webdis. `token` is its `http_basic_auth`, `user:password`, or
    /// empty.
    ///
    /// `url` as for [`upstash`](Self::upstash). Webdis cannot wait for replicas and truncates at
    /// zero bytes: calls with either are refused before anything is sent. It does not close its
    /// streams when Redis is down.
    ///
    /// # Errors
    /// [`InvalidOption`] names `url` or `token`, and describes the accepted values.
    pub fn webdis(url: &str, token: &str) -> Result<Self, InvalidOption> {
        Self::new(Dialect::Webdis, url, token, false)
    }

    /// Like [`webdis`](Self::webdis), but accepts `http://` beyond loopback. For private networks
    /// only: `token` is not encrypted.
    ///
    /// # Errors
    /// As [`webdis`](Self::webdis).
    pub fn webdis_over_http(url: &str, token: &str) -> Result<Self, InvalidOption> {
        Self::new(Dialect::Webdis, url, token, true)
    }

    fn new(
        dialect: Dialect,
        url: &str,
        token: &str,
        plain_http: bool,
    ) -> Result<Self, InvalidOption> {
        let address = address::parse(url.trim(), plain_http)?;
        if dialect == Dialect::Upstash && address.names_command() {
            let accepted =
                "the address of the gateway itself, without the path of a command such as /set";
            return Err(InvalidOption::new("url", accepted));
        }
        let authorization = match dialect {
            Dialect::Upstash => Some(bearer(token.trim())?),
            Dialect::Webdis => basic(token.trim())?,
        };
        Ok(Self {
            dialect,
            upstash_host: dialect == Dialect::Upstash && address.is_below("upstash.io"),
            id: address.base.clone(),
            url: address.base,
            authorization,
            key_locking: KeyLocking::Auto,
            publish: Publish::Plain,
            attempt: AttemptTime::DEFAULT,
            wakeups: true,
        })
    }

    /// Sets whether scripts request key locking. Default: [`KeyLocking::Auto`].
    #[must_use]
    pub const fn key_locking(mut self, key_locking: KeyLocking) -> Self {
        self.key_locking = key_locking;
        self
    }

    /// Sets how releases are published. Default: [`Publish::Plain`].
    #[must_use]
    pub const fn publish(mut self, publish: Publish) -> Self {
        self.publish = publish;
        self
    }

    /// Sets how long one attempt of one request may take. Default: [`AttemptTime::DEFAULT`].
    #[must_use]
    pub const fn request_timeout(mut self, attempt: AttemptTime) -> Self {
        self.attempt = attempt;
        self
    }

    /// Sets whether waiters subscribe to a stream of releases. Default: yes. Otherwise, and on a
    /// gateway without streams, they poll.
    #[must_use]
    pub const fn wakeups(mut self, wakeups: bool) -> Self {
        self.wakeups = wakeups;
        self
    }

    /// Sets the gateway's name in the order of locks of several gateways. Default: the address.
    ///
    /// All programs that acquire the same locks together should use one name for a gateway.
    /// Different names are safe, but cost retries.
    #[must_use]
    pub fn named(mut self, id: &str) -> Self {
        self.id = id.into();
        self
    }

    /// Returns the host of the address, with its port if the address has one.
    pub fn host(&self) -> &str {
        self.url.split('/').nth(2).unwrap_or_default()
    }

    /// The name that [`named`](Self::named) gave it; otherwise its address.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The longest time for one attempt of a request.
    pub const fn attempt(&self) -> AttemptTime {
        self.attempt
    }

    /// How messages are published to waiters.
    pub const fn announces(&self) -> Publish {
        self.publish
    }

    /// Whether key locking may be left out after a refusal: only if it was not requested
    /// explicitly.
    pub(crate) fn may_drop_key_locking(&self) -> bool {
        self.key_locking == KeyLocking::Auto
    }

    /// Returns the request that opens the stream of a topic, and its parser.
    pub fn listen(&self, topic: &Topic) -> (Request, StreamParser) {
        let (verb, channel) = (topic.verb(), topic.channel());
        let encoded = encoded(channel);
        let (path, content_type, body) = match self.dialect {
            Dialect::Upstash => ([verb, "/", &encoded].concat(), "application/json", "[]".into()),
            Dialect::Webdis => {
                (String::new(), "text/plain", verb.to_ascii_uppercase() + "/" + &encoded)
            }
        };
        let (url, authorization) = (self.url_of(&path), self.authorization.clone());
        let request = Request { url, authorization, sync_token: None, content_type, body };
        (request, StreamParser::new(self.dialect, verb, channel))
    }

    fn url_of(&self, path: &str) -> String {
        [&self.url, "/", path].concat()
    }

    /// Whether waiters may subscribe to a stream.
    pub const fn can_subscribe(&self) -> bool {
        self.wakeups
    }

    /// Whether this dialect can express the call.
    pub(crate) fn can_send(&self, call: &ScriptCall) -> bool {
        match self.dialect {
            Dialect::Upstash => true,
            Dialect::Webdis => webdis::can_send(call),
        }
    }

    pub(crate) fn encode(
        &self,
        call: &ScriptCall,
        form: Form,
        sync_token: Option<String>,
    ) -> Request {
        // Two commands in one request need the path `/pipeline`.
        let path = if call.replicas().is_some() { "pipeline" } else { "" };
        let (content_type, body) = match self.dialect {
            Dialect::Upstash => ("application/json", upstash::encode(call, form)),
            Dialect::Webdis => ("text/plain", webdis::encode(call, form)),
        };
        let (url, authorization) = (self.url_of(path), self.authorization.clone());
        Request { url, authorization, sync_token, content_type, body }
    }

    pub(crate) fn decode(&self, call: &ScriptCall, form: Form, response: &Response) -> Decoded {
        let Response { status, body, .. } = response;
        // The path after scheme and host.
        let path = self.url.splitn(4, '/').nth(3).unwrap_or_default();
        let decoded = match (self.dialect, call.replicas()) {
            (Dialect::Webdis, _) => webdis::decode(call, form, *status, body),
            (Dialect::Upstash, None) => upstash::decode(*status, body, path),
            (Dialect::Upstash, Some(_)) => upstash::decode_replicated(*status, body, path),
        };
        match decoded {
            Decoded::Indeterminate(kind) => Decoded::Indeterminate(response.told_of(kind)),
            decoded => decoded,
        }
    }
}

/// Percent-encodes a path segment: a slash would separate, and a dot selects another format in
/// Webdis.
fn encoded(text: &str) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or_default();
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    encoded
}

/// One HTTP request: a POST.
#[derive(Clone)]
pub struct Request {
    /// The target.
    pub url: String,
    /// The value of the `Authorization` header, if any.
    pub authorization: Option<String>,
    /// The value of the `upstash-sync-token` header, if any.
    pub sync_token: Option<String>,
    /// The value of the `Content-Type` header, without a parameter, which one gateway rejects.
    pub content_type: &'static str,
    /// The body.
    pub body: String,
}

impl Request {
    /// The header of the sync token, in both directions.
    pub const SYNC_TOKEN: &'static str = "upstash-sync-token";
}

/// Omits token and body.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("url", &self.url).finish_non_exhaustive()
    }
}

/// One HTTP response, read to its end.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The `upstash-sync-token` header, if any.
    pub sync_token: Option<String>,
    /// The time of the `Retry-After` header, a number of seconds or a date, which is compared with
    /// the response's own `Date`. `None` if it is absent or cannot be parsed.
    pub retry_after: Option<Duration>,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// The largest number of bytes that are read of a body. Scripts of ours return some hundred; a
    /// caller's script up to 60 000 if its whole result is escaped.
    pub const BODY_MAX: usize = 64 * 1024;

    /// Creates a response without relevant headers.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, sync_token: None, retry_after: None, body: body.into() }
    }

    /// Adds the time of `Retry-After` to a failure.
    const fn told_of(&self, kind: FailureKind) -> FailureKind {
        match kind {
            FailureKind::Gateway { status, .. } => {
                FailureKind::Gateway { status, retry_after: self.retry_after }
            }
            kind => kind,
        }
    }
}
