//! Upstash's REST protocol in front of any Redis.
//!
//! The program `edgelatch-gateway` is this library behind a command line. A test or a tool that
//! wants a gateway of its own starts one in its process:
//!
//! ```no_run
//! use edgelatch_gateway::{Config, Gateway, RedisSource, Tokens};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let tokens = Tokens::new(["a-secret-that-nobody-guesses"])?;
//! let gateway = Gateway::start(Config::new(RedisSource::Private, tokens)).await?;
//! println!("listening on http://{}", gateway.address());
//! gateway.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! What the gateway owes its clients:
//!
//! - a request without a valid token has no effect, and its body is not read;
//! - what a scoped token does not allow is refused before anything is sent;
//! - a page on an origin that is not allowed can neither read nor change anything, also where the command or
//!   the token is in the address;
//! - a command is sent to Redis once. The gateway never sends it again: only the client knows
//!   whether it may be repeated. It follows a cluster's redirections, which say that nothing was
//!   executed;
//! - an answer with status 200 or 400 is Redis' own, or says that nothing was sent. So do 429 and
//!   503, of a limit that is reached. 502 and 504 mean that the command may have been executed,
//!   and so does an error without a code in front inside of a pipeline's answer;
//! - no log line, error or debug output holds a token, a key, a channel or an argument.

mod address;
mod answering;
mod arrival;
mod auth;
mod clock;
mod command;
mod config;
mod cors;
mod execute;
mod failure;
mod framing;
mod gateway;
mod head_timer;
mod limits;
mod link;
mod path;
mod policy;
mod private_redis;
mod reply;
mod routes;
mod scoped;
mod subscribe;
mod sync_token;
mod tokens;
mod turns;
mod write_timer;

pub use config::{Config, Origin, OriginError, RedisSource};
pub use edgelatch::protocol::scope::Right;
pub use gateway::{Gateway, StartError};
pub use policy::{AllowedCommand, AllowedCommandError};
pub use private_redis::PrivateRedisError;
pub use scoped::{ScopeKeyError, ScopeKeys, ScopedNames, ScopedToken};
pub use tokens::{TokenError, Tokens};
