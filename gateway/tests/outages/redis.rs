//! Faults of a single Redis and of the gateway in front of it.

use std::time::Duration;

use edgelatch::client::Released;
use edgelatch::{AcquireOptions, Client};

use super::gateway_process::GatewayProcess;
use super::load::{Load, set_permits};
use super::lost_holds::LostHolds;
use super::object::Object;
use super::recorder::FAILED;
use super::rounds::{TAG, TestEnv, rounds};
use test_support::servers::{Folder, PASSWORD_IN_URL, Server};

/// Options of a Redis that keeps confirmed writes even if it is killed.
const PERSISTENT: &[&str] = &["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
/// Options of a Redis that loses its data when it ends.
const VOLATILE: &[&str] = &["--save", ""];
/// The largest number of failed calls that a test waits for before it ends a fault.
const FAILURES: usize = 8;

/// A lease that is longer than a test takes on any machine.
const LONG: Duration = Duration::from_secs(3_600);

/// The largest number of further short hangs.
const MAX_SHORT_HANGS: usize = 6;
/// The longest short hang: some attempts time out during it, and some do not.
const MAX_SHORT_HANG: Duration = Duration::from_millis(1_500);

struct Single {
    process: GatewayProcess,
    redis: Server,
    // The last field, since the servers whose files are in the folder must end before it is
    // removed.
    _folder: Folder,
}

impl Single {
    fn new(options: &[&str]) -> Self {
        let folder = Folder::new();
        let redis = Server::start(&folder, options);
        let url = format!("redis://:{PASSWORD_IN_URL}@{}", redis.address());
        Self { process: GatewayProcess::start(&folder, url), redis, _folder: folder }
    }
}

impl TestEnv for Single {
    fn process(&self) -> &GatewayProcess {
        &self.process
    }

    fn redis(&mut self) -> &Server {
        &self.redis
    }
}

/// Waits until some calls have failed.
async fn wait_for_failures(load: &mut Load) {
    let calls = load.draw(FAILURES);
    load.wait_for_results(&FAILED, calls).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_is_killed_and_keeps_its_data_costs_nothing_but_time() {
    rounds(
        async || Single::new(PERSISTENT),
        async |env, load| {
            env.redis.kill();
            wait_for_failures(load).await;
            env.redis.restart();
        },
    )
    .await;
}

/// S62.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_restarts_without_its_data_gives_newer_tokens_and_reports_the_loss() {
    rounds(
        async || Single::new(VOLATILE),
        async |env, load| {
            let forgotten = LostHolds::hold(&env.process).await;
            assert!(load.check_entries(&env.redis) > 0);
            let from = load.now();
            env.redis.kill();
            wait_for_failures(load).await;
            env.redis.restart();
            load.record_data_loss(from);
            set_permits(&env.process, TAG).await;
            load.wait_for_grants(1).await;
            forgotten.assert_loss_is_reported(&env.process).await;
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_hangs_and_goes_on_costs_nothing_but_time() {
    rounds(
        async || Single::new(VOLATILE),
        async |env, load| {
            env.redis.hang();
            wait_for_failures(load).await;
            env.redis.go_on();
            for _ in 0..load.draw(MAX_SHORT_HANGS) {
                load.wait_for_results(&["granted"], 1).await;
                env.redis.hang();
                load.pause(MAX_SHORT_HANG).await;
                env.redis.go_on();
            }
        },
    )
    .await;
}

/// S55.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_is_killed_or_hangs_costs_nothing_but_time() {
    rounds(
        async || Single::new(VOLATILE),
        async |env, load| {
            env.process.kill();
            wait_for_failures(load).await;
            env.process.restart();
            load.wait_for_grants(1).await;
            env.process.hang();
            wait_for_failures(load).await;
            env.process.go_on();
            for _ in 0..load.draw(MAX_SHORT_HANGS) {
                load.wait_for_results(&["granted"], 1).await;
                env.process.hang();
                load.pause(MAX_SHORT_HANG).await;
                env.process.go_on();
            }
        },
    )
    .await;
}

/// S61.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_forgets_its_scripts_again_and_again_grants_as_ever() {
    rounds(
        async || Single::new(VOLATILE),
        async |env, load| {
            for _ in 0..load.draw(8) {
                for _ in 0..load.draw(40) {
                    env.redis.query::<()>(&["SCRIPT", "FLUSH"]).unwrap();
                    load.wait_for_results(&["granted"], 1).await;
                }
                load.wait_for_grants(1).await;
            }
        },
    )
    .await;
}

/// S66.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_redis_refuses_acquisitions_and_allows_renewals_and_releases() {
    rounds(
        async || Single::new(VOLATILE),
        async |env, load| {
            set_permits(&env.process, "kept").await;
            let client = Client::connect(env.process.gateway_with_long_attempts());
            let mut kept = Vec::new();
            for object in Object::ALL {
                let options = AcquireOptions::new().lease(LONG);
                let (_, lock) = object.ways(&client, "kept").swap_remove(0);
                kept.push(lock.acquire_with(options).await.unwrap());
            }
            let sets =
                |limit| env.redis.query::<()>(&["CONFIG", "SET", "maxmemory", limit]).unwrap();
            sets("1");
            let calls = load.draw(FAILURES);
            load.wait_for_results(&["full"], calls).await;
            for lease in kept {
                lease.renew(None).await.unwrap();
                assert_eq!(lease.release().await, Ok(Released::Released), "{:?}", lease.name());
            }
            sets("0");
        },
    )
    .await;
}
