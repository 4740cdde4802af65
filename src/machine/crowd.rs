//! Who else waits for the same, as far as one client has heard, and how far their turns are to be apart.
//!
//! A message wakes one waiter of each client. If they all asked at once, all but one would ask in vain. So each waits for a turn of
//! its own; the first to ask has it, which is published as well, and whoever hears of that in time need not ask. Turns are as
//! far apart as it takes to be heard of: that is learned, so that about one asks in vain at each hand-off, however many there
//! are and however slow the way is. Whoever is alone has its turn at once.

use core::time::Duration;

use crate::protocol::calls::Taken;
use crate::time::Instant;

/// For how many others are taken where Redis does not say how many listen.
const RIVALS_UNKNOWN: u32 = 7;
/// How long it takes to have it, while that is not known.
const QUICKEST_UNKNOWN: Duration = Duration::from_millis(5);
/// A clock may not have moved meanwhile.
const QUICKEST_MIN: Duration = Duration::from_millis(1);
/// The latest turn: there may be fewer others by now than there were.
const LATEST: Duration = Duration::from_secs(2);
/// How far turns are apart, in parts of what the quickest take: at first, at the least, and at the most.
const PARTS: u32 = 1024;
const APART: u32 = PARTS * 3 / 2;
const APART_MIN: u32 = PARTS / 2;
const APART_MAX: u32 = PARTS * 32;

/// Those who wait for one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crowd {
    rivals: u32,
    quickest: Option<Duration>,
    apart: u32,
    heard_at: Option<Instant>,
    /// Since when it is free, as far as was heard.
    free_since: Option<Instant>,
}

impl Default for Crowd {
    /// Nothing was heard yet.
    fn default() -> Self {
        Self { rivals: 0, quickest: None, apart: APART, heard_at: None, free_since: None }
    }
}

impl Crowd {
    /// They are told that it is free.
    pub fn is_told(&mut self, now: Instant) {
        if self.free_since.replace(now).is_some() {
            // Whoever has had it did not say so, and the others may have gone.
            self.rivals /= 2;
        }
        self.heard_at = Some(now);
    }

    /// One of them has it. `asked`: this client had asked by then.
    pub fn takes(&mut self, taken: Taken, asked: bool, now: Instant) {
        let Taken { listeners, .. } = taken;
        self.rivals = listeners.map_or(RIVALS_UNKNOWN, |count| count.saturating_sub(1));
        if let Some(free_since) = self.free_since.take() {
            let took = now.since(free_since).max(QUICKEST_MIN);
            // What was quick once need not be so for ever.
            let before = self.quickest.map_or(took, |before| before + before / 8);
            self.quickest = Some(took.min(before));
            // Widen by half after a wasted retry; otherwise shrink by 4/5 divided among the
            // competitors. Balances at about one wasted retry per hand-off.
            let apart = if asked {
                self.apart + self.apart / 2
            } else {
                self.apart - self.apart * 4 / 5 / (self.rivals + 1)
            };
            self.apart = apart.clamp(APART_MIN, APART_MAX);
        }
        self.heard_at = Some(now);
    }

    /// Within which time this client's turn is to be; nothing when it is alone.
    pub fn within(&self) -> Duration {
        let apart = self.quickest.unwrap_or(QUICKEST_UNKNOWN).saturating_mul(self.apart) / PARTS;
        apart.saturating_mul(self.rivals).min(LATEST)
    }

    /// When something was last heard.
    pub(crate) const fn heard_at(&self) -> Option<Instant> {
        self.heard_at
    }
}
