//! Real Redis servers for tests: a single one, a cluster, and a master that Sentinels monitor.
//!
//! They listen on free ports on loopback and store nothing. They end when their value is dropped,
//! or with the test's process if that is killed.

mod cluster;
mod sentinels;
mod server;

pub use self::cluster::Cluster;
pub use self::sentinels::Sentinels;
pub use self::server::{Folder, Server, signal, until};

/// The password of every server here.
pub const PASSWORD: &str = "a password/with @ signs";
/// [`PASSWORD`] as it is written in a URL.
pub const PASSWORD_IN_URL: &str = "a%20password%2Fwith%20%40%20signs";
