//! A real Webdis in front of a test's Redis.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use edgelatch_proto::protocol::gateway::Gateway;
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

use super::redis::Redis;
use super::test_env::until;

/// The credentials that its configuration requires.
pub const CREDENTIALS: &str = "edge:s3cret:word";

/// The longest time for a response while Webdis starts: a different server may never respond.
const PATIENCE: Duration = Duration::from_secs(10);

/// A Webdis process that ends with the value.
pub struct Webdis {
    url: String,
    _process: Child,
    _folder: TempDir,
}

impl Webdis {
    /// Starts a Webdis that accepts only the [credentials](CREDENTIALS).
    pub async fn start(redis: &Redis) -> Self {
        let socket = redis.gateway().redis_socket().unwrap().display().to_string();
        // Another process may take a port that was free a moment ago.
        for _ in 0..5 {
            let folder = tempfile::tempdir().unwrap();
            let address = free_address().await;
            let configuration = json!({
                // A host that is a path names a socket.
                "redis_host": socket,
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
            let url = format!("http://{address}");
            if comes_up(&mut process, &url, &socket).await {
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

/// Returns `false` if the process ends before it serves. The Webdis of another test may have taken
/// the port, so the server there is asked for the socket of its Redis.
async fn comes_up(process: &mut Child, url: &str, socket: &str) -> bool {
    let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
    let (user, password) = CREDENTIALS.split_once(':').unwrap();
    let ask = async || {
        let request = client.get(format!("{url}/CONFIG/GET/unixsocket"));
        request.basic_auth(user, Some(password)).send().await?.text().await
    };
    let mut serves = false;
    until(async || {
        tokio::time::sleep(Duration::from_millis(10)).await;
        serves = ask().await.is_ok_and(|reply| reply.contains(socket));
        serves || process.try_wait().unwrap().is_some()
    })
    .await;
    serves
}
