//! Requests that a scoped token does not allow: a rule refuses each, and Redis does not change.

use std::collections::BTreeMap;

use edgelatch_gateway::Right;
use edgelatch_proto::protocol::script::{Script, scripts};
use redis::aio::MultiplexedConnection;
use reqwest::Method;
use serde_json::{Value, json};

use crate::scopes::{now, scoped, with_scopes};
use crate::support::{TestClient, TestEnv, answer};

pub(crate) const OWNER: &str = "01010101-0101-8101-8101-010101010101:1";
pub(crate) const REQUEST: &str = "00000000000000ff";

/// A gateway, a client with a scoped token, and other clients' locks in Redis.
pub(crate) struct Scene {
    env: TestEnv,
    pub(crate) client: TestClient,
    pub(crate) redis: MultiplexedConnection,
}

impl Scene {
    pub(crate) async fn new() -> Self {
        Self::with(&[Right::Hold]).await
    }

    /// Starts a gateway and a client with a token of these rights.
    pub(crate) async fn with(rights: &[Right]) -> Self {
        Self::with_token(&scoped(rights)).await
    }

    pub(crate) async fn with_token(token: &str) -> Self {
        let env = TestEnv::with(with_scopes).await;
        let url = format!("http://{}", env.gateway.address());
        let client = TestClient::new(&url, token);
        let mut redis = env.redis.connect().await;
        learn(&mut redis).await;
        for command in [
            &["HSET", "theirs", "01010101-0101-4101-8101-010101010101:1", "1"][..],
            &["HSET", "app:held", "01010101-0101-4101-8101-010101010101:1", "1"],
            &["SET", "redisson_lock_token:{theirs}", "5"],
            &["SET", "seats", "3"],
        ] {
            redis::cmd(command[0]).arg(&command[1..]).exec_async(&mut redis).await.unwrap();
        }
        Self { env, client, redis }
    }

    /// Returns every key and its value.
    async fn keyspace(&mut self) -> BTreeMap<String, Vec<u8>> {
        let keys: Vec<String> =
            redis::cmd("KEYS").arg("*").query_async(&mut self.redis).await.unwrap();
        let mut all = BTreeMap::new();
        for key in keys {
            let dump = redis::cmd("DUMP").arg(&key).query_async(&mut self.redis).await.unwrap();
            all.insert(key, dump);
        }
        all
    }

    /// Sends a command, and checks that a rule with this text refuses it.
    pub(crate) async fn assert_refused(&mut self, command: &Value, reason: &str) {
        let before = self.keyspace().await;
        let (status, body) = self.client.command(&command.to_string()).await;
        assert_eq!(status, 403, "{command}: {body}");
        assert!(body.starts_with(r#"{"error":"NOPERM "#) && body.contains(reason), "{body}");
        assert!(!body.contains("theirs") && !body.contains("app:"), "{body}");
        let pipeline = json!([command]).to_string();
        let (status, slots) = self.client.post("/pipeline", &pipeline).await;
        assert_eq!((status, slots), (200, format!("[{body}]")));
        assert_eq!(self.keyspace().await, before, "{command}");
    }
}

/// Loads all scripts into Redis.
pub(crate) async fn learn(redis: &mut MultiplexedConnection) {
    for script in scripts::ALL {
        let load = redis::cmd("SCRIPT").arg(&["LOAD", &script.source(false)]).take();
        load.exec_async(redis).await.unwrap();
    }
}

pub(crate) fn run(script: &Script, keys: &[&str], args: &[&str]) -> Value {
    let count = keys.len().to_string();
    let words = [&["EVALSHA", script.sha1(false), &count], keys, args].concat();
    json!(words)
}

/// Returns an acquisition of a plain lock with these keys and arguments; all others are valid.
pub(crate) fn taking(keys: &[&str], not_after: &str, lease: &str, rest: &[&str]) -> Value {
    let args = [REQUEST, not_after, "90000", "P", OWNER, lease, "0", "86400000"];
    run(&scripts::LOCK_ACQUIRE, keys, &[&args, rest].concat())
}

pub(crate) fn latch(name: &str) -> String {
    format!("el:{{{name}}}:{OWNER}")
}

#[tokio::test]
async fn nothing_runs_but_the_library_s_scripts() {
    let mut scene = Scene::new().await;
    let ours = scripts::LATCH_INSPECT.source(false);
    for command in [
        json!(["PING"]),
        json!(["GET", "app:a"]),
        json!(["SET", "app:a", "1"]),
        json!(["DEL", "app:held"]),
        json!(["FLUSHALL"]),
        json!(["PUBLISH", "redisson_lock__channel:{app:a}", "0"]),
        json!(["SCRIPT", "LOAD", "return 1"]),
        json!(["WAIT", 1, 1]),
        json!(["EVAL", "return redis.call('DEL','theirs')", 0]),
        json!(["EVAL", ours.clone() + " ", 1, "gate:a", REQUEST, "", "0", "P"]),
        json!(["EVAL", ours.clone() + "redis.call('DEL','theirs')", 1, "gate:a"]),
        json!(["EVAL_RO", ours, 1, "gate:a", REQUEST, "", "0", "P"]),
        json!(["EVALSHA", "0".repeat(40), 1, "app:a", REQUEST, "", "0", "P"]),
        json!(["EVALSHA", scripts::LATCH_INSPECT.sha1(false).to_uppercase(), 1, "gate:a"]),
        json!(["EVALSHA"]),
    ] {
        scene.assert_refused(&command, "nothing but edgelatch's own scripts").await;
    }
}

#[tokio::test]
async fn a_call_is_made_as_the_library_makes_it_or_not_at_all() {
    let mut scene = Scene::new().await;
    let latch = latch("app:a");
    let keys = [latch.as_str(), "app:a", "redisson_lock_token:{app:a}"];
    // The unchanged call is allowed.
    let (status, body) = scene.client.command(&taking(&keys, "", "60000", &[]).to_string()).await;
    assert!(status == 200 && body.starts_with(r#"{"result":[1,"#), "{body}");
    let other_token = [keys[0], keys[1], "redisson_lock_token:{theirs}"];
    let swapped = [keys[0], keys[2], keys[1]];
    let mut misnumbered = taking(&keys, "", "60000", &[]);
    misnumbered[2] = json!("2");
    let mut huge = taking(&keys, "", "60000", &[]);
    huge[2] = json!(u64::MAX);
    let digest = scripts::EVAL.sha1(false);
    for command in [
        taking(&other_token, "", "60000", &[]),
        taking(&swapped, "", "60000", &[]),
        taking(&keys[..2], "", "60000", &[]),
        taking(&[], "", "60000", &[]),
        taking(&[&keys[..], &["theirs"]].concat(), "", "60000", &[]),
        taking(&keys, "", "60000", &["x", "", "", "redisson_lock__channel:{theirs}"]),
        taking(&keys, "", "60000", &["x", "9e99"]),
        taking(&keys, "never", "60000", &[]),
        taking(&keys, "", "", &[]),
        taking(&keys, "", "-1", &[]),
        taking(&keys, "", "1e9", &[]),
        taking(&keys, "", "86400001", &[]),
        misnumbered,
        huge,
        json!(["EVALSHA", digest, 2, keys[0], "app:a", REQUEST, "", "0", "P"]),
        run(&scripts::LATCH_INSPECT, &["gate:a"], &[REQUEST, "", "0", "X"]),
        run(&scripts::LATCH_INSPECT, &["gate:a"], &[REQUEST, "", "600001", "P"]),
        run(&scripts::LATCH_INSPECT, &["gate:a", "theirs"], &[REQUEST, "", "0", "P"]),
        run(&scripts::LATCH_INSPECT, &["gate:a"], &[]),
    ] {
        scene.assert_refused(&command, "only such calls").await;
    }
}

#[tokio::test]
async fn names_leases_and_times_stay_within_the_token() {
    let mut scene = Scene::with(&[Right::Hold, Right::Guard, Right::Majority]).await;
    let of = |name: &str| [latch(name), name.to_owned(), format!("redisson_lock_token:{{{name}}}")];
    for name in ["theirs", "ap", "App:a", "xapp:a"] {
        let keys = of(name);
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        scene.assert_refused(&taking(&keys, "", "60000", &[]), "does not begin with").await;
    }
    // One foreign name among several is enough for a refusal.
    let (one, two) = (of("app:a"), of("theirs"));
    let keys: Vec<&str> = one.iter().chain(&two[1..]).map(String::as_str).collect();
    scene.assert_refused(&taking(&keys, "", "60000", &[]), "does not begin with").await;
    for script in [&scripts::LATCH_INSPECT, &scripts::CANCEL] {
        let (key, args) = match script.name {
            "cancel" => (format!("el:{{theirs}}:{REQUEST}"), &[REQUEST, "", "0", "P", "60000"][..]),
            _ => ("seats".to_owned(), &[REQUEST, "", "0", "P"][..]),
        };
        scene.assert_refused(&run(script, &[&key], args), "does not begin with").await;
    }
    let guard = ["el:{theirs}:fence", "theirs"];
    let args = [REQUEST, "", "0", "P", "9", OWNER, "1", "0", "set", "mine", ""];
    scene.assert_refused(&run(&scripts::GUARD_WRITE, &guard, &args), "does not begin with").await;

    let keys: Vec<&str> = one.iter().map(String::as_str).collect();
    scene.assert_refused(&taking(&keys, "", "60001", &[]), "lease is longer").await;
    let renewing = [REQUEST, "", "0", "P", OWNER, "86400000", "1"];
    scene
        .assert_refused(&run(&scripts::LOCK_RENEW, &keys[..2], &renewing), "lease is longer")
        .await;
    let holding = [&latch("seats:a"), "el:{seats:a}:held"];
    let endless = [REQUEST, "", "0", "P", "1", "", OWNER, "1"];
    scene
        .assert_refused(&run(&scripts::SEMAPHORE_RENEW, &holding, &endless), "lease is longer")
        .await;

    let now = now() * 1000;
    let later = (now + 800_000).to_string();
    scene.assert_refused(&taking(&keys, &later, "60000", &[]), "too far into the future").await;
    let raising = [REQUEST, "", "0", "P", OWNER, "9007199254740991", "86400000"];
    scene
        .assert_refused(&run(&scripts::LOCK_RAISE, &keys, &raising), "too far into the future")
        .await;

    let record = format!("el:{{app:held}}:{REQUEST}");
    let held = [record.as_str(), "app:held", "redisson_lock__channel:{app:held}"];
    let forcing = [REQUEST, &(now + 60_000).to_string(), "0", "P", "60000"];
    scene
        .assert_refused(&run(&scripts::LOCK_FORCE_RELEASE, &held, &forcing), "right `force`")
        .await;
}

#[tokio::test]
async fn other_paths_and_channels_are_closed() {
    let mut scene = Scene::new().await;
    let before = scene.keyspace().await;
    let allowed = run(&scripts::LATCH_INSPECT, &["gate:a"], &[REQUEST, "", "0", "P"]);
    assert_eq!(scene.client.command(&allowed.to_string()).await.0, 200);
    let (status, body) = scene.client.post("/multi-exec", &json!([allowed]).to_string()).await;
    assert_eq!(status, 403, "{body}");
    for path in [
        "/psubscribe/redisson_lock__channel:%7Bapp:a%7D",
        "/psubscribe/*",
        "/subscribe/redisson_lock__channel:%7Btheirs%7D",
        "/subscribe/app:a",
        "/subscribe/__keyspace@0__:app:a",
        "/ssubscribe/redisson_sc:%7Btheirs%7D",
        "/subscribe/redisson_countdownlatch__channel__%7Btheirs%7D",
    ] {
        let (status, body) = answer(scene.client.request(Method::GET, path)).await;
        assert_eq!(status, 403, "{path}: {body}");
        assert!(body.starts_with(r#"{"error":"NOPERM "#), "{body}");
    }
    assert_eq!(scene.keyspace().await, before);
    let channels = scene.env.client.command(r#"["PUBSUB","CHANNELS"]"#).await;
    assert_eq!(channels.1, r#"{"result":[]}"#);
}

#[tokio::test]
async fn a_wait_for_replicas_comes_behind_a_call_of_one_s_own() {
    let scene = Scene::new().await;
    let allowed = run(&scripts::LATCH_INSPECT, &["gate:a"], &[REQUEST, "", "0", "P"]);
    let refused = run(&scripts::LATCH_INSPECT, &["theirs"], &[REQUEST, "", "0", "P"]);
    let slots = async |commands: Value| -> Vec<bool> {
        let (status, body) = scene.client.post("/pipeline", &commands.to_string()).await;
        assert_eq!(status, 200, "{body}");
        let slots: Vec<Value> = serde_json::from_str(&body).unwrap();
        slots.iter().map(|slot| slot.get("result").is_some()).collect()
    };
    let wait = json!(["WAIT", "1", "1"]);
    assert_eq!(slots(json!([allowed, wait])).await, [true, true]);
    assert_eq!(slots(json!([allowed, wait, wait])).await, [true, true, false]);
    assert_eq!(slots(json!([allowed, refused, allowed])).await, [true, false, true]);
    assert_eq!(slots(json!([wait, allowed])).await, [false, true]);
    assert_eq!(slots(json!([refused, wait])).await, [false, false]);
    assert_eq!(slots(json!([allowed, ["WAIT", "9", "1"]])).await, [true, false]);
    assert_eq!(slots(json!([allowed, ["WAIT", "1", "1001"]])).await, [true, false]);
}
