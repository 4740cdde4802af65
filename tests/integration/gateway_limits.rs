//! A client that exceeds a limit of the gateway pauses for as long as `Retry-After` says, and is
//! served when there is room again.

use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use edgelatch::Gateway;
use edgelatch::client::{Client, Released};
use edgelatch::host::Host as _;
use edgelatch::transport::Reqwest;
use edgelatch_gateway::{
    Config, Gateway as GatewayServer, RedisSource, ScopeKeys, ScopedToken, Tokens,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::select;

use test_support::fake_host::FakeHost;
use test_support::fault_proxy::FaultProxy;
use test_support::redis::TOKEN;
use test_support::test_env::{in_virtual_time, until};

const SCOPE_KEY: &str = "a key of thirty-two bytes or more";
/// The memory for request bodies of one client.
const BODY: usize = 20_000;

fn gateway_config(body_memory: usize) -> Config {
    let mut config = Config::new(RedisSource::Private, Tokens::new([TOKEN]).unwrap());
    config.scope_keys = Some(ScopeKeys::new([SCOPE_KEY]).unwrap());
    (config.body_limit, config.body_memory) = (BODY, body_memory);
    // The gateway abandons no request body while a test runs.
    config.request_time = Duration::from_secs(600);
    config
}

/// Sends a request with a body of `length` bytes, except for the last `missing` bytes.
async fn send(address: SocketAddr, token: &str, length: usize, missing: usize) -> TcpStream {
    let head = format!("POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n");
    let padding = " ".repeat(length - missing - r#"["PING"]"#.len());
    let text = format!("{head}Content-Length: {length}\r\n\r\n[\"PING\"]{padding}");
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

/// The gateway's status for a request with a body as long as that of a call.
async fn status(address: SocketAddr, token: &str) -> String {
    let mut stream = send(address, token, 1000, 0).await;
    let mut start = [0; 12];
    stream.read_exact(&mut start).await.unwrap();
    String::from_utf8_lossy(&start).into_owned()
}

/// Asserts that a client pauses while an unfinished request with this token uses the memory for
/// bodies and the gateway responds with `refused`.
async fn assert_heeded(config: Config, token: &str, refused: &str) {
    let server = GatewayServer::start(config).await.unwrap();
    let address = server.address();
    let unfinished = send(address, token, BODY, 10).await;
    until(async || status(address, token).await.ends_with(refused)).await;
    let (proxy, host) = (FaultProxy::start(address).await, FakeHost::new());
    let gateway = Gateway::upstash(&proxy.url(), token).unwrap();
    let lock = Client::new(gateway, Reqwest::new(), host.clone()).lock("app:job").unwrap();
    let began = host.now();
    let acquiring = async {
        let mut acquiring = pin!(lock.acquire());
        select! {
            _ = &mut acquiring => panic!("acquired without room"),
            () = until(async || proxy.requests() > 5) => {}
        }
        // Five pauses of a second; the client's own would be less than half as long.
        assert!(host.now().max_elapsed(began) >= Duration::from_secs(5));
        drop(unfinished);
        acquiring.await.unwrap()
    };
    let lease = in_virtual_time(&host, || proxy.is_idle(), acquiring).await;
    assert_eq!(lease.release().await, Ok(Released::Released));
}

/// S47.
#[tokio::test]
async fn a_wait_continues_when_an_overloaded_gateway_accepts_requests_again() {
    assert_heeded(gateway_config(BODY), TOKEN, "503").await;
}

/// S47.
#[tokio::test]
async fn a_wait_continues_when_a_client_is_below_its_limit_again() {
    let minute = Duration::from_secs(60);
    let token = ScopedToken::new("app:", minute, minute * 10);
    let token = ScopeKeys::new([SCOPE_KEY]).unwrap().sign(&token).unwrap();
    assert_heeded(gateway_config(BODY * 16), &token, "429").await;
}
