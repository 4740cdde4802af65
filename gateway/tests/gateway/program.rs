//! The program: its options, its output, and the processes and files that it must not leave behind.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use reqwest::Method;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::scopes::KEY;
use crate::support::{Redis, Stream, TIME_LIMIT, TOKEN, TestClient, calls, until};

pub(crate) fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_edgelatch-gateway"));
    command
        .args(args)
        .env_remove("EDGELATCH_TOKENS")
        .env_remove("EDGELATCH_REDIS")
        .env_remove("EDGELATCH_SCOPE_KEYS")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// A running program that listens.
pub(crate) struct Running {
    child: Child,
    lines: Vec<String>,
    rest: Lines<BufReader<ChildStdout>>,
}

impl Running {
    pub(crate) async fn start(mut command: Command) -> Self {
        let mut child = command.args(["--listen", "127.0.0.1:0"]).spawn().unwrap();
        let mut rest = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut lines = Vec::new();
        let reading = async {
            while !lines.last().is_some_and(|line: &String| line.starts_with("listening on ")) {
                lines.push(rest.next_line().await.unwrap().unwrap());
            }
        };
        timeout(TIME_LIMIT, reading).await.unwrap();
        Self { child, lines, rest }
    }

    pub(crate) fn line(&self, start: &str) -> Option<&str> {
        self.lines.iter().find_map(|line| line.strip_prefix(start))
    }

    pub(crate) fn client(&self, token: &str) -> TestClient {
        TestClient::new(self.line("listening on ").unwrap(), token)
    }

    /// Returns the id of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id().unwrap()
    }

    pub(crate) async fn is_running(&self) -> bool {
        is_running(&self.id().to_string()).await
    }

    /// Ends the process by SIGTERM. Returns its output since it listened.
    pub(crate) async fn terminate(self) -> String {
        assert!(send_signal("-TERM", &self.id().to_string()).await);
        self.end().await.1
    }

    /// Kills the process. Returns its output since it listened.
    pub(crate) async fn kill(mut self) -> String {
        self.child.start_kill().unwrap();
        self.end().await.1
    }

    fn folder(&self) -> PathBuf {
        Path::new(self.line("redis unix:").unwrap()).parent().unwrap().to_owned()
    }

    /// Waits for the end of the process. Returns its exit code, and its output since it listened.
    async fn end(mut self) -> (Option<i32>, String) {
        let mut output = String::new();
        let ending = async {
            while let Some(line) = self.rest.next_line().await.unwrap() {
                output.push_str(&line);
                output.push('\n');
            }
            let mut log = self.child.stderr.take().unwrap();
            log.read_to_string(&mut output).await.unwrap();
            self.child.wait().await.unwrap()
        };
        let status = timeout(TIME_LIMIT, ending).await.unwrap();
        (status.code(), output)
    }
}

async fn send_signal(signal: &str, process: &str) -> bool {
    let kill = Command::new("kill").args([signal, process]).stderr(Stdio::null()).status();
    kill.await.unwrap().success()
}

/// Whether a process runs. A zombie does not count.
async fn is_running(process: &str) -> bool {
    let ps = Command::new("ps").args(["-o", "stat=", "-p", process]).output().await.unwrap();
    ps.stdout.first().is_some_and(|state| !state.eq_ignore_ascii_case(&b'Z'))
}

async fn redis_process(client: &TestClient) -> String {
    let (_, info) = client.command(r#"["INFO","server"]"#).await;
    let (_, id) = info.split_once("process_id:").unwrap();
    id.chars().take_while(char::is_ascii_digit).collect()
}

#[tokio::test]
async fn dev_needs_nothing_and_leaves_nothing_behind() {
    for signal in ["-TERM", "-INT"] {
        let running = Running::start(program(&["--dev"])).await;
        assert_eq!(running.lines.len(), 3, "{:?}", running.lines);
        let client = running.client(running.line("token ").unwrap());
        assert_eq!(client.command(r#"["SET","k","v"]"#).await.0, 200);
        let mode = std::fs::metadata(running.folder()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let mut stream = Stream::open(client.request(Method::POST, "/subscribe/ch")).await;
        stream.reach("data: subscribe,ch,1\n\n").await;
        let (redis, folder) = (redis_process(&client).await, running.folder());
        assert!(is_running(&redis).await);
        assert!(send_signal(signal, &running.child.id().unwrap().to_string()).await);
        let (code, _) = running.end().await;
        assert_eq!(code, Some(0));
        stream.end().await;
        assert!(!is_running(&redis).await, "redis-server still runs");
        assert!(!folder.exists());
    }
}

#[tokio::test]
async fn dev_leaves_nothing_behind_even_when_it_is_killed() {
    let running = Running::start(program(&["--dev", "--token", TOKEN])).await;
    let folder = running.folder();
    let redis = redis_process(&running.client(TOKEN)).await;
    assert!(send_signal("-KILL", &running.child.id().unwrap().to_string()).await);
    running.end().await;
    until(async || (!is_running(&redis).await && !folder.exists()).then_some(())).await;
}

#[tokio::test]
async fn dev_ends_when_its_redis_does() {
    let running = Running::start(program(&["--dev", "--token", TOKEN])).await;
    assert_eq!(running.line("token "), None);
    let folder = running.folder();
    let redis = redis_process(&running.client(TOKEN)).await;
    assert!(send_signal("-KILL", &redis).await);
    let (code, log) = running.end().await;
    assert_eq!(code, Some(1));
    assert!(log.contains("the private Redis has ended"), "{log}");
    assert!(!folder.exists());
}

#[tokio::test]
async fn without_a_token_it_does_not_start() {
    let empty = tempfile::NamedTempFile::new().unwrap();
    let empty = empty.path().to_str().unwrap();
    let (url, token) = ("redis://:secret@127.0.0.1:1", "a-secret-of-sixteen-characters");
    for args in [
        &["--redis", url][..],
        &["--redis", url, "--token", " "],
        &["--redis", url, "--token-file", empty],
        &["--redis", url, "--token", "not secret, but long"],
        &["--redis", url, "--token", "a-short-secret"],
        &["--token", token],
        &["--redis", "http://secret", "--token", token],
        &["--redis", "redis+cluster://:secret@127.0.0.1:1/5", "--token", token],
        &["--redis", "redis+sentinel://:secret@127.0.0.1:1", "--token", token],
        &["--redis", url, "--token", token, "--allow-origin", "*"],
        &["--redis", url, "--dev"],
    ] {
        let output = timeout(TIME_LIMIT, program(args).output()).await.unwrap().unwrap();
        assert!(!output.status.success(), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
        let log = String::from_utf8(output.stderr).unwrap();
        assert!(!log.is_empty() && !log.contains("secret"), "{log}");
    }
}

/// A fixed bug: tokens had no minimum length.
#[tokio::test]
async fn a_token_that_could_be_guessed_is_refused_and_not_repeated() {
    let file = key_file("guessable\n");
    let in_file = ["--dev", "--token-file", file.path().to_str().unwrap()];
    for args in [&["--dev", "--token", "guessable"][..], &in_file] {
        let output = timeout(TIME_LIMIT, program(args).output()).await.unwrap().unwrap();
        let log = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && output.stdout.is_empty(), "{args:?}");
        assert!(log.contains("16 characters") && !log.contains("guessable"), "{log}");
    }
}

#[tokio::test]
async fn tokens_come_from_options_a_file_or_the_environment() {
    let redis = Redis::start().await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "in-the-token-file\n\nalso-in-the-token-file \n").unwrap();
    let url = redis.url();
    let (first, two) = ("the-first-token-1", "the-second-token,the-third-token-");
    let mut command = program(&["--redis", &url, "--token", first, "--token", two]);
    command.arg("--token-file").arg(file.path());
    let running = Running::start(command).await;
    let (second, third) = two.split_once(',').unwrap();
    for token in [first, second, third, "in-the-token-file", "also-in-the-token-file"] {
        assert_eq!(running.client(token).command(r#"["PING"]"#).await.0, 200, "{token}");
    }
    assert_eq!(running.client(two).command(r#"["PING"]"#).await.0, 401);
    let mut command = program(&[]);
    command.env("EDGELATCH_TOKENS", format!("{first}, {second}")).env("EDGELATCH_REDIS", &url);
    let running = Running::start(command).await;
    for token in [first, second] {
        assert_eq!(running.client(token).command(r#"["PING"]"#).await.0, 200, "{token}");
    }
}

#[tokio::test]
async fn the_log_holds_no_secret() {
    let mut redis = Redis::start().await;
    let url = redis.url();
    let mut command = program(&["--redis", &url, "--token", "secret-gateway-token"]);
    command.arg("--access-log").env("EDGELATCH_LOG", "trace");
    let running = Running::start(command).await;
    let client = running.client("secret-gateway-token");
    client.command(r#"["SET","secret-key","secret-value"]"#).await;
    client.command(r#"["SET","secret-key"]"#).await;
    client.command(r#"["BLPOP","secret-key",0]"#).await;
    running.client("secret-guess").command(r#"["PING","secret"]"#).await;
    for token in ["secret-gateway-token", "secret-guess"] {
        let address = format!("/set/secret-key/secret-value?_token={token}&EX=100");
        client.bare(Method::GET, &address).send().await.unwrap();
    }
    let mut stream = Stream::open(client.request(Method::POST, "/subscribe/secret-channel")).await;
    stream.reach("data: subscribe,secret-channel,1\n\n").await;
    redis.kill().await;
    until(async || (client.command(r#"["GET","secret-key"]"#).await.0 == 502).then_some(())).await;
    let log = running.terminate().await;
    assert!(log.contains("redis-unreachable"), "there is no access log: {log}");
    assert!(log.contains("no reply from Redis"), "the log is empty: {log}");
    assert!(!log.contains("secret"), "{log}");
}

/// A report of a new user (3.9): the log had `Redis does not answer` without an address.
#[tokio::test]
async fn a_redis_that_does_not_answer_is_named_without_its_password() {
    for (url, named) in [
        ("redis://secret-user:secret@127.0.0.1:1/5", "127.0.0.1:1"),
        ("redis+cluster://:secret@127.0.0.1:1,127.0.0.1:2", "127.0.0.1:1, 127.0.0.1:2"),
        (
            "redis+sentinel://:secret@127.0.0.1:1/main?sentinel-password=secret",
            "main of the Sentinels at 127.0.0.1:1",
        ),
    ] {
        let mut command = program(&["--redis", url, "--token", TOKEN]);
        command.env("EDGELATCH_LOG", "info");
        let mut running = Running::start(command).await;
        let mut log = BufReader::new(running.child.stderr.take().unwrap()).lines();
        let line = timeout(TIME_LIMIT, log.next_line()).await.unwrap().unwrap().unwrap();
        assert!(line.contains("Redis does not reply at ") && line.ends_with(named), "{line}");
        assert!(!line.contains("secret"), "{line}");
    }
}

/// Returns the log of a gateway in front of a Redis with these settings of its memory.
async fn log_with_memory(settings: [(&str, &str); 2]) -> String {
    let redis = Redis::start().await;
    let mut connection = redis.connect().await;
    for (name, value) in settings {
        let mut set = redis::cmd("CONFIG");
        set.arg("SET").arg(name).arg(value).exec_async(&mut connection).await.unwrap();
    }
    let mut command = program(&["--redis", &redis.url(), "--token", TOKEN]);
    command.env("EDGELATCH_LOG", "info");
    let running = Running::start(command).await;
    // The gateway checks the settings right after its first check of Redis, which the statistics
    // count.
    until(async || (calls(&connection, "ping").await > 1).then_some(())).await;
    assert!(send_signal("-TERM", &running.child.id().unwrap().to_string()).await);
    running.end().await.1
}

/// S64.
#[tokio::test]
async fn a_redis_that_evicts_is_warned_of() {
    let look = async |limit, policy, warned| {
        let log = log_with_memory([("maxmemory", limit), ("maxmemory-policy", policy)]).await;
        assert_eq!(log.contains("noeviction"), warned, "{limit} {policy}: {log}");
    };
    // Concurrently, since each gateway takes a second for its check.
    tokio::join!(
        look("100mb", "allkeys-lru", true),
        look("100mb", "volatile-ttl", true),
        look("100mb", "noeviction", false),
        look("0", "allkeys-lru", false),
    );
}

/// Returns a file with a key for scoped tokens.
fn key_file(key: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), key).unwrap();
    file
}

#[tokio::test]
async fn a_scoped_token_is_printed_and_opens_what_it_is_for() {
    let file = key_file(&format!("\n{KEY}\nan older key of thirty-two bytes\n"));
    let path = file.path().to_str().unwrap();
    let words = ["token", "--prefix", "app:", "--max-lease", "60s", "--lives", "10m"];
    let output = program(&words).args(["--scope-key-file", path]).output().await.unwrap();
    let from_file = String::from_utf8(output.stdout).unwrap();
    let output = program(&words).env("EDGELATCH_SCOPE_KEYS", KEY).output().await.unwrap();
    let from_environment = String::from_utf8(output.stdout).unwrap();
    let mut command = program(&["--dev", "--token", TOKEN]);
    command.args(["--scope-key-file", path]);
    let running = Running::start(command).await;
    for token in [from_file, from_environment] {
        let client = running.client(token.trim_end());
        assert_eq!(client.command(r#"["SET","app:a","1"]"#).await.0, 403);
        let channel = "/subscribe/redisson_lock__channel:%7Bapp:a%7D";
        let mut stream = Stream::open(client.request(Method::POST, channel)).await;
        stream.reach("data: subscribe,").await;
    }
    assert_eq!(running.client(TOKEN).command(r#"["SET","app:a","1"]"#).await.0, 200);
}

#[tokio::test]
async fn a_scoped_token_that_cannot_be_is_not_printed() {
    let (file, short) = (key_file(KEY), key_file("secret"));
    let (path, short) = (file.path().to_str().unwrap(), short.path().to_str().unwrap());
    for (prefix, max_lease, lives, path) in [
        ("app:", "60s", "10m", short),
        ("app:", "60s", "10m", "/no/such/file"),
        ("", "60s", "10m", path),
        ("el:", "60s", "10m", path),
        ("app:", "1ms", "10m", path),
        ("app:", "25h", "10m", path),
        ("app:", "60", "10m", path),
        ("app:", "60s", "-1m", path),
    ] {
        let words = ["--prefix", prefix, "--max-lease", max_lease, "--lives", lives];
        let mut command = program(&["token"]);
        let output = command.args(words).args(["--scope-key-file", path]).output().await.unwrap();
        assert!(!output.status.success() && output.stdout.is_empty(), "{prefix} {max_lease}");
        let log = String::from_utf8(output.stderr).unwrap();
        assert!(!log.is_empty() && !log.contains("secret") && !log.contains(KEY), "{log}");
    }
    let mut without = program(&["token", "--prefix", "a", "--max-lease", "60s", "--lives", "10m"]);
    assert!(!without.output().await.unwrap().status.success());
    let serving = program(&["--dev", "--scope-key-file", short]).output().await.unwrap();
    assert!(!serving.status.success());
}
