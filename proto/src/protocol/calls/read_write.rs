//! The calls of the two sides of a read-write lock.
//!
//! One owner's holds on the two sides have two owner ids, each fresh for its acquisition. A read
//! inside a write names the write's id; the release of a write around a read names the read's, so
//! that the read gets a token of its own.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::{Extension, IdempotentCall, Topic, Try, WakePolicy};
use crate::name::{LockName, OwnerId, RequestId};
use crate::protocol::key;
use crate::protocol::script::{Bound, Publish, ScriptCall, scripts};
use crate::timing::{TOKEN_KEPT, WantTime};

const READ: &str = "read";
const WRITE: &str = "write";

/// The calls of the read side: held by many owners at once, or inside the write hold of the same
/// owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReadCalls {
    name: LockName,
    publish: Publish,
    parent: Option<OwnerId>,
}

/// The calls of the write side: held by one owner alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WriteCalls {
    name: LockName,
    publish: Publish,
    prefers_writers: Option<WantTime>,
    inner: Option<OwnerId>,
}

impl ReadCalls {
    /// Creates the calls of the read side of this lock.
    pub const fn new(name: LockName, publish: Publish) -> Self {
        Self { name, publish, parent: None }
    }

    /// Sets the write hold of the same owner, `parent`, inside which the read is acquired.
    #[must_use]
    pub const fn nested_in_write(mut self, parent: OwnerId) -> Self {
        self.parent = Some(parent);
        self
    }

    pub(super) const fn name(&self) -> &LockName {
        &self.name
    }

    /// The first keys of all calls about a hold.
    fn keys(&self, owner: OwnerId) -> Vec<String> {
        let name = &self.name;
        vec![key::latch(name, owner), key::lock(name), key::read_timeout(name, owner)]
    }

    /// All waiters of a client: one message can let several readers in.
    pub(super) fn topic(&self) -> Topic {
        Topic::new(key::rw_channel(&self.name), self.publish, WakePolicy::All)
    }

    pub(super) fn acquire(&self, attempt: &Try) -> ScriptCall {
        let Try { request, bound, owner, .. } = *attempt;
        let name = &self.name;
        let mut keys = self.keys(owner);
        keys.extend([key::token(name), key::epoch(name), key::want(name)]);
        keys.extend(self.parent.map(|parent| key::latch(name, parent)));
        ScriptCall::new(&scripts::READ_ACQUIRE, request, bound, self.publish, keys)
            .arg(owner.to_text())
            .ms(attempt.lease.get())
            .flag(attempt.last)
            .ms(TOKEN_KEPT)
            .arg(self.parent.map_or_else(String::new, key::write_field))
    }

    pub(super) fn renew(&self, extension: &Extension) -> ScriptCall {
        let Extension { request, bound, owner, lease, token } = *extension;
        let mut keys = self.keys(owner);
        keys.push(key::epoch(&self.name));
        ScriptCall::new(&scripts::READ_RENEW, request, bound, self.publish, keys)
            .arg(owner.to_text())
            .ms(lease.get())
            .arg(token.to_text())
    }

    pub(super) fn release(&self, request: RequestId, bound: Bound, owner: OwnerId) -> ScriptCall {
        let mut keys = self.keys(owner);
        keys.push(key::rw_channel(&self.name));
        ScriptCall::new(&scripts::READ_RELEASE, request, bound, self.publish, keys)
            .arg(owner.to_text())
            .arg(key::read_timeouts(&self.name))
    }

    pub(super) fn force_release(&self) -> IdempotentCall {
        force_release(&self.name, self.publish, READ)
    }

    pub(super) fn inspect(&self, request: RequestId, owner: Option<OwnerId>) -> ScriptCall {
        let name = &self.name;
        let mut keys = vec![key::lock(name), key::token(name)];
        keys.extend(owner.map(|owner| key::read_timeout(name, owner)));
        ScriptCall::new(&scripts::RW_INSPECT, request, Bound::NONE, self.publish, keys)
            .arg(owner.map_or_else(String::new, OwnerId::to_text))
            .arg(READ)
    }
}

impl WriteCalls {
    /// Creates the calls of the write side of this lock.
    pub const fn new(name: LockName, publish: Publish) -> Self {
        Self { name, publish, prefers_writers: None, inner: None }
    }

    /// Makes a refused try keep new readers out for this time, except those inside a write. By
    /// default readers always join readers, as with Redisson, so that writers can starve.
    ///
    /// It delays edgelatch's readers only, since Redisson ignores it. A program that holds a read
    /// and requests another one under another owner can wait for a writer that waits for the first
    /// read, until that writer gives up.
    #[must_use]
    pub const fn prefers_writers(mut self, want: WantTime) -> Self {
        self.prefers_writers = Some(want);
        self
    }

    /// Sets the read hold of the same owner inside this write, `inner`, for the release: its latch
    /// gets the new token at once, instead of at its next renewal.
    #[must_use]
    pub const fn with_nested_read(mut self, inner: OwnerId) -> Self {
        self.inner = Some(inner);
        self
    }

    pub(super) const fn name(&self) -> &LockName {
        &self.name
    }

    pub(super) fn topic(&self) -> Topic {
        Topic::new(self.announcement(), self.publish, WakePolicy::One)
    }

    /// The channel on which grants are published.
    pub(super) fn announcement(&self) -> String {
        key::rw_channel(&self.name)
    }

    pub(super) fn acquire(&self, attempt: &Try) -> ScriptCall {
        let Try { request, bound, owner, .. } = *attempt;
        let name = &self.name;
        let keys = vec![
            key::latch(name, owner),
            key::lock(name),
            key::token(name),
            key::want(name),
            key::rw_channel(name),
        ];
        let call = ScriptCall::new(&scripts::WRITE_ACQUIRE, request, bound, self.publish, keys)
            .arg(key::write_field(owner))
            .ms(attempt.lease.get())
            .flag(attempt.last)
            .ms(TOKEN_KEPT)
            .arg(key::read_timeouts(name));
        let call = match self.prefers_writers {
            Some(want) => call.ms(want.get()),
            None => call.arg(""),
        };
        if attempt.announces { call.flag(true) } else { call }
    }

    pub(super) fn renew(&self, extension: &Extension) -> ScriptCall {
        let Extension { request, bound, owner, lease, token } = *extension;
        let keys = vec![key::latch(&self.name, owner), key::lock(&self.name)];
        ScriptCall::new(&scripts::LOCK_RENEW, request, bound, self.publish, keys)
            .arg(key::write_field(owner))
            .ms(lease.get())
            .arg(token.to_text())
    }

    pub(super) fn release(&self, request: RequestId, bound: Bound, owner: OwnerId) -> ScriptCall {
        let name = &self.name;
        let mut keys = vec![
            key::latch(name, owner),
            key::lock(name),
            key::rw_channel(name),
            key::token(name),
            key::epoch(name),
            key::want(name),
        ];
        if let Some(inner) = self.inner {
            keys.extend([key::latch(name, inner), key::read_timeout(name, inner)]);
        }
        ScriptCall::new(&scripts::WRITE_RELEASE, request, bound, self.publish, keys)
            .arg(key::write_field(owner))
            .arg(key::read_timeouts(name))
            .ms(TOKEN_KEPT)
    }

    pub(super) fn force_release(&self) -> IdempotentCall {
        force_release(&self.name, self.publish, WRITE)
    }

    pub(super) fn inspect(&self, request: RequestId, owner: Option<OwnerId>) -> ScriptCall {
        let keys = vec![key::lock(&self.name), key::token(&self.name)];
        ScriptCall::new(&scripts::RW_INSPECT, request, Bound::NONE, self.publish, keys)
            .arg(owner.map_or_else(String::new, key::write_field))
            .arg(WRITE)
    }
}

fn force_release(name: &LockName, publish: Publish, side: &str) -> IdempotentCall {
    let keys = vec![key::lock(name), key::rw_channel(name)];
    IdempotentCall::new(&scripts::RW_FORCE_RELEASE, name.clone(), publish, keys).arg(side)
}
