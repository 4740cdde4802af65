//! `run`: a lease that is lost while the command runs.

use rustix::process::Signal;
use test_support::faults::{Fault, FaultResponse};
use test_support::test_env::until;
use tokio::process::Command;

use crate::support::{Env, Process};

/// A command that does not end by itself, and ends at SIGTERM.
const ENDLESS: [&str; 3] = ["sh", "-c", "echo ready; exec sleep 1000"];

#[tokio::test]
async fn a_hold_that_is_ended_by_force_ends_the_command() {
    let env = Env::start().await;
    // A lost hold is noticed at the next renewal, after a third of the lease.
    let mut process = env.spawn(&[&["run", "--lease", "6s", "job", "--"][..], &ENDLESS].concat());
    process.until_line("ready").await;
    let released = env.run(&["release", "--force", "job"]).await;
    assert_eq!(released.out, "job: released\n");
    process.end().await.assert(79, "lost \"job\"");
}

/// Starts a command, and waits for its guard, which the program starts right after it. The script
/// follows the lines `ready` and its process id.
async fn spawn_guarded(env: &Env, script: &str) -> Process {
    let script = format!("echo ready; echo $$; {script}");
    let mut process = env.spawn_briefly(&["job"], &["sh", "-c", &script]).await;
    let guard = format!("-- -{}", process.next_line().await.unwrap());
    until(async || {
        let list = Command::new("ps").args(["-A", "-o", "args"]).output().await.unwrap();
        String::from_utf8_lossy(&list.stdout).contains(&guard)
    })
    .await;
    process
}

/// S32.
#[tokio::test]
async fn the_command_of_a_program_that_is_stopped_ends_with_the_lease() {
    let env = Env::start().await;
    let script = "trap 'echo ended; exit 0' TERM; sleep 1000 & wait";
    let mut process = spawn_guarded(&env, script).await;
    process.signal(Signal::STOP);
    // The guard ends the command while the program is stopped.
    process.until_line("ended").await;
    env.until_exists("job", false).await;
    // Another machine may hold the lock by now.
    let mut other = env.spawn(&[&["run", "-n", "job", "--"][..], &ENDLESS].concat());
    other.until_line("ready").await;
    process.signal(Signal::CONT);
    process.end().await.assert(79, "lost \"job\": the lease has expired");
    // The program that was stopped has not ended the hold of the other one.
    assert!(env.exists("job").await);
    other.signal(Signal::TERM);
    other.end().await.assert(143, "");
}

#[tokio::test]
async fn a_gateway_that_is_gone_ends_the_command_when_the_lease_expires() {
    let env = Env::start().await;
    let process = env.spawn_briefly(&["job"], &ENDLESS).await;
    env.0.proxy.plan(|_| Fault::not_executed(FaultResponse::Reset));
    process.end().await.assert(79, "no renewal was confirmed in time");
}

#[tokio::test]
async fn a_command_that_ignores_sigterm_is_killed_with_its_descendants() {
    let env = Env::start().await;
    let script = "trap '' TERM; sleep 1000 & echo ready; wait";
    let flags = ["--grace", "10ms", "job"];
    let process = env.spawn_briefly(&flags, &["sh", "-c", script]).await;
    env.0.proxy.plan(|_| Fault::not_executed(FaultResponse::Reset));
    // The output ends with the last process.
    process.end().await.assert(79, "lost");
}

#[tokio::test]
async fn a_second_signal_kills_a_command_that_has_to_end() {
    let env = Env::start().await;
    let script = "trap 'echo ending' TERM; echo ready; while :; do sleep 1000 & wait $!; done";
    let flags = ["--grace", "1h", "job"];
    let mut process = env.spawn_briefly(&flags, &["sh", "-c", script]).await;
    env.0.proxy.plan(|_| Fault::not_executed(FaultResponse::Reset));
    process.until_line("ending").await;
    process.signal(Signal::INT);
    process.end().await.assert(79, "lost");
}

#[tokio::test]
async fn a_descendant_that_outlives_the_command_is_ended_after_a_loss() {
    let env = Env::start().await;
    let script = "(trap '' TERM; exec sleep 1000) & echo ready; exec sleep 1000";
    let flags = ["--grace", "10ms", "job"];
    let process = env.spawn_briefly(&flags, &["sh", "-c", script]).await;
    env.0.proxy.plan(|_| Fault::not_executed(FaultResponse::Reset));
    process.end().await.assert(79, "lost");
}

#[tokio::test]
async fn a_hold_that_was_lost_unnoticed_is_reported_at_the_release() {
    let env = Env::start().await;
    let script = "echo ready; read line; exit 0";
    let mut process = env.spawn(&["run", "job", "--", "sh", "-c", script]);
    process.until_line("ready").await;
    env.run(&["release", "--force", "job"]).await.assert(0, "");
    process.end().await.assert(79, "lost \"job\"");
}

/// S36. The hold ends with its lease, and the processes of the command with the program.
#[tokio::test]
async fn a_killed_program_takes_its_command_along() {
    let env = Env::start().await;
    let mut process = spawn_guarded(&env, "sleep 1000 & wait").await;
    process.signal(Signal::KILL);
    assert_eq!(process.next_line().await, None);
    env.until_exists("job", false).await;
    env.run(&["run", "job", "--", "true"]).await.assert(0, "");
}
