//! To be written.
#![no_std]

extern crate alloc;
extern crate std;

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
