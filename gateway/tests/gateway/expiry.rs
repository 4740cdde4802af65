//! Scoped tokens that end while a request with them is in flight.

use std::sync::Arc;

use edgelatch_proto::protocol::script::scripts;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::breaches::{REQUEST, latch, learn, run, taking};
use crate::lost::peers;
use crate::peer::{Action, Peer};
use crate::scopes::{now, with_claims, with_scopes};
use crate::support::{TIME_LIMIT, TestClient, TestEnv, gateway, until};

/// How long the gateway accepts a token after its `exp`, in seconds.
const LEEWAY: u64 = 30;

/// Returns a token that the gateway accepts for one to two more seconds, and its end in seconds
/// since 1970.
fn ending() -> (String, u64) {
    let ends = now() + 2;
    let claims = json!({ "prefix": "app:", "latchPrefix": "gate:", "maxLeaseMs": 60_000, "exp": ends - LEEWAY });
    (with_claims(&claims), ends)
}

/// Waits for a token's end.
async fn until_ended(ends: u64) {
    until(async || (now() >= ends).then_some(())).await;
}

/// Sends the head of a request, and returns when the gateway sends `100 Continue`: it has checked
/// the token by then.
async fn admitted(env: &TestEnv, token: &str, length: usize) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(env.gateway.address()).await.unwrap();
    let head = format!(
        "POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nExpect: 100-continue\r\n\
         Connection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut start = [0; 25];
    timeout(TIME_LIMIT, stream.read_exact(&mut start)).await.unwrap().unwrap();
    (&start == b"HTTP/1.1 100 Continue\r\n\r\n").then_some(stream)
}

#[tokio::test]
async fn a_body_that_ends_after_its_token_has_no_effect() {
    let env = TestEnv::with(with_scopes).await;
    let mut redis = env.redis.connect().await;
    learn(&mut redis).await;
    let latch = latch("app:a");
    let keys = [latch.as_str(), "app:a", "redisson_lock_token:{app:a}"];
    let body = taking(&keys, "", "60000", &[]).to_string();
    // On a machine that is too slow for one token the test tries another.
    let (mut stream, ends) = until(async || {
        let (token, ends) = ending();
        Some((admitted(&env, &token, body.len()).await?, ends))
    })
    .await;
    let (first, last) = body.split_at(body.len() - 1);
    for byte in first.bytes() {
        stream.write_all(&[byte]).await.unwrap();
    }
    until_ended(ends).await;
    stream.write_all(last.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(TIME_LIMIT, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 401") && answer.contains("has expired"), "{answer}");
    let exists: u32 = redis::cmd("EXISTS").arg("app:a").query_async(&mut redis).await.unwrap();
    assert_eq!(exists, 0);
}

#[tokio::test]
async fn no_portion_of_a_pipeline_is_sent_after_its_token_s_end() {
    // Concurrently, since each waits until its token ends.
    let looks = peers().await.map(|(peer, url)| async move {
        let gateway = gateway(url, with_scopes).await;
        let address = format!("http://{}", gateway.address());
        until(async || assert_rest_stays(&peer, &address).await).await;
    });
    join_all(looks).await;
}

/// Checks a pipeline whose token ends while Redis runs the first portion; `None` if the machine was
/// too slow for that.
async fn assert_rest_stays(peer: &Peer, address: &str) -> Option<()> {
    let before = peer.seen("EVALSHA");
    let release = Arc::new(Notify::new());
    peer.on_command("EVALSHA", Action::Hold(Arc::clone(&release)));
    let (token, ends) = ending();
    let command = run(&scripts::LATCH_INSPECT, &["gate:a"], &[REQUEST, "", "0", "P"]);
    let body = json!(vec![command; 100]).to_string();
    let client = TestClient::new(address, &token);
    let running = tokio::spawn(async move { client.post("/pipeline", &body).await });
    until(async || (peer.seen("EVALSHA") > before || running.is_finished()).then_some(())).await;
    if peer.seen("EVALSHA") == before {
        return None;
    }
    until_ended(ends).await;
    peer.reply_to("EVALSHA", "+OK");
    release.notify_one();
    let (status, body) = running.await.unwrap();
    let slots: Vec<Value> = serde_json::from_str(&body).unwrap();
    let sent = peer.seen("EVALSHA") - before;
    assert!(status == 200 && slots.len() == 100 && sent == 16, "{status} {sent}: {body}");
    for (place, slot) in slots.iter().enumerate() {
        let expected = match place {
            ..16 => json!({ "result": "OK" }),
            _ => json!({ "error": "WRONGPASS the scoped token has expired" }),
        };
        assert_eq!(*slot, expected, "{place}");
    }
    Some(())
}
