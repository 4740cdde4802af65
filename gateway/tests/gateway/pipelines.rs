//! Requests with many commands: pipelines and transactions.

use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::client_limits::{inspecting, of_user};
use crate::lost::peers;
use crate::peer::{Action, Peer};
use crate::scopes::with_scopes;
use crate::support::{Redis, TOKEN, TestClient, TestEnv, gateway, until};

#[tokio::test]
async fn a_pipeline_answers_each_command_in_its_place() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    let body = r#"[["SET","k","v"],["INCR","k"],["BLPOP","k",0],["GET","k"],["WAIT",1,1]]"#;
    let expected = concat!(
        r#"[{"result":"OK"},{"error":"ERR value is not an integer or out of range"},"#,
        r#"{"error":"ERR the gateway does not allow BLPOP"},{"result":"v"},{"result":0}]"#
    );
    assert_eq!(client.post("/pipeline", body).await, (200, expected.to_owned()));
    assert_eq!(
        client.base64("/pipeline", r#"[["GET","k"],["SET","k","w"]]"#).await,
        (200, r#"[{"result":"dg=="},{"result":"OK"}]"#.to_owned())
    );
    assert_eq!(client.post("/pipeline", "[]").await, (200, "[]".to_owned()));
}

#[tokio::test]
async fn a_malformed_pipeline_has_no_effect_at_all() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    for path in ["/pipeline", "/multi-exec"] {
        for body in [
            r#"[["SET","k","v"],"PING"]"#,
            r#"[["SET","k","v"],[]]"#,
            r#"[["SET","k","v"],["GET",{}]]"#,
            r#"["SET","k","v"]"#,
        ] {
            assert_eq!(client.post(path, body).await.0, 400, "{body}");
        }
    }
    assert_eq!(client.command(r#"["EXISTS","k"]"#).await.1, r#"{"result":0}"#);
}

#[tokio::test]
async fn a_transaction_with_a_failing_command_keeps_its_other_commands() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    let body = r#"[["SET","k","v"],["INCR","k"],["GET","k"]]"#;
    let expected = concat!(
        r#"[{"result":"OK"},{"error":"ERR value is not an integer or out of range"},"#,
        r#"{"result":"v"}]"#
    );
    assert_eq!(client.post("/multi-exec", body).await, (200, expected.to_owned()));
    assert_eq!(
        client.base64("/multi-exec", r#"[["GET","k"]]"#).await,
        (200, r#"[{"result":"dg=="}]"#.to_owned())
    );
    assert_eq!(client.post("/multi-exec", "[]").await, (200, "[]".to_owned()));
}

#[tokio::test]
async fn a_transaction_that_cannot_be_queued_is_discarded_whole() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    let wrong = r#"[["SET","k","v"],["SET","k"],["NOSUCH"]]"#;
    let expected = r#"{"error":"ERR wrong number of arguments for 'set' command"}"#;
    assert_eq!(client.post("/multi-exec", wrong).await, (400, expected.to_owned()));
    let refused = r#"[["SET","k","v"],["EXEC"],["GET","k"]]"#;
    let expected = r#"{"error":"ERR the gateway does not allow EXEC"}"#;
    assert_eq!(client.post("/multi-exec", refused).await, (400, expected.to_owned()));
    assert_eq!(client.command(r#"["EXISTS","k"]"#).await.1, r#"{"result":0}"#);
}

#[tokio::test]
async fn a_transaction_that_redis_did_not_begin_may_have_been_executed() {
    let redis = Redis::start().await;
    let rules = ["SETUSER", "limited", "on", "nopass", "~*", "+@all", "-multi"];
    let mut connection = redis.connect().await;
    redis::cmd("ACL").arg(&rules).exec_async(&mut connection).await.unwrap();
    let url = format!("{}?user=limited&pass=any", redis.url());
    let gateway = gateway(url, |_| ()).await;
    let client = TestClient::new(&format!("http://{}", gateway.address()), TOKEN);
    assert_eq!(client.command(r#"["SET","k","v"]"#).await.0, 200);
    let (status, body) = client.post("/multi-exec", r#"[["INCR","n"],["INCR","n"]]"#).await;
    assert_eq!(status, 502, "{body}");
    assert!(body.starts_with(r#"{"error":"no reply from Redis"#), "{body}");
}

#[tokio::test]
async fn no_other_command_runs_inside_a_transaction() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    let transactions = join_all(
        (0..100).map(|_| client.post("/multi-exec", r#"[["INCR","n"],["INCR","n"],["INCR","n"]]"#)),
    );
    let commands = join_all((0..100).map(|_| client.command(r#"["INCR","n"]"#)));
    let (transactions, commands) = tokio::join!(transactions, commands);
    for (status, body) in transactions {
        assert_eq!(status, 200);
        let slots: Vec<Value> = serde_json::from_str(&body).unwrap();
        let numbers: Vec<_> = slots.iter().map(|slot| slot["result"].as_i64().unwrap()).collect();
        assert_eq!(numbers, [numbers[0], numbers[0] + 1, numbers[0] + 2]);
    }
    for (status, body) in commands {
        assert!(status == 200 && !body.contains("QUEUED"), "{body}");
    }
    assert_eq!(client.command(r#"["GET","n"]"#).await.1, r#"{"result":"400"}"#);
}

/// A fixed bug: commands waited until a whole long pipeline of another client had run.
#[tokio::test]
async fn commands_of_other_clients_run_between_the_portions_of_a_long_pipeline() {
    for (peer, url) in peers().await {
        assert_others_run_in_between(&peer, url).await;
    }
}

async fn assert_others_run_in_between(peer: &Peer, url: String) {
    let release = Arc::new(Notify::new());
    peer.on_command("HOLD", Action::Hold(Arc::clone(&release)));
    let gateway = gateway(url, |_| ()).await;
    let client = TestClient::new(&format!("http://{}", gateway.address()), TOKEN);
    client.connected().await;
    let mut commands = vec![json!(["HOLD", "k"])];
    commands.resize(1000, json!(["INCR", "k"]));
    let long = tokio::spawn({
        let (client, body) = (client.clone(), json!(commands).to_string());
        async move { client.post("/pipeline", &body).await }
    });
    until(async || (peer.seen("HOLD") == 1).then_some(())).await;
    let other = tokio::spawn(async move { client.command(r#"["GET","k"]"#).await });
    until(async || (peer.seen("GET") == 1).then_some(())).await;
    // At most one portion has run before it.
    assert!(peer.seen("INCR") < 16, "{}", peer.seen("INCR"));
    release.notify_one();
    assert_eq!(other.await.unwrap().0, 200);
    let (status, body) = long.await.unwrap();
    let slots: Vec<Value> = serde_json::from_str(&body).unwrap();
    assert_eq!((status, slots.len(), peer.seen("INCR")), (200, 1000, 999));
}

/// A fixed bug: each request of a client put a portion in front of the commands of other clients.
#[tokio::test]
async fn commands_of_other_clients_wait_for_one_portion_of_a_client_however_many_it_sends() {
    for (peer, url) in peers().await {
        let release = Arc::new(Notify::new());
        peer.on_command("EVALSHA", Action::Hold(Arc::clone(&release)));
        let gateway = gateway(url, |config| {
            with_scopes(config);
            config.client_concurrency = 60;
        })
        .await;
        let url = format!("http://{}", gateway.address());
        let [full, one, other] = [TOKEN.to_owned(), of_user("one"), of_user("other")]
            .map(|token| TestClient::new(&url, &token));
        full.connected().await;
        let body = json!(vec![inspecting(); 20]).to_string();
        let sending =
            tokio::spawn(
                async move { join_all((0..60).map(|_| one.post("/pipeline", &body))).await },
            );
        until(async || (peer.seen("EVALSHA") > 0).then_some(())).await;
        let mut command = inspecting();
        command[0] = json!("evalsha");
        let others = tokio::spawn(async move {
            let scoped = command.to_string();
            tokio::join!(full.command(r#"["GET","k"]"#), other.command(&scoped))
        });
        until(async || (peer.seen("GET") == 1 && peer.seen("evalsha") == 1).then_some(())).await;
        assert!(peer.seen("EVALSHA") <= 16, "{}", peer.seen("EVALSHA"));
        peer.reply_to("EVALSHA", "+OK");
        release.notify_one();
        let (full, other) = others.await.unwrap();
        assert_eq!((full.0, other.0), (200, 200));
        for (status, body) in sending.await.unwrap() {
            assert_eq!((status, body.matches("OK").count()), (200, 20), "{body}");
        }
        assert_eq!(peer.seen("EVALSHA"), 60 * 20);
    }
}
