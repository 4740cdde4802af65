//! The classes of faults, by the groups A to H of the scenarios. Each schedule draws the classes
//! that are on.

use fastrand::Rng;

use super::named::named;

named! {
    /// A class of faults.
    Fault {
        /// A request is lost before it is executed (A).
        Lost = "lost",
        /// A request is executed, and its reply is lost (A).
        Unanswered = "unanswered",
        /// Requests and replies take up to several leases (A, B).
        Slow = "slow",
        /// The network delivers a request several times (A).
        Copies = "copies",
        /// Copies arrive late: up to beyond the horizon (A).
        LateCopies = "late-copies",
        /// A client receives a reply to another client, or an older one (A).
        Swapped = "swapped",
        /// A host's wall clock is set (B).
        WallSteps = "wall-steps",
        /// Timers fire late (B).
        LateTimers = "late-timers",
        /// Clocks run faster or slower than clients allow for (B).
        Drift = "drift",
        /// A host stands still and continues (C).
        Suspensions = "suspensions",
        /// A host stops for good (C).
        Stops = "stops",
        /// A host is copied while it runs (C).
        Clones = "clones",
        /// The gateway is overloaded: it replies 429 or 503 and executes nothing (D).
        Throttled = "throttled",
        /// The gateway fails after the script has run (D).
        Failing = "failing",
        /// The gateway returns bodies that are not replies (D).
        Garbage = "garbage",
        /// Bodies end early (D).
        Cut = "cut",
        /// Connections break, or are never made (D).
        Broken = "broken",
        /// Redis forgets its scripts (E).
        Flushes = "flushes",
        /// Redis loads, fails over or is busy (E).
        Unready = "unready",
        /// Redis has no memory left (E).
        Memory = "memory",
        /// Redis evicts a key (E).
        Evictions = "evictions",
        /// Redis restarts without data (E).
        Restarts = "restarts",
        /// A replica without the last writes takes over (E).
        Failovers = "failovers",
        /// Redis' clock is set forward (B).
        ServerForward = "server-forward",
        /// Redis' clock is set back (B).
        ServerBack = "server-back",
        /// Streams end (F).
        StreamsEnd = "streams-end",
        /// Streams are silent (F).
        StreamsSilent = "streams-silent",
        /// A stream delivers messages that no client has published (F).
        Forged = "forged",
        /// Messages are lost (F).
        LostMessages = "lost-messages",
        /// A Redisson client uses the lock too (H).
        Java = "java",
    }
}

/// The set of classes that are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Faults(u64);

impl Faults {
    pub(crate) const NONE: Self = Self(0);

    pub(crate) const fn has(self, fault: Fault) -> bool {
        self.0 >> fault as u32 & 1 == 1
    }

    #[must_use]
    pub(crate) const fn with(self, fault: Fault) -> Self {
        Self(self.0 | 1 << fault as u32)
    }

    #[must_use]
    pub(crate) const fn without(self, fault: Fault) -> Self {
        Self(self.0 & !(1 << fault as u32))
    }

    /// The classes that break no assumption of exclusion.
    #[must_use]
    pub(crate) fn without_those_of_redis(self) -> Self {
        let kept = self.iter().filter(|fault| !fault.is_of_redis());
        kept.fold(Self::NONE, Self::with)
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Fault> {
        Fault::ALL.iter().copied().filter(move |fault| self.has(*fault))
    }

    /// Draws a set (swarm testing): some classes are on and most are off, so that each class also
    /// occurs in schedules in which no other class hides its effects.
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let share = [0, 10, 25, 50][rng.usize(0..4)];
        Fault::ALL.iter().fold(Self::NONE, |on, fault| {
            // Faults that no client can compensate are rarer: fewer promises hold with them.
            let share = if fault.is_of_redis() { share / 4 } else { share };
            if rng.u32(0..100) < share { on.with(*fault) } else { on }
        })
    }

    /// The names of the classes, as the command takes them.
    pub(crate) fn names(self) -> String {
        let names: Vec<_> = self.iter().map(Fault::name).collect();
        if names.is_empty() { "none".into() } else { names.join(",") }
    }
}

impl Fault {
    /// Whether it breaks an assumption of exclusion: good clocks (C1), or that no write is lost
    /// (C2).
    pub(crate) const fn is_of_redis(self) -> bool {
        use Fault::{Drift, Evictions, Failovers, Restarts, ServerBack, ServerForward};
        matches!(self, Drift | Evictions | Failovers | Restarts | ServerBack | ServerForward)
    }
}
