//! `WAIT` behind a command of the same request.

use serde_json::{Value, json};

use crate::support::{TOKEN, TestClient, gateway};
use test_support::servers::{Cluster, Folder, PASSWORD, PASSWORD_IN_URL, Sentinels, Server, until};

/// Sends a write and the `WAIT` for its replicas as one request. Redis counts the replicas that
/// have the writes of the same connection, so on another connection it would count all of them at
/// once.
async fn replicated(url: &str, key: &str, replicas: &[&Server]) {
    let gateway = gateway(url.to_owned(), |_| ()).await;
    let client = TestClient::new(&format!("http://{}", gateway.address()), TOKEN);
    let script = "return redis.call('INCR', KEYS[1])";
    let write = |time: u32| {
        let commands = json!([["EVAL", script, 1, key], ["WAIT", replicas.len(), time]]);
        let client = client.clone();
        async move {
            let (status, body) = client.post("/pipeline", &commands.to_string()).await;
            assert_eq!(status, 200, "{body}");
            let answers: Vec<Value> = serde_json::from_str(&body).unwrap();
            answers.iter().map(|answer| answer["result"].as_u64().unwrap()).collect::<Vec<_>>()
        }
    };
    let all = u64::try_from(replicas.len()).unwrap();
    client.connected().await;
    assert_eq!(write(5000).await, [1, all]);
    for replica in replicas {
        replica.hang();
    }
    assert_eq!(write(100).await, [2, 0]);
    for replica in replicas {
        replica.go_on();
    }
    assert_eq!(write(5000).await, [3, all]);
}

#[tokio::test]
async fn a_wait_counts_the_replicas_of_the_one_master() {
    let folder = Folder::new();
    let common = ["--save", "", "--masterauth", PASSWORD, "--repl-diskless-sync-delay", "0"];
    let master = Server::start(&folder, &common);
    let address = format!("127.0.0.1 {}", master.port());
    let replica = Server::start(&folder, &[&common[..], &["--replicaof", &address]].concat());
    until(|| master.says(&["INFO", "replication"], "state=online").then_some(()));
    let url = format!("redis://:{PASSWORD_IN_URL}@{}", master.address());
    replicated(&url, "k", &[&replica]).await;
}

#[tokio::test]
async fn a_wait_counts_the_replicas_of_the_keys_own_node() {
    let cluster = Cluster::shared();
    for key in cluster.keys("replicas:") {
        let (_, replica) = cluster.places(&key);
        replicated(&cluster.url(), &key, &[&cluster.servers()[replica]]).await;
    }
}

#[tokio::test]
async fn a_wait_counts_the_replicas_of_the_master_that_sentinels_name() {
    let sentinels = Sentinels::start();
    replicated(&sentinels.url(), "k", &sentinels.replicas()).await;
}
