//! The calls of a permit-expirable semaphore, each of whose permits has an id and a lease.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use super::semaphore::lease_text;
use super::{BatchSize, Extension, IdempotentCall, PermitTotal, Topic, Try, WakePolicy};
use crate::name::{LockName, OwnerId, PermitId, RequestId};
use crate::protocol::key;
use crate::protocol::script::{Bound, Publish, ScriptCall, scripts};
use crate::time::millis;
use crate::timing::{LeaseTime, PeerSkew, TOKEN_KEPT};

/// The calls of a permit-expirable semaphore, for a number of its permits that are acquired
/// together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PermitCalls {
    name: LockName,
    publish: Publish,
    permits: BatchSize,
    skew: PeerSkew,
}

impl PermitCalls {
    /// Creates the calls of the semaphore `name`. An owner acquires, renews and releases `permits`
    /// permits.
    pub const fn new(name: LockName, publish: Publish, permits: BatchSize, skew: PeerSkew) -> Self {
        Self { name, publish, permits, skew }
    }

    /// The semaphore's name.
    pub const fn name(&self) -> &LockName {
        &self.name
    }

    /// The tolerated error of the clocks of Redisson's clients.
    pub(super) const fn skew(&self) -> Duration {
        self.skew.get()
    }

    /// The ids of the permits that `owner` acquires. They are known before the request is sent.
    pub fn ids(&self, owner: OwnerId) -> impl Iterator<Item = PermitId> {
        (0..self.permits.get()).map(move |index| PermitId::of(owner, index))
    }

    /// Adds available permits, or removes them if `permits` is negative; creates the semaphore if
    /// there is none. The reply has the new number.
    pub fn add(&self, permits: i32) -> IdempotentCall {
        self.change("add", i64::from(permits).to_string(), String::new(), &[])
    }

    /// Sets the total number of permits, held ones included; creates the semaphore if there is
    /// none. The reply has the number of available permits, which is negative while more are held.
    pub fn set(&self, permits: PermitTotal) -> IdempotentCall {
        self.change("set", u64::from(permits.get()).to_string(), String::new(), &[])
    }

    /// Creates the semaphore, and is refused if there is one. The reply has the number of available
    /// permits in both cases.
    pub fn try_set(&self, permits: PermitTotal) -> IdempotentCall {
        self.change("new", u64::from(permits.get()).to_string(), String::new(), &[])
    }

    /// Gives permits back by their ids, whichever owner acquired them. The reply has the number
    /// that was held, and says whether all were.
    pub fn release_ids(&self, ids: &[PermitId]) -> IdempotentCall {
        self.change("free", "0".into(), String::new(), ids)
    }

    /// Sets a new lease of these permits from now on, longer or shorter, whichever owner acquired
    /// them. The reply has the number that is held, and says whether all are.
    pub fn update_lease(&self, ids: &[PermitId], lease: LeaseTime) -> IdempotentCall {
        let lease = lease_text(lease);
        let lease = if lease.is_empty() { "-1".into() } else { lease };
        self.change("lease", lease, millis(self.skew.get()).to_string(), ids)
    }

    /// Builds the query of the state, and of the remaining time of these permits, if all are held.
    pub fn inspect_ids(&self, request: RequestId, ids: &[PermitId]) -> ScriptCall {
        let name = &self.name;
        let keys = vec![key::own_token(name), key::number(name), key::held_permits(name)];
        let call =
            ScriptCall::new(&scripts::PERMITS_INSPECT, request, Bound::NONE, self.publish, keys)
                .ms(self.skew.get());
        with_ids(call, ids.iter().copied())
    }

    fn change(
        &self,
        what: &str,
        first: String,
        second: String,
        ids: &[PermitId],
    ) -> IdempotentCall {
        let keys = self.keys();
        let call =
            IdempotentCall::new(&scripts::PERMITS_CHANGE, self.name.clone(), self.publish, keys)
                .arg(what)
                .arg(first)
                .arg(second);
        ids.iter().fold(call, |call, id| call.arg(id.to_text()))
    }

    /// All keys but the first, which is a latch or a record.
    fn keys(&self) -> Vec<String> {
        let name = &self.name;
        vec![key::number(name), key::held_permits(name), key::permits_channel(name)]
    }

    fn keys_of(&self, owner: OwnerId) -> Vec<String> {
        let mut keys = vec![key::latch(&self.name, owner)];
        keys.extend(self.keys());
        keys
    }

    pub(super) fn topic(&self) -> Topic {
        let wakes = WakePolicy::Permits(self.permits.get().into());
        Topic::new(key::permits_channel(&self.name), self.publish, wakes)
    }

    pub(super) fn acquire(&self, attempt: &Try) -> ScriptCall {
        let Try { request, bound, owner, .. } = *attempt;
        let mut keys = self.keys_of(owner);
        keys.push(key::own_token(&self.name));
        let call = ScriptCall::new(&scripts::PERMITS_ACQUIRE, request, bound, self.publish, keys)
            .ms(self.skew.get())
            .arg(lease_text(attempt.lease))
            .flag(attempt.last)
            .ms(TOKEN_KEPT)
            .flag(attempt.announces);
        with_ids(call, self.ids(owner))
    }

    pub(super) fn renew(&self, extension: &Extension) -> ScriptCall {
        let Extension { request, bound, owner, lease, token } = *extension;
        let keys = vec![key::latch(&self.name, owner), key::held_permits(&self.name)];
        let call = ScriptCall::new(&scripts::PERMITS_RENEW, request, bound, self.publish, keys)
            .arg(token.to_text())
            .arg(lease_text(lease))
            .ms(self.skew.get());
        with_ids(call, self.ids(owner))
    }

    pub(super) fn release(&self, request: RequestId, bound: Bound, owner: OwnerId) -> ScriptCall {
        let keys = self.keys_of(owner);
        let call = ScriptCall::new(&scripts::PERMITS_RELEASE, request, bound, self.publish, keys);
        with_ids(call, self.ids(owner))
    }

    /// Builds the request that gives back all permits, whichever clients hold them.
    pub(super) fn force_release(&self) -> IdempotentCall {
        self.change("clear", "0".into(), String::new(), &[])
    }

    pub(super) fn inspect(&self, request: RequestId, owner: Option<OwnerId>) -> ScriptCall {
        let ids: Vec<PermitId> = owner.into_iter().flat_map(|owner| self.ids(owner)).collect();
        self.inspect_ids(request, &ids)
    }
}

fn with_ids(call: ScriptCall, ids: impl Iterator<Item = PermitId>) -> ScriptCall {
    ids.fold(call, |call, id| call.arg(id.to_text()))
}
