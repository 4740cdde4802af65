//! A Redis that does not run, or has ended.

use reqwest::Method;

use crate::support::{Redis, TOKEN, TestClient, TestEnv, answer, gateway};

/// Whether an error reports an unknown result: without a code of Redis, and without a word of the
/// command.
fn is_unknown_outcome(body: &str) -> bool {
    body.starts_with(r#"{"error":"no reply from Redis"#) && !body.contains("secret")
}

#[tokio::test]
async fn a_gateway_waits_for_its_redis_and_survives_its_restart() {
    let TestEnv { client, mut redis, gateway: _gateway } = TestEnv::new().await;
    for _ in 0..2 {
        redis.kill().await;
        let (status, body) = client.command(r#"["SET","secret","secret"]"#).await;
        assert_eq!(status, 502);
        assert!(is_unknown_outcome(&body), "{body}");
        assert_eq!(client.post("/pipeline", r#"[["GET","secret"]]"#).await.0, 502);
        assert_eq!(client.post("/multi-exec", r#"[["GET","secret"]]"#).await.0, 502);
        assert_eq!(client.post("/subscribe/secret", "").await.0, 502);
        let health = answer(client.bare(Method::GET, "/healthz")).await;
        assert_eq!(health, (503, r#"{"ok":false}"#.to_owned()));
        redis.restart().await;
        client.connected().await;
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
    client.connected().await;
}
