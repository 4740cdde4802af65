//! Holds that Redis forgets, of those whose time stands still.

use std::time::Duration;

use edgelatch::client::LeaseEnd;
use edgelatch::error::{EvalError, LossReason, RequestError};
use edgelatch::machine::{LeaseState, Released};
use edgelatch::transport::Reqwest;
use edgelatch::{AcquireOptions, Client, Lease};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::door::Door;
use super::load::{AT_MOST, make_permits};
use super::object::{Object, PERMITS};
use super::proofs::Proofs;
use test_support::fake_host::FakeHost;

/// Of the lease that everything has unless another is asked for.
const THIRD: Duration = Duration::from_secs(10);
/// What passes between two looks while a renewal is tried again.
const STEP: Duration = Duration::from_millis(20);
/// Where they are.
const TAG: &str = "forgotten";

/// One of each, kept.
pub(crate) struct Forgotten {
    host: FakeHost,
    held: Vec<Held>,
}

struct Held {
    object: Object,
    lease: Lease<Reqwest, FakeHost>,
    kept: JoinHandle<LeaseEnd>,
}

impl Forgotten {
    /// Takes everything: of a read-write lock the one side, and the permits all.
    pub(crate) async fn hold(door: &Door) -> Self {
        make_permits(door, TAG).await;
        let host = FakeHost::new();
        let client = Client::new(door.gateway(), Reqwest::new(), host.clone());
        let mut held = Vec::new();
        for object in Object::ALL {
            let (_, lock) = object.ways(&client, TAG).swap_remove(0);
            let times = if object == Object::Permits { PERMITS } else { 1 };
            for _ in 0..times {
                let options = AcquireOptions::new().renewed();
                let lease = lock.try_acquire_with(options).await.unwrap().unwrap();
                let kept = tokio::spawn(lease.keep());
                held.push(Held { object, lease, kept });
            }
        }
        Self { host, held }
    }

    /// Redis has forgotten them: others get newer tokens beside them, they can do nothing there, and they hear of it with the first
    /// renewal that is answered, if not before.
    pub(crate) async fn are_told(self, door: &Door) {
        make_permits(door, TAG).await;
        let client = Client::connect(door.gateway());
        let mut next = Vec::new();
        for (number, held) in self.held.iter().enumerate() {
            let (_, lock) = held.object.ways(&client, TAG).swap_remove(0);
            let lease = lock.acquire().await.unwrap();
            assert!(lease.token() > held.lease.token(), "{:?}", held.object);
            // Now there are two who trust theirs.
            assert_eq!(held.lease.state(), LeaseState::Held, "{:?}", held.object);
            next.push(lease);
            if number % 2 == 0 {
                let proofs = Proofs::new(held.object, TAG, door.url());
                let lost = EvalError::Request(RequestError::Lost(LossReason::Gone));
                let done = timeout(AT_MOST, proofs.add(number, &held.lease)).await.unwrap();
                assert_eq!(done, Err(lost), "{:?}", held.object);
            }
        }
        self.host.pass(THIRD);
        let telling = async {
            while !self.held.iter().all(|held| held.kept.is_finished()) {
                // What passes here has to be more than what it takes to be answered.
                sleep(STEP).await;
                self.host.pass(STEP);
            }
        };
        timeout(AT_MOST, telling).await.unwrap();
        for Held { object, lease, kept } in self.held {
            let gone = LeaseEnd::Lost(LossReason::Gone);
            assert_eq!(kept.await.unwrap(), gone, "{object:?}");
            assert_eq!(lease.release().await, Ok(Released::WasLost), "{object:?}");
        }
        for lease in next {
            assert_eq!(lease.release().await, Ok(Released::Released), "{:?}", lease.name());
        }
    }
}
