//! What a client is going to do, and to what.

use std::time::Duration;

use edgelatch::name::LockName;
use edgelatch::protocol::calls::{
    BatchSize, CountDownLatchCalls, FairCalls, FairSettings, GroupCalls, LatchCount, LockCalls,
    OnceCall, PermitCalls, PermitCount, ReadCalls, SemaphoreCalls, Target, WriteCalls,
};
use edgelatch::protocol::script::{Publish, ScriptCall};
use edgelatch::timing::{AttemptTime, LeaseTime, Patience, PeerSkew};

/// What everybody wants.
pub(crate) const NAME: &str = "lock";
/// A thread of Java's, as the owner that it is.
pub(crate) const JAVA: &str = "8743c9c0-0795-4907-87fd-6c719a6b4586:1";
/// How the latch of an owner, or the record of a request, begins.
const LATCH: &str = "el:{lock}:";

/// What a client is going to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Whether it does anything.
    pub(crate) takes_part: bool,
    pub(crate) does: Does,
    pub(crate) patience: Patience,
    /// How many requests its acquisition may spend.
    pub(crate) budget: u32,
    pub(crate) lease: LeaseTime,
    /// Whether it has seen the server's clock before.
    pub(crate) knows_clock: bool,
    /// Whether it may be cancelled while it waits.
    pub(crate) cancels: bool,
    /// How many requests it sends at most to renew as they fall due, to renew on demand, to
    /// release, and to have something done once.
    pub(crate) renewals: u8,
    pub(crate) renews: u8,
    pub(crate) releases: u8,
    pub(crate) requests: u8,
}

/// What a client takes, and then holds; or what it has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Does {
    Lock,
    Fair,
    Read,
    /// Reads while that client writes: the two are one program.
    ReadInside(usize),
    Write,
    /// So many permits of a semaphore.
    Permits(u32),
    /// So many permits with ids.
    Batch(u16),
    /// Values of a group.
    Values(&'static [&'static str]),
    CountDown,
    /// Closes the latch with this count.
    Close(u64),
    /// Waits until the latch is open.
    Await,
    /// Makes so many more permits available.
    Add(i32),
}

impl Does {
    /// What is to be taken.
    pub(crate) fn target(self) -> Target {
        let (name, publish) = (name(), Publish::Plain);
        match self {
            Self::Lock => Target::Lock(LockCalls::new(name, publish)),
            Self::Fair => Target::Fair(FairCalls::new(name, FairSettings::default(), publish)),
            Self::Read | Self::ReadInside(_) => Target::Read(ReadCalls::new(name, publish)),
            Self::Write => Target::Write(WriteCalls::new(name, publish)),
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
                panic!("nothing to take")
            }
        }
    }

    /// What is to be done once, if that is what the client is there for.
    pub(crate) fn once(self) -> Option<OnceCall> {
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

    /// How long one attempt may take. What is done once has many, and its bound follows from that:
    /// a model's steps are few.
    pub(crate) fn attempt_time(self) -> AttemptTime {
        if self.once().is_some() {
            AttemptTime::new(Duration::from_millis(50)).unwrap()
        } else {
            AttemptTime::DEFAULT
        }
    }

    /// How many permits it takes.
    pub(crate) fn permits(self) -> Option<i64> {
        match self {
            Self::Permits(permits) => Some(permits.into()),
            Self::Batch(size) => Some(size.into()),
            _ => None,
        }
    }

    /// Whether these two, which `a` and `b` do, may both be held.
    pub(crate) fn goes_beside(self, other: Self, (a, b): (usize, usize)) -> bool {
        use Does::{Batch, Permits, Read, ReadInside, Values, Write};
        match (self, other) {
            (Read | ReadInside(_), Read | ReadInside(_))
            | (Permits(_), Permits(_))
            | (Batch(_), Batch(_)) => a != b,
            (ReadInside(writer), Write) => writer == b,
            (Write, ReadInside(writer)) => writer == a,
            (Values(some), Values(others)) => some.iter().all(|value| !others.contains(value)),
            _ => false,
        }
    }

    /// How in Redis begins what is this client's.
    pub(crate) fn prefix(self, number: u8) -> String {
        match self {
            // Of an id, what is made of entropy alone.
            Self::Batch(_) => String::from(char::from(number * 16)).repeat(11),
            _ => format!("{:02x}", number * 16),
        }
    }
}

/// The calls about the latch.
pub(crate) fn latch() -> CountDownLatchCalls {
    CountDownLatchCalls::new(name(), Publish::Plain)
}

/// The owner that a script is about, or the request whose record it keeps.
pub(crate) fn owner_of(script: &ScriptCall) -> &str {
    script.keys()[0].strip_prefix(LATCH).unwrap_or_default()
}

/// The latch of an owner.
pub(crate) fn latch_of(owner: &str) -> String {
    format!("{LATCH}{owner}")
}

/// Whose owner it is.
pub(crate) fn client_of(owner: &str) -> usize {
    usize::from_str_radix(&owner[..2], 16).unwrap() / 16
}

/// So many seconds.
pub(crate) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn name() -> LockName {
    LockName::parse(NAME).unwrap()
}

fn permit_count(permits: u32) -> PermitCount {
    PermitCount::new(permits).unwrap()
}
