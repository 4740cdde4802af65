//! Redis that is not there, or not any more, or silent.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use redis::{Value, ValueCodec};
use reqwest::Method;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::codec::FramedRead;

use crate::support::{Redis, Stand, TOKEN, TestClient, answer, gateway, until};

/// No code of Redis' at the front, and no word of the command.
fn says_unknown(body: &str) -> bool {
    body.starts_with(r#"{"error":"no reply from Redis"#) && !body.contains("secret")
}

#[tokio::test]
async fn a_gateway_waits_for_its_redis_and_survives_its_restart() {
    let Stand { client, mut redis, gateway: _gateway } = Stand::new().await;
    for _ in 0..2 {
        redis.kill().await;
        let (status, body) = client.command(r#"["SET","secret","secret"]"#).await;
        assert_eq!(status, 502);
        assert!(says_unknown(&body), "{body}");
        assert_eq!(client.post("/pipeline", r#"[["GET","secret"]]"#).await.0, 502);
        assert_eq!(client.post("/multi-exec", r#"[["GET","secret"]]"#).await.0, 502);
        assert_eq!(client.post("/subscribe/secret", "").await.0, 502);
        let health = answer(client.bare(Method::GET, "/healthz")).await;
        assert_eq!(health, (503, r#"{"ok":false}"#.to_owned()));
        redis.restart().await;
        until(async || (client.command(r#"["PING"]"#).await.0 == 200).then_some(())).await;
        assert_eq!(answer(client.bare(Method::GET, "/healthz")).await.0, 200);
    }
}

#[tokio::test]
async fn a_gateway_starts_before_its_redis() {
    let mut redis = Redis::start().await;
    redis.kill().await;
    let gateway = gateway(redis.url(), |_| ()).await;
    let client = TestClient::new(&format!("http://{}", gateway.address()), TOKEN);
    assert_eq!(client.command(r#"["PING"]"#).await.0, 502);
    redis.restart().await;
    until(async || (client.command(r#"["PING"]"#).await.0 == 200).then_some(())).await;
}

/// Something that speaks like Redis and answers `OK`, except to two words.
struct Moody {
    listener: TcpListener,
    seen: Arc<AtomicUsize>,
}

impl Moody {
    async fn start() -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        let moody = Self { listener, seen: Arc::default() };
        let seen = Arc::clone(&moody.seen);
        tokio::spawn(moody.serve());
        (url, seen)
    }

    async fn serve(self) {
        while let Ok((stream, _)) = self.listener.accept().await {
            tokio::spawn(Self::talk(stream, Arc::clone(&self.seen)));
        }
    }

    /// At `DROP` it hangs up, at `STALL` it says nothing more; it counts both.
    async fn talk(mut stream: TcpStream, seen: Arc<AtomicUsize>) {
        let (reader, mut writer) = stream.split();
        let mut commands = FramedRead::new(reader, ValueCodec::default());
        while let Some(Ok(Value::Array(words))) = commands.next().await {
            match words.first() {
                Some(Value::BulkString(name)) if name == b"DROP" => {
                    seen.fetch_add(1, Ordering::SeqCst);
                    return;
                }
                Some(Value::BulkString(name)) if name == b"STALL" => {
                    seen.fetch_add(1, Ordering::SeqCst);
                    while commands.next().await.is_some() {}
                    return;
                }
                _ => writer.write_all(b"+OK\r\n").await.unwrap(),
            }
        }
    }
}

#[tokio::test]
async fn a_command_whose_reply_is_lost_is_never_sent_again() {
    let (url, seen) = Moody::start().await;
    let gateway = gateway(url, |_| ()).await;
    let client = TestClient::new(&format!("http://{}", gateway.address()), TOKEN);
    for (sent, (path, body)) in [
        ("/", r#"["DROP","secret"]"#),
        ("/pipeline", r#"[["SET","a","b"],["DROP","secret"]]"#),
        ("/multi-exec", r#"[["DROP","secret"]]"#),
    ]
    .into_iter()
    .enumerate()
    {
        let (status, answer) = client.post(path, body).await;
        assert_eq!(status, 502);
        assert!(says_unknown(&answer), "{answer}");
        // By the time that others get through, a second sending would have been seen.
        until(async || (client.command(r#"["PING"]"#).await.0 == 200).then_some(())).await;
        assert_eq!(seen.load(Ordering::SeqCst), sent + 1);
    }
}

#[tokio::test]
async fn a_connection_that_falls_silent_is_replaced() {
    let (url, seen) = Moody::start().await;
    let gateway = gateway(url, |config| config.request_time = Duration::from_millis(100)).await;
    let client = TestClient::new(&format!("http://{}", gateway.address()), TOKEN);
    until(async || (client.command(r#"["PING"]"#).await.0 == 200).then_some(())).await;
    let (status, body) = client.command(r#"["STALL","secret"]"#).await;
    assert_eq!(status, 504);
    assert!(says_unknown(&body), "{body}");
    until(async || (client.command(r#"["PING"]"#).await.0 == 200).then_some(())).await;
    assert_eq!(seen.load(Ordering::SeqCst), 1);
}
