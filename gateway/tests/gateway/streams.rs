//! Tests of subscriptions.

use std::time::Duration;

use reqwest::Method;

use crate::support::{Redis, Stream, TOKEN, TestClient, TestEnv, answer, gateway, header, until};

async fn subscribers(client: &TestClient, channel: &str) -> String {
    client.command(&format!(r#"["PUBSUB","NUMSUB","{channel}"]"#)).await.1
}

#[tokio::test]
async fn a_stream_confirms_and_then_carries_each_message() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    for method in [Method::GET, Method::POST] {
        let mut stream = Stream::open(client.request(method, "/subscribe/gw:{ch}")).await;
        stream.reach("data: subscribe,gw:{ch},1\n\n").await;
        let script = concat!(
            r#"["EVAL","redis.call('PUBLISH',KEYS[1],'free,1') "#,
            r#"redis.call('PUBLISH',KEYS[1],'a\\nb\\r\\nc\\rd') "#,
            r#"return redis.call('PUBLISH',KEYS[1],'')",1,"gw:{ch}"]"#
        );
        assert_eq!(client.command(script).await.1, r#"{"result":1}"#);
        stream.reach("data: message,gw:{ch},free,1\n\n").await;
        stream.reach("data: message,gw:{ch},a\ndata: b\ndata: c\r").await;
        stream.reach("data: d\n\n").await;
        stream.reach("data: message,gw:{ch},\n\n").await;
        drop(stream);
        // The gateway closes its connection to Redis when a client leaves.
        until(async || {
            (subscribers(&client, "gw:{ch}").await == r#"{"result":["gw:{ch}",0]}"#).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_channel_may_hold_anything_but_line_breaks() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    let mut stream = Stream::open(client.request(Method::POST, "/subscribe/c/h%20%C3%A9,x")).await;
    stream.reach("data: subscribe,c/h é,x,1\n\n").await;
    assert_eq!(client.command(r#"["PUBLISH","c/h é,x","m"]"#).await.1, r#"{"result":1}"#);
    stream.reach("data: message,c/h é,x,m\n\n").await;
    for bad in ["/subscribe/a%0Ab", "/subscribe/a%0Db", "/subscribe/%FF"] {
        let (status, body) = answer(client.request(Method::POST, bad)).await;
        assert_eq!(status, 400, "{bad}");
        assert!(body.starts_with(r#"{"error":"ERR a channel must be"#), "{body}");
    }
}

#[tokio::test]
async fn a_pattern_names_the_channel_of_each_message() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    let mut stream = Stream::open(client.request(Method::POST, "/psubscribe/lock:*")).await;
    stream.reach("data: psubscribe,lock:*,1\n\n").await;
    assert_eq!(client.command(r#"["PUBLISH","lock:a","0"]"#).await.1, r#"{"result":1}"#);
    stream.reach("data: pmessage,lock:*,lock:a,0\n\n").await;
}

#[tokio::test]
async fn a_sharded_channel_has_messages_of_its_own() {
    let TestEnv { client, mut redis, gateway: _gateway } = TestEnv::new().await;
    let mut stream = Stream::open(client.request(Method::GET, "/ssubscribe/gw:{ch}")).await;
    stream.reach("data: ssubscribe,gw:{ch},1\n\n").await;
    assert_eq!(client.command(r#"["PUBLISH","gw:{ch}","m"]"#).await.1, r#"{"result":0}"#);
    assert_eq!(client.command(r#"["SPUBLISH","gw:{ch}","a\nb"]"#).await.1, r#"{"result":1}"#);
    stream.reach("data: smessage,gw:{ch},a\ndata: b\n\n").await;
    redis.kill().await;
    stream.end().await;
}

#[tokio::test]
async fn a_channel_that_redis_refuses_is_refused_in_its_words() {
    let redis = Redis::start().await;
    let rules = ["SETUSER", "limited", "on", "nopass", "~*", "+@all", "resetchannels"];
    let mut connection = redis.connect().await;
    redis::cmd("ACL").arg(&rules).exec_async(&mut connection).await.unwrap();
    let url = format!("{}?user=limited&pass=any", redis.url());
    let gateway = gateway(url, |_| ()).await;
    let client = TestClient::new(&format!("http://{}", gateway.address()), TOKEN);
    for path in ["/subscribe/ch", "/psubscribe/ch*", "/ssubscribe/ch"] {
        let (status, body) = answer(client.request(Method::POST, path)).await;
        assert_eq!(status, 400, "{path}: {body}");
        assert!(body.starts_with(r#"{"error":"NOPERM "#), "{path}: {body}");
    }
}

#[tokio::test]
async fn a_silent_stream_sends_heartbeats() {
    let TestEnv { client, gateway: _gateway, redis: _redis } =
        TestEnv::with(|config| config.keep_alive = Duration::from_millis(5)).await;
    let response = client.request(Method::POST, "/subscribe/ch").send().await.unwrap();
    assert_eq!(header(response.headers(), "cache-control"), Some("no-cache"));
    assert_eq!(header(response.headers(), "x-accel-buffering"), Some("no"));
    let mut stream = Stream::open(client.request(Method::POST, "/subscribe/ch")).await;
    stream.reach("data: subscribe,ch,1\n\n: keep-alive\n\n: keep-alive\n\n").await;
    client.command(r#"["PUBLISH","ch","m"]"#).await;
    stream.reach("data: message,ch,m\n\n").await;
    stream.reach(": keep-alive\n\n").await;
}

#[tokio::test]
async fn a_stream_ends_when_redis_goes_away() {
    let TestEnv { client, mut redis, gateway: _gateway } = TestEnv::new().await;
    let mut stream = Stream::open(client.request(Method::POST, "/subscribe/ch")).await;
    stream.reach("data: subscribe,ch,1\n\n").await;
    redis.kill().await;
    stream.end().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_loses_its_stream() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    let mut stream = Stream::open(client.request(Method::POST, "/subscribe/ch")).await;
    stream.reach("data: subscribe,ch,1\n\n").await;
    let message = format!(r#"["PUBLISH","ch","{}"]"#, "x".repeat(100_000));
    until(async || (client.command(&message).await.1 == r#"{"result":0}"#).then_some(())).await;
    stream.end().await;
}
