//! Real Redis servers for tests: one, a cluster, and a master that Sentinels watch over.
//!
//! They listen on loopback on free ports, keep nothing, and end with the value that stands for
//! them, or with the test's process should that be killed.

mod cluster;
mod sentinels;
mod server;

pub use self::cluster::Cluster;
pub use self::sentinels::Sentinels;
pub use self::server::{Folder, Server, signal, until};

/// What every server here asks for.
pub const PASSWORD: &str = "a password/with @ signs";
/// The same as it is written in a URL.
pub const PASSWORD_IN_URL: &str = "a%20password%2Fwith%20%40%20signs";
