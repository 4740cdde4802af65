//! Distributed locks over HTTP: for Cloudflare Workers, browsers, serverless functions, and any
//! Rust program that reaches Redis through a REST gateway.
//!
//! The crate writes byte for byte what Java's Redisson writes, so a Java service that holds an
//! `RLock` and a program with this crate exclude each other. Every grant carries a fencing token,
//! requests are idempotent, and a holder is notified before its lease can pass to someone else.
//!
//! ```no_run
//! # #[cfg(all(feature = "reqwest", feature = "tokio"))]
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use edgelatch::{Client, Gateway};
//!
//! let client = Client::connect(Gateway::upstash("https://eu1-example.upstash.io", "token")?);
//! let lock = client.lock("invoice:42")?;
//! let charged = lock
//!     .run(async |lease| {
//!         // Send the token with each write. The store rejects a token older than the newest it
//!         // has seen.
//!         charge(lease.token().as_u64()).await
//!     })
//!     .await?;
//! # async fn charge(fence: u64) -> bool { fence > 0 }
//! # Ok(())
//! # }
//! ```
//!
//! All decisions are made by the sans-I/O state machines of
//! [`edgelatch-proto`](https://docs.rs/edgelatch-proto). [`Client`] runs them on a
//! [`Host`](host::Host) (an event loop) and over a [`Transport`](transport::Transport). A program
//! with a loop of its own can run the same machines directly.
//!
//! # Features
//!
//! * `reqwest` (default): the transport for Rust programs, native and wasm32.
//! * `tokio` (default): the host for programs on Tokio.
//! * `blocking`: the same objects for programs without an event loop.
//! * `web`: host and transport inside a JavaScript runtime, for Rust programs compiled to wasm32.
//!   They include a small JavaScript module, so any target of wasm-bindgen with modules works
//!   (`no-modules` does not).
//! * `js`: the JavaScript bindings of the npm package; wasm32 only.
//!
//! # Limits
//!
//! A lock in Redis is as reliable as that Redis. A server clock that is set forward, a failover
//! that loses the last writes, or eviction can leave two clients that both believe in their lease.
//! Fencing tokens protect a store that compares them.

#![no_std]

extern crate alloc;
// Every use of std has an explicit path; modules without I/O have none.
extern crate std;

#[cfg(all(feature = "blocking", not(target_arch = "wasm32")))]
pub mod blocking;
pub mod client;
pub mod host;
#[cfg(all(feature = "js", target_arch = "wasm32"))]
pub mod js;
pub mod transport;
#[cfg(all(feature = "web", target_arch = "wasm32"))]
mod web;

/// The errors of the API: one enum per operation.
///
/// No message contains a gateway's token, an owner id, a script or a lock's name.
pub mod error {
    pub use edgelatch_proto::error::{
        AcquireError, EvalError, FailureKind, GuardError, InvalidOption, LossReason, Refusal,
        RefusalKind, ReleaseError, RequestError,
    };
}

/// Names and ids, checked once where they enter the crate: a value that exists is valid.
pub mod name {
    pub use edgelatch_proto::name::{FencingToken, GuardKey, LockName, PermitId};
}

/// Points in time, without a clock.
pub mod time {
    pub use edgelatch_proto::time::Instant;
}

/// Durations with a meaning, their defaults and ranges. A value that exists is valid.
pub mod timing {
    pub use edgelatch_proto::timing::{
        AttemptTime, GuardMemory, LeaseTime, LifeTime, PeerSkew, RejoinDelay, WantTime,
    };
}

pub use client::{AcquireOptions, Client, Lease, Lock};
pub use edgelatch_proto::protocol::gateway::{Gateway, KeyLocking};
pub use edgelatch_proto::protocol::script::Publish;
pub use name::{FencingToken, LockName};
