//! Upstash's REST protocol in front of any Redis.
//!
//! The program `edgelatch-gateway` is this library with a command line. A test or a tool can start
//! a gateway in its own process:
//!
//! ```no_run
//! use edgelatch_gateway::{Config, Gateway, RedisSource, Tokens};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let tokens = Tokens::new(["a-secret-of-256-random-bits"])?;
//! let gateway = Gateway::start(Config::new(RedisSource::Private, tokens)).await?;
//! println!("listening on http://{}", gateway.address());
//! gateway.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! The gateway guarantees:
//!
//! - a request without a valid token has no effect, and its body is not read;
//! - a request that a scoped token does not allow is refused before anything is sent to Redis;
//! - a page on an origin that is not allowed can neither read nor change anything, even with a
//!   command or a token in the address;
//! - a command is sent to Redis once. The gateway never repeats it, since only the client knows
//!   whether that is safe. There are two exceptions, for replies that say that the command was not
//!   executed: the gateway follows a cluster's redirections, and sends the text of a script of
//!   edgelatch that Redis does not know;
//! - a response with status 200 or 400 is a reply of Redis, or says that nothing was sent. 429 and
//!   503 say that a limit was reached and nothing was sent. 502 and 504 mean that the command may
//!   have been executed, and so does an error without a code in capitals in the response to a
//!   pipeline;
//! - no log line, metric, error or debug output contains a token, a key, a channel or an argument.

mod address;
mod auth;
mod backend;
mod clock;
mod command;
mod config;
mod cors;
mod dispatch;
mod execute;
mod failure;
mod framing;
mod gateway;
mod limits;
mod observe;
mod path;
mod policy;
mod private_redis;
mod reply;
mod request_body;
mod request_tracker;
mod response_body;
mod routes;
mod scoped;
mod scripts;
mod subscribe;
mod sync_token;
mod timed_stream;
mod tokens;

pub use config::{Config, Origin, OriginError, RedisSource};
pub use edgelatch_proto::protocol::scope::Right;
pub use gateway::{Gateway, StartError};
pub use observe::AccessLog;
pub use policy::{AllowedCommand, AllowedCommandError};
pub use private_redis::PrivateRedisError;
pub use scoped::{ScopeKeyError, ScopeKeys, ScopedNames, ScopedToken};
pub use tokens::{TokenError, Tokens};
