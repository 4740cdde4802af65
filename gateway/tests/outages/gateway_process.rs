//! The gateway's program in a process of its own, which tests kill, restart at the same address,
//! and stop.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use edgelatch::Gateway;
use edgelatch::timing::AttemptTime;

use test_support::servers::{Folder, signal, until};
use test_support::test_env::LONG_ATTEMPT;

pub(crate) const TOKEN: &str = "the-token-of-tests";

/// The time limit of one attempt of the clients under load: shorter than the injected hangs. A call
/// may exceed it on a slow machine; then a later one succeeds.
const ATTEMPT: Duration = Duration::from_secs(1);

/// A gateway in a process of its own, which ends when this is dropped.
pub(crate) struct GatewayProcess {
    child: Child,
    redis: String,
    address: String,
    folder: PathBuf,
}

impl GatewayProcess {
    /// Starts a gateway in front of the Redis at this URL.
    pub(crate) fn start(folder: &Folder, redis: String) -> Self {
        let folder = folder.below();
        let (child, address) = run(&folder, &redis, "127.0.0.1:0").unwrap();
        Self { child, redis, address, folder }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the gateway's configuration for a client under load.
    pub(crate) fn gateway(&self) -> Gateway {
        self.gateway_with_timeout(ATTEMPT)
    }

    /// Returns the gateway's configuration for a client whose attempts must succeed on a slow
    /// machine too.
    pub(crate) fn gateway_with_long_attempts(&self) -> Gateway {
        self.gateway_with_timeout(LONG_ATTEMPT)
    }

    fn gateway_with_timeout(&self, attempt: Duration) -> Gateway {
        let attempt = AttemptTime::new(attempt).unwrap();
        Gateway::upstash(&self.url(), TOKEN).unwrap().request_timeout(attempt)
    }

    pub(crate) fn kill(&mut self) {
        let _ = fs::remove_file(self.folder.join("pid"));
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Restarts the gateway at the same address.
    pub(crate) fn restart(&mut self) {
        // Another process's connection may use its port for a moment, so the start is retried.
        (self.child, _) = until(|| run(&self.folder, &self.redis, &self.address));
    }

    /// Stops the process with its connections open, until [`go_on`](Self::go_on).
    pub(crate) fn hang(&self) {
        signal(&self.child, "-STOP");
    }

    pub(crate) fn go_on(&self) {
        signal(&self.child, "-CONT");
    }
}

impl Drop for GatewayProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a gateway, and returns its process and address; `None` if it ends before it listens.
fn run(folder: &Path, redis: &str, listen: &str) -> Option<(Child, String)> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_edgelatch-gateway"))
        .args(["--redis", redis, "--token", TOKEN, "--listen", listen])
        .env_remove("EDGELATCH_TOKENS")
        .env_remove("EDGELATCH_REDIS")
        .env_remove("EDGELATCH_SCOPE_KEYS")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    fs::write(folder.join("pid"), child.id().to_string()).unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let address = |line: String| Some(line.strip_prefix("listening on http://")?.to_owned());
    let Some(address) = lines.find_map(address) else {
        child.wait().unwrap();
        return None;
    };
    Some((child, address))
}
