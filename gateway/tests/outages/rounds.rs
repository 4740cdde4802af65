//! Rounds: something strikes in the middle of the load, and everything that was seen is judged.

use fastrand::Rng;
use tokio::time::Instant;

use super::door::Door;
use super::load::Load;
use test_support::random::{SEED, given, seed};
use test_support::servers::Server;

/// How many rounds there are; one unless the environment says otherwise.
const ROUNDS: &str = "EDGELATCH_ROUNDS";
/// How often everybody is granted what they take before something strikes, and again after it.
const GRANTS: usize = 2;
/// All that is taken lies below this.
pub(crate) const TAG: &str = "load";

/// What something strikes.
pub(crate) trait Stand {
    fn door(&self) -> &Door;

    /// The Redis that answers now.
    fn redis(&mut self) -> &Server;
}

/// Plays rounds, each on a new stand.
pub(crate) async fn rounds<S: Stand>(
    stand: impl AsyncFn() -> S,
    strikes: impl AsyncFn(&mut S, &mut Load),
) {
    // The seeds of the next rounds follow it.
    let first = seed();
    for seed in first..first + given(ROUNDS).unwrap_or(1) {
        println!("{SEED}={seed}");
        let began = Instant::now();
        let mut stand = stand().await;
        let mut load = Load::begin(stand.door(), TAG, Rng::with_seed(seed)).await;
        load.goes_on(GRANTS).await;
        strikes(&mut stand, &mut load).await;
        load.goes_on(GRANTS).await;
        println!("{SEED}={seed}: {:?} {:?}", load.ends(stand.redis()).await, began.elapsed());
    }
}
