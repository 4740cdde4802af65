//! Holds that Redis loses while their holders' virtual time stands still.

use std::pin::Pin;
use std::time::Duration;

use edgelatch::client::{LeaseEnd, LeaseState, Released};
use edgelatch::error::{EvalError, LossReason, RequestError};
use edgelatch::{AcquireOptions, Client, Lease};
use futures_util::future::join_all;
use tokio::time::timeout;

use super::counted::CountedTransport;
use super::gateway_process::GatewayProcess;
use super::holder_log::HolderLog;
use super::load::{TIME_LIMIT, set_permits};
use super::object::{Object, PERMITS};
use test_support::fake_host::FakeHost;
use test_support::test_env::in_virtual_time;

/// A third of the default lease, after which a renewal is due.
const THIRD: Duration = Duration::from_secs(10);
/// A lease that is longer than a test takes on any machine.
const LONG: Duration = Duration::from_secs(3_600);
/// The prefix of the names of these holds.
const TAG: &str = "forgotten";

/// A hold of each kind of object, renewed in virtual time.
pub(crate) struct LostHolds {
    host: FakeHost,
    transport: CountedTransport,
    held: Vec<Held>,
}

struct Held {
    object: Object,
    lease: Lease<CountedTransport, FakeHost>,
    // Not spawned, since virtual time may advance only after each has been polled.
    kept: Pin<Box<dyn Future<Output = LeaseEnd>>>,
}

impl LostHolds {
    /// Acquires each object: of a read-write lock the write side, and all permits.
    pub(crate) async fn hold(process: &GatewayProcess) -> Self {
        set_permits(process, TAG).await;
        let (host, transport) = (FakeHost::new(), CountedTransport::default());
        let client = Client::new(process.gateway(), transport.clone(), host.clone());
        let mut held = Vec::new();
        for object in Object::ALL {
            let (_, lock) = object.ways(&client, TAG).swap_remove(0);
            let times = if object == Object::Permits { PERMITS } else { 1 };
            for _ in 0..times {
                let options = AcquireOptions::new().renewed();
                let lease = lock.try_acquire_with(options).await.unwrap().unwrap();
                let kept = Box::pin(lease.keep());
                held.push(Held { object, lease, kept });
            }
        }
        Self { host, transport, held }
    }

    /// Checks the holders after Redis has lost their holds: another client gets a newer token while
    /// they still trust their leases, their scripts are refused, and their first renewal with a
    /// reply reports the loss.
    pub(crate) async fn assert_loss_is_reported(self, process: &GatewayProcess) {
        set_permits(process, TAG).await;
        let client = Client::connect(process.gateway_with_long_attempts());
        let mut next = Vec::new();
        for (number, held) in self.held.iter().enumerate() {
            let (_, lock) = held.object.ways(&client, TAG).swap_remove(0);
            let lease = lock.acquire_with(AcquireOptions::new().lease(LONG)).await.unwrap();
            assert!(lease.token() > held.lease.token(), "{:?}", held.object);
            // Now two clients trust their leases.
            assert_eq!(held.lease.state(), LeaseState::Held, "{:?}", held.object);
            next.push(lease);
            if number % 2 == 0 {
                let holder_log = HolderLog::new(held.object, TAG, process.url());
                let lost = EvalError::Request(RequestError::Lost(LossReason::Gone));
                let done = timeout(TIME_LIMIT, holder_log.add(number, &held.lease)).await.unwrap();
                assert_eq!(done, Err(lost), "{:?}", held.object);
            }
        }
        self.host.pass(THIRD);
        let (leases, kept): (Vec<_>, Vec<_>) =
            self.held.into_iter().map(|held| ((held.object, held.lease), held.kept)).unzip();
        let is_idle = || self.transport.is_idle();
        let finish = in_virtual_time(&self.host, is_idle, join_all(kept)).await;
        for ((object, lease), end) in leases.into_iter().zip(finish) {
            assert_eq!(end, LeaseEnd::Lost(LossReason::Gone), "{object:?}");
            assert_eq!(lease.release().await, Ok(Released::WasLost), "{object:?}");
        }
        for lease in next {
            assert_eq!(lease.release().await, Ok(Released::Released), "{:?}", lease.name());
        }
    }
}
