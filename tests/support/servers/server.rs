//! One `redis-server`.

use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use redis::{
    Client, Connection, ConnectionAddr, ConnectionInfo, FromRedisValue, IntoConnectionInfo as _,
    RedisResult,
};
use tempfile::TempDir;

use super::PASSWORD;

/// How often a test polls a server before it gives up, and the pause in between.
const PING_ATTEMPTS: (usize, Duration) = (30_000, Duration::from_millis(10));

/// A shell script that kills the servers below a folder when its input ends, because the test's
/// process has ended.
const WATCHDOG_SCRIPT: &str =
    r#"read _; for f in "$1"/*/pid; do kill -KILL "$(cat "$f")"; done; rm -rf "$1""#;

/// The folder of some servers. Dropped with the value; the servers must have ended by then.
pub struct Folder {
    folder: TempDir,
    warden: Child,
}

impl Folder {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut warden = Command::new("sh");
        warden.args(["-c", WATCHDOG_SCRIPT, "sh"]).arg(folder.path());
        warden.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // A signal to the whole group of a terminal or of a supervisor must not kill it.
        warden.process_group(0);
        Self { folder, warden: warden.spawn().unwrap() }
    }

    /// Creates a folder in it. A process that writes its id to `pid` there ends with the test's
    /// process.
    pub fn below(&self) -> PathBuf {
        let number = fs::read_dir(self.folder.path()).unwrap().count();
        let folder = self.folder.path().join(number.to_string());
        fs::create_dir(&folder).unwrap();
        folder
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = self.warden.kill();
        let _ = self.warden.wait();
    }
}

/// A `redis-server` that can be killed, started again and made to hang.
pub struct Server {
    child: Child,
    folder: PathBuf,
    port: u16,
    bus: u16,
    options: Vec<String>,
}

impl Server {
    /// Starts a server with these options beside the common ones; returns once it responds.
    pub fn start(folder: &Folder, options: &[&str]) -> Self {
        Self::start_with(folder, |_, _| options.iter().map(|&word| word.to_owned()).collect())
    }

    /// Starts a server whose options may depend on the port of the cluster bus and on the server's
    /// folder; returns once it responds.
    pub fn start_with(folder: &Folder, options: impl Fn(u16, &Path) -> Vec<String>) -> Self {
        let folder = folder.below();
        // Another process may take a port that was free a moment ago.
        for _ in 0..5 {
            let (port, bus) = free_ports();
            let options = options(bus, &folder);
            let child = spawn(&folder, port, &options);
            let mut server = Self { child, folder: folder.clone(), port, bus, options };
            if server.comes_up() {
                return server;
            }
        }
        panic!("redis-server does not start: {}", log(&folder));
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The port of the cluster bus, if the options use it.
    pub fn bus(&self) -> u16 {
        self.bus
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// How a client connects.
    pub fn info(&self) -> ConnectionInfo {
        let address = ConnectionAddr::Tcp("127.0.0.1".to_owned(), self.port);
        let info = address.into_connection_info().unwrap();
        let login = info.redis_settings().clone().set_password(PASSWORD);
        info.set_redis_settings(login)
    }

    /// Runs a command without a gateway.
    pub fn query<T: FromRedisValue>(&self, words: &[&str]) -> RedisResult<T> {
        redis::cmd(words[0]).arg(&words[1..]).query(&mut self.connect()?)
    }

    /// Whether the reply to a command contains a text.
    pub fn says(&self, words: &[&str], text: &str) -> bool {
        self.query::<String>(words).is_ok_and(|reply| reply.contains(text))
    }

    pub fn kill(&mut self) {
        let _ = fs::remove_file(self.folder.join("pid"));
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts the server again at its address, without its data unless its options persist them.
    pub fn restart(&mut self) {
        self.child = spawn(&self.folder, self.port, &self.options);
        assert!(self.comes_up(), "redis-server does not start again: {}", log(&self.folder));
    }

    /// Suspends it with its connections open, until [`go_on`](Self::go_on).
    pub fn hang(&self) {
        signal(&self.child, "-STOP");
    }

    pub fn go_on(&self) {
        signal(&self.child, "-CONT");
    }

    fn connect(&self) -> RedisResult<Connection> {
        let patience = Duration::from_secs(5);
        let connection = Client::open(self.info())?.get_connection_with_timeout(patience)?;
        connection.set_read_timeout(Some(patience))?;
        Ok(connection)
    }

    /// Returns `false` if the process ends before it responds. The server of another test may have
    /// taken the port, so the one that responds is asked for its process.
    fn comes_up(&mut self) -> bool {
        let process = format!("process_id:{}\r\n", self.child.id());
        until(|| {
            if self.says(&["INFO", "server"], &process) {
                return Some(true);
            }
            self.child.try_wait().unwrap().map(|_| false)
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn signal(child: &Child, signal: &str) {
    let process = child.id().to_string();
    assert!(Command::new("kill").args([signal, &process]).status().unwrap().success());
}

/// Polls `ask` until it returns a value.
pub fn until<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    for _ in 0..PING_ATTEMPTS.0 {
        if let Some(found) = ask() {
            return found;
        }
        sleep(PING_ATTEMPTS.1);
    }
    panic!("no answer for too long");
}

fn free_ports() -> (u16, u16) {
    // Both are taken before either is freed, so that they differ.
    let taken = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [port, bus] = taken.map(|listener| listener.local_addr().unwrap().port());
    (port, bus)
}

fn spawn(folder: &Path, port: u16, options: &[String]) -> Child {
    let at = |name: &str| folder.join(name).display().to_string();
    Command::new("redis-server")
        // A Sentinel's configuration file must come first.
        .args(options)
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--requirepass", PASSWORD])
        .args(["--daemonize", "no", "--dir", &folder.display().to_string()])
        .args(["--pidfile", &at("pid"), "--logfile", &at("log")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap()
}

fn log(folder: &Path) -> String {
    fs::read_to_string(folder.join("log")).unwrap_or_default()
}
