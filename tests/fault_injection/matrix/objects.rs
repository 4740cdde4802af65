//! Every object that can be held, as each client creates it.

use std::time::Duration;

use edgelatch::client::{
    AcquireOptions, FairReadWriteSettings, FairSettings, Lock, PermitExpirableSemaphore,
    ReadWriteSettings, Released, SpinBackoff,
};
use edgelatch::host::TokioHost;
use edgelatch::timing::PeerSkew;
use edgelatch::transport::Reqwest;

use test_support::test_env::NativeClient;

pub(crate) type AnyLock = Lock<Reqwest, TokioHost>;

/// The kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Object {
    Lock,
    NonReentrant,
    Spin,
    Fenced,
    Fair,
    NonReentrantFair,
    Read,
    Write,
    /// The sides of a fair read-write lock.
    FairRead,
    FairWrite,
    Group,
    /// Two locks that one request acquires.
    Several,
    /// Two locks of different gateways.
    AcrossGateways,
    /// A majority of three gateways.
    Red,
    /// One permit of a semaphore.
    Semaphore,
    /// One permit with an id.
    Permit,
}

impl Object {
    pub(crate) const ALL: [Self; 16] = [
        Self::Lock,
        Self::NonReentrant,
        Self::Spin,
        Self::Fenced,
        Self::Fair,
        Self::NonReentrantFair,
        Self::Read,
        Self::Write,
        Self::FairRead,
        Self::FairWrite,
        Self::Group,
        Self::Several,
        Self::AcrossGateways,
        Self::Red,
        Self::Semaphore,
        Self::Permit,
    ];

    /// The object of this name, with as many of these clients as it needs.
    pub(crate) fn of(self, clients: &[NativeClient], name: &str) -> AnyLock {
        let client = &clients[0];
        let both_sides = || client.read_write_lock(name, ReadWriteSettings::default()).unwrap();
        let both_fair_sides =
            || client.fair_read_write_lock(name, FairReadWriteSettings::default()).unwrap();
        let lock = match self {
            Self::Lock => client.lock(name),
            Self::NonReentrant => client.non_reentrant_lock(name),
            Self::Spin => client.spin_lock(name, SpinBackoff::default()),
            Self::Fenced => client.fenced_lock(name),
            Self::Fair => client.fair_lock(name, FairSettings::default()),
            Self::NonReentrantFair => client.non_reentrant_fair_lock(name, FairSettings::default()),
            Self::Read => Ok(both_sides().read().clone()),
            Self::Write => Ok(both_sides().write().clone()),
            Self::FairRead => Ok(both_fair_sides().read().clone()),
            Self::FairWrite => Ok(both_fair_sides().write().clone()),
            Self::Group => client.group_lock(name, ["one", "two"], PeerSkew::DEFAULT),
            Self::Several => client.multi_lock(
                ["", "-2"].map(|end| client.lock(&format!("{{{name}}}{end}")).unwrap()),
            ),
            Self::AcrossGateways => {
                client.multi_lock(clients[..2].iter().map(|client| client.lock(name).unwrap()))
            }
            Self::Red => client.red_lock(clients.iter().map(|client| client.lock(name).unwrap())),
            Self::Semaphore => client.semaphore(name).unwrap().permits(1),
            Self::Permit => permits(client, name).permits(1),
        };
        lock.unwrap()
    }

    /// Creates what must exist before it can be acquired.
    pub(crate) async fn prepare(self, client: &NativeClient, name: &str) {
        let made = match self {
            Self::Semaphore => client.semaphore(name).unwrap().try_set_permits(1, None).await,
            Self::Permit => permits(client, name).try_set_permits(1).await,
            _ => return,
        };
        assert_eq!(made, Ok(true));
    }

    /// The kind that excludes it: readers do not exclude each other.
    pub(crate) fn rival(self) -> Self {
        match self {
            Self::Read => Self::Write,
            Self::FairRead => Self::FairWrite,
            other => other,
        }
    }

    /// Locks that can all be acquired if no part of a hold is left, and not all of them otherwise.
    fn rivals(self, clients: &[NativeClient], name: &str) -> Vec<AnyLock> {
        // A red lock can be acquired although one node is held, so each node is tested.
        if self == Self::Red {
            return clients.iter().map(|client| client.lock(name).unwrap()).collect();
        }
        vec![self.rival().of(clients, name)]
    }

    /// The operation of its forced release in the scripts' names; `None` if it has none.
    pub(crate) fn forced_by(self) -> Option<&'static str> {
        match self {
            Self::Several | Self::AcrossGateways | Self::Red => None,
            Self::Semaphore | Self::Permit => Some("change"),
            _ => Some("force_release"),
        }
    }

    /// Asserts that no client holds any part of it.
    pub(crate) async fn assert_free(self, clients: &[NativeClient], name: &str) {
        for rival in self.rivals(clients, name) {
            // The end of a majority's hold does not wait long for the release at a minority.
            let lease = match self {
                Self::Red => rival.acquire_with(impatient()).await.ok(),
                _ => rival.try_acquire().await.unwrap(),
            };
            let lease = lease.unwrap_or_else(|| panic!("{self:?}: a hold is left"));
            assert_eq!(lease.release().await, Ok(Released::Released), "{self:?}");
        }
    }

    /// Asserts that another client finds it held.
    pub(crate) async fn assert_held(self, clients: &[NativeClient], name: &str) {
        let mut held = 0;
        let rivals = self.rivals(clients, name);
        for rival in &rivals {
            match rival.try_acquire().await.unwrap() {
                None => held += 1,
                Some(lease) => drop(lease.release().await.unwrap()),
            }
        }
        // A holder of a red lock needs only a majority of the nodes.
        assert!(2 * held > rivals.len(), "{self:?}: others get it too");
    }
}

/// Options that wait for as long as a test may take, with so many requests that no pause is longer
/// than without a limit.
pub(crate) fn patient() -> AcquireOptions {
    AcquireOptions::new().wait(Duration::from_secs(60)).max_requests(10_000)
}

/// Options that wait for a release on its way, and not until a hold that is left expires.
fn impatient() -> AcquireOptions {
    AcquireOptions::new().wait(Duration::from_secs(10))
}

fn permits(client: &NativeClient, name: &str) -> PermitExpirableSemaphore<Reqwest, TokioHost> {
    client.permit_expirable_semaphore(name, PeerSkew::DEFAULT).unwrap()
}
