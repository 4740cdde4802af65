//! A Redis of the gateway's own.

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

/// How long a new `redis-server` may take to answer.
const START: Duration = Duration::from_secs(10);
/// How often it is asked meanwhile.
const ASK_EVERY: Duration = Duration::from_millis(5);

/// What the warden does: it waits for the end of its input, which the gateway holds open.
const WARDEN: &str = r#"read _; kill -KILL "$1"; rm -rf "$2""#;

/// A `redis-server` that listens on a socket in a folder only this user can enter, and keeps
/// nothing. Dropping it kills the process and removes the folder.
#[derive(Debug)]
pub(crate) struct PrivateRedis {
    // In this order they are dropped: the warden must not outlive what it guards.
    warden: Option<Child>,
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
            // Ctrl-C goes to the whole group of a terminal; Redis must outlive the last request.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(PrivateRedisError::Spawn)?;
        let mut redis = Self { warden: None, child, socket, folder };
        redis.warden = Some(redis.set_warden().map_err(PrivateRedisError::Spawn)?);
        match timeout(START, redis.answers()).await {
            Ok(Ok(())) => Ok(redis),
            Ok(Err(_)) | Err(_) => Err(PrivateRedisError::Silent(redis.log())),
        }
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Waits until the process is gone.
    pub(crate) async fn ended(&mut self) {
        // An error means that there is no such child any more.
        let _ = self.child.wait().await;
    }

    /// Ends the process and removes the folder. There is nothing in it to save.
    pub(crate) async fn end(mut self) {
        if let Some(warden) = &mut self.warden {
            let _ = warden.kill().await;
        }
        let _ = self.child.kill().await;
        let _ = self.folder.close();
    }

    /// A second process that ends Redis if this one is killed and cannot do it any more.
    fn set_warden(&self) -> io::Result<Child> {
        let id = self.child.id().ok_or_else(|| io::Error::other("redis-server has ended"))?;
        Command::new("sh")
            .args(["-c", WARDEN, "sh"])
            .arg(id.to_string())
            .arg(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
    }

    /// Ends when Redis answers, or with an error when the process has gone.
    async fn answers(&mut self) -> io::Result<()> {
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
            sleep(ASK_EVERY).await;
        }
    }

    fn log(&self) -> String {
        let log = fs::read_to_string(self.folder.path().join("redis.log")).unwrap_or_default();
        log.lines().last().unwrap_or("it wrote no log").to_owned()
    }
}

/// Why the private Redis did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrivateRedisError {
    /// No folder could be made for it.
    #[error("no temporary folder for the private Redis: {0}")]
    Folder(#[source] io::Error),
    /// It started and does not answer; the last line of its log.
    #[error("the private Redis does not answer; its last words: {0}")]
    Silent(String),
    /// The program could not be run: most likely it is not installed.
    #[error("redis-server cannot be run (is it installed?): {0}")]
    Spawn(#[source] io::Error),
}
