//! Edgelatch's scripts in front of a Redis that does not know them yet.

use edgelatch_gateway::Right;
use edgelatch_proto::protocol::script::scripts::LATCH_INSPECT;
use reqwest::Method;
use serde_json::{Value, json};

use crate::breaches::REQUEST;
use crate::scopes::{scoped, with_scopes};
use crate::support::{TestClient, TestEnv, answer, calls};

/// Returns the call of a script that reads a count-down latch.
fn inspect(digest: &str) -> Value {
    json!(["EVALSHA", digest, 1, "gate:opening", REQUEST, "", "0", "P"])
}

/// Checks that the script has run, and found no latch.
fn assert_open((status, body): (u16, String)) {
    assert!(status == 200 && body.starts_with(r#"{"result":[0,"0",0,"#), "{status} {body}");
}

#[tokio::test]
async fn a_script_that_redis_does_not_know_runs_once_within_one_request() {
    let env = TestEnv::with(with_scopes).await;
    let connection = env.redis.connect().await;
    let url = format!("http://{}", env.gateway.address());
    let page = TestClient::new(&url, &scoped(&[Right::Hold]));
    let command = inspect(LATCH_INSPECT.sha1(false)).to_string();
    for (times, client) in [(1, &env.client), (2, &page)] {
        for _ in 0..3 {
            assert_open(client.command(&command).await);
        }
        assert_eq!(calls(&connection, "eval").await, times);
        assert_eq!(calls(&connection, "evalsha").await, 3 * times);
        redis::cmd("SCRIPT").arg("FLUSH").exec_async(&mut connection.clone()).await.unwrap();
    }
}

#[tokio::test]
async fn a_script_that_redis_does_not_know_runs_from_a_command_in_the_address() {
    let env = TestEnv::new().await;
    let path = format!("/EVALSHA/{}/1/gate/%20/0/0/%20", LATCH_INSPECT.sha1(false));
    assert_open(answer(env.client.request(Method::GET, &path)).await);
}

/// A `WAIT` behind the call would wait for nothing, so the client has to send both again.
#[tokio::test]
async fn in_a_pipeline_a_script_that_redis_does_not_know_is_refused() {
    let env = TestEnv::new().await;
    let commands = json!([inspect(LATCH_INSPECT.sha1(false)), ["WAIT", 0, 1]]).to_string();
    let (status, body) = env.client.post("/pipeline", &commands).await;
    assert!(status == 200 && body.starts_with(r#"[{"error":"NOSCRIPT "#), "{body}");
    assert_eq!(calls(&env.redis.connect().await, "eval").await, 0);
}

#[tokio::test]
async fn the_refusal_of_a_script_s_text_reaches_the_client() {
    let env = TestEnv::new().await;
    // Redis does not know the flag, which is Upstash's.
    let command = inspect(LATCH_INSPECT.sha1(true)).to_string();
    let (status, body) = env.client.command(&command).await;
    assert!(status == 400 && body.contains("allow-key-locking"), "{body}");
}
