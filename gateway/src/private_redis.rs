//! A private Redis that the gateway starts and ends.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use redis::{Client, ConnectionAddr};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

/// How long a new `redis-server` may take until it replies.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval between two attempts to get a reply.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The script of the watchdog: waits for the end of its input, which the gateway holds open.
const WATCHDOG: &str = r#"read _; kill -KILL "$1"; rm -rf "$2""#;

/// A `redis-server` on a socket in a folder that only this user can open. It stores no data on
/// disk. Dropping it kills the process and removes the folder.
#[derive(Debug)]
pub(crate) struct PrivateRedis {
    // Fields are dropped in this order: the watchdog must end before the process that it would
    // kill.
    watchdog: Option<Child>,
    child: Child,
    socket: PathBuf,
    folder: TempDir,
}

impl PrivateRedis {
    pub(crate) async fn start() -> Result<Self, PrivateRedisError> {
        let folder = tempfile::Builder::new()
            .prefix("edgelatch-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir()
            .map_err(PrivateRedisError::Folder)?;
        let socket = folder.path().join("redis.sock");
        let child = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "no"])
            .args(["--daemonize", "no", "--loglevel", "warning", "--unixsocketperm", "700"])
            .arg("--unixsocket")
            .arg(&socket)
            .arg("--dir")
            .arg(folder.path())
            .arg("--logfile")
            .arg(folder.path().join("redis.log"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C in a terminal ends a whole process group, and Redis must outlive the last
            // request.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(PrivateRedisError::Spawn)?;
        let mut redis = Self { watchdog: None, child, socket, folder };
        redis.watchdog = Some(redis.start_watchdog().map_err(PrivateRedisError::Spawn)?);
        match timeout(START_TIMEOUT, redis.wait_until_ready()).await {
            Ok(Ok(())) => Ok(redis),
            Ok(Err(_)) | Err(_) => Err(PrivateRedisError::Silent(redis.log())),
        }
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Waits until the process is gone.
    pub(crate) async fn ended(&mut self) {
        // An error means that the process does not exist any more.
        let _ = self.child.wait().await;
    }

    /// Ends the process and removes the folder.
    pub(crate) async fn end(mut self) {
        if let Some(watchdog) = &mut self.watchdog {
            let _ = watchdog.kill().await;
        }
        let _ = self.child.kill().await;
        let _ = self.folder.close();
    }

    /// Starts a second process that ends Redis if the gateway is killed.
    fn start_watchdog(&self) -> io::Result<Child> {
        let id = self.child.id().ok_or_else(|| io::Error::other("redis-server has ended"))?;
        Command::new("sh")
            .args(["-c", WATCHDOG, "sh"])
            .arg(id.to_string())
            .arg(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
    }

    /// Waits until Redis replies. Returns an error if the process has ended.
    async fn wait_until_ready(&mut self) -> io::Result<()> {
        let client = Client::open(ConnectionAddr::Unix(self.socket.clone()));
        let client = client.map_err(io::Error::other)?;
        loop {
            if let Ok(mut connection) = client.get_multiplexed_async_connection().await {
                let ping: Result<String, _> = redis::cmd("PING").query_async(&mut connection).await;
                if ping.is_ok() {
                    return Ok(());
                }
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(io::Error::other(status.to_string()));
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    fn log(&self) -> String {
        let log = fs::read_to_string(self.folder.path().join("redis.log")).unwrap_or_default();
        log.lines().last().unwrap_or("it wrote no log").to_owned()
    }
}

/// The reason why the private Redis did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrivateRedisError {
    /// Its folder could not be created.
    #[error("no temporary folder for the private Redis: {0}")]
    Folder(#[source] io::Error),
    /// It does not reply, or has ended. Contains the last line of its log.
    #[error("the private Redis does not reply; last line of its log: {0}")]
    Silent(String),
    /// `redis-server` could not be started; most likely it is not installed.
    #[error("redis-server cannot be run (is it installed?): {0}")]
    Spawn(#[source] io::Error),
}
