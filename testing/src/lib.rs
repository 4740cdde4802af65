//! A gateway in memory for unit tests of programs that use `edgelatch`: locks without a server.
//!
//! [`MemoryGateway`] answers the requests of clients by a model of the scripts that edgelatch runs
//! in Redis. The project's own tests compare that model with a real Redis, a million random calls
//! for each release. The crate has no clock and does no I/O: time is an argument. Programs in Rust
//! use it through `edgelatch::testing`, programs in JavaScript through `edgelatch/testing`.

mod command;
mod gateway;
mod holds;
#[cfg(all(feature = "js", target_arch = "wasm32"))]
pub mod js;
mod kind;
mod redis;
#[doc(hidden)]
pub mod script_model;
mod streams;

pub use gateway::MemoryGateway;
pub use holds::{Held, HoldError, HoldOptions, OtherHold};
pub use kind::Kind;
pub use streams::StreamId;
