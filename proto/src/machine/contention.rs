//! Estimates the number of competing clients, and spreads their retries.
//!
//! A message wakes one waiter of each client. If all of them retried at once, all but one would do
//! so in vain. So each waits for a random time up to
//! [`retry_spread`](ContentionEstimator::retry_spread); the first to retry is granted, the grant is
//! published too, and a client that receives that message in time does not retry.
//!
//! The longest such time is the number of competitors, multiplied by the mean distance between two
//! retries. The distance is the shortest observed hand-off, multiplied by a factor. The factor
//! grows when the message of a grant arrives while this client's retry has no reply yet, and
//! shrinks otherwise. It settles where about two clients have a retry in flight at that moment. One
//! of them may be the granted one, so one or two retries per hand-off are wasted. A client without
//! competitors retries at once.

use core::time::Duration;

use crate::protocol::calls::GrantNotice;
use crate::time::Instant;

/// The assumed number of competitors after a grant without a number of listeners.
const COMPETITORS_UNKNOWN: u32 = 7;
/// The assumed time of a hand-off before one was observed.
const HANDOFF_UNKNOWN: Duration = Duration::from_millis(5);
/// A hand-off counts as at least this long: the clock may not have advanced between its messages.
const HANDOFF_MIN: Duration = Duration::from_millis(1);
/// The upper limit of the random time. If competitors have left since the last grant, the object
/// stays free for no longer than this.
const RETRY_SPREAD_MAX: Duration = Duration::from_secs(2);
/// The factor 1 in fixed-point arithmetic.
const FACTOR_ONE: u32 = 1024;
/// The initial, smallest and largest factor.
const FACTOR_INITIAL: u32 = FACTOR_ONE * 3 / 2;
const FACTOR_MIN: u32 = FACTOR_ONE / 2;
const FACTOR_MAX: u32 = FACTOR_ONE * 32;

/// The estimate for one topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentionEstimator {
    /// The estimated number of other clients: the listeners of the last published grant except this
    /// client, halved for each later grant that was not published. 0 before the first grant.
    competitors: u32,
    /// The shortest recent time between the messages of a release and of the next grant.
    min_handoff: Option<Duration>,
    /// The mean time between the retry of one client and of the next, as a multiple of
    /// `min_handoff`, in units of 1/`FACTOR_ONE`.
    spread_factor: u32,
    /// When the last message arrived: the engine forgets estimates that are old.
    last_message_at: Option<Instant>,
    /// When the last release was observed, if no grant was since.
    free_since: Option<Instant>,
}

impl Default for ContentionEstimator {
    /// Without any observation.
    fn default() -> Self {
        Self {
            competitors: 0,
            min_handoff: None,
            spread_factor: FACTOR_INITIAL,
            last_message_at: None,
            free_since: None,
        }
    }
}

impl ContentionEstimator {
    /// Records a message that the object was released.
    pub fn on_release(&mut self, now: Instant) {
        if self.free_since.replace(now).is_some() {
            // The grant between the two releases was not published. A waiter would have published
            // it, so fewer clients may be waiting.
            self.competitors /= 2;
        }
        self.last_message_at = Some(now);
    }

    /// Records a published grant. `retry_in_flight`: whether this client had sent a retry without a
    /// reply yet, or was just beginning one, when the message arrived. A retry that waits for its
    /// random time does not count. Ignored unless a release was recorded since the last grant.
    pub fn on_grant(&mut self, grant: GrantNotice, retry_in_flight: bool, now: Instant) {
        let GrantNotice { listeners, .. } = grant;
        self.competitors = listeners.map_or(COMPETITORS_UNKNOWN, |count| count.saturating_sub(1));
        if let Some(free_since) = self.free_since.take() {
            let handoff = now.max_elapsed(free_since).max(HANDOFF_MIN);
            // The recorded minimum rises slowly, since hand-offs may have become slower.
            let before = self.min_handoff.map_or(handoff, |before| before + before / 8);
            self.min_handoff = Some(handoff.min(before));
            // Grows by half if this client's retry was in flight: it was wasted, unless the grant
            // is its own. Otherwise shrinks by the share 4/(5n) of itself, for n clients. If two of
            // them have a retry in flight, growth and shrinkage cancel out: 2 ln 1.5 is about 4/5.
            let factor = if retry_in_flight {
                self.spread_factor + self.spread_factor / 2
            } else {
                self.spread_factor - self.spread_factor * 4 / 5 / (self.competitors + 1)
            };
            self.spread_factor = factor.clamp(FACTOR_MIN, FACTOR_MAX);
        }
        self.last_message_at = Some(now);
    }

    /// The time after a release within which this client retries, at random; zero without
    /// competitors.
    pub fn retry_spread(&self) -> Duration {
        let handoff = self.min_handoff.unwrap_or(HANDOFF_UNKNOWN);
        let distance = handoff.saturating_mul(self.spread_factor) / FACTOR_ONE;
        distance.saturating_mul(self.competitors).min(RETRY_SPREAD_MAX)
    }

    /// The time of the last message.
    pub const fn last_message_at(&self) -> Option<Instant> {
        self.last_message_at
    }
}
