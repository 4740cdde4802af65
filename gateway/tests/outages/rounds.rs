//! Runs rounds: each injects a fault under load, and checks the recorded history.

use fastrand::Rng;
use tokio::time::Instant;

use super::gateway_process::GatewayProcess;
use super::load::Load;
use test_support::random::{SEED, given, seed};
use test_support::servers::Server;

/// The environment variable with the number of rounds; one by default.
const ROUNDS: &str = "EDGELATCH_ROUNDS";
/// The number of grants of each client that a round waits for before the fault, and again after
/// it.
const GRANTS: usize = 2;
/// The prefix of the names of all objects under load.
pub(crate) const TAG: &str = "load";

/// The servers that a round injects faults into.
pub(crate) trait TestEnv {
    fn process(&self) -> &GatewayProcess;

    /// Returns the Redis that serves the gateway at present.
    fn redis(&mut self) -> &Server;
}

/// Runs the rounds, each on new servers.
pub(crate) async fn rounds<S: TestEnv>(
    env: impl AsyncFn() -> S,
    inject: impl AsyncFn(&mut S, &mut Load),
) {
    // Each round's seed is the previous one plus one.
    let first = seed();
    for seed in first..first + given(ROUNDS).unwrap_or(1) {
        println!("{SEED}={seed}");
        let began = Instant::now();
        let mut env = env().await;
        let mut load = Load::begin(env.process(), TAG, Rng::with_seed(seed)).await;
        load.wait_for_grants(GRANTS).await;
        inject(&mut env, &mut load).await;
        load.wait_for_grants(GRANTS).await;
        println!("{SEED}={seed}: {:?} {:?}", load.finish(env.redis()).await, began.elapsed());
    }
}
