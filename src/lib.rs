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
//!         // Send the token with each write. The store rejects a token older than the newest it has seen.
//!         charge(lease.token().as_u64()).await
//!     })
//!     .await?;
//! # async fn charge(fence: u64) -> bool { fence > 0 }
//! # Ok(())
//! # }
//! ```
//!
//! # The run loop
//!
//! The protocol's decisions are made by sans-I/O state machines ([machine]): each takes an input
//! and the current time, and returns a call to send, a time to wait for, or its result. A machine
//! has no clock, no socket and no randomness of its own. [`Client`] drives machines on a
//! [`Host`](host::Host) (an event loop) and over a [`Transport`](transport::Transport). A program
//! with a loop of its own can drive the same machines directly:
//!
//! ```
//! use std::time::Duration;
//!
//! use edgelatch::LockName;
//! use edgelatch::machine::{
//!     Acquire, AcquireSpec, Entropy, Input, Machine, Output, TimeoutReason,
//! };
//! use edgelatch::protocol::calls::{LockCalls, Target};
//! use edgelatch::protocol::reply::{Reply, RespValue};
//! use edgelatch::protocol::script::Publish;
//! use edgelatch::time::Instant;
//! use edgelatch::timing::WaitPolicy;
//!
//! let target = Target::Lock(LockCalls::new(LockName::parse("invoice:42")?, Publish::Plain));
//! let spec = AcquireSpec::new(target, WaitPolicy::Once);
//! // 1. Time is an argument: the readings of a monotonic and a wall clock. So is entropy.
//! let mut now = Instant::from_millis(1_000, 1_700_000_000_000);
//! let mut acquire = Acquire::new(spec, Entropy::new([7; 32]), None, now);
//!
//! // 2. Poll until it returns `Timeout` or `Done`.
//! let Output::Call { call, script, .. } = acquire.poll(now) else { panic!("it begins with a call") };
//! assert_eq!(script.script().name, "lock_acquire");
//! let Output::Timeout { why, .. } = acquire.poll(now) else { panic!("then it waits") };
//! assert_eq!(why, TimeoutReason::ReplyDue);
//!
//! // 3. Pass the outcome: here Redis granted the lock, 20 ms later.
//! now = now + Duration::from_millis(20);
//! let token = RespValue::Text("1700000000000000".into());
//! let server_ms = RespValue::Int(1_700_000_000_000);
//! let echo = RespValue::Text(script.args()[0].clone());
//! let cells = [RespValue::Int(1), token, RespValue::Int(30_000), server_ms, echo];
//! let reply = Reply::read(&cells, script.request).expect("five elements, and the echo");
//! acquire.handle(Input::Reply { call, reply }, now);
//!
//! // 4. Poll again. The lease counts from the sending of the request, less 1 % and 2 ms.
//! let Output::Done(Ok(grant)) = acquire.poll(now) else { panic!("it has the lock") };
//! assert_eq!(grant.token.as_u64(), 1_700_000_000_000_000);
//! assert_eq!(grant.lease.remaining(now), Duration::from_millis(30_000 - 302 - 20));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! * `reqwest` (default): the transport for Rust programs, native and wasm32.
//! * `tokio` (default): the host for programs on Tokio.
//! * `blocking`: the same objects for programs without an event loop.
//! * `web`: host and transport inside a JavaScript runtime, for Rust programs compiled to wasm32. They
//!   include a small JavaScript module, so any target of wasm-bindgen with modules works
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
pub mod error;
pub mod host;
#[cfg(all(feature = "js", target_arch = "wasm32"))]
pub mod js;
pub mod machine;
pub mod name;
pub mod protocol;
pub mod time;
pub mod timing;
pub mod transport;
#[cfg(all(feature = "web", target_arch = "wasm32"))]
mod web;

pub use client::{AcquireOptions, Client, Error, Lease, Lock};
pub use name::{FencingToken, LockName};
pub use protocol::gateway::Gateway;
