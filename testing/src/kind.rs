//! The kinds of objects that can be held.

use edgelatch_proto::error::InvalidOption;
use edgelatch_proto::name::{ClientId, LockName};
use edgelatch_proto::protocol::calls::{
    BatchSize, FairCalls, FairMode, FairReadWriteCalls, FairReadWriteSettings, FairSettings,
    GroupCalls, LockCalls, PermitCalls, PermitCount, ReadCalls, SemaphoreCalls, Target, WriteCalls,
};
use edgelatch_proto::protocol::script::Publish;
use edgelatch_proto::timing::PeerSkew;

/// The client that queries of a fair read-write lock show for a hold of another client.
const CLIENT: &str = "another-client";

/// The kind of an object that can be held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// A lock: plain, fenced, spin, or a member of a multi-lock or redLock.
    #[default]
    Lock,
    /// A fair lock.
    FairLock,
    /// The read side of a fair read-write lock.
    FairRead,
    /// The write side of a fair read-write lock.
    FairWrite,
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
    const ALL: [Self; 9] = [
        Self::Lock,
        Self::FairLock,
        Self::FairRead,
        Self::FairWrite,
        Self::Read,
        Self::Write,
        Self::GroupLock,
        Self::Semaphore,
        Self::PermitExpirableSemaphore,
    ];

    /// The name of the method that creates such an object in the npm package; `read` and `write`
    /// for the sides of a read-write lock, `fairRead` and `fairWrite` for those of a fair one.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::FairLock => "fairLock",
            Self::FairRead => "fairRead",
            Self::FairWrite => "fairWrite",
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

    /// Returns the kinds whose acquisition runs this script: two for a fair read-write lock.
    pub(crate) fn acquired_by(script: &str) -> impl Iterator<Item = Self> {
        let prefix = script.strip_suffix("_acquire").unwrap_or_default();
        Self::ALL.into_iter().filter(move |kind| kind.prefix() == prefix)
    }

    /// The common beginning of the names of its scripts.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::FairLock => "fair",
            Self::FairRead | Self::FairWrite => "fair_rw",
            Self::Read => "read",
            Self::Write => "write",
            Self::GroupLock => "group",
            Self::Semaphore => "semaphore",
            Self::PermitExpirableSemaphore => "permits",
        }
    }

    /// Whether objects of both kinds can exist under one name: the sides of a read-write lock.
    pub(crate) const fn can_be_beside(self, other: Self) -> bool {
        matches!(
            (self, other),
            (Self::Read | Self::Write, Self::Read | Self::Write)
                | (Self::FairRead | Self::FairWrite, Self::FairRead | Self::FairWrite)
        )
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
            Self::FairRead => fair_side(name, FairMode::Shared)?,
            Self::FairWrite => fair_side(name, FairMode::Exclusive)?,
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

/// The calls about one side of a fair read-write lock.
fn fair_side(name: LockName, mode: FairMode) -> Result<Target, InvalidOption> {
    let (settings, client) = (FairReadWriteSettings::default(), ClientId::parse(CLIENT)?);
    let calls = FairReadWriteCalls::new(name, mode, settings, client, Publish::Plain);
    Ok(Target::FairReadWrite(calls))
}
