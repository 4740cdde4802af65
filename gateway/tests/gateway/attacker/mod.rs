//! An attacker with a scoped token: sends random calls of all scripts, legal ones and mutations of
//! them. After each request the test compares the contents of Redis with those before.
//!
//! The seed is fixed, so a failure repeats. `EDGELATCH_SEED` chooses another one,
//! `EDGELATCH_ATTACKS` the number of calls.

mod call;
mod checker;
mod ending;
mod env;
mod form;
mod last_calls;
mod library;
mod messages;
mod mutation;
mod round;
mod scope;
mod tally;
mod victims;

use fastrand::Rng;
use test_support::random::{given, seed};

use env::Env;
use library::Library;
use round::Round;
use tally::Tally;

/// The default number of calls of a run.
const CALLS: u64 = 2000;
/// The number of requests of one round.
const REQUESTS: u64 = 50;
/// The most calls of a run, as a multiple of its number: an event that has not occurred by then
/// never does.
const MAX_CALLS_FACTOR: u64 = 20;

/// Returns the number of calls or requests that an attacker sends: `EDGELATCH_ATTACKS`, or
/// `default`.
pub(crate) fn attacks(default: u64) -> u64 {
    given("EDGELATCH_ATTACKS").unwrap_or(default)
}

/// Runs rounds until their calls reach the number of [`attacks`], divided by `share`, and every
/// expected event has occurred.
async fn attack(mut env: Env, share: u64) {
    let (seed, calls) = (seed(), attacks(CALLS) / share);
    let (mut rng, mut tally) = (Rng::with_seed(seed), Tally::default());
    let mut library = Library::default();
    let mut rounds = 0;
    loop {
        let silent = tally.silent().filter(|_| env.has_messages() && !env.is_contended);
        let missing = match silent {
            _ if env.is_contended => {
                let has_enough = tally.calls >= calls && tally.busy() > calls / 20;
                (!has_enough).then(|| "an acquisition of what another client holds".to_owned())
            }
            Some(purpose) => Some(format!("a message for {purpose:?}")),
            None => tally.missing(calls),
        };
        let Some(missing) = missing else { break };
        assert!(
            tally.calls < MAX_CALLS_FACTOR * calls.max(CALLS),
            "never, in {rounds} rounds: {missing}"
        );
        let mut round = Round::begin(&mut env, &mut library, rounds, &mut rng).await;
        if let Err(broken) = round.play(&mut rng, &mut tally, REQUESTS).await {
            panic!("{broken}\nin round {rounds} of seed {seed}, by {:?}", round.scope());
        }
        rounds += 1;
    }
    println!("{rounds} rounds, {tally}");
}

// Slow: some thousand calls, and a snapshot of all keys after each request.
#[tokio::test]
async fn calls_with_a_scoped_token_do_only_what_its_rights_cover() {
    attack(Env::redis().await, 4).await;
}

// Slow: as above.
#[tokio::test]
async fn calls_through_a_user_of_redis_do_only_what_its_rights_cover() {
    attack(Env::user().await, 8).await;
}

// Slow: as above.
#[tokio::test]
async fn attacks_on_objects_of_other_clients_leave_their_holds_and_waits() {
    attack(Env::contended().await, 8).await;
}

// Slow: as above, and a cluster has to form first. A full run alone includes it.
#[tokio::test]
async fn calls_to_a_cluster_do_only_what_their_rights_cover() {
    attack(Env::cluster().await, 8).await;
}
