//! The calls of each object: the script, its keys and its arguments.
//!
//! A [`Target`] is any object that can be held for a time, so one machine acquires, one renews and
//! one releases all kinds. An [`IdempotentCall`] is an idempotent request whose reply Redis
//! records.

mod amounts;
mod count_down_latch;
mod eval;
mod fair;
mod fair_read_write;
mod fair_read_write_query;
mod group;
mod guard;
mod idempotent;
mod lock;
mod permits;
mod read_write;
mod semaphore;
mod topic;

pub use amounts::{BatchSize, LatchCount, PermitCount, PermitTotal};
pub use count_down_latch::CountDownLatchCalls;
pub use eval::UserScript;
pub use fair::{FairCalls, FairSettings};
pub use fair_read_write::{FairMode, FairReadWriteCalls, FairReadWriteSettings};
pub use fair_read_write_query::{FairReadWriteQuery, QueryEntry, QuerySlice};
pub use group::GroupCalls;
pub use guard::{GuardCalls, GuardedWrite, Stamp};
pub use idempotent::IdempotentCall;
pub use lock::{LockCalls, Member};
pub use permits::PermitCalls;
pub use read_write::{ReadCalls, WriteCalls};
pub use semaphore::SemaphoreCalls;
pub use topic::{GrantNotice, Message, Topic, WakePolicy};

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::name::{FencingToken, LockName, OwnerId, PermitId, RequestId};
use crate::protocol::key;
use crate::protocol::reply::Reply;
use crate::protocol::script::{Bound, ScriptCall};
use crate::timing::LeaseTime;

/// An object that can be held for a time, and the calls to acquire, renew, inspect and release it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A lock, or several locks that one script can acquire.
    Lock(LockCalls),
    /// A lock that serves in the order of arrival.
    Fair(FairCalls),
    /// A read-write lock that serves in the order of arrival.
    FairReadWrite(FairReadWriteCalls),
    /// Values of a group.
    Group(GroupCalls),
    /// Permits of a semaphore.
    Semaphore(SemaphoreCalls),
    /// Permits of a permit-expirable semaphore.
    Permits(PermitCalls),
    /// The read side of a read-write lock.
    Read(ReadCalls),
    /// The write side of a read-write lock.
    Write(WriteCalls),
}

/// One try of an acquisition, in terms common to all kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Try {
    /// The request id, which the reply echoes.
    pub request: RequestId,
    /// The bound of all requests under this owner.
    pub bound: Bound,
    /// The owner that the try acquires for.
    pub owner: OwnerId,
    /// The requested lease.
    pub lease: LeaseTime,
    /// Whether this is the last try: if it is refused, the script itself prevents a later grant to
    /// a copy.
    pub last: bool,
    /// The number of the try: 1 for the first try of this owner, then rising by one.
    pub number: u32,
    /// The owner whose place in a queue this one takes over, until a reply has confirmed it.
    pub previous: Option<OwnerId>,
    /// Whether a grant is published to the waiters.
    pub announces: bool,
}

/// One renewal of a hold, in terms common to all kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extension {
    /// The request id, which the reply echoes.
    pub request: RequestId,
    /// The bound of this request.
    pub bound: Bound,
    /// The owner of the hold.
    pub owner: OwnerId,
    /// The requested lease, from the execution on.
    pub lease: LeaseTime,
    /// The token that the hold was granted with: a later hold of the owner is not extended.
    pub token: FencingToken,
}

impl Target {
    /// The channels on which grants are published; empty for kinds that do not publish them.
    pub fn announcements(&self) -> Vec<String> {
        match self {
            Self::Lock(calls) => calls.announcements().collect(),
            Self::Write(calls) => [calls.announcement()].into(),
            Self::Semaphore(_) | Self::Permits(_) => [key::permits_channel(self.name())].into(),
            _ => Vec::new(),
        }
    }

    /// The object's name; for several locks, that of the first.
    pub const fn name(&self) -> &LockName {
        match self {
            Self::Lock(calls) => calls.name(),
            Self::Read(calls) => calls.name(),
            Self::Write(calls) => calls.name(),
            Self::Fair(calls) => calls.name(),
            Self::FairReadWrite(calls) => calls.name(),
            Self::Group(calls) => calls.name(),
            Self::Semaphore(calls) => calls.name(),
            Self::Permits(calls) => calls.name(),
        }
    }

    /// The object's name, or the names of all its members.
    pub fn names(&self) -> Vec<&LockName> {
        match self {
            Self::Lock(calls) => calls.members().map(|member| &member.name).collect(),
            _ => [self.name()].into(),
        }
    }

    /// Whether the object, or one of its members, has this name.
    pub fn has_name(&self, name: &str) -> bool {
        match self {
            Self::Lock(calls) => calls.members().any(|member| member.name.as_str() == name),
            _ => self.name().as_str() == name,
        }
    }

    /// Whether Redis keeps a queue of the waiters.
    pub const fn has_queue(&self) -> bool {
        matches!(self, Self::Fair(_) | Self::FairReadWrite(_))
    }

    /// Whether a hold excludes all other owners. Other values of a group may have other owners.
    pub const fn is_exclusive(&self) -> bool {
        match self {
            Self::Lock(_) | Self::Fair(_) | Self::Write(_) => true,
            Self::FairReadWrite(calls) => calls.is_exclusive(),
            _ => false,
        }
    }

    /// Whether the object is permits, which several owners hold at once and which need no lease.
    pub const fn holds_permits(&self) -> bool {
        matches!(self, Self::Semaphore(_) | Self::Permits(_))
    }

    /// How much longer than its lease an abandoned hold may exist: the tolerated error of the
    /// clocks of Redisson's clients, once in each direction.
    pub(crate) fn clock_allowance(&self) -> Duration {
        match self {
            Self::Group(calls) => calls.skew() * 2,
            Self::Permits(calls) => calls.skew() * 2,
            _ => Duration::ZERO,
        }
    }

    /// Nests a read hold in the write hold of the same owner, `writer`. Other kinds stay as they
    /// are.
    #[must_use]
    pub fn nested_in_write(self, writer: OwnerId) -> Self {
        match self {
            Self::Read(calls) => Self::Read(calls.nested_in_write(writer)),
            other => other,
        }
    }

    /// Makes the release of a write hold raise the token of the read hold inside it, `reader`.
    /// Other kinds stay as they are.
    #[must_use]
    pub fn with_nested_read(self, reader: OwnerId) -> Self {
        match self {
            Self::Write(calls) => Self::Write(calls.with_nested_read(reader)),
            other => other,
        }
    }

    /// The ids of the permits that `owner` holds, for permits that have ids.
    pub fn permit_ids(&self, owner: OwnerId) -> Vec<PermitId> {
        match self {
            Self::Permits(calls) => calls.ids(owner).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether this refusal means that the semaphore does not exist.
    pub const fn is_absent(&self, refusal: &Reply) -> bool {
        matches!(self, Self::Semaphore(_) | Self::Permits(_)) && refusal.value.is_empty()
    }

    /// Records what a refusal says about the next try: a fair lock widens its skew if the waiter
    /// had to be restored to its place.
    pub fn learn(&mut self, busy: &Reply) {
        if let Self::Fair(calls) = self
            && busy.value.ends_with(",1")
        {
            calls.widen();
        }
    }

    /// Returns the topic for `owner` to subscribe to after this refusal.
    pub fn topic(&self, owner: OwnerId, busy: &Reply) -> Topic {
        match self {
            Self::Lock(calls) => calls.topic(busy),
            Self::Read(calls) => calls.topic(),
            Self::Write(calls) => calls.topic(),
            Self::Fair(calls) => calls.topic(owner),
            Self::FairReadWrite(calls) => calls.topic(owner),
            Self::Group(calls) => calls.topic(),
            Self::Semaphore(calls) => calls.topic(),
            Self::Permits(calls) => calls.topic(),
        }
    }

    /// Builds the call of a try.
    pub fn acquire(&self, attempt: &Try) -> ScriptCall {
        match self {
            Self::Lock(calls) => calls.acquire(attempt),
            Self::Read(calls) => calls.acquire(attempt),
            Self::Write(calls) => calls.acquire(attempt),
            Self::Fair(calls) => calls.acquire(attempt),
            Self::FairReadWrite(calls) => calls.acquire(attempt),
            Self::Group(calls) => calls.acquire(attempt),
            Self::Semaphore(calls) => calls.acquire(attempt),
            Self::Permits(calls) => calls.acquire(attempt),
        }
    }

    /// Builds the call that extends a hold.
    pub fn renew(&self, extension: &Extension) -> ScriptCall {
        match self {
            Self::Lock(calls) => calls.renew(extension),
            Self::Read(calls) => calls.renew(extension),
            Self::Write(calls) => calls.renew(extension),
            Self::Fair(calls) => calls.renew(extension),
            Self::FairReadWrite(calls) => calls.renew(extension),
            Self::Group(calls) => calls.renew(extension),
            Self::Semaphore(calls) => calls.renew(extension),
            Self::Permits(calls) => calls.renew(extension),
        }
    }

    /// Builds the query of the state: `<last token>,<hold count>,<1 if the owner holds it>`.
    pub fn inspect(&self, request: RequestId, owner: Option<OwnerId>) -> ScriptCall {
        match self {
            Self::Lock(calls) => calls.inspect(request, owner),
            Self::Read(calls) => calls.inspect(request, owner),
            Self::Write(calls) => calls.inspect(request, owner),
            Self::Fair(calls) => calls.inspect(request, owner),
            Self::FairReadWrite(calls) => calls.inspect(request, owner),
            Self::Group(calls) => calls.inspect(request, owner),
            Self::Semaphore(calls) => calls.inspect(request, owner),
            Self::Permits(calls) => calls.inspect(request, owner),
        }
    }

    /// Builds the request that ends the object's holds, whichever owners have them.
    pub fn force_release(&self) -> IdempotentCall {
        match self {
            Self::Lock(calls) => calls.force_release(),
            Self::Read(calls) => calls.force_release(),
            Self::Write(calls) => calls.force_release(),
            Self::Fair(calls) => calls.force_release(),
            Self::FairReadWrite(calls) => calls.force_release(),
            Self::Group(calls) => calls.force_release(),
            Self::Semaphore(calls) => calls.force_release(),
            Self::Permits(calls) => calls.force_release(),
        }
    }

    /// Builds the call that ends the hold of `owner`, and prevents a later grant to it.
    pub fn release(&self, request: RequestId, bound: Bound, owner: OwnerId) -> ScriptCall {
        self.abandon(request, bound, owner, None)
    }

    /// Builds the call that ends the hold of `owner`, and prevents a later grant to it. For a
    /// lock with a queue it also ends `previous` (see [`Try::previous`]), which is `None` once the
    /// takeover by `owner` is confirmed; other kinds ignore it.
    pub fn abandon(
        &self,
        request: RequestId,
        bound: Bound,
        owner: OwnerId,
        previous: Option<OwnerId>,
    ) -> ScriptCall {
        match self {
            Self::Lock(calls) => calls.release(request, bound, owner),
            Self::Read(calls) => calls.release(request, bound, owner),
            Self::Write(calls) => calls.release(request, bound, owner),
            Self::Fair(calls) => calls.release(request, bound, owner, previous),
            Self::FairReadWrite(calls) => calls.release(request, bound, owner, previous),
            Self::Group(calls) => calls.release(request, bound, owner),
            Self::Semaphore(calls) => calls.release(request, bound, owner),
            Self::Permits(calls) => calls.release(request, bound, owner),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::script::Publish;
    use crate::timing::PeerSkew;

    fn name(text: &str) -> LockName {
        LockName::parse(text).unwrap()
    }

    fn lock(fenced: bool) -> Member {
        Member { name: name("b"), fenced }
    }

    /// One target of each kind with the name `a`, and a set of two locks.
    fn all() -> [Target; 8] {
        let skew = PeerSkew::DEFAULT;
        let two = [lock(false), Member { name: name("a"), fenced: false }];
        [
            Target::Lock(LockCalls::new(name("a"), Publish::Plain)),
            Target::Lock(LockCalls::of_set(two, Publish::Plain).unwrap()),
            Target::Fair(FairCalls::new(name("a"), FairSettings::default(), Publish::Plain)),
            Target::Write(WriteCalls::new(name("a"), Publish::Plain)),
            Target::Read(ReadCalls::new(name("a"), Publish::Plain)),
            Target::Group(GroupCalls::new(name("a"), ["x"], skew, Publish::Plain).unwrap()),
            Target::Semaphore(SemaphoreCalls::new(
                name("a"),
                Publish::Plain,
                PermitCount::new(1).unwrap(),
            )),
            Target::Permits(PermitCalls::new(
                name("a"),
                Publish::Plain,
                BatchSize::new(1).unwrap(),
                skew,
            )),
        ]
    }

    #[test]
    fn each_kind_of_target_has_its_properties() {
        let of = |is: fn(&Target) -> bool| all().each_ref().map(is);
        let (yes, no) = (true, false);
        assert_eq!(of(Target::is_exclusive), [yes, yes, yes, yes, no, no, no, no]);
        assert_eq!(of(Target::holds_permits), [no, no, no, no, no, no, yes, yes]);
        assert_eq!(of(Target::has_queue), [no, no, yes, no, no, no, no, no]);
        assert_eq!(of(|target| target.has_name("a")), [yes; 8]);
        assert_eq!(of(|target| target.has_name("b")), [no, yes, no, no, no, no, no, no]);
        assert_eq!(of(|target| target.name().as_str() == "a"), [yes; 8]);
        let counts = all().map(|target| target.announcements().len());
        assert_eq!(counts, [1, 2, 0, 1, 0, 0, 1, 1]);
        let ids = all().map(|target| target.permit_ids(OwnerId::new([1; 16], 1)).len());
        assert_eq!(ids, [0, 0, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn a_lock_that_is_fenced_once_among_several_is_fenced() {
        for (one, other) in [(true, false), (false, true), (true, true), (false, false)] {
            let set = LockCalls::of_set([lock(one), lock(other)], Publish::Plain).unwrap();
            let fenced: Vec<bool> = set.members().map(|member| member.fenced).collect();
            assert_eq!(fenced, [one || other]);
        }
    }
}
