//! `status`, `release`, `latch`, `semaphore` and `completion`.

use rustix::process::Signal;
use test_support::test_env::until;

use crate::support::{Env, Process, program};

#[tokio::test]
async fn status_shows_which_locks_are_held() {
    let env = Env::start().await;
    let script = "echo $EDGELATCH_FENCING_TOKEN; read line";
    let mut holder = env.spawn(&["run", "a", "--", "sh", "-c", script]);
    let token = holder.next_line().await.unwrap();
    let end = env.run(&["status", "a", "b"]).await;
    end.assert(0, "");
    let rows: Vec<Vec<&str>> =
        end.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(&rows[0][..3], ["NAME", "STATE", "REMAINING"]);
    assert_eq!((&rows[1][..2], rows[1][4]), (&["a", "held"][..], token.as_str()));
    assert_eq!(rows[2], ["b", "free", "-", "0", "-", "-"]);
    let end = env.run(&["status", "--json", "a", "b"]).await;
    let json: serde_json::Value = serde_json::from_str(&end.out).unwrap();
    assert_eq!(json[0]["held"], true);
    assert_eq!(json[0]["fencing_token"].to_string(), token);
    assert_eq!((&json[1]["name"], &json[1]["held"]), (&"b".into(), &false.into()));
    holder.end().await.assert(1, "");
}

#[tokio::test]
async fn a_forced_release_must_be_confirmed_and_says_whether_there_was_a_hold() {
    let env = Env::start().await;
    env.run(&["release", "job"]).await.assert(64, "--force");
    let end = env.run(&["release", "--force", "job"]).await;
    assert_eq!((end.code, end.out.as_str()), (Some(0), "job: was not held\n"));
}

#[tokio::test]
async fn a_latch_opens_when_it_was_counted_down() {
    let env = Env::start().await;
    env.run(&["latch", "set", "parts", "2"]).await.assert(0, "");
    env.run(&["latch", "set", "parts", "2"]).await.assert(73, "closed already");
    env.run(&["latch", "wait", "-n", "parts"]).await.assert(75, "its count is 2");
    env.run(&["latch", "wait", "--wait", "1ms", "parts"]).await.assert(75, "\"parts\"");
    let waiter = env.spawn(&["latch", "wait", "--forever", "parts"]);
    for count in ["1\n", "0\n"] {
        assert_eq!(env.run(&["latch", "count-down", "parts"]).await.out, count);
    }
    waiter.end().await.assert(0, "");
    assert_eq!(env.run(&["latch", "show", "parts"]).await.out, "0\n");
    env.run(&["latch", "wait", "-n", "never-set"]).await.assert(0, "");
}

#[tokio::test]
async fn a_signal_ends_the_wait_for_a_latch() {
    let env = Env::start().await;
    env.run(&["latch", "set", "parts", "1"]).await.assert(0, "");
    let calls = env.0.proxy.requests();
    let waiter = env.spawn(&["latch", "wait", "--forever", "parts"]);
    until(async || env.0.proxy.requests() > calls).await;
    waiter.signal(Signal::TERM);
    waiter.end().await.assert(143, "cancelled");
}

#[tokio::test]
async fn permits_of_a_semaphore_are_set_once_and_added() {
    let env = Env::start().await;
    env.run(&["semaphore", "set", "pool", "3"]).await.assert(0, "");
    env.run(&["semaphore", "set", "pool", "9"]).await.assert(73, "exists already");
    assert_eq!(env.run(&["semaphore", "add", "pool", "2"]).await.out, "5\n");
    assert_eq!(env.run(&["semaphore", "add", "pool", "-4"]).await.out, "1\n");
    let shown = env.run(&["semaphore", "show", "pool"]).await;
    let row: Vec<&str> = shown.out.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row, ["pool", "1", "0", "0"]);
}

#[tokio::test]
async fn completions_name_the_commands_and_need_no_gateway() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let end = Process::of(program(&["completion", shell])).end().await;
        end.assert(0, "");
        assert!(end.out.contains("count-down") && !end.out.contains("__launch"), "{shell}");
    }
}
