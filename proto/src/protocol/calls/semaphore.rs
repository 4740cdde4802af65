//! The calls of a semaphore.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::{Extension, IdempotentCall, PermitCount, PermitTotal, Topic, Try, WakePolicy};
use crate::name::{LockName, OwnerId, RequestId};
use crate::protocol::key;
use crate::protocol::script::{Bound, Publish, ScriptCall, scripts};
use crate::time::millis;
use crate::timing::{LeaseTime, LifeTime, TOKEN_KEPT};

/// The calls of a semaphore, for a number of its permits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SemaphoreCalls {
    name: LockName,
    publish: Publish,
    permits: PermitCount,
}

impl SemaphoreCalls {
    /// Creates the calls of the semaphore `name`. An owner acquires, renews and releases `permits`
    /// permits.
    pub const fn new(name: LockName, publish: Publish, permits: PermitCount) -> Self {
        Self { name, publish, permits }
    }

    /// The semaphore's name.
    pub const fn name(&self) -> &LockName {
        &self.name
    }

    /// Adds available permits, or removes them if `permits` is negative; creates the semaphore if
    /// there is none. The reply has the new number.
    ///
    /// This is also Redisson's `release`, for permits that no client of ours holds.
    pub fn add(&self, permits: i32) -> IdempotentCall {
        self.change("add").arg(i64::from(permits).to_string())
    }

    /// Adds available permits if the semaphore exists, and is refused otherwise. Redisson's
    /// `releaseIfExists`.
    pub fn add_if_exists(&self, permits: PermitCount) -> IdempotentCall {
        self.change("addx").number(permits.get())
    }

    /// Takes all available permits for good; the reply has their number. A negative number becomes
    /// 0.
    pub fn drain(&self) -> IdempotentCall {
        self.change("drain").arg("0")
    }

    /// Creates the semaphore, for a time or for ever, and is refused if there is one. The reply has
    /// the number of available permits in both cases.
    pub fn try_set(&self, permits: PermitTotal, life: Option<LifeTime>) -> IdempotentCall {
        let life = life.map_or_else(String::new, |life| millis(life.get()).to_string());
        self.change("set").number(permits.get()).arg(life)
    }

    fn change(&self, what: &str) -> IdempotentCall {
        let keys = self.keys();
        IdempotentCall::new(&scripts::SEMAPHORE_CHANGE, self.name.clone(), self.publish, keys)
            .arg(what)
    }

    /// All keys but the first, which is a latch or a record.
    fn keys(&self) -> Vec<String> {
        vec![key::number(&self.name), key::holds(&self.name), key::permits_channel(&self.name)]
    }

    fn keys_of(&self, owner: OwnerId) -> Vec<String> {
        let mut keys = vec![key::latch(&self.name, owner)];
        keys.extend(self.keys());
        keys
    }

    pub(super) fn topic(&self) -> Topic {
        let wakes = WakePolicy::Permits(self.permits.get());
        Topic::new(key::permits_channel(&self.name), self.publish, wakes)
    }

    pub(super) fn acquire(&self, attempt: &Try) -> ScriptCall {
        let Try { request, bound, owner, .. } = *attempt;
        let mut keys = self.keys_of(owner);
        keys.push(key::own_token(&self.name));
        let call = ScriptCall::new(&scripts::SEMAPHORE_ACQUIRE, request, bound, self.publish, keys)
            .arg(owner.to_text())
            .arg(lease_text(attempt.lease))
            .flag(attempt.last)
            .ms(TOKEN_KEPT)
            .number(self.permits.get());
        if attempt.announces { call.flag(true) } else { call }
    }

    pub(super) fn renew(&self, extension: &Extension) -> ScriptCall {
        let Extension { request, bound, owner, lease, token } = *extension;
        let keys = vec![key::latch(&self.name, owner), key::holds(&self.name)];
        ScriptCall::new(&scripts::SEMAPHORE_RENEW, request, bound, self.publish, keys)
            .arg(token.to_text())
            .arg(lease_text(lease))
            .arg(owner.to_text())
            .number(self.permits.get())
    }

    pub(super) fn release(&self, request: RequestId, bound: Bound, owner: OwnerId) -> ScriptCall {
        let keys = self.keys_of(owner);
        ScriptCall::new(&scripts::SEMAPHORE_RELEASE, request, bound, self.publish, keys)
            .arg(owner.to_text())
            .number(self.permits.get())
    }

    /// Builds the request that gives back all holds of ours. Redis has no record of the permits
    /// that Java holds.
    pub(super) fn force_release(&self) -> IdempotentCall {
        self.change("clear")
    }

    pub(super) fn inspect(&self, request: RequestId, owner: Option<OwnerId>) -> ScriptCall {
        let name = &self.name;
        let keys = vec![key::own_token(name), key::number(name), key::holds(name)];
        ScriptCall::new(&scripts::SEMAPHORE_INSPECT, request, Bound::NONE, self.publish, keys)
            .arg(owner.map_or_else(String::new, OwnerId::to_text))
            .number(self.permits.get())
    }
}

/// Formats a lease in milliseconds; empty for none.
pub(super) fn lease_text(lease: LeaseTime) -> String {
    if lease.is_endless() { String::new() } else { millis(lease.get()).to_string() }
}
