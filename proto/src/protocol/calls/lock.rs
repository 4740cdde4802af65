//! The calls of a lock, and of several locks that one script can acquire: those of one gateway, in
//! one slot of a cluster.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use super::{Extension, IdempotentCall, Topic, Try, WakePolicy};
use crate::name::{FencingToken, LockName, OwnerId, RequestId};
use crate::protocol::key;
use crate::protocol::reply::Reply;
use crate::protocol::script::{Bound, Publish, ScriptCall, scripts};
use crate::timing::{RejoinDelay, TOKEN_KEPT};

/// The error of `INFO`'s uptime: it counts whole seconds from the second of the start, so it may be
/// ahead by almost one.
const UPTIME_UNIT: Duration = Duration::from_secs(1);

/// The calls of one lock, or of several that are acquired together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LockCalls {
    first: Member,
    others: Vec<Member>,
    publish: Publish,
    vote: Vote,
}

/// The parameters of a lock that is one node of a majority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Vote {
    /// The token that all nodes are to store with their grants, so that no further request is
    /// needed.
    proposal: Option<u64>,
    /// How long a Redis that has just started does not vote: it may have forgotten holds.
    delay: Option<RejoinDelay>,
}

/// One of the locks that are acquired together.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Member {
    /// The lock's name.
    pub name: LockName,
    /// Whether the last token is kept for ever, as Redisson keeps that of an `RFencedLock`.
    pub fenced: bool,
}

impl LockCalls {
    /// Creates the calls of one lock.
    pub const fn new(name: LockName, publish: Publish) -> Self {
        Self::of_several(Member { name, fenced: false }, Vec::new(), publish)
    }

    /// Creates the calls of several locks, which one script acquires: all or none.
    pub const fn of_several(first: Member, others: Vec<Member>, publish: Publish) -> Self {
        Self { first, others, publish, vote: Vote { proposal: None, delay: None } }
    }

    /// Makes a node of a majority refuse while its Redis has been up for less than `delay`: it may
    /// have forgotten holds. `delay` must be at least the longest lease in use. Needs a Redis whose
    /// scripts may run `INFO`.
    #[must_use]
    pub const fn not_before(mut self, delay: RejoinDelay) -> Self {
        self.vote.delay = Some(delay);
        self
    }

    /// Sets the token that the next grant is to store. The script accepts it if it is above the
    /// last token, and at most a second ahead of the clock.
    pub(crate) const fn propose(&mut self, token: Option<u64>) {
        self.vote.proposal = token;
    }

    /// Creates the calls of a set of locks, in the order of their names; `None` for an empty set.
    pub fn of_set(members: impl IntoIterator<Item = Member>, publish: Publish) -> Option<Self> {
        let mut ordered: Vec<Member> = Vec::new();
        for member in members {
            let at = ordered.iter().position(|other| other.name >= member.name);
            match at.and_then(|at| ordered.get_mut(at)).filter(|other| other.name == member.name) {
                Some(same) => same.fenced |= member.fenced,
                None => ordered.insert(at.unwrap_or(ordered.len()), member),
            }
        }
        let mut ordered = ordered.into_iter();
        Some(Self::of_several(ordered.next()?, ordered.collect(), publish))
    }

    /// The channels on which grants are published.
    pub(super) fn announcements(&self) -> impl Iterator<Item = String> {
        self.members().map(|member| key::channel(&member.name))
    }

    /// The name of the first lock.
    pub const fn name(&self) -> &LockName {
        &self.first.name
    }

    /// All locks, from the first on.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        core::iter::once(&self.first).chain(&self.others)
    }

    fn keys(&self, owner: OwnerId, of: &dyn Fn(&LockName, &mut Vec<String>)) -> Vec<String> {
        let mut keys = vec![key::latch(self.name(), owner)];
        self.members().for_each(|member| of(&member.name, &mut keys));
        keys
    }

    pub(super) fn acquire(&self, attempt: &Try) -> ScriptCall {
        let Try { request, bound, owner, .. } = *attempt;
        let keys = self.keys(owner, &|name, keys| keys.extend([key::lock(name), key::token(name)]));
        let call = ScriptCall::new(&scripts::LOCK_ACQUIRE, request, bound, self.publish, keys)
            .arg(owner.to_text())
            .ms(attempt.lease.get())
            .flag(attempt.last)
            .ms(TOKEN_KEPT);
        // Arguments that this lock does not need are left out.
        let Vote { proposal, delay } = self.vote;
        let votes = proposal.is_some() || delay.is_some();
        let further = votes || attempt.announces;
        if !further && self.members().all(|member| !member.fenced) {
            return call;
        }
        let kind = |member: &Member| if member.fenced { 'f' } else { 'x' };
        let call = call.arg(self.members().map(kind).collect::<String>());
        if !further {
            return call;
        }
        let call = call.arg(proposal.map_or_else(String::new, |token| token.to_string()));
        let call = match delay {
            Some(delay) => call.ms(delay.get() + UPTIME_UNIT),
            None if attempt.announces => call.arg(""),
            None => call,
        };
        let channels = attempt.announces.then(|| self.announcements());
        channels.into_iter().flatten().fold(call, ScriptCall::arg)
    }

    /// Builds the call that stores a larger token in the hold of `owner`.
    pub(crate) fn raise(
        &self,
        request: RequestId,
        bound: Bound,
        owner: OwnerId,
        token: FencingToken,
    ) -> ScriptCall {
        let keys = self.keys(owner, &|name, keys| keys.extend([key::lock(name), key::token(name)]));
        ScriptCall::new(&scripts::LOCK_RAISE, request, bound, self.publish, keys)
            .arg(owner.to_text())
            .arg(token.to_text())
            .ms(TOKEN_KEPT)
    }

    pub(super) fn renew(&self, extension: &Extension) -> ScriptCall {
        let Extension { request, bound, owner, lease, token } = *extension;
        let keys = self.keys(owner, &|name, keys| keys.push(key::lock(name)));
        ScriptCall::new(&scripts::LOCK_RENEW, request, bound, self.publish, keys)
            .arg(owner.to_text())
            .ms(lease.get())
            .arg(token.to_text())
    }

    pub(super) fn release(&self, request: RequestId, bound: Bound, owner: OwnerId) -> ScriptCall {
        let keys =
            self.keys(owner, &|name, keys| keys.extend([key::lock(name), key::channel(name)]));
        ScriptCall::new(&scripts::LOCK_RELEASE, request, bound, self.publish, keys)
            .arg(owner.to_text())
    }

    /// The topic of the lock that was found held, as the refusal names it.
    pub(super) fn topic(&self, busy: &Reply) -> Topic {
        let taken = busy.value.parse().ok().and_then(|number: usize| number.checked_sub(1));
        let member = taken.and_then(|place| self.members().nth(place)).unwrap_or(&self.first);
        Topic::new(key::channel(&member.name), self.publish, WakePolicy::One)
    }

    pub(super) fn force_release(&self) -> IdempotentCall {
        let name = self.name();
        let keys = vec![key::lock(name), key::channel(name)];
        IdempotentCall::new(&scripts::LOCK_FORCE_RELEASE, name.clone(), self.publish, keys)
    }

    pub(super) fn inspect(&self, request: RequestId, owner: Option<OwnerId>) -> ScriptCall {
        let keys = vec![key::lock(self.name()), key::token(self.name())];
        ScriptCall::new(&scripts::LOCK_INSPECT, request, Bound::NONE, self.publish, keys)
            .arg(owner.map_or_else(String::new, OwnerId::to_text))
    }
}
