//! Events that a search must reach: a search without them proves nothing about them.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use super::client::Client;
use super::plan::{NAME, client_of};
use super::run_record::{Executed, RunRecord, waiters};
use super::stage::Outcome;

/// Defines the enum, and `ALL` with its variants.
macro_rules! cover_points {
    ($($(#[$doc:meta])* $point:ident,)*) => {
        /// An event of some run.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum CoverPoint {
            $($(#[$doc])* $point,)*
        }

        const ALL: &[CoverPoint] = &[$(CoverPoint::$point),*];
    };
}

cover_points! {
    BothGranted,
    Busy,
    /// The end of an owner that was never granted.
    Abandoned,
    Renewed,
    Lost,
    /// A client does not know whether it holds anything.
    Unknown,
    /// After that, a request of this client is granted, or its hold is extended.
    LateGrant,
    RefusedAsLate,
    RefusedAsGone,
    RefusedAsLost,
    Repeated,
    /// A read is granted inside its own client's write; a write is released around a read.
    NestedRead,
    Downgraded,
    /// A client waits in the queue, is passed over because it is silent, or returns to its place.
    Queued,
    PassedOver,
    Restored,
    /// A copy of a poll is executed after a newer poll.
    Stale,
    /// A client takes over an earlier owner's place, or its hold.
    TookOver,
    HandedOver,
    Done,
    NotExecuted,
    /// A result is returned again; a cancel comes before its call, or finds the call's result.
    ResultRepeated,
    Cancelled,
    Nothing,
    BoundRequired,
    Open,
}

/// The events so far, of all runs.
#[derive(Default)]
pub(crate) struct Reachability(AtomicU32);

impl fmt::Debug for Reachability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(ALL.iter().filter(|point| self.has_reached(**point))).finish()
    }
}

impl Reachability {
    pub(crate) fn has_reached(&self, point: CoverPoint) -> bool {
        self.0.load(Ordering::Relaxed) & (1 << point as u32) != 0
    }

    /// Marks the events of one execution of a script. `record` has recorded it already.
    pub(crate) fn executed(&self, run: &Executed<'_>, client: &Client, record: &RunRecord) {
        if run.acquires()
            && run.code > 0
            && matches!(client.outcome(), Some(Outcome::HeldAtMost { .. }))
        {
            self.mark(CoverPoint::LateGrant);
        }
        if run.acquires() {
            self.acquired(run, record);
        }
        if run.polls() {
            self.polled(run);
        }
        let never_granted = || record.grants.iter().all(|(granted, _)| **granted != *run.owner());
        match (run.name, run.code) {
            (_, 0) if run.releases() && never_granted() => self.mark(CoverPoint::Abandoned),
            ("write_release", 1) if run.value != "0" => self.mark(CoverPoint::Downgraded),
            ("cancel", -2) => self.mark(CoverPoint::Cancelled),
            ("cancel" | "semaphore_change" | "latch_change", 0..) if run.ms == 1 => {
                self.mark(CoverPoint::ResultRepeated);
            }
            (_, 3) => self.mark(CoverPoint::Nothing),
            (_, -4) => self.mark(CoverPoint::BoundRequired),
            _ => {}
        }
    }

    fn acquired(&self, run: &Executed<'_>, record: &RunRecord) {
        let others =
            || record.grants.iter().any(|(owner, _)| client_of(owner) != usize::from(run.number));
        let inside = || run.after.field(NAME, "mode") == Some("write");
        match run.code {
            1 => {
                if others() {
                    self.mark(CoverPoint::BothGranted);
                }
                if run.name == "read_acquire" && inside() {
                    self.mark(CoverPoint::NestedRead);
                }
            }
            2 => self.mark(CoverPoint::Repeated),
            -1 => self.mark(CoverPoint::RefusedAsLate),
            -2 => self.mark(CoverPoint::RefusedAsGone),
            -3 => self.mark(CoverPoint::RefusedAsLost),
            _ => {}
        }
    }

    fn polled(&self, run: &Executed<'_>) {
        if run.is_stale() {
            return self.mark(CoverPoint::Stale);
        }
        let previous = run.previous().filter(|_| run.code == 0 || run.code == 1);
        if let Some(previous) = previous {
            self.mark(CoverPoint::TookOver);
            if run.had_hold(previous) {
                self.mark(CoverPoint::HandedOver);
            }
        }
        let (owner, after) = (run.owner(), waiters(run.after));
        let leaves = |other: &str| other == owner || Some(other) == previous;
        let mut gone = waiters(run.before).into_iter().filter(|other| !after.contains(other));
        if gone.any(|other| !leaves(other)) {
            self.mark(CoverPoint::PassedOver);
        }
        if after.contains(&owner) {
            self.mark(if run.value.ends_with(",1") {
                CoverPoint::Restored
            } else {
                CoverPoint::Queued
            });
        }
    }

    /// Marks the events in the state of a client.
    pub(crate) fn client(&self, client: &Client) {
        if client.was_renewed() {
            self.mark(CoverPoint::Renewed);
        }
        if client.has_lost() {
            self.mark(CoverPoint::Lost);
        }
        match client.outcome() {
            Some(Outcome::Busy) => self.mark(CoverPoint::Busy),
            Some(Outcome::HeldAtMost { .. }) => self.mark(CoverPoint::Unknown),
            Some(Outcome::Done(..)) => self.mark(CoverPoint::Done),
            Some(Outcome::NotExecuted) => self.mark(CoverPoint::NotExecuted),
            Some(Outcome::Open) => self.mark(CoverPoint::Open),
            Some(Outcome::NothingHeld | Outcome::Refused) | None => {}
        }
    }

    fn mark(&self, point: CoverPoint) {
        // Most events were marked before: then this writes nothing that the other threads would
        // have to wait for.
        if !self.has_reached(point) {
            self.0.fetch_or(1 << point as u32, Ordering::Relaxed);
        }
    }
}
