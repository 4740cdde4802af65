//! The objects that the clients under load acquire.

use std::time::Duration;

use edgelatch::client::FairSettings;
use edgelatch::host::Host;
use edgelatch::timing::PeerSkew;
use edgelatch::transport::Transport;
use edgelatch::{Client, Lock};

use test_support::history::{Assumptions, Mode};

/// The number of permits of the semaphore.
pub(crate) const PERMITS: u32 = 2;

/// The kinds of objects under load: exclusive, fenced, queued, shared and counted ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Object {
    Lock,
    Fenced,
    Fair,
    ReadWrite,
    Permits,
}

impl Object {
    pub(crate) const ALL: [Self; 5] =
        [Self::Lock, Self::Fenced, Self::Fair, Self::ReadWrite, Self::Permits];

    /// Returns what the checker of histories may assume about the object before a fault.
    pub(crate) fn assumptions(self) -> Assumptions {
        Assumptions {
            permits: (self == Self::Permits).then_some((PERMITS, 0)),
            queues: matches!(self, Self::Fair | Self::ReadWrite),
            ..Assumptions::default()
        }
    }

    /// Returns every way to acquire the object, and the share of it that each way acquires. Each
    /// kind of object has a name of its own.
    pub(crate) fn ways<T: Transport, H: Host>(
        self,
        client: &Client<T, H>,
        tag: &str,
    ) -> Vec<(Mode, Lock<T, H>)> {
        let name = &self.name(tag);
        let alone = |lock| vec![(Mode::Exclusive, lock)];
        match self {
            Self::Lock => alone(client.lock(name).unwrap()),
            Self::Fenced => alone(client.fenced_lock(name).unwrap()),
            Self::Fair => {
                // A short life, so that the queue soon drops waiters that died.
                let settings = FairSettings::default().life(Duration::from_secs(1)).unwrap();
                alone(client.fair_lock(name, settings).unwrap())
            }
            Self::ReadWrite => {
                let both = client.read_write_lock(name, Default::default()).unwrap();
                vec![(Mode::Exclusive, both.write().clone()), (Mode::Shared, both.read().clone())]
            }
            Self::Permits => {
                let semaphore = client.permit_expirable_semaphore(name, PeerSkew::DEFAULT).unwrap();
                vec![(Mode::Permits(1), semaphore.permits(1).unwrap())]
            }
        }
    }

    pub(crate) fn name(self, tag: &str) -> String {
        format!("{tag}:{self:?}")
    }
}
