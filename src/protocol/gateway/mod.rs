//! The doors to Redis: where they are, and what they speak.

mod address;
mod body;
mod upstash;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::error::{FailureKind, InvalidOption, Refusal};
use crate::protocol::reply::Cell;
use crate::protocol::script::{Publish, ScriptCall};
use crate::timing::AttemptTime;

/// Whether scripts start with the line by which Upstash locks the declared keys only, and not the whole database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyLocking {
    /// On for hosts below `upstash.io`, off for others, and off for good once it was refused.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never. Any other Redis refuses the line.
    Off,
}

/// Where a gateway is and how it is spoken to.
#[derive(Clone)]
pub struct Gateway {
    url: String,
    authorization: String,
    upstash_host: bool,
    key_locking: KeyLocking,
    publish: Publish,
    attempt: AttemptTime,
}

/// Never the token.
impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Gateway {
    /// A gateway that speaks Upstash's REST protocol: Upstash itself, `edgelatch-gateway`, SRH and others.
    ///
    /// `url` is `https://host[:port][/path]`, or `http://` on loopback; no user, query or fragment. White space around
    /// `url` and `token` is cut off, since both are often pasted.
    ///
    /// # Errors
    /// [`InvalidOption`] names `url` or `token` and what is accepted.
    pub fn upstash(url: &str, token: &str) -> Result<Self, InvalidOption> {
        Self::new(url, token, false)
    }

    /// The same, with `http://` also beyond loopback: for private networks only, since the token travels in the clear.
    ///
    /// # Errors
    /// As [`upstash`](Self::upstash).
    pub fn upstash_over_http(url: &str, token: &str) -> Result<Self, InvalidOption> {
        Self::new(url, token, true)
    }

    fn new(url: &str, token: &str, plain_http: bool) -> Result<Self, InvalidOption> {
        let address = address::parse(url.trim(), plain_http)?;
        let token = token.trim();
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_=+/.-~:".contains(&byte);
        if token.is_empty() || token.len() > 4096 || !token.bytes().all(fits) {
            return Err(InvalidOption::new(
                "token",
                "1 to 4096 letters, digits or any of _ = + / . - ~ :",
            ));
        }
        Ok(Self {
            upstash_host: address.is_below("upstash.io"),
            url: address.base,
            authorization: format!("Bearer {token}"),
            key_locking: KeyLocking::Auto,
            publish: Publish::Plain,
            attempt: AttemptTime::DEFAULT,
        })
    }

    /// Sets whether scripts ask for key locking. Default: [`KeyLocking::Auto`].
    #[must_use]
    pub const fn key_locking(mut self, key_locking: KeyLocking) -> Self {
        self.key_locking = key_locking;
        self
    }

    /// Sets how releases are announced. Default: [`Publish::Plain`].
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

    pub(crate) const fn attempt(&self) -> AttemptTime {
        self.attempt
    }

    pub(crate) const fn announces(&self) -> Publish {
        self.publish
    }

    /// Whether it may be left out once it was refused: not when it was asked for expressly.
    pub(crate) fn may_drop_key_locking(&self) -> bool {
        self.key_locking == KeyLocking::Auto
    }

    pub(crate) fn encode(
        &self,
        call: &ScriptCall,
        form: Form,
        sync_token: Option<String>,
    ) -> Request {
        Request {
            url: format!("{}/", self.url),
            authorization: self.authorization.clone(),
            sync_token,
            body: upstash::encode(call, form),
        }
    }

    pub(crate) fn decode(response: &Response) -> Decoded {
        upstash::decode(response.status, &response.body)
    }
}

/// What a client has learned about its gateway. Data only: safe to share between the requests of a Worker.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    whole_only: bool,
    no_key_locking: bool,
    sync_token: Option<String>,
}

impl Memory {
    /// How the next call is to be sent.
    pub(crate) fn form(&self, gateway: &Gateway) -> Form {
        let key_locking = match gateway.key_locking {
            KeyLocking::Auto => gateway.upstash_host && !self.no_key_locking,
            KeyLocking::On => true,
            KeyLocking::Off => false,
        };
        Form { whole: self.whole_only, key_locking }
    }

    /// The gateway refuses `EVALSHA` as such.
    pub(crate) const fn refuses_hashes(&mut self) {
        self.whole_only = true;
    }

    /// The gateway refuses the key-locking line.
    pub(crate) const fn refuses_key_locking(&mut self) {
        self.no_key_locking = true;
    }

    /// What the next request carries so that it reads what the last one wrote.
    pub(crate) fn sync_token(&self) -> Option<String> {
        self.sync_token.clone()
    }

    /// Keeps the newest sync token.
    pub(crate) fn note(&mut self, response: &Response) {
        if response.sync_token.is_some() {
            self.sync_token.clone_from(&response.sync_token);
        }
    }
}

/// In which form a call is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// `EVAL` with the text, not `EVALSHA` with its hash.
    pub whole: bool,
    /// With the key-locking line.
    pub key_locking: bool,
}

/// One HTTP request: a POST with JSON in it.
#[derive(Clone)]
pub struct Request {
    /// Where to.
    pub url: String,
    /// The value of the `Authorization` header.
    pub authorization: String,
    /// The value of the `upstash-sync-token` header, when there is one.
    pub sync_token: Option<String>,
    /// The body, JSON.
    pub body: String,
}

impl Request {
    /// The `Content-Type`: exactly this, since one gateway refuses it with a parameter.
    pub const CONTENT_TYPE: &'static str = "application/json";
    /// The header that carries the sync token, both ways.
    pub const SYNC_TOKEN: &'static str = "upstash-sync-token";
}

/// Neither token nor body.
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
    /// The `upstash-sync-token` header, when there is one.
    pub sync_token: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// The most bytes of a body that are read. No script of ours answers with more than some hundred.
    pub const BODY_MAX: usize = 64 * 1024;
}

/// What a response says: one of three outcomes, and the two errors that ask for another form of the same call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decoded {
    /// Redis answered.
    Cells(Vec<Cell>),
    /// Redis does not know the script by its hash.
    UnknownHash,
    /// The gateway does not allow `EVALSHA`, or Redis has no such command.
    HashesRefused(Refusal),
    /// The key-locking line is not understood.
    KeyLockingRefused(Refusal),
    /// A clear no.
    Refused(Refusal),
    /// Nothing that tells what happened.
    Indeterminate(FailureKind),
}
