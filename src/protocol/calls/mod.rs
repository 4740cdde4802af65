//! The calls about each object: which script, on which keys, with which arguments.
//!
//! What can be held for a time is a [`Target`], whatever it is, so that there is one machine that
//! takes, one that renews and one that releases. What is done at once and recorded is a
//! [`OnceCall`].

mod amounts;
mod count_down_latch;
mod eval;
mod fair;
mod group;
mod guard;
mod lock;
mod once;
mod permits;
mod read_write;
mod semaphore;
mod topic;

pub use amounts::{BatchSize, LatchCount, PermitCount, PermitTotal};
pub use count_down_latch::CountDownLatchCalls;
pub use eval::OwnScript;
pub use fair::{FairCalls, FairSettings};
pub use group::GroupCalls;
pub use guard::{GuardCalls, GuardedWrite, Stamp};
pub use lock::{LockCalls, Member};
pub use once::OnceCall;
pub use permits::PermitCalls;
pub use read_write::{ReadCalls, WriteCalls};
pub use semaphore::SemaphoreCalls;
pub use topic::{Message, Taken, Topic, Wakes};

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::name::{FencingToken, LockName, OwnerId, PermitId, RequestId};
use crate::protocol::reply::Reply;
use crate::protocol::script::{Bound, ScriptCall};
use crate::timing::LeaseTime;

/// What can be held for a time, and the calls by which that is done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A lock, or several that one script can take.
    Lock(LockCalls),
    /// A lock that serves in the order of arrival.
    Fair(FairCalls),
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

/// One try to take something, in the terms that all kinds have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Try {
    /// Ties the reply to it.
    pub request: RequestId,
    /// Of all that is asked under this owner.
    pub bound: Bound,
    /// Who is to hold it.
    pub owner: OwnerId,
    /// For how long.
    pub lease: LeaseTime,
    /// Whether no later one follows: refused, the script itself sees to it that no copy can be
    /// granted.
    pub last: bool,
    /// The how many-th of this owner it is, from 1.
    pub number: u32,
    /// The owner under which this wait began, whose seat in a queue this one takes over.
    pub previous: Option<OwnerId>,
    /// Whether a grant is told to those who wait.
    pub announces: bool,
}

impl Target {
    /// On which channels grants are told to those who wait: on none where they are not.
    pub(crate) fn announcements(&self) -> Vec<String> {
        match self {
            Self::Lock(calls) => calls.announcements().collect(),
            Self::Write(calls) => [calls.announcement()].into(),
            Self::Semaphore(calls) => [calls.announcement()].into(),
            Self::Permits(calls) => [calls.announcement()].into(),
            _ => Vec::new(),
        }
    }

    /// The name under which it is known: of several, the first.
    pub const fn name(&self) -> &LockName {
        match self {
            Self::Lock(calls) => calls.name(),
            Self::Read(calls) => calls.name(),
            Self::Write(calls) => calls.name(),
            Self::Fair(calls) => calls.name(),
            Self::Group(calls) => calls.name(),
            Self::Semaphore(calls) => calls.name(),
            Self::Permits(calls) => calls.name(),
        }
    }

    /// Its name, or those of its members.
    pub fn names(&self) -> Vec<&LockName> {
        match self {
            Self::Lock(calls) => calls.members().map(|member| &member.name).collect(),
            _ => [self.name()].into(),
        }
    }

    /// Whether it has this name, or one of its members has.
    pub fn has_name(&self, name: &str) -> bool {
        match self {
            Self::Lock(calls) => calls.members().any(|member| member.name.as_str() == name),
            _ => self.name().as_str() == name,
        }
    }

    /// The longest lease that may be asked for; `None` for any.
    pub(crate) const fn lease_max(&self) -> Option<LeaseTime> {
        if let Self::Lock(calls) = self { calls.lease_max() } else { None }
    }

    /// Whether those who wait stand in a queue.
    pub const fn has_queue(&self) -> bool {
        matches!(self, Self::Fair(_))
    }

    /// Whether one has it at a time, whatever is asked for: of a group others have other values.
    pub const fn is_exclusive(&self) -> bool {
        matches!(self, Self::Lock(_) | Self::Fair(_) | Self::Write(_))
    }

    /// Whether it is permits, which many hold at once and which need no lease.
    pub const fn holds_permits(&self) -> bool {
        matches!(self, Self::Semaphore(_) | Self::Permits(_))
    }

    /// For how much longer than its lease a hold that nobody gives back may be taken for one: what
    /// is allowed for the clocks of Redisson's clients, in each direction.
    pub(crate) fn lingers(&self) -> Duration {
        match self {
            Self::Group(calls) => calls.skew() * 2,
            Self::Permits(calls) => calls.skew() * 2,
            _ => Duration::ZERO,
        }
    }

    /// The same for a reader whose owner holds the writing side as `writer`.
    #[must_use]
    pub fn inside(self, writer: OwnerId) -> Self {
        match self {
            Self::Read(calls) => Self::Read(calls.inside(writer)),
            other => other,
        }
    }

    /// The same for the release of a writer whose owner has begun to read inside as `reader`.
    #[must_use]
    pub fn around(self, reader: OwnerId) -> Self {
        match self {
            Self::Write(calls) => Self::Write(calls.around(reader)),
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

    /// Whether a refusal says that there is no such semaphore.
    pub const fn is_absent(&self, refusal: &Reply) -> bool {
        matches!(self, Self::Semaphore(_) | Self::Permits(_)) && refusal.value.is_empty()
    }

    /// Takes note of what a refusal tells for the next try.
    pub fn learn(&mut self, busy: &Reply) {
        if let Self::Fair(calls) = self
            && busy.value.ends_with(",1")
        {
            calls.widen();
        }
    }

    /// What `owner`, who was refused so, can listen to.
    pub fn topic(&self, owner: OwnerId, busy: &Reply) -> Topic {
        match self {
            Self::Lock(calls) => calls.topic(busy),
            Self::Read(calls) => calls.topic(),
            Self::Write(calls) => calls.topic(),
            Self::Fair(calls) => calls.topic(owner),
            Self::Group(calls) => calls.topic(),
            Self::Semaphore(calls) => calls.topic(),
            Self::Permits(calls) => calls.topic(),
        }
    }

    /// Takes it.
    pub fn acquire(&self, attempt: &Try) -> ScriptCall {
        match self {
            Self::Lock(calls) => calls.acquire(attempt),
            Self::Read(calls) => calls.acquire(attempt),
            Self::Write(calls) => calls.acquire(attempt),
            Self::Fair(calls) => calls.acquire(attempt),
            Self::Group(calls) => calls.acquire(attempt),
            Self::Semaphore(calls) => calls.acquire(attempt),
            Self::Permits(calls) => calls.acquire(attempt),
        }
    }

    /// Prolongs the hold of `owner` that was granted with `token`.
    pub fn renew(
        &self,
        request: RequestId,
        bound: Bound,
        owner: OwnerId,
        lease: LeaseTime,
        token: FencingToken,
    ) -> ScriptCall {
        match self {
            Self::Lock(calls) => calls.renew(request, bound, owner, lease, token),
            Self::Read(calls) => calls.renew(request, bound, owner, lease, token),
            Self::Write(calls) => calls.renew(request, bound, owner, lease, token),
            Self::Fair(calls) => calls.renew(request, bound, owner, lease, token),
            Self::Group(calls) => calls.renew(request, bound, owner, lease, token),
            Self::Semaphore(calls) => calls.renew(request, bound, owner, lease, token),
            Self::Permits(calls) => calls.renew(request, bound, owner, lease, token),
        }
    }

    /// Asks for its state, and whether `owner` holds it: `<last token>,<hold count>,<1 if the owner
    /// holds it>`.
    pub fn inspect(&self, request: RequestId, owner: Option<OwnerId>) -> ScriptCall {
        match self {
            Self::Lock(calls) => calls.inspect(request, owner),
            Self::Read(calls) => calls.inspect(request, owner),
            Self::Write(calls) => calls.inspect(request, owner),
            Self::Fair(calls) => calls.inspect(request, owner),
            Self::Group(calls) => calls.inspect(request, owner),
            Self::Semaphore(calls) => calls.inspect(request, owner),
            Self::Permits(calls) => calls.inspect(request, owner),
        }
    }

    /// Ends whatever hold it has.
    pub fn force_release(&self) -> OnceCall {
        match self {
            Self::Lock(calls) => calls.force_release(),
            Self::Read(calls) => calls.force_release(),
            Self::Write(calls) => calls.force_release(),
            Self::Fair(calls) => calls.force_release(),
            Self::Group(calls) => calls.force_release(),
            Self::Semaphore(calls) => calls.force_release(),
            Self::Permits(calls) => calls.force_release(),
        }
    }

    /// Ends the hold of `owner`, or sees to it that it never has one.
    pub fn release(&self, request: RequestId, bound: Bound, owner: OwnerId) -> ScriptCall {
        self.abandon(request, bound, owner, None)
    }

    /// The same, and for the owner that `owner` was to take over from (see [`Try::previous`]) while
    /// no answer has told that it has. Only what has a queue knows of such.
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
    use crate::timing::{PeerSkew, RejoinDelay};

    fn name(text: &str) -> LockName {
        LockName::parse(text).unwrap()
    }

    fn lock(fenced: bool) -> Member {
        Member { name: name("b"), fenced }
    }

    /// One of each kind by the name of `a`, and one of two locks.
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
    fn each_kind_tells_what_it_is() {
        let of = |is: fn(&Target) -> bool| all().each_ref().map(is);
        let (yes, no) = (true, false);
        assert_eq!(of(Target::is_exclusive), [yes, yes, yes, yes, no, no, no, no]);
        assert_eq!(of(Target::holds_permits), [no, no, no, no, no, no, yes, yes]);
        assert_eq!(of(Target::has_queue), [no, no, yes, no, no, no, no, no]);
        assert_eq!(of(|target| target.has_name("a")), [yes; 8]);
        assert_eq!(of(|target| target.has_name("b")), [no, yes, no, no, no, no, no, no]);
        assert_eq!(of(|target| target.name().as_str() == "a"), [yes; 8]);
        let told = all().map(|target| target.announcements().len());
        assert_eq!(told, [1, 2, 0, 1, 0, 0, 1, 1]);
        let ids = all().map(|target| target.permit_ids(OwnerId::new([1; 16], 1)).len());
        assert_eq!(ids, [0, 0, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn a_node_that_is_given_time_to_come_back_bounds_the_lease() {
        let delay = RejoinDelay::new(Duration::from_secs(60)).unwrap();
        let calls = LockCalls::new(name("a"), Publish::Plain);
        assert_eq!(Target::Lock(calls.clone()).lease_max(), None);
        let calls = calls.not_before(delay);
        assert_eq!(Target::Lock(calls).lease_max(), Some(delay.lease_max()));
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
