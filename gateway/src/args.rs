//! The command line.

use std::env;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, value_parser};
use edgelatch_gateway::{
    AccessLog, AllowedCommand, Config, Origin, RedisSource, Right, ScopeKeyError, ScopeKeys,
    ScopedNames, ScopedToken, TokenError, Tokens,
};
use edgelatch_proto::error::InvalidOption;

/// Upstash's REST protocol in front of any Redis.
///
/// Prints `listening on http://ADDRESS` when it is ready, and ends on SIGTERM or SIGINT. Logs to
/// stderr; EDGELATCH_LOG sets the level.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    #[command(flatten)]
    pub(crate) serve: Serve,
}

/// The commands beside running a gateway.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Prints a scoped token, which runs only edgelatch's scripts, on names with a prefix.
    Token(TokenArgs),
}

/// The claims of a scoped token, and the keys to sign it.
#[derive(clap::Args)]
pub(crate) struct TokenArgs {
    /// The prefix of the names of its locks, like app:
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,

    /// The prefix of the names of its semaphores. No prefix may begin with another one.
    #[arg(long, value_name = "TEXT")]
    semaphore_prefix: Option<String>,

    /// The prefix of the names of its permit-expirable semaphores.
    #[arg(long, value_name = "TEXT")]
    permit_prefix: Option<String>,

    /// The prefix of the names of its count-down latches.
    #[arg(long, value_name = "TEXT")]
    latch_prefix: Option<String>,

    /// The prefix of its guarded keys.
    #[arg(long, value_name = "TEXT")]
    guard_prefix: Option<String>,

    /// A right of the token: hold (acquire, renew, release, wait, inspect), count (count latches
    /// down), manage (set permits and latches), guard (write to guarded keys), force (end holds of
    /// other owners) or majority (red locks); may be repeated.
    #[arg(long = "right", value_name = "RIGHT", default_value = "hold", value_parser = right)]
    rights: Vec<Right>,

    /// The name of an object that it may create without an expiry, such as a fenced lock; may be
    /// repeated.
    #[arg(long, value_name = "NAME")]
    lasting: Vec<String>,

    /// The longest lease that it may request, like 60s; from 100ms to 24h.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    max_lease: Duration,

    /// The clock skew of Redisson's clients that its group locks and permits must tolerate, like
    /// 1s; up to 60s.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = humantime::parse_duration)]
    peer_skew: Duration,

    /// The user of the token. Tokens with the same prefixes and the same subject are one client and
    /// share its limits.
    #[arg(long, value_name = "TEXT")]
    subject: Option<String>,

    /// How long it is valid from now, like 10m.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    lives: Duration,

    #[command(flatten)]
    keys: KeyArgs,
}

impl TokenArgs {
    /// Signs the token.
    pub(crate) fn sign(self) -> Result<String, ArgsError> {
        let keys = self.keys.read()?.ok_or(ScopeKeyError::None)?;
        let names = ScopedNames {
            locks: self.prefix,
            semaphores: self.semaphore_prefix,
            permits: self.permit_prefix,
            latches: self.latch_prefix,
            guarded: self.guard_prefix,
        };
        let mut token = ScopedToken::of(names, self.max_lease, self.lives);
        token.rights = self.rights;
        token.lasting = self.lasting;
        token.peer_skew = self.peer_skew;
        token.subject = self.subject;
        Ok(keys.sign(&token)?)
    }
}

fn right(name: &str) -> Result<Right, InvalidOption> {
    Right::parse(name)
}

/// The source of the keys of scoped tokens. They are never on the command line itself.
#[derive(clap::Args)]
pub(crate) struct KeyArgs {
    /// A file with the keys of scoped tokens, one in each line, of 32 bytes or more. The first
    /// signs; tokens of each are accepted. Or EDGELATCH_SCOPE_KEYS, separated by commas.
    #[arg(long, value_name = "PATH")]
    scope_key_file: Option<PathBuf>,
}

impl KeyArgs {
    /// Reads the keys; `None` if neither the file nor the variable is set.
    fn read(&self) -> Result<Option<ScopeKeys>, ArgsError> {
        let mut texts: Vec<String> = Vec::new();
        if let Some(path) = &self.scope_key_file {
            let text = fs::read_to_string(path).map_err(ArgsError::ScopeKeyFile)?;
            texts.extend(text.lines().map(str::to_owned));
        }
        if let Ok(keys) = env::var("EDGELATCH_SCOPE_KEYS") {
            texts.extend(keys.split(',').map(str::to_owned));
        }
        let is_meant =
            self.scope_key_file.is_some() || texts.iter().any(|key| !key.trim().is_empty());
        is_meant.then(|| ScopeKeys::new(texts)).transpose().map_err(ArgsError::from)
    }
}

/// The options of a running gateway.
#[derive(clap::Args)]
pub(crate) struct Serve {
    /// The address to listen on; with port 0 the system chooses a free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8079")]
    listen: SocketAddr,

    /// A second address, where GET /metrics returns metrics for Prometheus without a token. Choose
    /// one that only your monitoring can reach.
    #[arg(long, value_name = "ADDRESS")]
    metrics_listen: Option<SocketAddr>,

    /// Writes a line of JSON for each request to stdout, after the line `listening on`.
    #[arg(long)]
    access_log: bool,

    /// The Redis behind the gateway: redis://HOST:PORT or unix:PATH; for a cluster
    /// redis+cluster://HOST:PORT,HOST:PORT with some of its nodes; for the master that Sentinels
    /// monitor redis+sentinel://HOST:PORT,HOST:PORT/MASTER. A login goes in front of the hosts,
    /// like USER:PASSWORD@; rediss in place of redis uses TLS.
    #[arg(long, value_name = "URL", env = "EDGELATCH_REDIS", hide_env_values = true)]
    redis: Option<String>,

    /// Starts a redis-server of its own that stores nothing on disk; if no token is given, creates
    /// one and prints it.
    #[arg(long, conflicts_with = "redis")]
    dev: bool,

    /// A token with full access; may be repeated or contain several, separated by commas. Other
    /// users of this machine can see it in the list of processes.
    #[arg(
        long = "token",
        value_name = "TOKEN",
        env = "EDGELATCH_TOKENS",
        hide_env_values = true,
        value_delimiter = ','
    )]
    tokens: Vec<String>,

    /// A file with one token in each line.
    #[arg(long, value_name = "PATH")]
    token_file: Option<PathBuf>,

    #[command(flatten)]
    keys: KeyArgs,

    /// The longest time that a scoped token may still be valid, in milliseconds.
    #[arg(long, value_name = "MS", default_value = "86400000",
          value_parser = value_parser!(u32).range(1000..))]
    scope_time: u32,

    /// A command to allow that is refused by default: FLUSHALL, FLUSHDB, "FUNCTION DELETE",
    /// "FUNCTION FLUSH", "FUNCTION KILL", "FUNCTION RESTORE", "SCRIPT FLUSH" or "SCRIPT KILL"; may
    /// be repeated.
    #[arg(long = "allow-command", value_name = "NAME")]
    allowed: Vec<AllowedCommand>,

    /// A web origin whose pages may send requests, like https://example.org; may be repeated.
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    origins: Vec<Origin>,

    /// The largest request body, in bytes.
    #[arg(long, value_name = "BYTES", default_value = "10485760",
          value_parser = value_parser!(u32).range(1..))]
    body_limit: u32,

    /// The largest request body of a client with a scoped token, in bytes.
    #[arg(long, value_name = "BYTES", default_value = "1048576",
          value_parser = value_parser!(u32).range(1..))]
    client_body_limit: u32,

    /// The most commands in one pipeline or transaction.
    #[arg(long, value_name = "NUMBER", default_value = "1000",
          value_parser = value_parser!(u32).range(1..))]
    pipeline_limit: u32,

    /// The most connections of clients at once.
    #[arg(long, value_name = "NUMBER", default_value = "4000",
          value_parser = value_parser!(u32).range(1..))]
    connection_limit: u32,

    /// How long a connection may take from a response to the end of the next head, in milliseconds.
    #[arg(long, value_name = "MS", default_value = "60000",
          value_parser = value_parser!(u32).range(1..=600_000))]
    idle_time: u32,

    /// How long the head of a request may take from its first byte, in milliseconds; for the first
    /// request, from the start of the connection.
    #[arg(long, value_name = "MS", default_value = "10000",
          value_parser = value_parser!(u32).range(1..=600_000))]
    head_time: u32,

    /// How long a request may take from the end of its head, in milliseconds.
    #[arg(long, value_name = "MS", default_value = "10000",
          value_parser = value_parser!(u32).range(1..=600_000))]
    request_time: u32,

    /// The interval of the comments that keep an idle stream open, in milliseconds.
    #[arg(long, value_name = "MS", default_value = "15000",
          value_parser = value_parser!(u32).range(1..=600_000))]
    keep_alive: u32,

    /// The most connections of one address (for IPv6: a /64 network) at once. Not applied with
    /// --trusted-proxies.
    #[arg(long, value_name = "NUMBER", default_value = "1000",
          value_parser = value_parser!(u32).range(1..))]
    address_connections: u32,

    /// The limits of an address, as a multiple of the limits of a client: all clients with scoped
    /// tokens at one address share them.
    #[arg(long, value_name = "NUMBER", default_value = "8")]
    address_clients: NonZeroU32,

    /// The most bytes of request bodies in memory at once; one client with a scoped token may use a
    /// sixteenth of it.
    #[arg(long, value_name = "BYTES", default_value = "67108864",
          value_parser = value_parser!(u32).range(1..))]
    body_memory: u32,

    /// Requests per second of one client with a scoped token, with bursts of four times this
    /// number. Tokens with the same prefixes and the same `sub` are one client; a token without
    /// `sub` is a client of its own.
    #[arg(long, value_name = "NUMBER", default_value = "100")]
    client_requests: NonZeroU32,

    /// Commands per second of one client with a scoped token, with bursts of four times this
    /// number, or of one request if that is more. Each 4 KiB of a body, each 64 words of a command,
    /// and each name of a command beyond its first count as one more.
    #[arg(long, value_name = "NUMBER", default_value = "1000")]
    client_commands: NonZeroU32,

    /// The most requests of one client with a scoped token in flight at once.
    #[arg(long, value_name = "NUMBER", default_value = "32",
          value_parser = value_parser!(u32).range(1..))]
    client_concurrency: u32,

    /// The most names of locks and other objects that one client with a scoped token may use in a
    /// day.
    #[arg(long, value_name = "NUMBER", default_value = "10000",
          value_parser = value_parser!(u32).range(1..))]
    client_names: u32,

    /// The most streams of one client with a scoped token at once.
    #[arg(long, value_name = "NUMBER", default_value = "32")]
    client_streams: u32,

    /// The most streams of all clients at once.
    #[arg(long, value_name = "NUMBER", default_value = "1000")]
    stream_limit: u32,

    /// The most requests with a WAIT at once, each on a connection of its own; one client with a
    /// scoped token may have a sixteenth of them.
    #[arg(long, value_name = "NUMBER", default_value = "64")]
    wait_limit: u32,

    /// The number of reverse proxies in front of the gateway. Each must append its client's address
    /// to X-Forwarded-For, and clients must not be able to bypass them.
    #[arg(long, value_name = "NUMBER", default_value = "0",
          value_parser = value_parser!(u8).range(..=16))]
    trusted_proxies: u8,

    /// The number of connections to Redis that the commands share.
    #[arg(long, value_name = "NUMBER", default_value = "1",
          value_parser = value_parser!(u16).range(1..=64))]
    connections: u16,
}

impl Serve {
    /// Returns the configuration, and the text of the token that `--dev` has created, if any.
    pub(crate) fn into_config(self) -> Result<(Config, Option<String>), ArgsError> {
        let mut tokens = self.tokens;
        if let Some(path) = &self.token_file {
            let text = fs::read_to_string(path).map_err(ArgsError::TokenFile)?;
            tokens.extend(text.lines().map(str::to_owned));
        }
        let (tokens, fresh) = match Tokens::new(tokens) {
            Err(TokenError::None) if self.dev => {
                let (tokens, text) = Tokens::random()?;
                (tokens, Some(text))
            }
            tokens => (tokens?, None),
        };
        let redis = match self.redis {
            Some(url) => RedisSource::Url(url),
            None if self.dev => RedisSource::Private,
            None => return Err(ArgsError::NoRedis),
        };
        let mut config = Config::new(redis, tokens);
        config.scope_keys = self.keys.read()?;
        config.scope_time = Duration::from_millis(self.scope_time.into());
        config.allowed = self.allowed;
        config.listen = self.listen;
        config.metrics = self.metrics_listen;
        if self.access_log {
            config.access_log = Some(AccessLog::new(io::stdout()).map_err(ArgsError::AccessLog)?);
        }
        config.origins = self.origins;
        config.body_limit = usize::try_from(self.body_limit).unwrap_or(usize::MAX);
        config.client_body_limit = usize::try_from(self.client_body_limit).unwrap_or(usize::MAX);
        config.pipeline_limit = usize::try_from(self.pipeline_limit).unwrap_or(usize::MAX);
        config.connection_limit = usize::try_from(self.connection_limit).unwrap_or(usize::MAX);
        config.idle_time = Duration::from_millis(self.idle_time.into());
        config.head_time = Duration::from_millis(self.head_time.into());
        config.request_time = Duration::from_millis(self.request_time.into());
        config.keep_alive = Duration::from_millis(self.keep_alive.into());
        config.address_connections =
            usize::try_from(self.address_connections).unwrap_or(usize::MAX);
        config.address_clients = self.address_clients;
        config.body_memory = usize::try_from(self.body_memory).unwrap_or(usize::MAX);
        config.client_requests = self.client_requests;
        config.client_commands = self.client_commands;
        config.client_concurrency = usize::try_from(self.client_concurrency).unwrap_or(usize::MAX);
        config.client_names = usize::try_from(self.client_names).unwrap_or(usize::MAX);
        config.client_streams = usize::try_from(self.client_streams).unwrap_or(usize::MAX);
        config.stream_limit = usize::try_from(self.stream_limit).unwrap_or(usize::MAX);
        config.wait_limit = usize::try_from(self.wait_limit).unwrap_or(usize::MAX);
        config.trusted_proxies = self.trusted_proxies.into();
        config.connections = self.connections.into();
        Ok((config, fresh))
    }
}

/// An error of the command line that its grammar does not find. Never contains a token or a URL.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArgsError {
    #[error("the access log cannot be started: {0}")]
    AccessLog(#[source] io::Error),
    #[error("a Redis is needed: --redis URL, or --dev for one of its own")]
    NoRedis,
    #[error("the file of the keys for scoped tokens cannot be read: {0}")]
    ScopeKeyFile(#[source] io::Error),
    #[error(transparent)]
    ScopeKeys(#[from] ScopeKeyError),
    #[error("the token file cannot be read: {0}")]
    TokenFile(#[source] io::Error),
    #[error(transparent)]
    Tokens(#[from] TokenError),
}
