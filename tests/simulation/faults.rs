//! What may go wrong, by the letters of the scenarios: each schedule draws which of these do.

use fastrand::Rng;

use super::named::named;

named! {
    /// A class of faults.
    Fault {
        /// A request is lost before it is executed (A).
        Lost = "lost",
        /// It is executed, and its answer is lost (A).
        Unanswered = "unanswered",
        /// Requests and answers take their time, up to some leases (A, B).
        Slow = "slow",
        /// Something on the way sends a request several times (A).
        Copies = "copies",
        /// Copies come late: up to beyond the horizon (A).
        LateCopies = "late-copies",
        /// Somebody else's answer, or an older one (A).
        Swapped = "swapped",
        /// A wall clock is set (B).
        WallSteps = "wall-steps",
        /// Timers go off late (B).
        LateTimers = "late-timers",
        /// Clocks run faster or slower than is reckoned with (B).
        Drift = "drift",
        /// A host stands still and goes on (C).
        Suspensions = "suspensions",
        /// A host stops for good (C).
        Stops = "stops",
        /// A host is copied while it runs (C).
        Clones = "clones",
        /// The gateway has no time: 429 and 503, before anything is done (D).
        Throttled = "throttled",
        /// The gateway fails after the script has run (D).
        Failing = "failing",
        /// Answers that are none (D).
        Garbage = "garbage",
        /// Answers that end early (D).
        Cut = "cut",
        /// Connections that break, or are never made (D).
        Broken = "broken",
        /// Redis forgets its scripts (E).
        Flushes = "flushes",
        /// Redis loads, fails over or is busy (E).
        Unready = "unready",
        /// Redis has no memory left (E).
        Memory = "memory",
        /// Redis forgets a key (E).
        Evictions = "evictions",
        /// Redis starts anew with nothing (E).
        Restarts = "restarts",
        /// A replica takes over that lacks the last writes (E).
        Failovers = "failovers",
        /// Redis' clock is set forward (B).
        ServerForward = "server-forward",
        /// Redis' clock is set back (B).
        ServerBack = "server-back",
        /// Streams that end (F).
        StreamsEnd = "streams-end",
        /// Streams that say nothing (F).
        StreamsSilent = "streams-silent",
        /// Messages that nobody has published (F).
        Forged = "forged",
        /// Messages that are lost (F).
        Unheard = "unheard",
        /// A client of Redisson's (H).
        Java = "java",
    }
}

/// Which classes are on.
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

    pub(crate) fn iter(self) -> impl Iterator<Item = Fault> {
        Fault::ALL.iter().copied().filter(move |fault| self.has(*fault))
    }

    /// A swarm: some classes are on, and most are not, so that each has schedules in which nothing
    /// hides it.
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let share = [0, 10, 25, 50][rng.usize(0..4)];
        Fault::ALL.iter().fold(Self::NONE, |on, fault| {
            // What no client can make good is left out more often: there less is promised.
            let share = if fault.is_of_redis() { share / 4 } else { share };
            if rng.u32(0..100) < share { on.with(*fault) } else { on }
        })
    }

    /// Their names, as the command takes them.
    pub(crate) fn names(self) -> String {
        let names: Vec<_> = self.iter().map(Fault::name).collect();
        if names.is_empty() { "none".into() } else { names.join(",") }
    }
}

impl Fault {
    /// Whether it breaks what exclusion rests on: the clocks (C1), or that no write is lost (C2).
    pub(crate) const fn is_of_redis(self) -> bool {
        use Fault::{Drift, Evictions, Failovers, Restarts, ServerBack, ServerForward};
        matches!(self, Drift | Evictions | Failovers | Restarts | ServerBack | ServerForward)
    }
}
