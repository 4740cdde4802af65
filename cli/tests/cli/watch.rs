//! `watch` without a terminal.

use rustix::process::Signal;
use test_support::faults::{Fault, FaultResponse};
use test_support::test_env::until;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::support::Env;

/// The words of a line behind its time.
fn words(line: &str) -> Vec<&str> {
    line.split(' ').skip(1).collect()
}

#[tokio::test]
async fn each_change_of_a_lock_is_a_line() {
    let env = Env::start().await;
    let mut watch = env.spawn(&["watch", "--kind", "fair", "--interval", "10ms", "job"]);
    assert_eq!(words(&watch.next_line().await.unwrap()), ["free", "queue=0"]);
    let hold = ["--kind", "fair", "job", "--", "sh", "-c"];
    let script = ["echo $EDGELATCH_FENCING_TOKEN; read line"];
    let mut holder = env.spawn(&[&["run"][..], &hold, &script].concat());
    let token = format!("token={}", holder.next_line().await.unwrap());
    assert_eq!(words(&watch.next_line().await.unwrap()), ["held", &token, "queue=0"]);
    let waiter = env.spawn(&[&["run", "--forever"][..], &hold, &["true"]].concat());
    assert_eq!(words(&watch.next_line().await.unwrap()), ["held", &token, "queue=1"]);
    waiter.signal(Signal::INT);
    waiter.end().await.assert(130, "");
    assert_eq!(words(&watch.next_line().await.unwrap()), ["held", &token, "queue=0"]);
    holder.end().await.assert(1, "");
    assert_eq!(words(&watch.next_line().await.unwrap()), ["free", &token, "queue=0"]);
    watch.signal(Signal::INT);
    watch.end().await.assert(130, "");
}

#[tokio::test]
async fn changes_can_be_json() {
    let env = Env::start().await;
    let flags = ["watch", "--json", "--interval", "10ms", "--kind", "latch", "parts"];
    let mut watch = env.spawn(&flags);
    let mut count = async || {
        let line = watch.next_line().await.unwrap();
        let json: serde_json::Value = serde_json::from_str(&line).unwrap();
        json["count"].as_u64().unwrap()
    };
    assert_eq!(count().await, 0);
    env.run(&["latch", "set", "parts", "3"]).await.assert(0, "");
    assert_eq!(count().await, 3);
    watch.signal(Signal::TERM);
    watch.end().await.assert(143, "");
}

#[tokio::test]
async fn an_outage_is_reported_once_and_survived() {
    let env = Env::start().await;
    let mut watch = env.spawn(&["watch", "--interval", "10ms", "job"]);
    watch.next_line().await.unwrap();
    env.0.proxy.plan(|_| Fault::not_executed(FaultResponse::Reset));
    let failed = env.0.proxy.requests() + 12;
    until(async || env.0.proxy.requests() >= failed).await;
    env.0.proxy.plan(|_| Fault::none());
    let mut holder = env.spawn(&["run", "job", "--", "sh", "-c", "echo ready; read line"]);
    holder.until_line("ready").await;
    assert!(watch.next_line().await.unwrap().contains("held"));
    holder.end().await.assert(1, "");
    watch.signal(Signal::TERM);
    let end = watch.end().await;
    end.assert(143, "gateway");
    assert_eq!(end.log.lines().count(), 1, "{end:?}");
}

#[tokio::test]
async fn it_ends_silently_when_its_output_is_closed() {
    let env = Env::start().await;
    let mut child = env.command(&["watch", "--interval", "10ms", "job"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.next_line().await.unwrap().unwrap();
    drop(lines);
    env.run(&["run", "job", "--", "true"]).await.assert(0, "");
    let output = child.wait_with_output().await.unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(141), Vec::new()));
}

#[tokio::test]
async fn a_wrong_gateway_ends_it_at_once() {
    let env = Env::start().await;
    env.run(&["--url", "http://127.0.0.1:1", "watch", "job"]).await.assert(69, "127.0.0.1:1");
}
