//! The gateway in front of a real Redis Cluster.

use std::time::Duration;

use edgelatch_gateway::Gateway;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Stream, TOKEN, TestClient, answer, gateway, until};
use test_support::servers::Cluster;

/// How long a master may be silent before its replica takes over, in tests of failovers.
const SHORT_NODE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a master may be silent before its replica takes over, in tests without failovers.
pub(crate) const LONG_NODE_TIMEOUT: Duration = Duration::from_secs(15);

/// Starts a gateway in front of the cluster, and waits until it knows the nodes.
pub(crate) async fn in_front_of(cluster: &Cluster) -> (Gateway, TestClient) {
    let gateway = gateway(cluster.url(), |_| ()).await;
    let client = TestClient::new(&format!("http://{}", gateway.address()), TOKEN);
    client.connected().await;
    (gateway, client)
}

pub(crate) async fn post(client: &TestClient, path: &str, commands: Value) -> (u16, Value) {
    let (status, body) = client.post(path, &commands.to_string()).await;
    (status, serde_json::from_str(&body).unwrap())
}

async fn command(client: &TestClient, words: Value) -> (u16, Value) {
    post(client, "/", words).await
}

pub(crate) fn has_error(answer: &Value, start: &str) -> bool {
    answer["error"].as_str().is_some_and(|error| error.starts_with(start))
}

#[tokio::test]
async fn a_command_goes_to_the_node_of_its_key() {
    let cluster = Cluster::shared();
    let (_gateway, client) = in_front_of(&cluster).await;
    for key in cluster.keys("to-its-node:") {
        assert_eq!(command(&client, json!(["SET", key, "v"])).await.0, 200);
        let (master, _) = cluster.places(&key);
        // Any other node replies with a redirection.
        let there: String = cluster.servers()[master].query(&["GET", &key]).unwrap();
        assert_eq!(there, "v");
        let script = json!(["EVAL", "return redis.call('GET', KEYS[1])", 1, key]);
        assert_eq!(command(&client, script).await, (200, json!({"result": "v"})));
    }
    for keyless in [json!(["PING"]), json!(["TIME"]), json!(["EVAL", "return 1", 0])] {
        assert_eq!(command(&client, keyless).await.0, 200);
    }
    let health = answer(client.bare(Method::GET, "/healthz")).await;
    assert_eq!(health, (200, r#"{"ok":true}"#.to_owned()));
}

#[tokio::test]
async fn keys_in_different_slots_are_refused_before_anything_is_run() {
    let cluster = Cluster::shared();
    let (_gateway, client) = in_front_of(&cluster).await;
    let keys = cluster.keys("crossing:");
    let script = "redis.call('SET', KEYS[1], 1) return redis.call('SET', KEYS[2], 1)";
    for refused in [
        json!(["EVAL", script, 2, keys[0], keys[1]]),
        json!(["MSET", keys[0], 1, keys[1], 1]),
        json!(["MSET", "crossing:a", 1, "crossing:b", 1]),
    ] {
        let (status, answer) = command(&client, refused).await;
        assert_eq!(status, 400);
        assert!(has_error(&answer, "CROSSSLOT "), "{answer}");
    }
    for sets in [["crossing:a", "crossing:b"], [&keys[0], &keys[1]]] {
        let sets = json!([["SET", sets[0], 1], ["SET", sets[1], 1]]);
        let (status, answer) = post(&client, "/multi-exec", sets).await;
        assert_eq!(status, 400);
        assert!(has_error(&answer, "CROSSSLOT "), "{answer}");
    }
    let exist = json!([["EXISTS", "crossing:a"], ["EXISTS", keys[0]], ["EXISTS", keys[1]]]);
    let none = json!([{"result": 0}, {"result": 0}, {"result": 0}]);
    assert_eq!(post(&client, "/pipeline", exist).await, (200, none));
}

#[tokio::test]
async fn a_transaction_in_one_slot_is_one() {
    let cluster = Cluster::shared();
    let (_gateway, client) = in_front_of(&cluster).await;
    for key in cluster.keys("transaction:") {
        let other = format!("{{{key}}}:other");
        let commands = json!([["PING"], ["SET", key, 1], ["INCR", key], ["SET", other, 2]]);
        let expected =
            json!([{"result": "PONG"}, {"result": "OK"}, {"result": 2}, {"result": "OK"}]);
        assert_eq!(post(&client, "/multi-exec", commands).await, (200, expected));
    }
    let wrong = json!([["SET", "transaction:x", 1], ["SET", "transaction:x"]]);
    let (status, answer) = post(&client, "/multi-exec", wrong).await;
    assert!(status == 400 && has_error(&answer, "ERR wrong number"), "{answer}");
}

#[tokio::test]
async fn a_pipeline_over_all_nodes_answers_each_command_in_its_place() {
    let cluster = Cluster::shared();
    let (_gateway, client) = in_front_of(&cluster).await;
    let keys = cluster.keys("pipeline:");
    let mut commands = vec![json!(["ECHO", "first"])];
    let mut expected = vec![json!({"result": "first"})];
    for round in 0..3 {
        for (number, key) in keys.iter().enumerate() {
            let value = round * 10 + number;
            commands.extend([json!(["SET", key, value]), json!(["GET", key])]);
            expected.extend([json!({"result": "OK"}), json!({"result": value.to_string()})]);
        }
    }
    commands.extend([json!(["BLPOP", keys[0], 0]), json!(["LPUSH", keys[1], 1]), json!(["TIME"])]);
    let (status, answers) = post(&client, "/pipeline", Value::from(commands)).await;
    let answers = answers.as_array().unwrap().clone();
    let (first, rest) = answers.split_at(expected.len());
    assert_eq!((status, first), (200, expected.as_slice()));
    assert!(has_error(&rest[0], "ERR the gateway does not allow BLPOP"), "{rest:?}");
    assert!(has_error(&rest[1], "WRONGTYPE "), "{rest:?}");
    assert!(rest[2]["result"].is_array(), "{rest:?}");
}

#[tokio::test]
async fn a_script_that_is_loaded_in_a_pipeline_is_known_to_the_next_command() {
    let cluster = Cluster::shared();
    let (_gateway, client) = in_front_of(&cluster).await;
    for key in cluster.keys("script:") {
        let unknown = json!(["EVALSHA", "0".repeat(40), 1, key]);
        let (status, answer) = command(&client, unknown).await;
        assert!(status == 400 && has_error(&answer, "NOSCRIPT "), "{answer}");
        let script = format!("return '{key}'");
        let loaded = json!([["SCRIPT", "LOAD", script], ["GET", key]]);
        let (_, answers) = post(&client, "/pipeline", loaded).await;
        let hash = &answers[0]["result"];
        let run = command(&client, json!(["EVALSHA", hash, 1, key])).await;
        assert_eq!(run, (200, json!({"result": key})));
    }
}

#[tokio::test]
async fn messages_arrive_wherever_they_are_published() {
    let cluster = Cluster::shared();
    let (_gateway, client) = in_front_of(&cluster).await;
    let channel = "messages:{a}";
    let mut plain = Stream::open(client.request(Method::POST, "/subscribe/messages:{a}")).await;
    plain.reach("data: subscribe,messages:{a},1\n\n").await;
    let mut pattern = Stream::open(client.request(Method::POST, "/psubscribe/messages:*")).await;
    pattern.reach("data: psubscribe,messages:*,1\n\n").await;
    let mut shard = Stream::open(client.request(Method::POST, "/ssubscribe/messages:{a}")).await;
    shard.reach("data: ssubscribe,messages:{a},1\n\n").await;
    for (number, key) in cluster.keys("messages:").iter().enumerate() {
        let script = "return redis.call('PUBLISH', ARGV[1], ARGV[2])";
        command(&client, json!(["EVAL", script, 1, key, channel, number])).await;
        plain.reach(&format!("data: message,{channel},{number}\n\n")).await;
        let expected = format!("data: pmessage,messages:*,{channel},{number}\n\n");
        pattern.reach(&expected).await;
    }
    assert_eq!(command(&client, json!(["PUBLISH", channel, "p"])).await.0, 200);
    plain.reach(&format!("data: message,{channel},p\n\n")).await;
    let sent = command(&client, json!(["SPUBLISH", channel, "s"])).await;
    assert_eq!(sent, (200, json!({"result": 1})));
    shard.reach(&format!("data: smessage,{channel},s\n\n")).await;
}

#[tokio::test]
async fn a_node_that_is_away_takes_nothing_but_its_own_keys_with_it() {
    let mut cluster = Cluster::start(LONG_NODE_TIMEOUT);
    let (_gateway, client) = in_front_of(&cluster).await;
    let keys = cluster.keys("away:");
    let (master, _) = cluster.places(&keys[1]);
    cluster.server(master).kill();
    let sets: Vec<_> = keys.iter().map(|key| json!(["INCR", key])).collect();
    for round in 1..=2 {
        let (status, answers) = post(&client, "/pipeline", Value::from(sets.clone())).await;
        assert_eq!(
            (status, &answers[0]["result"], &answers[2]["result"]),
            (200, &json!(round), &json!(round))
        );
        assert!(has_error(&answers[1], "no reply from Redis"), "{answers}");
    }
    // The other nodes' commands run even if those of the lost node are the first portions of a long
    // pipeline.
    let mut long = vec![json!(["INCR", keys[1]]); 40];
    long.push(json!(["GET", keys[0]]));
    let (status, answers) = post(&client, "/pipeline", Value::from(long)).await;
    assert_eq!((status, &answers[40]["result"]), (200, &json!("2")), "{answers}");
    for (path, body) in [
        ("/", json!(["INCR", keys[1]])),
        ("/pipeline", json!([["INCR", keys[1]], ["PING"]])),
        ("/multi-exec", json!([["INCR", keys[1]]])),
    ] {
        let (status, answer) = post(&client, path, body).await;
        assert!(status == 502 && has_error(&answer, "no reply from Redis"), "{path}: {answer}");
    }
    assert_eq!(answer(client.bare(Method::GET, "/healthz")).await.0, 503);
}

#[tokio::test]
async fn the_next_command_finds_the_replica_that_took_over_from_a_master_that_died_under_load() {
    let mut cluster = Cluster::start(SHORT_NODE_TIMEOUT);
    let (_gateway, client) = in_front_of(&cluster).await;
    let keys = cluster.keys("dying:");
    let (master, _) = cluster.places(&keys[1]);
    let load: Vec<_> =
        keys.iter().cloned().map(|key| tokio::spawn(count_to(500, client.clone(), key))).collect();
    cluster.server(master).kill();
    for counting in load {
        counting.await.unwrap();
    }
    let gets: Vec<_> = keys.iter().map(|key| json!(["GET", key])).collect();
    let (status, answers) = post(&client, "/pipeline", Value::from(gets)).await;
    let has_results = answers.as_array().unwrap().iter().all(|answer| answer["result"].is_string());
    assert!(status == 200 && has_results, "{answers}");
    until(async || (answer(client.bare(Method::GET, "/healthz")).await.0 == 200).then_some(()))
        .await;
}

/// Increments a key until it has been incremented `goal` times. Every response without a result or
/// a refusal must report that the command may have been executed.
async fn count_to(goal: u32, client: TestClient, key: String) {
    let mut counted = 0;
    while counted < goal {
        let (status, answer) = command(&client, json!(["INCR", key])).await;
        match status {
            200 => counted += 1,
            400 => assert!(has_error(&answer, "CLUSTERDOWN "), "{answer}"),
            _ => assert!(status == 502 || status == 504, "{status} {answer}"),
        }
    }
}
