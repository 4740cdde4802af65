//! Estimates the number of competing clients, and spreads their retries.
//!
//! A message wakes one waiter of each client. If all of them retried at once, all but one would do
//! so in vain. So each waits for a random time; the first to retry is granted, the grant is
//! published too, and a client that receives that message in time does not retry. The spread is
//! learned from the time that a grant takes to be received, so that about one retry per hand-off is
//! wasted, for any number of clients and any latency. A client without competitors retries at once.

use core::time::Duration;

use crate::protocol::calls::GrantNotice;
use crate::time::Instant;

/// The assumed number of competitors if Redis does not report the number of listeners.
const COMPETITORS_UNKNOWN: u32 = 7;
/// The assumed time of a hand-off before one was observed.
const HANDOFF_UNKNOWN: Duration = Duration::from_millis(5);
/// The least time of a hand-off, since the clock may not have advanced.
const HANDOFF_MIN: Duration = Duration::from_millis(1);
/// The longest spread: the number of competitors may have fallen.
const WITHIN_MAX: Duration = Duration::from_secs(2);
/// The unit of the spread: one shortest hand-off.
const SPREAD_UNIT: u32 = 1024;
/// The initial, smallest and largest spread.
const SPREAD: u32 = SPREAD_UNIT * 3 / 2;
const SPREAD_MIN: u32 = SPREAD_UNIT / 2;
const SPREAD_MAX: u32 = SPREAD_UNIT * 32;

/// The estimate for one topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentionEstimator {
    /// The number of other clients that received the last grant.
    competitors: u32,
    /// The shortest recent time between the messages of a release and of the next grant.
    min_handoff: Option<Duration>,
    /// The mean distance between the retries of two clients, in [`SPREAD_UNIT`]s.
    spread: u32,
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
            spread: SPREAD,
            last_message_at: None,
            free_since: None,
        }
    }
}

impl ContentionEstimator {
    /// Records a message that the object was released.
    pub fn on_release(&mut self, now: Instant) {
        if self.free_since.replace(now).is_some() {
            // The holder in between published no grant, and competitors may have left.
            self.competitors /= 2;
        }
        self.last_message_at = Some(now);
    }

    /// Records a published grant. `retried` says whether this client had retried by then, after the
    /// last release.
    pub fn on_grant(&mut self, grant: GrantNotice, retried: bool, now: Instant) {
        let GrantNotice { listeners, .. } = grant;
        self.competitors = listeners.map_or(COMPETITORS_UNKNOWN, |count| count.saturating_sub(1));
        if let Some(free_since) = self.free_since.take() {
            let took = now.max_elapsed(free_since).max(HANDOFF_MIN);
            // The recorded minimum rises slowly, since hand-offs may have become slower.
            let before = self.min_handoff.map_or(took, |before| before + before / 8);
            self.min_handoff = Some(took.min(before));
            // Widen by half after a wasted retry; otherwise shrink by 4/5 divided among the
            // competitors. Balances at about one wasted retry per hand-off.
            let spread = if retried {
                self.spread + self.spread / 2
            } else {
                self.spread - self.spread * 4 / 5 / (self.competitors + 1)
            };
            self.spread = spread.clamp(SPREAD_MIN, SPREAD_MAX);
        }
        self.last_message_at = Some(now);
    }

    /// The time after a release within which this client retries, at random; zero without
    /// competitors.
    pub fn within(&self) -> Duration {
        let spread =
            self.min_handoff.unwrap_or(HANDOFF_UNKNOWN).saturating_mul(self.spread) / SPREAD_UNIT;
        spread.saturating_mul(self.competitors).min(WITHIN_MAX)
    }

    /// The time of the last message.
    pub const fn last_message_at(&self) -> Option<Instant> {
        self.last_message_at
    }
}
