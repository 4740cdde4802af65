//! The kinds of objects that can be held.

use edgelatch_proto::error::InvalidOption;
use edgelatch_proto::name::LockName;
use edgelatch_proto::protocol::calls::{
    BatchSize, FairCalls, FairSettings, GroupCalls, LockCalls, PermitCalls, PermitCount, ReadCalls,
    SemaphoreCalls, Target, WriteCalls,
};
use edgelatch_proto::protocol::script::Publish;
use edgelatch_proto::timing::PeerSkew;

/// The kind of an object that can be held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// A lock: plain, fenced, spin, or a member of a multi-lock or redLock.
    #[default]
    Lock,
    /// A fair lock.
    FairLock,
    /// The read side of a read-write lock.
    Read,
    /// The write side of a read-write lock.
    Write,
    /// Values of a group.
    GroupLock,
    /// A semaphore.
    Semaphore,
    /// A permit-expirable semaphore.
    PermitExpirableSemaphore,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::Lock,
        Self::FairLock,
        Self::Read,
        Self::Write,
        Self::GroupLock,
        Self::Semaphore,
        Self::PermitExpirableSemaphore,
    ];

    /// The name of the method that creates such an object in the npm package; `read` and `write`
    /// for the sides of a read-write lock.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::FairLock => "fairLock",
            Self::Read => "read",
            Self::Write => "write",
            Self::GroupLock => "groupLock",
            Self::Semaphore => "semaphore",
            Self::PermitExpirableSemaphore => "permitExpirableSemaphore",
        }
    }

    /// Returns the kind with this [`name`](Self::name).
    pub fn with_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the kind whose acquisition runs this script.
    pub(crate) fn acquired_by(script: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| script.strip_suffix("_acquire") == Some(kind.prefix()))
    }

    /// The common beginning of the names of its scripts.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::FairLock => "fair",
            Self::Read => "read",
            Self::Write => "write",
            Self::GroupLock => "group",
            Self::Semaphore => "semaphore",
            Self::PermitExpirableSemaphore => "permits",
        }
    }

    /// Whether objects of both kinds can exist under one name: the sides of a read-write lock.
    pub(crate) const fn can_be_beside(self, other: Self) -> bool {
        matches!((self, other), (Self::Read | Self::Write, Self::Read | Self::Write))
    }

    /// Creates the calls about an object of this kind.
    pub(crate) fn target(self, name: LockName, permits: u32) -> Result<Target, InvalidOption> {
        let publish = Publish::Plain;
        let size = || {
            let permits = u16::try_from(permits);
            permits.map_or_else(|_| BatchSize::new(u16::MAX), BatchSize::new)
        };
        Ok(match self {
            Self::Lock => Target::Lock(LockCalls::new(name, publish)),
            Self::FairLock => Target::Fair(FairCalls::new(name, FairSettings::default(), publish)),
            Self::Read => Target::Read(ReadCalls::new(name, publish)),
            Self::Write => Target::Write(WriteCalls::new(name, publish)),
            Self::GroupLock => {
                Target::Group(GroupCalls::new(name, [""], PeerSkew::DEFAULT, publish)?)
            }
            Self::Semaphore => {
                Target::Semaphore(SemaphoreCalls::new(name, publish, PermitCount::new(permits)?))
            }
            Self::PermitExpirableSemaphore => {
                Target::Permits(PermitCalls::new(name, publish, size()?, PeerSkew::DEFAULT))
            }
        })
    }
}
