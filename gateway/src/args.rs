//! The command line.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, value_parser};
use edgelatch_gateway::{Config, Origin, RedisSource, TokenError, Tokens};

/// Upstash's REST protocol in front of any Redis.
///
/// Prints `listening on http://ADDRESS` when it is ready, and ends on SIGTERM or SIGINT. Logs go to
/// stderr; EDGELATCH_LOG sets their level.
#[derive(Parser)]
#[command(version)]
pub(crate) struct Args {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8079")]
    listen: SocketAddr,

    /// The Redis to stand in front of: redis://HOST:PORT or unix:PATH; for a cluster
    /// redis+cluster://HOST:PORT,HOST:PORT with some of its nodes; for the master that Sentinels
    /// watch over redis+sentinel://HOST:PORT,HOST:PORT/MASTER. A login stands in front of the
    /// hosts, like USER:PASSWORD@; rediss in place of redis takes TLS.
    #[arg(long, value_name = "URL", env = "EDGELATCH_REDIS", hide_env_values = true)]
    redis: Option<String>,

    /// Starts a redis-server of its own that keeps nothing; if no token is given, makes one and
    /// prints it.
    #[arg(long, conflicts_with = "redis")]
    dev: bool,

    /// A token that opens the gateway; may be repeated or hold several, separated by commas.
    /// Others on this machine can see it in the list of processes.
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

    /// A web origin whose pages may call, like https://example.org; may be repeated.
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    origins: Vec<Origin>,

    /// The largest request body, in bytes.
    #[arg(long, value_name = "BYTES", default_value = "1048576",
          value_parser = value_parser!(u32).range(1..))]
    body_limit: u32,

    /// How long a request may take, in milliseconds.
    #[arg(long, value_name = "MS", default_value = "10000",
          value_parser = value_parser!(u32).range(1..=600_000))]
    request_time: u32,

    /// How often an idle stream says that it lives, in milliseconds.
    #[arg(long, value_name = "MS", default_value = "15000",
          value_parser = value_parser!(u32).range(1..=600_000))]
    keep_alive: u32,

    /// How many streams may be open at once.
    #[arg(long, value_name = "NUMBER", default_value = "1000")]
    stream_limit: u32,

    /// How many connections to Redis the commands share.
    #[arg(long, value_name = "NUMBER", default_value = "1",
          value_parser = value_parser!(u16).range(1..=64))]
    connections: u16,
}

impl Args {
    /// The configuration, and the token if one had to be made.
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
        config.listen = self.listen;
        config.origins = self.origins;
        config.body_limit = usize::try_from(self.body_limit).unwrap_or(usize::MAX);
        config.request_time = Duration::from_millis(self.request_time.into());
        config.keep_alive = Duration::from_millis(self.keep_alive.into());
        config.stream_limit = usize::try_from(self.stream_limit).unwrap_or(usize::MAX);
        config.connections = self.connections.into();
        Ok((config, fresh))
    }
}

/// What is wrong with the command line beyond its grammar. Never holds a token or a URL.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArgsError {
    #[error("a Redis is needed: --redis URL, or --dev for one of its own")]
    NoRedis,
    #[error("the token file cannot be read: {0}")]
    TokenFile(#[source] io::Error),
    #[error(transparent)]
    Tokens(#[from] TokenError),
}
