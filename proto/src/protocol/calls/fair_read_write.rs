//! The calls of a fair read-write lock, which serves both modes in the order of arrival.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use super::fair::{PREVIOUS_KEPT, checked};
use super::{Extension, IdempotentCall, Target, Topic, Try, WakePolicy};
use crate::error::{InvalidOption, Refusal};
use crate::name::{ClientId, LockName, OwnerId, RequestId};
use crate::protocol::key;
use crate::protocol::script::{Bound, Publish, ScriptCall, scripts};
use crate::timing::TOKEN_KEPT;

/// The calls of one fair read-write lock in one mode.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FairReadWriteCalls {
    name: LockName,
    mode: FairMode,
    settings: FairReadWriteSettings,
    client: ClientId,
    publish: Publish,
}

/// How a fair read-write lock is acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FairMode {
    /// Beside other shared holders.
    Shared,
    /// Without any other holder.
    Exclusive,
    /// Exclusively and at once: ends the holds of all other owners, but takes no waiter's place.
    Steal,
}

/// How the queue treats unresponsive waiters, and how long it gets.
///
/// All users of a name should use the same limits, since a script applies those of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FairReadWriteSettings {
    pub(crate) life: Duration,
    pub(crate) max_holders: u32,
    pub(crate) max_waiters: u32,
}

impl Default for FairReadWriteSettings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl FairReadWriteSettings {
    /// The default settings.
    pub(crate) const DEFAULT: Self =
        Self { life: Duration::from_secs(10), max_holders: 1_000, max_waiters: 10_000 };

    /// The largest number of holders, and of waiters.
    pub(crate) const MEMBERS_MAX: u32 = 20_000;

    /// Sets how long a waiter counts as alive after a poll; it polls three times in this time.
    ///
    /// 1 to 60 s in whole milliseconds; 10 s by default. A dead waiter delays the waiters behind it
    /// by this time. A shorter life detects it sooner, and costs more requests of every waiter.
    ///
    /// # Errors
    /// [`InvalidOption`] outside of the range.
    pub fn life(self, life: Duration) -> Result<Self, InvalidOption> {
        let (min, max) = (Duration::from_secs(1), Duration::from_secs(60));
        Ok(Self { life: checked("life", life, min, max)?, ..self })
    }

    /// Sets how many owners may hold the lock at once in shared mode.
    ///
    /// 1 to 20,000; 1,000 by default.
    ///
    /// # Errors
    /// [`InvalidOption`] outside of the range.
    pub fn max_holders(self, max_holders: u32) -> Result<Self, InvalidOption> {
        Ok(Self { max_holders: limit("maxHolders", max_holders)?, ..self })
    }

    /// Sets how many owners may wait. Another one is refused.
    ///
    /// 1 to 20,000; 10,000 by default. Each waiter sends three requests in its life.
    ///
    /// # Errors
    /// [`InvalidOption`] outside of the range.
    pub fn max_waiters(self, max_waiters: u32) -> Result<Self, InvalidOption> {
        Ok(Self { max_waiters: limit("maxWaiters", max_waiters)?, ..self })
    }
}

fn limit(option: &str, number: u32) -> Result<u32, InvalidOption> {
    let fits = (1..=FairReadWriteSettings::MEMBERS_MAX).contains(&number);
    fits.then_some(number).ok_or_else(|| InvalidOption::new(option, "1 to 20000"))
}

impl FairReadWriteCalls {
    /// Creates the calls of the fair read-write lock `name`. Queries of its namespace show
    /// `client`.
    pub const fn new(
        name: LockName,
        mode: FairMode,
        settings: FairReadWriteSettings,
        client: ClientId,
        publish: Publish,
    ) -> Self {
        Self { name, mode, settings, client, publish }
    }

    /// The lock's name.
    pub const fn name(&self) -> &LockName {
        &self.name
    }

    /// Whether a hold excludes all other holders.
    pub const fn is_exclusive(&self) -> bool {
        !matches!(self.mode, FairMode::Shared)
    }

    /// The channel of this owner. While it waits, a message means that it can enter now; while it
    /// holds, that its hold was ended by another client.
    pub fn topic(&self, owner: OwnerId) -> Topic {
        Topic::new(key::latch(&self.name, owner), self.publish, WakePolicy::One)
    }

    pub(super) fn acquire(&self, attempt: &Try) -> ScriptCall {
        let Try { request, bound, owner, previous, .. } = *attempt;
        let kind = match self.mode {
            FairMode::Steal => "steal",
            FairMode::Shared | FairMode::Exclusive if attempt.last => "last",
            FairMode::Shared | FairMode::Exclusive => "wait",
        };
        self.call_of(&scripts::FAIR_RW_ACQUIRE, request, bound, owner, previous)
            .arg(kind)
            .ms(self.settings.life)
            .number(self.settings.max_holders)
            .number(self.settings.max_waiters)
            .number(attempt.number)
            .ms(attempt.lease.get())
            .ms(TOKEN_KEPT)
            .arg(previous.map_or_else(String::new, |previous| self.member(previous)))
            .ms(PREVIOUS_KEPT)
    }

    pub(super) fn renew(&self, extension: &Extension) -> ScriptCall {
        let Extension { request, bound, owner, lease, token } = *extension;
        self.call_of(&scripts::FAIR_RW_RENEW, request, bound, owner, None)
            .ms(lease.get())
            .arg(token.to_text())
    }

    /// `previous`: the owner that `owner` was to take over from, while the takeover is not
    /// confirmed.
    pub(super) fn release(
        &self,
        request: RequestId,
        bound: Bound,
        owner: OwnerId,
        previous: Option<OwnerId>,
    ) -> ScriptCall {
        self.call_of(&scripts::FAIR_RW_RELEASE, request, bound, owner, previous)
            .number(self.settings.max_holders)
            .arg(previous.map_or_else(String::new, |previous| self.member(previous)))
            .ms(PREVIOUS_KEPT)
    }

    pub(super) fn force_release(&self) -> IdempotentCall {
        let (script, name) = (&scripts::FAIR_RW_FORCE_RELEASE, self.name.clone());
        IdempotentCall::new(script, name, self.publish, self.state())
            .number(self.settings.max_holders)
    }

    pub(super) fn inspect(&self, request: RequestId, owner: Option<OwnerId>) -> ScriptCall {
        let mut keys = self.state();
        keys.truncate(5);
        ScriptCall::new(&scripts::FAIR_RW_INSPECT, request, Bound::NONE, self.publish, keys)
            .arg(owner.map_or_else(String::new, |owner| self.member(owner)))
    }

    /// A call of a script about `owner`, up to its member.
    fn call_of(
        &self,
        script: &'static crate::protocol::script::Script,
        request: RequestId,
        bound: Bound,
        owner: OwnerId,
        previous: Option<OwnerId>,
    ) -> ScriptCall {
        let mut keys = vec![key::latch(&self.name, owner)];
        keys.append(&mut self.state());
        keys.extend(previous.map(|previous| key::latch(&self.name, previous)));
        ScriptCall::new(script, request, bound, self.publish, keys).arg(self.member(owner))
    }

    /// KEYS 2 to 8 of the scripts that change the lock.
    fn state(&self) -> Vec<String> {
        let name = &self.name;
        vec![
            key::fair_rw_holders(name),
            key::fair_rw_queue(name),
            key::fair_rw_writers(name),
            key::fair_rw_beats(name),
            key::fair_rw_last(name),
            key::fair_rw_names(name),
            key::fair_rw_ends(name),
        ]
    }

    /// The owner as a member of holders and queue.
    fn member(&self, owner: OwnerId) -> String {
        let mode = if self.is_exclusive() { "x" } else { "s" };
        [mode, &owner.to_text(), "|", self.client.as_str()].concat()
    }
}

impl Target {
    /// Whether this refusal means that the queue is full.
    pub(crate) fn is_queue_full(&self, refusal: &Refusal) -> bool {
        self.has_queue() && refusal.code() == "LIMIT"
    }

    /// Whether another client can end a hold by a steal.
    pub(crate) const fn can_be_stolen(&self) -> bool {
        matches!(self, Self::FairReadWrite(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_holds_at_both_ends_and_is_refused_by_its_name() {
        let (set, s) = (FairReadWriteSettings::default(), Duration::from_secs);
        assert!(set.life(s(1)).is_ok() && set.life(s(60)).is_ok());
        assert!(set.max_holders(1).is_ok() && set.max_waiters(20_000).is_ok());
        let bad = [
            (set.life(s(61)), "life"),
            (set.max_holders(0), "maxHolders"),
            (set.max_waiters(20_001), "maxWaiters"),
        ];
        for (refused, option) in bad {
            assert_eq!(refused.unwrap_err().option(), option);
        }
    }
}
