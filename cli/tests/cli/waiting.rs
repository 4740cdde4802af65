//! `run`: programs that wait for a lock or for permits.

use rustix::process::Signal;
use test_support::faults::{Fault, FaultResponse};
use test_support::test_env::until;

use crate::support::Env;

/// A command that ends when its input does.
const UNTIL_INPUT_ENDS: [&str; 4] = ["--", "sh", "-c", "echo ready; read line; exit 0"];

fn run(flags: &[&'static str]) -> Vec<&'static str> {
    [&["run"], flags, &UNTIL_INPUT_ENDS].concat()
}

#[tokio::test]
async fn a_waiting_program_gets_the_lock_after_a_release() {
    let env = Env::start().await;
    let mut holder = env.spawn(&run(&["job"]));
    holder.until_line("ready").await;
    let mut waiter = env.spawn(&run(&["--forever", "job"]));
    env.until_called("lock_acquire", 2).await;
    holder.end().await.assert(0, "");
    waiter.until_line("ready").await;
    waiter.end().await.assert(0, "");
}

#[tokio::test]
async fn a_fair_lock_serves_waiting_programs_in_their_order() {
    let env = Env::start().await;
    let fair = |flags: &[&'static str]| env.spawn(&run(&[&["--kind", "fair"], flags].concat()));
    let mut holder = fair(&["job"]);
    holder.until_line("ready").await;
    let mut waiters = Vec::new();
    for length in 1..=3_u64 {
        waiters.push(fair(&["--forever", "job"]));
        let queue = ["LLEN", "redisson_lock_queue:{job}"];
        until(async || env.0.redis.query::<u64>(&queue).await == length).await;
    }
    holder.end().await.assert(0, "");
    for mut waiter in waiters {
        waiter.until_line("ready").await;
        waiter.end().await.assert(0, "");
    }
}

#[tokio::test]
async fn a_signal_ends_the_wait_and_leaves_nothing_behind() {
    let env = Env::start().await;
    let mut holder = env.spawn(&run(&["job"]));
    holder.until_line("ready").await;
    let waiter = env.spawn(&run(&["--forever", "job"]));
    env.until_called("lock_acquire", 2).await;
    waiter.signal(Signal::INT);
    let end = waiter.end().await;
    end.assert(130, "the wait was cancelled");
    assert_eq!(end.out, "");
    holder.end().await.assert(0, "");
    // A hold that the waiter had left would refuse this one.
    env.run(&["run", "-n", "job", "--", "true"]).await.assert(0, "");
}

#[tokio::test]
async fn a_second_signal_ends_a_program_that_cannot_undo_its_acquisition() {
    let env = Env::start().await;
    env.0.proxy.plan(|_| Fault::not_executed(FaultResponse::Silence));
    let waiter = env.spawn(&run(&["--forever", "job"]));
    env.until_called("lock_acquire", 1).await;
    let requests = env.0.proxy.requests();
    waiter.signal(Signal::INT);
    until(async || env.0.proxy.requests() > requests).await;
    waiter.signal(Signal::TERM);
    waiter.end().await.assert(143, "interrupted");
}

#[tokio::test]
async fn a_second_signal_ends_a_release_that_has_no_reply() {
    let env = Env::start().await;
    let mut holder = env.spawn(&run(&["job"]));
    holder.until_line("ready").await;
    env.0.proxy.plan(|_| Fault::not_executed(FaultResponse::Silence));
    holder.close_input();
    env.until_called("lock_release", 1).await;
    holder.signal(Signal::INT);
    holder.signal(Signal::TERM);
    holder.end().await.assert(0, "the release of \"job\" was interrupted");
}

#[tokio::test]
async fn as_many_commands_run_as_there_are_permits() {
    let env = Env::start().await;
    env.run(&["semaphore", "set", "pool", "2"]).await.assert(0, "");
    let mut holders = [(); 2].map(|()| env.spawn(&run(&["--kind", "semaphore", "pool"])));
    for holder in &mut holders {
        holder.until_line("ready").await;
    }
    let refused = ["run", "-n", "--kind", "semaphore", "pool", "--", "true"];
    env.run(&refused).await.assert(75, "\"pool\"");
    let both = ["--forever", "--kind", "semaphore", "--permits", "2", "pool"];
    let mut waiter = env.spawn(&run(&both));
    for holder in holders {
        holder.end().await.assert(0, "");
    }
    waiter.until_line("ready").await;
    waiter.end().await.assert(0, "");
    let end = env.run(&["semaphore", "show", "--json", "pool"]).await;
    assert!(end.out.contains(r#""available":2,"held":0"#), "{end:?}");
}
