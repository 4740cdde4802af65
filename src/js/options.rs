//! Options from JavaScript, which `pkg/options.js` has checked: numbers, NaN for an option that was
//! not given. The defaults are here. Lists of one number have no names for places.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::numbers::{client, fair, fair_read_write, read_write, spin, wait};
use crate::error::InvalidOption;
use edgelatch_proto::engine::{AcquirePolicy, HoldTime};
use edgelatch_proto::machine::SpinBackoff;
use edgelatch_proto::protocol::calls::{FairReadWriteSettings, FairSettings};
use edgelatch_proto::protocol::gateway::{Gateway, KeyLocking};
use edgelatch_proto::protocol::script::Publish;
use edgelatch_proto::timing::{
    AttemptTime, GuardMemory, LeaseTime, LifeTime, PeerSkew, RejoinDelay, Replicas, RequestBudget,
    WaitPolicy, WaitTime, WantTime,
};

/// Numbers in the order in which `pkg/options.js` gives them.
pub(super) struct Numbers<'a>(pub(super) &'a [f64]);

impl Numbers<'_> {
    /// Returns the number in this place, if one was given.
    #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and in range")]
    #[inline(never)]
    pub(super) fn get(&self, place: usize) -> Option<i64> {
        self.0.get(place).filter(|number| !number.is_nan()).map(|number| *number as i64)
    }

    /// Returns the number in this place as a `u32`, or 0 if none was given.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be whole and in range, and saturates"
    )]
    pub(super) fn small(&self, place: usize) -> u32 {
        self.0.get(place).map_or(0, |number| *number as u32)
    }

    #[inline(never)]
    fn time(&self, place: usize) -> Option<Duration> {
        self.get(place).map(|ms| Duration::from_millis(ms.unsigned_abs()))
    }

    fn timed<T>(
        &self,
        place: usize,
        new: fn(Duration) -> Result<T, InvalidOption>,
    ) -> Result<Option<T>, InvalidOption> {
        self.time(place).map(new).transpose()
    }

    /// Returns the flag in this place, or `unset` if none was given.
    pub(super) fn flag(&self, place: usize, unset: bool) -> bool {
        self.get(place).map_or(unset, |number| number == 1)
    }

    /// Reads a lease in milliseconds; 0 means a lease without an end.
    pub(super) fn lease(&self, place: usize) -> Result<Option<LeaseTime>, InvalidOption> {
        match self.get(place) {
            Some(0) => Ok(Some(LeaseTime::ENDLESS)),
            _ => self.timed(place, LeaseTime::new),
        }
    }

    /// Reads the time of a hold in milliseconds; 0 means renewal until the release.
    fn hold(&self) -> Result<HoldTime, InvalidOption> {
        match self.get(wait::LEASE) {
            Some(0) => Ok(HoldTime::Renewed),
            _ => {
                let lease = self.timed(wait::LEASE, LeaseTime::new)?;
                Ok(lease.map_or(HoldTime::AsUsual, HoldTime::Fixed))
            }
        }
    }

    /// Reads the options of an acquisition or a wait; with `once` it does not wait.
    pub(super) fn acquire_policy(&self, once: bool) -> Result<AcquirePolicy, InvalidOption> {
        let patience = match self.get(wait::WAIT) {
            _ if once => WaitPolicy::Once,
            Some(0) => WaitPolicy::UntilCancelled,
            _ => {
                let time = self.timed(wait::WAIT, WaitTime::new)?;
                WaitPolicy::UpTo(time.unwrap_or(WaitTime::DEFAULT))
            }
        };
        let requests = self.get(wait::REQUESTS);
        let budget = requests.map(|_| RequestBudget::new(self.small(wait::REQUESTS)));
        let budget = budget.transpose()?;
        let count = self.get(wait::REPLICAS).and_then(|count| u8::try_from(count).ok());
        let replicas = count.map(Replicas::new).transpose()?;
        Ok(AcquirePolicy::new(self.hold()?, patience, budget).with_replicas(replicas))
    }

    pub(super) fn skew(&self) -> Result<PeerSkew, InvalidOption> {
        Ok(self.timed(0, PeerSkew::new)?.unwrap_or(PeerSkew::DEFAULT))
    }

    pub(super) fn rejoin_delay(&self) -> Result<Option<RejoinDelay>, InvalidOption> {
        self.timed(0, RejoinDelay::new)
    }

    pub(super) fn life(&self, place: usize) -> Result<Option<LifeTime>, InvalidOption> {
        self.timed(place, LifeTime::new)
    }

    /// Reads the memory of a guard in milliseconds; 0 means for ever.
    pub(super) fn memory(&self) -> Result<GuardMemory, InvalidOption> {
        match self.get(0) {
            Some(0) => Ok(GuardMemory::FOR_EVER),
            _ => Ok(self.timed(0, GuardMemory::new)?.unwrap_or(GuardMemory::DEFAULT)),
        }
    }

    pub(super) fn fair(&self) -> Result<FairSettings, InvalidOption> {
        let mut settings = FairSettings::default();
        if let Some(life) = self.time(fair::LIFE) {
            settings = settings.life(life)?;
        }
        if let Some(skew) = self.time(fair::SKEW) {
            settings = settings.skew(skew)?;
        }
        if let Some(wait) = self.time(fair::ALLOWANCE) {
            settings = settings.allowance(wait)?;
        }
        let short = self.time(fair::SHORT).unwrap_or(Duration::from_secs(5));
        let long = self.time(fair::LONG).unwrap_or_else(|| Duration::from_secs(30).max(short));
        settings.grace(short, long)
    }

    pub(super) fn fair_read_write(&self) -> Result<FairReadWriteSettings, InvalidOption> {
        let mut settings = FairReadWriteSettings::default();
        if let Some(life) = self.time(fair_read_write::LIFE) {
            settings = settings.life(life)?;
        }
        if self.get(fair_read_write::MAX_HOLDERS).is_some() {
            settings = settings.max_holders(self.small(fair_read_write::MAX_HOLDERS))?;
        }
        if self.get(fair_read_write::MAX_WAITERS).is_some() {
            settings = settings.max_waiters(self.small(fair_read_write::MAX_WAITERS))?;
        }
        Ok(settings)
    }

    /// Reads for how long a refused writer blocks new readers; 0 means the default time.
    pub(super) fn prefers_writers(&self) -> Result<Option<WantTime>, InvalidOption> {
        match self.get(read_write::WANT) {
            Some(0) => Ok(Some(WantTime::DEFAULT)),
            _ => self.timed(read_write::WANT, WantTime::new),
        }
    }

    /// Reads the watchdog time of Java programs; 0 means that there are none.
    pub(super) fn peer_watchdog(&self) -> Result<Option<LeaseTime>, InvalidOption> {
        match self.get(read_write::WATCHDOG) {
            None => Ok(Some(LeaseTime::DEFAULT)),
            Some(0) => Ok(None),
            Some(_) => self.timed(read_write::WATCHDOG, LeaseTime::new),
        }
    }

    /// Reads the back-off of a spin lock: exponential (0) or constant (1).
    pub(super) fn pauses(&self) -> SpinBackoff {
        let pause = |place, usual| self.time(place).unwrap_or_else(|| Duration::from_millis(usual));
        match self.get(spin::TYPE) {
            None => SpinBackoff::default(),
            Some(0) => {
                let first = pause(spin::FIRST, 1);
                let max = self.time(spin::MAX);
                let max = max.unwrap_or_else(|| first.max(Duration::from_millis(128)));
                let has_factor = self.get(spin::FACTOR).is_some();
                let factor = if has_factor { self.small(spin::FACTOR) } else { 2 };
                SpinBackoff::Exponential { first, max, factor }
            }
            Some(_) => SpinBackoff::Constant(pause(spin::DELAY, 64)),
        }
    }

    /// Creates the gateway at this address, with its options.
    pub(super) fn gateway(&self, url: &str, token: &str) -> Result<Gateway, InvalidOption> {
        let is_webdis = self.small(client::DIALECT) == client::WEBDIS;
        let new = match (is_webdis, self.flag(client::ALLOW_HTTP, false)) {
            (false, false) => Gateway::upstash,
            (false, true) => Gateway::upstash_over_http,
            (true, false) => Gateway::webdis,
            (true, true) => Gateway::webdis_over_http,
        };
        // The defaults are the first words of the lists.
        let key_locking = match self.small(client::KEY_LOCKING) {
            client::LOCKING_ON => KeyLocking::On,
            client::LOCKING_OFF => KeyLocking::Off,
            _ => KeyLocking::Auto,
        };
        let publish = match self.small(client::PUBLISH) {
            client::SHARDED => Publish::Sharded,
            client::BOTH => Publish::Both,
            _ => Publish::Plain,
        };
        let attempt = self.timed(client::REQUEST_TIMEOUT, AttemptTime::new)?;
        let gateway = new(url, token)?.key_locking(key_locking).publish(publish);
        let wakeups = self.small(client::WAKEUPS) != client::WAKEUPS_OFF;
        Ok(gateway.wakeups(wakeups).request_timeout(attempt.unwrap_or(AttemptTime::DEFAULT)))
    }
}

/// Unpacks texts: each follows its length in UTF-16 code units, which is the `length` that
/// JavaScript knows, and a colon. A list of texts would cross the border text by text.
pub(super) fn unpacked(mut packed: &str) -> Vec<String> {
    let mut texts = Vec::new();
    while let Some((length, rest)) = packed.split_once(':') {
        let mut left: u64 = length.parse().unwrap_or_default();
        let mut after = rest.chars();
        while left > 0
            && let Some(next) = after.next()
        {
            left = left.saturating_sub(next.len_utf16() as u64);
        }
        packed = after.as_str();
        texts.push(rest.get(..rest.len() - packed.len()).unwrap_or_default().into());
    }
    texts
}

/// Returns the first text, or an empty one.
pub(super) fn first(texts: &[String]) -> &str {
    texts.first().map_or("", String::as_str)
}
