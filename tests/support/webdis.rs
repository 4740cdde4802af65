//! A real Webdis in front of a test's Redis.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use edgelatch_proto::protocol::gateway::Gateway;
use serde_json::json;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use super::redis::Redis;
use super::test_env::until;

/// The credentials that its configuration requires.
pub const CREDENTIALS: &str = "edge:s3cret:word";

/// A Webdis process that ends with the value.
pub struct Webdis {
    url: String,
    _process: Child,
    _folder: TempDir,
}

impl Webdis {
    /// Starts a Webdis that accepts only the [credentials](CREDENTIALS).
    pub async fn start(redis: &Redis) -> Self {
        // Another process may take a port that was free a moment ago.
        for _ in 0..5 {
            let folder = tempfile::tempdir().unwrap();
            let address = free_address().await;
            let configuration = json!({
                // A host that is a path names a socket.
                "redis_host": redis.gateway().redis_socket().unwrap(),
                "redis_port": 0,
                "http_host": "127.0.0.1",
                "http_port": address.port(),
                "threads": 2,
                "pool_size": 4,
                "daemonize": false,
                "database": 0,
                "verbosity": 0,
                "logfile": folder.path().join("log"),
                "acl": [
                    { "disabled": ["*"] },
                    { "http_basic_auth": CREDENTIALS, "enabled": ["*"] },
                ],
            });
            let file = folder.path().join("webdis.json");
            std::fs::write(&file, configuration.to_string()).unwrap();
            let mut command = Command::new("webdis");
            command.arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut process = command.kill_on_drop(true).spawn().unwrap();
            if comes_up(&mut process, address).await {
                let url = format!("http://{address}");
                return Self { url, _process: process, _folder: folder };
            }
        }
        panic!("webdis does not start");
    }

    pub fn gateway(&self) -> Gateway {
        Gateway::webdis(&self.url, CREDENTIALS).unwrap()
    }

    /// The gateway with other credentials.
    pub fn gateway_of(&self, credentials: &str) -> Gateway {
        Gateway::webdis(&self.url, credentials).unwrap()
    }
}

async fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

/// Returns `false` if the process ends before it listens.
async fn comes_up(process: &mut Child, address: SocketAddr) -> bool {
    let mut up = false;
    until(async || {
        tokio::time::sleep(Duration::from_millis(10)).await;
        up = TcpStream::connect(address).await.is_ok();
        up || process.try_wait().unwrap().is_some()
    })
    .await;
    // A process that could not listen has ended by now, or is about to; then another process
    // accepted the connection.
    up && process.try_wait().unwrap().is_none()
}
