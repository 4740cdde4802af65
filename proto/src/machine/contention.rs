//! Estimates the number of competing clients, and spreads their retries.
//!
//! A message wakes one waiter of each client. If all of them retried at once, all but one would do
//! so in vain. So each waits for a random time; the first to retry is granted, the grant is
//! published too, and a client that receives that message in time does not retry. The spread is
//! learned from the time that a grant takes to be received, so that about one retry per hand-off is
//! wasted, for any number of clients and any latency. A client without competitors retries at once.

use core::time::Duration;

use crate::protocol::calls::Taken;
use crate::time::Instant;

/// The assumed number of competitors if Redis does not report the number of listeners.
const COMPETITORS_UNKNOWN: u32 = 7;
/// The assumed time of a hand-off before one was observed.
const HANDOFF_UNKNOWN: Duration = Duration::from_millis(5);
/// The least time of a hand-off, since the clock may not have advanced.
const HANDOFF_MIN: Duration = Duration::from_millis(1);
/// The longest spread: the number of competitors may have fallen.
const WITHIN_MAX: Duration = Duration::from_secs(2);
/// The distance of two retries, in 1024ths of the quickest hand-off: initial, least and largest
/// value.
const PARTS: u32 = 1024;
const SPREAD: u32 = PARTS * 3 / 2;
const SPREAD_MIN: u32 = PARTS / 2;
const SPREAD_MAX: u32 = PARTS * 32;

/// The competitors for one topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentionEstimator {
    competitors: u32,
    min_handoff: Option<Duration>,
    spread: u32,
    heard_at: Option<Instant>,
    /// When the last release was observed, if no grant was since.
    free_since: Option<Instant>,
}

impl Default for ContentionEstimator {
    /// Without any observation.
    fn default() -> Self {
        Self { competitors: 0, min_handoff: None, spread: SPREAD, heard_at: None, free_since: None }
    }
}

impl ContentionEstimator {
    /// Records a message that it was released.
    pub fn is_told(&mut self, now: Instant) {
        if self.free_since.replace(now).is_some() {
            // The holder in between published no grant, and competitors may have left.
            self.competitors /= 2;
        }
        self.heard_at = Some(now);
    }

    /// Records a published grant. `asked`: this client had retried by then.
    pub fn takes(&mut self, taken: Taken, asked: bool, now: Instant) {
        let Taken { listeners, .. } = taken;
        self.competitors = listeners.map_or(COMPETITORS_UNKNOWN, |count| count.saturating_sub(1));
        if let Some(free_since) = self.free_since.take() {
            let took = now.max_elapsed(free_since).max(HANDOFF_MIN);
            // The quickest time is raised slowly, since it may have grown.
            let before = self.min_handoff.map_or(took, |before| before + before / 8);
            self.min_handoff = Some(took.min(before));
            // Widen by half after a wasted retry; otherwise shrink by 4/5 divided among the
            // competitors. Balances at about one wasted retry per hand-off.
            let spread = if asked {
                self.spread + self.spread / 2
            } else {
                self.spread - self.spread * 4 / 5 / (self.competitors + 1)
            };
            self.spread = spread.clamp(SPREAD_MIN, SPREAD_MAX);
        }
        self.heard_at = Some(now);
    }

    /// The time within which this client retries; zero without competitors.
    pub fn within(&self) -> Duration {
        let spread =
            self.min_handoff.unwrap_or(HANDOFF_UNKNOWN).saturating_mul(self.spread) / PARTS;
        spread.saturating_mul(self.competitors).min(WITHIN_MAX)
    }

    /// The time of the last message.
    pub const fn heard_at(&self) -> Option<Instant> {
        self.heard_at
    }
}
