//! Counts the events of a run: a run without an event proves nothing about it.

use std::cell::Cell;

use super::named::named;

named! {
    /// An event that a run must reach.
    CoverPoint {
        Requests = "requests",
        Pipelines = "requests of several calls",
        UnknownScripts = "scripts that Redis did not know",
        Lost = "requests lost",
        Unanswered = "answers lost",
        Copies = "copies executed",
        LateCopies = "copies executed after their owner's end",
        NotSent = "requests that did not leave",
        Broken = "connections broken",
        Throttled = "requests turned away",
        Failed = "failures of the gateway after the script had run",
        Garbage = "answers that were none",
        Cut = "answers cut off",
        Swapped = "answers of others",
        Messages = "messages received",
        LostMessages = "messages lost",
        Forged = "messages forged",
        StreamsSilent = "streams that say nothing",
        StreamsEnded = "streams that ended",
        Suspensions = "hosts that stood still",
        Stops = "hosts that stopped",
        Clones = "hosts cloned",
        WallSteps = "wall clocks set",
        Flushes = "scripts flushed",
        Unready = "calls refused by a Redis that was not ready",
        NoMemory = "calls refused by a full Redis",
        Evictions = "keys evicted",
        Restarts = "restarts without data",
        Failovers = "failovers with losses",
        ServerSteps = "clocks of Redis set",
        Java = "grants to Redisson's",
        Grants = "grants",
        Held = "leases held",
        Busy = "waits that were over",
        Cancelled = "waits given up",
        AcquisitionDropped = "acquisitions dropped",
        TooSlow = "grants that came too late",
        Unreachable = "acquisitions without an answer",
        Unknown = "acquisitions with an unknown outcome",
        Refused = "acquisitions refused",
        TokenRegressed = "grants with an older token",
        Released = "holds released",
        WasLost = "holds found lost when released",
        ReleaseUnknown = "releases with an unknown outcome",
        Dropped = "leases dropped",
        Expired = "leases lost by the holder's own clocks",
        Gone = "leases lost by what Redis said",
        Renewals = "renewals confirmed",
        Written = "guarded writes",
        Stale = "guarded writes refused as stale",
        Ran = "scripts of callers",
        LateAnswers = "calls refused as too late",
        Tombstones = "calls refused by a tombstone",
        Extended = "grants repeated",
        Served = "waiters served after the faults had ended",
        TasksDropped = "tasks that ended with their host",
    }
}

const COUNT: usize = CoverPoint::ALL.len();

/// How often each event occurred.
#[derive(Clone, Debug)]
pub(crate) struct Coverage([Cell<u64>; COUNT]);

impl Default for Coverage {
    fn default() -> Self {
        Self([const { Cell::new(0) }; COUNT])
    }
}

impl Coverage {
    /// Adds to a count; returns its value before.
    pub(crate) fn count(&self, point: CoverPoint, more: u64) -> u64 {
        let before = self.of(point);
        self.0[point as usize].set(before + more);
        before
    }

    pub(crate) fn of(&self, point: CoverPoint) -> u64 {
        self.0[point as usize].get()
    }

    pub(crate) fn add(&self, other: &Self) {
        for (point, count) in CoverPoint::ALL.iter().zip(&other.0) {
            self.count(*point, count.get());
        }
    }
}
