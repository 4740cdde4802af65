//! Clients that send slowly or not at all, and more clients than the limit.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::{TIME_LIMIT, TOKEN, TestEnv, until};

/// Returns the text that the gateway sends until it closes or resets the connection.
async fn rest(stream: &mut TcpStream) -> String {
    let mut received = Vec::new();
    let reading = async {
        let mut part = [0; 1024];
        while let Ok(length @ 1..) = stream.read(&mut part).await {
            received.extend_from_slice(&part[..length]);
        }
    };
    timeout(TIME_LIMIT / 2, reading).await.unwrap();
    String::from_utf8(received).unwrap()
}

/// Sends `bytes` again and again until the gateway has closed the connection.
async fn trickle(stream: &mut TcpStream, bytes: &[u8]) -> String {
    let sending = async {
        let (mut reader, mut writer) = stream.split();
        let (mut received, mut part) = (Vec::new(), [0; 1024]);
        loop {
            let pause = tokio::time::sleep(Duration::from_millis(2));
            tokio::select! {
                read = reader.read(&mut part) => match read {
                    Ok(length @ 1..) => received.extend_from_slice(&part[..length]),
                    _ => return received,
                },
                () = pause => {
                    // A closed connection is detected by reading.
                    let _: io::Result<()> = writer.write_all(bytes).await;
                }
            }
        }
    };
    String::from_utf8(timeout(TIME_LIMIT / 2, sending).await.unwrap()).unwrap()
}

async fn connect(address: SocketAddr, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

fn head(rest: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n{rest}")
}

#[tokio::test]
async fn a_connection_without_a_request_head_in_time_is_closed() {
    let env = TestEnv::with(|config| config.idle_time = SHORT).await;
    let address = env.gateway.address();
    // A client that sends nothing, one that stops, one that sends an endless head, and one that is
    // idle after a response.
    assert_eq!(rest(&mut connect(address, "").await).await, "");
    rest(&mut connect(address, "POST / HT").await).await;
    trickle(&mut connect(address, &head("X: ")).await, b"x").await;
    let mut answered = answered_once(address).await;
    assert!(rest(&mut answered).await.ends_with("PONG\"}"));
}

/// A time limit that these requests exceed. On a slow machine the tests repeat requests that should
/// not exceed it.
const SHORT: Duration = Duration::from_millis(100);

/// Returns a connection on which the response to the first request has begun.
async fn answered_once(address: SocketAddr) -> TcpStream {
    let whole = head("Content-Length: 8\r\n\r\n[\"PING\"]");
    until(async || {
        let mut stream = TcpStream::connect(address).await.ok()?;
        // The gateway may have closed the connection already.
        stream.write_all(whole.as_bytes()).await.ok()?;
        let mut start = [0; 12];
        timeout(TIME_LIMIT, stream.read_exact(&mut start)).await.unwrap().ok()?;
        assert_eq!(&start, b"HTTP/1.1 200");
        Some(stream)
    })
    .await
}

/// `idle_time`, which is longer than the test waits, does not apply to heads.
#[tokio::test]
async fn a_head_has_less_time_than_a_connection_may_be_idle() {
    let env = TestEnv::with(|config| config.head_time = SHORT).await;
    let address = env.gateway.address();
    // No head, a part of one, and an endless one.
    assert_eq!(rest(&mut connect(address, "").await).await, "");
    assert_eq!(rest(&mut connect(address, "POST / HT").await).await, "");
    assert_eq!(trickle(&mut connect(address, &head("X: ")).await, b"x").await, "");
    // The second head of a connection.
    let mut stream = answered_once(address).await;
    assert!(trickle(&mut stream, b"P").await.ends_with("PONG\"}"));
}

#[tokio::test]
async fn a_body_that_trickles_is_given_up() {
    let env = TestEnv::with(|config| config.request_time = Duration::from_millis(200)).await;
    let start = head("Content-Length: 1000000\r\n\r\n[");
    let answer = trickle(&mut connect(env.gateway.address(), &start).await, b" ").await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
}

/// A fixed bug: 3,900 unfinished heads used 230 MB.
#[tokio::test]
async fn a_head_beyond_any_use_is_refused() {
    let env = TestEnv::new().await;
    for length in [16 * 1024, 200_000] {
        let long = head(&format!("X: {}\r\n\r\n", "x".repeat(length)));
        let mut stream = TcpStream::connect(env.gateway.address()).await.unwrap();
        // The gateway may close the connection before all bytes are sent.
        let _: io::Result<()> = stream.write_all(long.as_bytes()).await;
        let answer = rest(&mut stream).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{length}: {answer}");
    }
    let fits = head(&format!(
        "X: {}\r\nContent-Length: 8\r\nConnection: close\r\n\r\n[\"PING\"]",
        "x".repeat(10_000)
    ));
    let answer = rest(&mut connect(env.gateway.address(), &fits).await).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn a_connection_beyond_the_limit_is_closed() {
    let env = TestEnv::with(|config| config.connection_limit = 2).await;
    let address = env.gateway.address();
    let whole = head("Content-Length: 8\r\n\r\n[\"PING\"]");
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut stream = connect(address, &whole).await;
        let mut start = [0; 12];
        timeout(TIME_LIMIT, stream.read_exact(&mut start)).await.unwrap().unwrap();
        assert_eq!(&start, b"HTTP/1.1 200");
        open.push(stream);
    }
    // The client has sent requests that the gateway does not serve. Closing the connection with
    // unread bytes would reset it, and lose the response.
    let mut beyond = connect(address, &whole.repeat(9)).await;
    let answer = rest(&mut beyond).await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{answer}");
    assert!(head.contains("Content-Type: application/json\r\nContent-Length"), "{answer}");
    assert!(head.contains("\r\nRetry-After: 1\r\n"), "{answer}");
    assert_eq!(body, r#"{"error":"ERR too many open connections"}"#);
    // A closed connection makes room for another.
    open.pop();
    until(async || {
        // Before there is room, the gateway may have closed the new connection already.
        let mut stream = TcpStream::connect(address).await.ok()?;
        stream.write_all(whole.as_bytes()).await.ok()?;
        let mut start = [0; 12];
        let read = stream.read_exact(&mut start).await;
        (read.is_ok() && &start == b"HTTP/1.1 200").then_some(())
    })
    .await;
}
