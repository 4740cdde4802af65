//! Two machines with the same schedule: in each run, one of them does the work.

use std::fs;
use std::iter;

use tokio::select;

use crate::support::{Env, Process};

const RUNS: usize = 10;

/// Starts what the schedule of a machine starts. The work ends when the input does.
fn start(env: &Env, machine: &str, log: &str) -> Process {
    let script =
        format!("echo {machine} $EDGELATCH_FENCING_TOKEN >> {log}; echo ready; read line; exit 0");
    env.spawn(&["run", "--no-wait", "nightly", "--", "sh", "-c", &script])
}

#[tokio::test]
async fn exactly_one_of_two_machines_runs_each_time() {
    let env = Env::start().await;
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log").to_str().unwrap().to_owned();
    for _ in 0..RUNS {
        let (mut first, mut second) = (start(&env, "first", &log), start(&env, "second", &log));
        // The machine that is refused ends while the other one works.
        let (line, winner, loser) = select! {
            line = first.next_line() => match line {
                Some(line) => (Some(line), first, second),
                None => (second.next_line().await, second, first),
            },
            line = second.next_line() => match line {
                Some(line) => (Some(line), second, first),
                None => (first.next_line().await, first, second),
            },
        };
        assert_eq!(line.as_deref(), Some("ready"));
        let end = loser.end().await;
        end.assert(75, "\"nightly\"");
        assert_eq!(end.out, "");
        winner.end().await.assert(0, "");
    }
    let log = fs::read_to_string(log).unwrap();
    let tokens: Vec<u64> =
        log.lines().map(|line| line.split_once(' ').unwrap().1.parse().unwrap()).collect();
    assert_eq!(tokens.len(), RUNS, "{log}");
    assert!(iter::zip(&tokens, &tokens[1..]).all(|(earlier, later)| earlier < later), "{log}");
}

#[tokio::test]
async fn the_other_machine_takes_over_when_one_is_killed() {
    let env = Env::start().await;
    let work = ["sh", "-c", "echo ready; read line; exit 0"];
    let mut first = env.spawn_briefly(&["leader"], &work).await;
    let mut second = env.spawn(&[&["run", "--forever", "leader", "--"][..], &work].concat());
    env.until_called("lock_acquire", 2).await;
    first.signal(rustix::process::Signal::KILL);
    second.until_line("ready").await;
    // The command of the killed program has ended too.
    assert_eq!(first.next_line().await, None);
    second.end().await.assert(0, "");
}
