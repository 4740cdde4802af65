//! A Redis, a gateway and a client for each test.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use edgelatch_gateway::{Config, Gateway, RedisSource, Tokens};
use redis::aio::MultiplexedConnection;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Client, Method, RequestBuilder, Response};
use tempfile::TempDir;
use test_support::redis::patient;
use tokio::process::{Child, Command};
use tokio::time::timeout;

pub(crate) const TOKEN: &str = "the-token-of-tests";

/// The longest wait of a test; a test that reaches it fails.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A `redis-server` on a socket in a folder of its own, which ends when this is dropped.
pub(crate) struct Redis {
    child: Child,
    folder: TempDir,
}

impl Redis {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let child = run(folder.path());
        let redis = Self { child, folder };
        redis.connect().await;
        redis
    }

    /// Ends the process. Its socket stays, without a server.
    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }

    /// Starts an empty Redis on the same socket.
    pub(crate) async fn restart(&mut self) {
        self.child = run(self.folder.path());
        self.connect().await;
    }

    pub(crate) fn url(&self) -> String {
        format!("unix:{}", socket(self.folder.path()).display())
    }

    /// Connects to Redis directly.
    pub(crate) async fn connect(&self) -> MultiplexedConnection {
        let client = redis::Client::open(self.url()).unwrap();
        until(async || client.get_multiplexed_async_connection_with_config(&patient()).await.ok())
            .await
    }
}

fn run(folder: &Path) -> Child {
    Command::new("redis-server")
        .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
        .arg(socket(folder))
        .arg("--dir")
        .arg(folder)
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

fn socket(folder: &Path) -> PathBuf {
    folder.join("redis.sock")
}

/// A Redis, the gateway in front of it, and a client with the full token.
pub(crate) struct TestEnv {
    pub(crate) gateway: Gateway,
    pub(crate) redis: Redis,
    pub(crate) client: TestClient,
}

impl TestEnv {
    pub(crate) async fn new() -> Self {
        Self::with(|_| ()).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Config)) -> Self {
        let redis = Redis::start().await;
        let gateway = gateway(redis.url(), change).await;
        let client = TestClient::new(&format!("http://{}", gateway.address()), TOKEN);
        Self { gateway, redis, client }
    }
}

pub(crate) async fn gateway(url: String, change: impl FnOnce(&mut Config)) -> Gateway {
    let mut config = Config::new(RedisSource::Url(url), Tokens::new([TOKEN]).unwrap());
    change(&mut config);
    Gateway::start(config).await.unwrap()
}

/// A client of one gateway with one token.
#[derive(Clone)]
pub(crate) struct TestClient {
    http: Client,
    url: String,
    token: String,
}

impl TestClient {
    pub(crate) fn new(url: &str, token: &str) -> Self {
        Self { http: Client::new(), url: url.to_owned(), token: token.to_owned() }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let token = HeaderValue::from_str(&format!("Bearer {}", self.token)).unwrap();
        self.bare(method, path).header(AUTHORIZATION, token)
    }

    /// Returns a request without the token.
    pub(crate) fn bare(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.url))
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> (u16, String) {
        answer(self.request(Method::POST, path).body(body.to_owned())).await
    }

    pub(crate) async fn command(&self, body: &str) -> (u16, String) {
        self.post("/", body).await
    }

    /// Waits until the gateway has a connection to Redis: on a busy machine the first requests may
    /// fail, since opening it takes too long.
    pub(crate) async fn connected(&self) {
        until(async || (self.command(r#"["PING"]"#).await.0 == 200).then_some(())).await;
    }

    pub(crate) async fn base64(&self, path: &str, body: &str) -> (u16, String) {
        let request = self.request(Method::POST, path).header("Upstash-Encoding", "base64");
        answer(request.body(body.to_owned())).await
    }
}

pub(crate) async fn answer(request: RequestBuilder) -> (u16, String) {
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap())
}

/// A response without an end, and the text received from it.
pub(crate) struct Stream {
    response: Response,
    seen: String,
}

impl Stream {
    pub(crate) async fn open(request: RequestBuilder) -> Self {
        Self::of(request.send().await.unwrap())
    }

    pub(crate) fn of(response: Response) -> Self {
        assert_eq!(response.status(), 200);
        assert_eq!(header(response.headers(), "content-type"), Some("text/event-stream"));
        Self { response, seen: String::new() }
    }

    /// Reads until `text` has arrived, and drops all text up to its end.
    pub(crate) async fn reach(&mut self, text: &str) {
        let reading = async {
            loop {
                if let Some(at) = self.seen.find(text) {
                    self.seen.drain(..at + text.len());
                    return;
                }
                let chunk = self.response.chunk().await.unwrap();
                assert!(chunk.is_some(), "ended before {text:?}: {}", self.seen);
                self.seen.push_str(str::from_utf8(&chunk.unwrap()).unwrap());
            }
        };
        timeout(TIME_LIMIT, reading).await.unwrap();
    }

    /// Reads until the stream ends.
    pub(crate) async fn end(mut self) {
        let reading = async { while self.response.chunk().await.unwrap().is_some() {} };
        timeout(TIME_LIMIT, reading).await.unwrap();
    }
}

/// Calls `ask` until it returns a value.
pub(crate) async fn until<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let asking = async {
        loop {
            if let Some(found) = ask().await {
                return found;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(TIME_LIMIT, asking).await.unwrap()
}

/// Returns how many commands of this name Redis has executed or refused.
pub(crate) async fn calls(connection: &MultiplexedConnection, name: &str) -> u32 {
    let info = redis::cmd("INFO").arg("commandstats").take();
    let stats: String = info.query_async(&mut connection.clone()).await.unwrap();
    let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{name}:calls=")));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}

/// Waits until Redis reports a blocked client.
pub(crate) async fn until_blocked(connection: &mut MultiplexedConnection) {
    until(async || {
        let info: String = redis::cmd("INFO").arg("clients").query_async(connection).await.unwrap();
        info.contains("blocked_clients:1").then_some(())
    })
    .await;
}
