//! The calls of a fair lock, which serves in the order of arrival.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use super::{Extension, IdempotentCall, LockCalls, Topic, Try, WakePolicy};
use crate::error::InvalidOption;
use crate::name::{LockName, OwnerId, RequestId};
use crate::protocol::key;
use crate::protocol::script::{Bound, Publish, ScriptCall, scripts};
use crate::time::millis;
use crate::timing::{HORIZON, ROUND_MAX, TOKEN_KEPT};

/// The calls of one fair lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FairCalls {
    name: LockName,
    settings: FairSettings,
    publish: Publish,
}

/// How the queue treats unresponsive waiters.
///
/// With the defaults a dead waiter of this library delays the queue by 10 s. All times are whole
/// milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FairSettings {
    pub(crate) life: Duration,
    pub(crate) skew: Duration,
    pub(crate) allowance: Duration,
    pub(crate) short: Duration,
    pub(crate) long: Duration,
}

/// The factor by which the skew grows each time a waiter's place had to be restored.
const SKEW_FACTOR: u32 = 4;
/// How long the end of a previous owner is remembered: beyond every bound that it can have had, and
/// beyond the first horizon.
pub(super) const PREVIOUS_KEPT: Duration = ROUND_MAX.saturating_add(HORIZON);
/// The number of waiters that a query of the queue returns.
const LISTED: &str = "16";

impl Default for FairSettings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl FairSettings {
    /// The default settings.
    pub(crate) const DEFAULT: Self =
        Self { life: s(10), skew: s(20), allowance: s(300), short: s(5), long: s(30) };

    /// Sets how long a waiter of ours counts as alive after a poll; it polls three times in this
    /// time.
    ///
    /// 1 to 60 s; 10 s by default. A dead waiter at the head of the queue delays the waiters behind
    /// it by this time. A shorter life detects it sooner, and costs more requests of every waiter.
    ///
    /// # Errors
    /// [`InvalidOption`] outside of the range.
    pub fn life(self, life: Duration) -> Result<Self, InvalidOption> {
        Ok(Self { life: checked("life", life, s(1), s(60))?, ..self })
    }

    /// Sets the tolerated error of the clocks of Redisson's clients: a client evicts a live waiter
    /// of ours if its clock is further ahead of Redis' clock.
    ///
    /// 0 to 1 h; 20 s by default. A dead waiter of ours delays Redisson's waiters by this time too,
    /// while no other waiter of ours is queued; with a smaller skew, waiters of ours lose their
    /// places, and get them back, more often.
    ///
    /// # Errors
    /// [`InvalidOption`] outside of the range.
    pub fn skew(self, skew: Duration) -> Result<Self, InvalidOption> {
        Ok(Self { skew: checked("skew", skew, Duration::ZERO, s(3600))?, ..self })
    }

    /// Sets the longest wait of Redisson's waiters: their `fairLockWaitTimeout`, or their longest
    /// `tryLock` wait.
    ///
    /// 1 s to 24 h; 300 s by default, as in Redisson. Redisson subtracts its own value from the
    /// scores of all waiters when such a waiter is served; if it is larger than this one, Redisson
    /// evicts live waiters of ours.
    ///
    /// # Errors
    /// [`InvalidOption`] outside of the range.
    pub fn allowance(self, allowance: Duration) -> Result<Self, InvalidOption> {
        Ok(Self { allowance: checked("allowance", allowance, s(1), s(86_400))?, ..self })
    }

    /// Sets the time within which a waiter of Redisson's must acquire a free lock: `short` if Redis
    /// reports no listener on its channel, `long` if it reports one.
    ///
    /// 3 to 60 s, and `short` to 10 min; 5 s and 30 s by default. A shorter time detects a dead
    /// waiter sooner; a longer one keeps the place of a slow waiter. The minimum is 3 s since the
    /// head is checked once a second: a shorter grace could not tell a dead head from one that was
    /// not checked.
    ///
    /// # Errors
    /// [`InvalidOption`] outside of the ranges.
    pub fn grace(self, short: Duration, long: Duration) -> Result<Self, InvalidOption> {
        let short = checked("short", short, s(3), s(60))?;
        Ok(Self { short, long: checked("long", long, short, s(600))?, ..self })
    }

    /// Returns the settings with a wider skew, for a waiter whose place had to be restored: a clock
    /// is further ahead than assumed.
    #[must_use]
    pub fn widened(self) -> Self {
        let skew = self.skew.max(s(1)).saturating_mul(SKEW_FACTOR).min(s(3600));
        Self { skew, ..self }
    }
}

impl FairCalls {
    /// Creates the calls of the fair lock `name`.
    pub const fn new(name: LockName, settings: FairSettings, publish: Publish) -> Self {
        Self { name, settings, publish }
    }

    /// The lock's name.
    pub const fn name(&self) -> &LockName {
        &self.name
    }

    /// Widens the skew after a restored place: a clock is further ahead than assumed.
    pub(super) fn widen(&mut self) {
        self.settings = self.settings.widened();
    }

    /// Builds the query of the queue: `<length>,<place of the owner from 1, 0: not queued>`, then
    /// for each of the first 16 waiters a pair `<1: ours, 0: Redisson's>,<ms for which it still
    /// counts as alive>`. `ms` is the remaining time of the hold.
    pub fn queue(&self, request: RequestId, owner: Option<OwnerId>) -> ScriptCall {
        let name = &self.name;
        let keys = vec![key::lock(name), key::queue(name), key::timeouts(name), key::beats(name)];
        ScriptCall::new(&scripts::FAIR_QUEUE, request, Bound::NONE, self.publish, keys)
            .arg(owner.map_or_else(String::new, OwnerId::to_text))
            .arg(LISTED)
    }

    /// The channel of this owner, on which a script publishes when the owner is next.
    pub fn topic(&self, owner: OwnerId) -> Topic {
        Topic::new(key::waiter_channel(&self.name, owner), self.publish, WakePolicy::One)
    }

    pub(super) fn acquire(&self, attempt: &Try) -> ScriptCall {
        let Try { request, bound, owner, .. } = *attempt;
        let mut keys = self.keys(key::latch(&self.name, owner));
        keys.push(key::token(&self.name));
        keys.extend(attempt.previous.map(|previous| key::latch(&self.name, previous)));
        let call = ScriptCall::new(&scripts::FAIR_ACQUIRE, request, bound, self.publish, keys);
        self.times(call.arg(owner.to_text()), ScriptCall::arg)
            .number(attempt.number)
            .ms(attempt.lease.get())
            .flag(attempt.last)
            .ms(self.settings.allowance)
            .ms(TOKEN_KEPT)
            .arg(attempt.previous.map_or_else(String::new, OwnerId::to_text))
            .ms(PREVIOUS_KEPT)
    }

    pub(super) fn renew(&self, extension: &Extension) -> ScriptCall {
        self.as_lock().renew(extension)
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
        let mut keys = self.keys(key::latch(&self.name, owner));
        keys.extend(previous.map(|previous| key::latch(&self.name, previous)));
        let call = ScriptCall::new(&scripts::FAIR_RELEASE, request, bound, self.publish, keys);
        self.times(call.arg(owner.to_text()), ScriptCall::arg)
            .arg(previous.map_or_else(String::new, OwnerId::to_text))
            .ms(PREVIOUS_KEPT)
    }

    pub(super) fn force_release(&self) -> IdempotentCall {
        let name = self.name.clone();
        let call =
            IdempotentCall::new(&scripts::FAIR_FORCE_RELEASE, name, self.publish, self.state());
        self.times(call, IdempotentCall::arg)
    }

    pub(super) fn inspect(&self, request: RequestId, owner: Option<OwnerId>) -> ScriptCall {
        self.as_lock().inspect(request, owner)
    }

    /// The calls that a fair lock shares with a plain one: both have the same hash, tokens and
    /// latches.
    fn as_lock(&self) -> LockCalls {
        LockCalls::new(self.name.clone(), self.publish)
    }

    fn keys(&self, first: String) -> Vec<String> {
        let mut keys = vec![first];
        keys.append(&mut self.state());
        keys
    }

    /// KEYS 2 to 8 of the scripts that change the queue.
    fn state(&self) -> Vec<String> {
        let name = &self.name;
        vec![
            key::lock(name),
            key::queue(name),
            key::timeouts(name),
            key::beats(name),
            key::arrivals(name),
            key::watch(name),
            key::channel(name),
        ]
    }

    /// ARGV 6 to 9 of the scripts that change the queue.
    fn times<T>(&self, call: T, add: impl Fn(T, String) -> T) -> T {
        let FairSettings { life, skew, short, long, .. } = self.settings;
        [life, skew, short, long].map(|time| millis(time).to_string()).into_iter().fold(call, add)
    }
}

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(super) fn checked(
    option: &str,
    time: Duration,
    least: Duration,
    most: Duration,
) -> Result<Duration, InvalidOption> {
    let fits = (least..=most).contains(&time) && time.subsec_nanos().is_multiple_of(1_000_000);
    fits.then_some(time).ok_or_else(|| {
        let (least, most) = (millis(least).to_string(), millis(most).to_string());
        let accepted = [&least, " to ", &most, " whole milliseconds"].concat();
        InvalidOption::new(option, accepted)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_holds_at_both_ends_and_is_refused_by_its_name() {
        let set = FairSettings::default();
        assert!(set.life(s(1)).is_ok() && set.life(s(60)).is_ok() && set.skew(s(0)).is_ok());
        let ms = Duration::from_millis;
        let bad = [
            (set.life(ms(999)), "life"),
            (set.life(Duration::from_micros(1_500_500)), "life"),
            (set.skew(ms(3_600_001)), "skew"),
            (set.allowance(ms(999)), "allowance"),
            (set.grace(ms(60_001), s(100)), "short"),
            (set.grace(ms(2_999), s(100)), "short"),
            (set.grace(s(5), s(4)), "long"),
        ];
        for (refused, option) in bad {
            assert_eq!(refused.unwrap_err().option(), option);
        }
    }

    #[test]
    fn a_skew_grows_up_to_an_hour() {
        let mut set = FairSettings::default().skew(s(0)).unwrap();
        for wanted in [4, 16, 64, 256, 1024, 3600, 3600] {
            set = set.widened();
            assert_eq!(set.skew, s(wanted));
        }
    }
}
