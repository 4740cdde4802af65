//! A gateway for the program, and the program's processes.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use test_support::redis::TOKEN;
use test_support::slow_machine::longer_and_longer;
use test_support::test_env::{self, TestEnv};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// The longest wait of a test; a test that reaches it fails.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(60);
/// The path of the program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_edgelatch");

/// A Redis, a gateway, and a proxy in front of it that injects faults.
pub(crate) struct Env(pub(crate) TestEnv);

/// The end of a process: its exit code, and what it has printed.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) log: String,
}

impl Env {
    pub(crate) async fn start() -> Self {
        Self(TestEnv::new().await)
    }

    /// The program with these arguments, and with the gateway in its environment.
    ///
    /// It has a process group of its own, so it is never in the foreground of the terminal that
    /// the tests are run in.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = program(args);
        command.env("UPSTASH_REDIS_REST_URL", self.0.proxy.url());
        command.env("UPSTASH_REDIS_REST_TOKEN", TOKEN).process_group(0);
        command
    }

    /// Starts the program.
    pub(crate) fn spawn(&self, args: &[&str]) -> Process {
        Process::of(self.command(args))
    }

    /// Starts a command with a lease that the test can wait for: half a second, or the shortest
    /// one that this machine is fast enough to acquire. The command prints `ready` first.
    pub(crate) async fn spawn_briefly(&self, flags: &[&str], command: &[&str]) -> Process {
        for lease in longer_and_longer(Duration::from_millis(500)) {
            let lease = format!("{}ms", lease.as_millis());
            let args = [&["run", "--lease", &lease], flags, &["--"], command].concat();
            let mut process = self.spawn(&args);
            if process.next_line().await.as_deref() == Some("ready") {
                return process;
            }
            process.end().await.assert(69, "");
        }
        panic!("the machine is too slow for any lease")
    }

    /// Runs the program to its end.
    pub(crate) async fn run(&self, args: &[&str]) -> End {
        self.spawn(args).end().await
    }

    /// Whether a lock is held, or an object exists.
    pub(crate) async fn exists(&self, name: &str) -> bool {
        self.0.redis.query::<bool>(&["EXISTS", name]).await
    }

    /// Waits until Redis has, or has not, a lock.
    pub(crate) async fn until_exists(&self, name: &str, exists: bool) {
        test_env::until(async || self.exists(name).await == exists).await;
    }

    /// Waits until a script was called this many times.
    pub(crate) async fn until_called(&self, script: &str, times: usize) {
        test_env::until(async || self.0.proxy.count(script) >= times).await;
    }
}

/// The program without a gateway. Its attempts are long enough for a busy machine.
pub(crate) fn program(args: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    for variable in ["UPSTASH_REDIS_REST_URL", "UPSTASH_REDIS_REST_TOKEN"] {
        command.env_remove(variable);
    }
    let others = ["KV_REST_API_URL", "KV_REST_API_TOKEN", "EDGELATCH_TOKEN_FILE", "EDGELATCH_LOG"];
    for variable in others {
        command.env_remove(variable);
    }
    command.arg("--request-timeout").arg("25s").args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.kill_on_drop(true);
    command
}

/// A running program.
pub(crate) struct Process {
    child: Child,
    id: Pid,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let id = Pid::from_raw(child.id().unwrap().try_into().unwrap()).unwrap();
        let input = child.stdin.take();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, id, input, lines }
    }

    /// Waits for the next line of stdout; `None` at its end, when the program and all processes of
    /// its command have ended.
    pub(crate) async fn next_line(&mut self) -> Option<String> {
        timeout(TIME_LIMIT, self.lines.next_line()).await.unwrap().unwrap()
    }

    /// Waits for a line of stdout.
    pub(crate) async fn until_line(&mut self, expected: &str) {
        loop {
            let line = self.next_line().await;
            if line.unwrap_or_else(|| panic!("stdout has ended without {expected:?}")) == expected {
                return;
            }
        }
    }

    /// Sends a signal to the program alone.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.id, signal).unwrap();
    }

    /// Closes the program's stdin.
    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Waits for the end of the program, and of all processes that write to its output.
    pub(crate) async fn end(mut self) -> End {
        self.close_input();
        let ending = async {
            let (mut out, mut log) = (String::new(), String::new());
            while let Some(line) = self.lines.next_line().await.unwrap() {
                out.push_str(&line);
                out.push('\n');
            }
            self.child.stderr.take().unwrap().read_to_string(&mut log).await.unwrap();
            let code = self.child.wait().await.unwrap().code();
            End { code, out, log }
        };
        timeout(TIME_LIMIT, ending).await.unwrap()
    }
}

impl End {
    /// Asserts an exit code, and a part of stderr.
    #[track_caller]
    pub(crate) fn assert(&self, code: i32, log: &str) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.log.contains(log), "{log:?} is missing: {self:?}");
    }
}
