//! `run`: the command, its environment, its input and output, and its status.

use test_support::faults::{Fault, FaultResponse};
use tokio::io::AsyncWriteExt as _;

use crate::support::{Env, Process, program};

#[tokio::test]
async fn the_command_gets_the_token_the_name_and_the_deadline() {
    let env = Env::start().await;
    let script = "echo $EDGELATCH_LOCK; echo $EDGELATCH_FENCING_TOKEN; echo $EDGELATCH_DEADLINE";
    let end = env.run(&["run", "nightly", "--", "sh", "-c", script]).await;
    end.assert(0, "");
    let lines: Vec<&str> = end.out.lines().collect();
    let [name, token, deadline] = lines.as_slice() else { panic!("{end:?}") };
    let last: String = env.0.redis.query(&["GET", "redisson_lock_token:{nightly}"]).await;
    assert_eq!((*name, *token), ("nightly", last.as_str()));
    // The token has the time of the grant in microseconds, the deadline is in seconds.
    let (granted, deadline): (u64, u64) = (token.parse().unwrap(), deadline.parse().unwrap());
    assert!(deadline > granted / 1_000_000, "{end:?}");
}

#[tokio::test]
async fn the_lock_is_held_while_the_command_runs_and_free_afterwards() {
    let env = Env::start().await;
    let mut process = env.spawn(&["run", "-v", "job", "--", "sh", "-c", "echo ready; read line"]);
    process.until_line("ready").await;
    assert!(env.exists("job").await);
    let end = process.end().await;
    end.assert(1, "acquired \"job\"");
    end.assert(1, "released \"job\"");
    assert!(!env.exists("job").await);
}

#[tokio::test]
async fn the_status_of_the_command_is_the_exit_code() {
    let env = Env::start().await;
    for (script, code) in [("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -9 $$", 137)] {
        env.run(&["run", "job", "--", "sh", "-c", script]).await.assert(code, "");
    }
    env.run(&["run", "job", "--", "no-such-command"]).await.assert(127, "no-such-command");
    env.run(&["run", "job", "--", "/dev/null"]).await.assert(126, "/dev/null");
    assert!(!env.exists("job").await);
}

#[tokio::test]
async fn the_command_reads_and_writes_as_without_the_lock() {
    let env = Env::start().await;
    let mut command = env.command(&["run", "job", "--", "sh", "-c", "cat; echo problem >&2"]);
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"one\ntwo\n").await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert_eq!((output.stdout, output.stderr), (b"one\ntwo\n".to_vec(), b"problem\n".to_vec()));
}

#[tokio::test]
async fn a_lock_that_is_held_has_an_exit_code_of_its_own() {
    let env = Env::start().await;
    let mut holder = env.spawn(&["run", "job", "--", "sh", "-c", "echo ready; read line"]);
    holder.until_line("ready").await;
    let never = ["--", "echo", "never"];
    for kind in ["lock", "fair"] {
        let end = env.run(&[&["run", "-n", "--kind", kind, "job"][..], &never].concat()).await;
        end.assert(75, "\"job\"");
        assert_eq!(end.out, "", "{end:?}");
    }
    env.run(&[&["run", "--wait", "1ms", "job"][..], &never].concat()).await.assert(75, "\"job\"");
    env.run(&[&["run", "-n", "-E", "0", "job"][..], &never].concat()).await.assert(0, "\"job\"");
    holder.end().await.assert(1, "");
}

#[tokio::test]
async fn what_hinders_the_program_has_exit_codes_of_its_own() {
    let env = Env::start().await;
    let job = ["job", "--", "echo", "never"];
    let unreachable = ["run", "-n", "--url", "http://127.0.0.1:1"];
    let end = env.run(&[&unreachable[..], &job].concat()).await;
    end.assert(69, "127.0.0.1:1");
    end.assert(69, "nothing is held");
    let refused = ["run", "--token", "another-token-0123456789"];
    env.run(&[&refused[..], &job].concat()).await.assert(77, "token");
    env.run(&["run", "--kind", "semaphore", "pool", "--", "true"]).await.assert(66, "\"pool\"");
    env.0.redis.query::<String>(&["SET", "text", "value"]).await;
    env.run(&["run", "text", "--", "true"]).await.assert(76, "WRONGTYPE");
    env.run(&["run", "job"]).await.assert(64, "COMMAND");
    env.run(&["run", "--lease", "1ms", "job", "--", "true"]).await.assert(64, "100ms to 24h");
    env.run(&["run", "--permits", "2", "job", "--", "true"]).await.assert(64, "semaphore");
    env.run(&["--version"]).await.assert(0, "");
    let alone = Process::of(program(&["run", "job", "--", "true"])).end().await;
    alone.assert(64, "UPSTASH_REDIS_REST_URL");
}

// Slow: it waits for renewals, which are due after a third of a lease that a busy machine can keep.
#[tokio::test]
async fn a_lease_of_any_length_is_renewed() {
    let env = Env::start().await;
    let mut process = env.spawn(&["run", "--lease", "6s", "job", "--", "sh", "-c", "read line"]);
    env.until_called("lock_renew", 2).await;
    assert!(env.exists("job").await);
    process.close_input();
    process.end().await.assert(1, "");
}

// Slow: the client repeats the release after pauses.
#[tokio::test]
async fn an_unreachable_gateway_at_the_release_does_not_change_the_exit_code() {
    let env = Env::start().await;
    let mut process = env.spawn(&["run", "job", "--", "sh", "-c", "echo ready; read line; exit 3"]);
    process.until_line("ready").await;
    env.0.proxy.plan(|_| Fault::not_executed(FaultResponse::Reset));
    process.end().await.assert(3, "the lock is free in 30s at the latest");
}
