//! A client's plan: the object, the operation and the options.

use std::time::Duration;

use edgelatch_proto::name::{ClientId, LockName};
use edgelatch_proto::protocol::calls::{
    BatchSize, CountDownLatchCalls, FairCalls, FairMode, FairReadWriteCalls, FairReadWriteSettings,
    FairSettings, GroupCalls, IdempotentCall, LatchCount, LockCalls, PermitCalls, PermitCount,
    ReadCalls, SemaphoreCalls, Target, WriteCalls,
};
use edgelatch_proto::protocol::script::{Publish, ScriptCall};
use edgelatch_proto::timing::{AttemptTime, LeaseTime, PeerSkew, WaitPolicy};

/// The name of the one object that all clients use.
pub(crate) const NAME: &str = "lock";
/// The owner field of a Java thread.
pub(crate) const JAVA: &str = "8743c9c0-0795-4907-87fd-6c719a6b4586:1";
/// The prefix of the key of an owner's latch, and of a request's record.
const LATCH: &str = "el:{lock}:";

/// The options of one client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Whether the client does anything.
    pub(crate) is_active: bool,
    pub(crate) operation: Operation,
    pub(crate) wait_policy: WaitPolicy,
    /// The largest number of requests of its acquisition.
    pub(crate) budget: u32,
    pub(crate) lease: LeaseTime,
    /// Whether it knows the server's clock from an earlier reply.
    pub(crate) knows_clock: bool,
    /// Whether it may be cancelled while it waits.
    pub(crate) cancels: bool,
    /// The largest number of requests of each kind: renewals that are due, renewals on demand,
    /// releases, and those of an idempotent call or of the wait for a latch.
    pub(crate) due_renewals: u8,
    pub(crate) renewals_on_demand: u8,
    pub(crate) releases: u8,
    pub(crate) requests: u8,
}

/// The object that a client acquires and holds, or its idempotent call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operation {
    Lock,
    Fair,
    Read,
    /// A read inside the write of the client with this number: both are one program.
    NestedRead(usize),
    Write,
    /// The modes of a fair read-write lock, and a steal of it.
    FairReadWrite(FairMode),
    /// This number of permits of a semaphore.
    Permits(u32),
    /// This number of permits with ids.
    Batch(u16),
    /// Values of a group.
    Values(&'static [&'static str]),
    CountDown,
    /// Sets the latch to this count.
    Close(u64),
    /// Waits until the latch is open.
    Await,
    /// Adds this number of permits.
    Add(i32),
}

impl Operation {
    /// The target of the acquisition.
    pub(crate) fn target(self) -> Target {
        let (name, publish) = (name(), Publish::Plain);
        match self {
            Self::Lock => Target::Lock(LockCalls::new(name, publish)),
            Self::Fair => Target::Fair(FairCalls::new(name, FairSettings::default(), publish)),
            Self::Read | Self::NestedRead(_) => Target::Read(ReadCalls::new(name, publish)),
            Self::Write => Target::Write(WriteCalls::new(name, publish)),
            Self::FairReadWrite(mode) => {
                let settings = FairReadWriteSettings::default();
                let calls =
                    FairReadWriteCalls::new(name, mode, settings, ClientId::default(), publish);
                Target::FairReadWrite(calls)
            }
            Self::Permits(permits) => {
                Target::Semaphore(SemaphoreCalls::new(name, publish, permit_count(permits)))
            }
            Self::Batch(size) => {
                let (size, skew) = (BatchSize::new(size).unwrap(), PeerSkew::DEFAULT);
                Target::Permits(PermitCalls::new(name, publish, size, skew))
            }
            Self::Values(values) => {
                Target::Group(GroupCalls::new(name, values, PeerSkew::DEFAULT, publish).unwrap())
            }
            Self::CountDown | Self::Close(_) | Self::Await | Self::Add(_) => {
                panic!("it acquires nothing")
            }
        }
    }

    /// The client's idempotent call, if it makes one.
    pub(crate) fn once(self) -> Option<IdempotentCall> {
        let (name, publish) = (name(), Publish::Plain);
        match self {
            Self::CountDown => Some(latch().count_down()),
            Self::Close(count) => Some(latch().try_set(LatchCount::new(count).unwrap())),
            Self::Add(permits) => {
                Some(SemaphoreCalls::new(name, publish, permit_count(1)).add(permits))
            }
            _ => None,
        }
    }

    /// The timeout of one attempt. An idempotent call has a short one: its bound is a multiple of
    /// it, and must fit into the few steps of a model.
    pub(crate) fn attempt_time(self) -> AttemptTime {
        if self.once().is_some() {
            AttemptTime::new(Duration::from_millis(50)).unwrap()
        } else {
            AttemptTime::DEFAULT
        }
    }

    /// The number of permits that it acquires.
    pub(crate) fn permits(self) -> Option<i64> {
        match self {
            Self::Permits(permits) => Some(permits.into()),
            Self::Batch(size) => Some(size.into()),
            _ => None,
        }
    }

    /// Whether it writes: it holds alone, beside readers of the same object.
    pub(crate) const fn writes(self) -> bool {
        matches!(self, Self::Write | Self::FairReadWrite(FairMode::Exclusive | FairMode::Steal))
    }

    /// Whether it reads beside others, with their token.
    pub(crate) const fn reads(self) -> bool {
        matches!(self, Self::Read | Self::FairReadWrite(FairMode::Shared))
    }

    /// Whether client `a` with `self` and client `b` with `other` may hold at the same time.
    pub(crate) fn is_compatible(self, other: Self, (a, b): (usize, usize)) -> bool {
        use Operation::{Batch, FairReadWrite, NestedRead, Permits, Read, Values, Write};
        match (self, other) {
            (Read | NestedRead(_), Read | NestedRead(_))
            | (FairReadWrite(FairMode::Shared), FairReadWrite(FairMode::Shared))
            | (Permits(_), Permits(_))
            | (Batch(_), Batch(_)) => a != b,
            (NestedRead(writer), Write) => writer == b,
            (Write, NestedRead(writer)) => writer == a,
            (Values(some), Values(others)) => some.iter().all(|value| !others.contains(value)),
            _ => false,
        }
    }

    /// The prefix of everything in Redis that belongs to the client with this number.
    pub(crate) fn prefix(self, number: u8) -> String {
        match self {
            // The entropy at the start of an id, as raw bytes.
            Self::Batch(_) => String::from(char::from(number * 16)).repeat(11),
            _ => format!("{:02x}", number * 16),
        }
    }
}

/// The calls of the latch.
pub(crate) fn latch() -> CountDownLatchCalls {
    CountDownLatchCalls::new(name(), Publish::Plain)
}

/// The owner of a script, or the id of the request whose record it keeps.
pub(crate) fn owner_of(script: &ScriptCall) -> &str {
    script.keys()[0].strip_prefix(LATCH).unwrap_or_default()
}

/// The key of an owner's latch.
pub(crate) fn latch_of(owner: &str) -> String {
    format!("{LATCH}{owner}")
}

/// The number of the client that uses this owner.
pub(crate) fn client_of(owner: &str) -> usize {
    usize::from_str_radix(&owner[..2], 16).unwrap() / 16
}

/// A duration of `seconds` seconds.
pub(crate) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn name() -> LockName {
    LockName::parse(NAME).unwrap()
}

fn permit_count(permits: u32) -> PermitCount {
    PermitCount::new(permits).unwrap()
}
