//! Slots that move between nodes, and errors that only look like redirections.

use std::time::Duration;

use serde_json::{Value, json};

use crate::cluster::{LONG_NODE_TIMEOUT, has_error, in_front_of, post};
use crate::peer::{Action, Peer};
use crate::support::{TOKEN, TestClient, gateway};
use test_support::servers::Cluster;

/// The slot of the key `k`.
const SLOT: u16 = 7629;

#[tokio::test]
async fn a_slot_on_the_move_is_served_by_both_of_its_nodes() {
    let cluster = Cluster::start(LONG_NODE_TIMEOUT);
    let (_gateway, client) = in_front_of(&cluster).await;
    let [stays, moved] = ["{moving}:stays", "{moving}:moved"];
    let slot = cluster.slot(stays).to_string();
    let (from, _) = cluster.places(stays);
    let to = (0..3).find(|number| *number != from).unwrap();
    assert_eq!(post(&client, "/", json!(["SET", stays, 1])).await.0, 200);
    let [source, target] = [from, to].map(|number| &cluster.servers()[number]);
    let set_slot = |server: &test_support::servers::Server, words: &[&str]| {
        server.query::<()>(&[&["CLUSTER", "SETSLOT", &slot][..], words].concat()).unwrap();
    };
    set_slot(target, &["IMPORTING", &cluster.id(from)]);
    set_slot(source, &["MIGRATING", &cluster.id(to)]);

    // A moved key is requested from the target, in single requests and in pipelines.
    assert_eq!(post(&client, "/", json!(["SET", moved, 2])).await.0, 200);
    assert_eq!(source.query::<Vec<String>>(&["KEYS", "*"]).unwrap(), [stays]);
    assert_eq!(target.query::<Vec<String>>(&["KEYS", "*"]).unwrap(), [moved]);
    let commands = json!([["INCR", moved], ["INCR", stays], ["INCR", moved], ["WAIT", 0, 1]]);
    let numbers = json!([{"result": 3}, {"result": 2}, {"result": 4}]);
    for (path, commands) in [
        ("/pipeline", commands.as_array().unwrap()[..3].to_vec()),
        ("/pipeline", commands.as_array().unwrap().clone()),
    ] {
        let (status, mut answers) = post(&client, path, Value::from(commands)).await;
        answers.as_array_mut().unwrap().truncate(3);
        assert_eq!((status, answers), (200, numbers.clone()));
        let back = json!([["DECRBY", moved, 2], ["DECR", stays]]);
        assert_eq!(post(&client, "/pipeline", back).await.0, 200);
    }
    // Redis refuses a command that needs both nodes. The gateway cannot send a transaction with
    // `ASKING`.
    let both = json!(["MGET", moved, stays]);
    let (status, answer) = post(&client, "/", both).await;
    assert!(status == 400 && has_error(&answer, "TRYAGAIN "), "{answer}");
    let (status, answer) = post(&client, "/multi-exec", json!([["INCR", moved]])).await;
    assert!(status == 400 && has_error(&answer, "TRYAGAIN "), "{answer}");
    assert_eq!(post(&client, "/", json!(["GET", moved])).await.1, json!({"result": "2"}));

    // The slot has moved: from now on the target serves all of it.
    source.query::<()>(&["DEL", stays]).unwrap();
    for server in [target, source] {
        set_slot(server, &["NODE", &cluster.id(to)]);
    }
    for path in ["/pipeline", "/multi-exec"] {
        let (status, answers) = post(&client, path, json!([["INCR", moved]])).await;
        assert!(status == 200 && answers[0]["result"].is_number(), "{path}: {answers}");
    }
    assert_eq!(post(&client, "/", json!(["GET", moved])).await.1, json!({"result": "4"}));
}

#[tokio::test]
async fn a_node_that_has_given_its_slots_up_passes_everything_on() {
    // The shorter this timeout, the sooner the nodes learn of a change.
    let cluster = Cluster::start(Duration::from_secs(5));
    let (_gateway, client) = in_front_of(&cluster).await;
    let keys = cluster.keys("passed:");
    for (path, key) in ["/", "/pipeline", "/multi-exec"].into_iter().zip(&keys) {
        cluster.fail_over(key);
        let body = match path {
            "/" => json!(["INCR", key]),
            "/multi-exec" => json!([["INCR", key]]),
            _ => json!([["INCR", key], ["WAIT", 0, 1]]),
        };
        let (status, answer) = post(&client, path, body).await;
        assert_eq!(status, 200, "{path}: {answer}");
        let (master, _) = cluster.places(key);
        assert_eq!(cluster.servers()[master].query::<u32>(&["GET", key]).unwrap(), 1);
    }
}

/// Starts two peers that form a cluster, with all slots at the first peer, and a gateway that knows
/// them.
async fn pair() -> (Peer, Peer, edgelatch_gateway::Gateway, TestClient) {
    let (first, second) = (Peer::start().await, Peer::start().await);
    first.serve_cluster(&[&second]);
    let gateway = gateway(format!("redis+cluster://127.0.0.1:{}", first.port()), |_| ()).await;
    let client = TestClient::new(&format!("http://{}", gateway.address()), TOKEN);
    client.connected().await;
    (first, second, gateway, client)
}

#[tokio::test]
async fn a_wait_follows_the_command_before_it() {
    let (first, second, _gateway, client) = pair().await;
    first.reply_to("EVAL", &format!("-MOVED {SLOT} 127.0.0.1:{}", second.port()));
    first.reply_to("WAIT", ":0");
    second.reply_to("EVAL", ":1");
    second.reply_to("WAIT", ":7");
    let commands = json!([["EVAL", "return 1", 1, "k"], ["WAIT", 1, 100]]);
    let expected = json!([{"result": 1}, {"result": 7}]);
    assert_eq!(post(&client, "/pipeline", commands).await, (200, expected));
    assert_eq!((first.seen("EVAL"), second.seen("EVAL")), (1, 1));
    assert_eq!((first.seen("WAIT"), second.seen("WAIT")), (0, 1));
}

#[tokio::test]
async fn only_what_was_redirected_is_sent_on() {
    let (first, second, _gateway, client) = pair().await;
    first.reply_to("GET", &format!("-MOVED {SLOT} 127.0.0.1:{}", second.port()));
    second.reply_to("GET", "+there");
    let commands = json!([["INCR", "k"], ["GET", "k"], ["APPEND", "k", "x"]]);
    let (status, answers) = post(&client, "/pipeline", commands).await;
    assert_eq!((status, &answers[1]), (200, &json!({"result": "there"})));
    for name in ["INCR", "APPEND"] {
        assert_eq!((first.seen(name), second.seen(name)), (1, 0), "{name}");
    }
    assert_eq!((first.seen("GET"), second.seen("GET")), (1, 1));
}

#[tokio::test]
async fn an_error_that_only_looks_like_a_redirection_leads_nowhere() {
    let (first, second, _gateway, client) = pair().await;
    let unknown_node = Peer::start().await;
    for (rule, line) in [
        // An address that the cluster does not name.
        ("EVAL", format!("MOVED {SLOT} 127.0.0.1:{}", unknown_node.port())),
        ("EVAL", format!("ASK {SLOT} 127.0.0.1:{}", unknown_node.port())),
        // Another slot, and no slot at all.
        ("EVAL", format!("MOVED 1 127.0.0.1:{}", second.port())),
        ("EVAL", format!("MOVED {SLOT}")),
        // The error of a call inside of a script that has partly run.
        ("EVAL", format!("MOVED {SLOT} 127.0.0.1:{} script: f", second.port())),
    ] {
        first.reply_to(rule, &format!("-{line}"));
        let answer = post(&client, "/", json!(["EVAL", "x", 1, "k"])).await;
        assert_eq!(answer, (400, json!({ "error": line })));
    }
    // Without a key there is no slot that could have moved.
    first.reply_to("EVAL", &format!("-MOVED {SLOT} 127.0.0.1:{}", second.port()));
    assert_eq!(post(&client, "/", json!(["EVAL", "x", 0])).await.0, 400);
    assert_eq!((second.seen("EVAL"), unknown_node.seen("EVAL")), (0, 0));
}

#[tokio::test]
async fn a_redirection_loop_ends() {
    let (first, second, _gateway, client) = pair().await;
    first.reply_to("GET", &format!("-MOVED {SLOT} 127.0.0.1:{}", second.port()));
    second.reply_to("GET", &format!("-MOVED {SLOT} 127.0.0.1:{}", first.port()));
    let (status, answer) = post(&client, "/", json!(["GET", "k"])).await;
    assert!(status == 400 && has_error(&answer, "MOVED "), "{answer}");
    assert_eq!(first.seen("GET") + second.seen("GET"), 6);
    second.on_command("GET", Action::Drop);
    let (status, answer) = post(&client, "/", json!(["GET", "k"])).await;
    assert!(status == 502 && has_error(&answer, "no reply from Redis"), "{answer}");
}
