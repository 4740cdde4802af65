//! Checks that connections of clients do not exhaust the limit of open files.

use std::process::Stdio;

use tokio::process::Command;

use crate::program::Running;

/// Starts the program with a limit set by a shell, and returns its log until it listens.
async fn log_under(limit: &str, connections: &str, redis: &str) -> String {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit {limit} && exec \"$0\" \"$@\"")])
        .arg(env!("CARGO_BIN_EXE_edgelatch-gateway"))
        .args(["--redis", redis, "--stream-limit", "10", "--wait-limit", "1"])
        .args(["--connection-limit", connections])
        .env("EDGELATCH_TOKENS", crate::support::TOKEN)
        .env("EDGELATCH_LOG", "warn")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    Running::start(command).await.kill().await
}

/// A fixed bug: the usual soft limit is 1024, so clients of one address could use it up, and the
/// gateway accepted no other connection.
#[tokio::test]
async fn the_limit_of_open_files_is_raised_or_warned_of() {
    // With the gateway's other files, 200 connections need more than 256, and 100 do not.
    for (limit, connections, is_warned) in
        [("-S -n 256", "200", false), ("-n 256", "200", true), ("-n 256", "100", false)]
    {
        let log = log_under(limit, connections, "redis://127.0.0.1:1").await;
        let says = "may have 256 files open, and its limits need 340";
        assert_eq!(log.contains(says), is_warned, "{limit} {connections}: {log}");
        assert_eq!(log.contains("files open"), is_warned, "{limit} {connections}: {log}");
    }
}

/// A fixed bug: only one node of a cluster was counted.
#[tokio::test]
async fn every_node_of_a_cluster_needs_its_own_files() {
    let cluster = "redis+cluster://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3";
    let log = log_under("-n 256", "100", cluster).await;
    assert!(!log.contains("files open"), "{log}");
    let log = log_under("-n 256", "113", cluster).await;
    assert!(log.contains("may have 256 files open, and its limits need 257"), "{log}");
}
