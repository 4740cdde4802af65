//! Shared by the test binaries: servers, proxies, clocks, the scripts' model in memory, and the
//! checker of histories.

#![cfg(not(target_arch = "wasm32"))]
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends at the first surprise"
)]
#![expect(missing_docs, reason = "for the tests of this repository alone")]
#![expect(clippy::new_without_default, reason = "what starts a server or a clock has no default")]

pub mod bad_responses;
pub mod calls;
pub mod costed_calls;
pub mod every_call;
pub mod fake_host;
pub mod fault_proxy;
pub mod faults;
pub mod full_objects;
pub mod history;
pub mod machines;
pub mod observer;
pub mod pubsub_capture;
pub mod random;
pub mod redis;
pub mod servers;
pub mod slow_machine;
pub mod streaming;
pub mod test_env;
pub mod webdis;
pub mod work;

pub use edgelatch_testing::script_model;
