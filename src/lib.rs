//! Distributed locks over HTTP, for Cloudflare Workers, browsers, serverless functions, and any
//! Rust program that reaches Redis through a REST gateway.
//!
//! The crate stores locks as Java's Redisson does, byte for byte, so a Java service that holds an
//! `RLock` and a program with this crate exclude each other. Every grant carries a fencing token,
//! requests are idempotent, and a holder is notified before its lease can pass to another client.
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
//! [`Client`] has a method for each kind of object: locks, fair locks, read-write locks, several
//! locks as one, semaphores, count-down latches and guarded keys.
//!
//! The sans-I/O state machines of [`edgelatch-proto`](https://docs.rs/edgelatch-proto) make all
//! decisions. A client runs them on a [`Host`](host::Host), which has the clock, the timers and the
//! entropy, and over a [`Transport`](transport::Transport), which sends requests. A program with an
//! event loop of its own can run the same machines directly.
//!
//! # Features
//!
//! * `reqwest` (default): the transport for Rust programs, native and wasm32.
//! * `tokio` (default): the host for programs on Tokio.
//! * `blocking`: the same objects with blocking calls, for programs without an event loop.
//! * `tracing`: spans and events of the crate `tracing` for each step of a lock's life.
//! * `metrics`: counters and histograms of the crate `metrics`.
//! * `testing`: a gateway in memory for unit tests, with Tokio's clock, which a test can pause.
//! * `web`: the host and the transport inside a JavaScript runtime, for Rust programs compiled to
//!   wasm32. They include a small JavaScript module, so every target of wasm-bindgen works except
//!   `no-modules`.
//! * `js`: the JavaScript bindings of the npm package; wasm32 only.
//!
//! # Limits
//!
//! A lock in Redis is as reliable as that Redis. After a failover that loses the last writes, after
//! an eviction, or after a forward step of the server's clock, two clients may believe for a while
//! that they hold one lock. Fencing tokens protect a store that rejects older ones.

#![no_std]

extern crate alloc;
// Every use of std has an explicit path; modules without I/O have none.
extern crate std;

#[cfg(all(feature = "web", target_arch = "wasm32"))]
mod awaited;
#[cfg(all(feature = "blocking", not(target_arch = "wasm32")))]
pub mod blocking;
pub mod client;
pub mod host;
#[cfg(all(feature = "js", target_arch = "wasm32"))]
pub mod js;
#[cfg(all(feature = "testing", not(target_arch = "wasm32")))]
pub mod testing;
pub mod transport;
#[cfg(all(any(feature = "js", feature = "web"), target_arch = "wasm32"))]
mod web;

/// The errors: one enum for each operation. The client adds the lock and the gateway's host.
///
/// No message contains a gateway's token, an owner id, a script or a lock's name.
pub mod error {
    pub use edgelatch_proto::error::{
        AcquireError, EvalError, FailureKind, GuardError, InvalidOption, LossReason, Refusal,
        RefusalKind, ReleaseError, RequestError,
    };
}

/// Names, keys, ids and fencing tokens. Each is checked when it is created.
pub mod name {
    pub use edgelatch_proto::name::{FencingToken, GuardKey, LockName, PermitId};
}

/// Points in time. Only a [`Host`](crate::host::Host) reads a clock.
pub mod time {
    pub use edgelatch_proto::time::Instant;
}

/// The durations of options, with their defaults and ranges. Each is checked when it is created.
pub mod timing {
    pub use edgelatch_proto::timing::{
        AttemptTime, GuardMemory, LeaseTime, LifeTime, PeerSkew, RejoinDelay, WantTime,
    };
}

pub use client::{AcquireOptions, Client, Error, Lease, Lock};
pub use edgelatch_proto::protocol::gateway::{Gateway, KeyLocking};
pub use edgelatch_proto::protocol::script::Publish;
pub use name::{FencingToken, LockName};
