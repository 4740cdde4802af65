//! Events that a search must reach: a search without them proves nothing about them.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use super::client::Client;
use super::plan::{NAME, client_of};
use super::seen::{Executed, QUEUE, Seen};
use super::stage::Told;

/// An event of some run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    BothGranted,
    Busy,
    /// The end of an owner that was never granted.
    Abandoned,
    Renewed,
    Lost,
    /// A client does not know whether it holds anything.
    Unknown,
    /// After that, a request of this client is granted, or its hold is extended.
    Ghost,
    RefusedAsLate,
    RefusedAsGone,
    RefusedAsLost,
    Repeated,
    /// A read is granted inside its own client's write; a write is released around a read.
    Inside,
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
    ToldAgain,
    Cancelled,
    Nothing,
    BoundRequired,
    Open,
}

const ALL: [Sight; 26] = {
    use Sight::*;
    [
        BothGranted,
        Busy,
        Abandoned,
        Renewed,
        Lost,
        Unknown,
        Ghost,
        RefusedAsLate,
        RefusedAsGone,
        RefusedAsLost,
        Repeated,
        Inside,
        Downgraded,
        Queued,
        PassedOver,
        Restored,
        Stale,
        TookOver,
        HandedOver,
        Done,
        NotExecuted,
        ToldAgain,
        Cancelled,
        Nothing,
        BoundRequired,
        Open,
    ]
};

/// The events so far, of all runs.
#[derive(Default)]
pub(crate) struct Sights(AtomicU32);

impl fmt::Debug for Sights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(ALL.into_iter().filter(|sight| self.saw(*sight))).finish()
    }
}

impl Sights {
    pub(crate) fn saw(&self, sight: Sight) -> bool {
        self.0.load(Ordering::Relaxed) & (1 << sight as u32) != 0
    }

    /// Notes the events of one execution of a script. `seen` has recorded it already.
    pub(crate) fn executed(&self, run: &Executed<'_>, client: &Client, seen: &Seen) {
        if run.acquires() && run.code > 0 && matches!(client.told(), Some(Told::HeldAtMost { .. }))
        {
            self.note(Sight::Ghost);
        }
        if run.acquires() {
            self.acquired(run, seen);
        }
        if run.is_fair() {
            self.polled(run);
        }
        let never_granted = || seen.grants.iter().all(|(granted, _)| **granted != *run.owner());
        match (run.name, run.code) {
            (_, 0) if run.releases() && never_granted() => self.note(Sight::Abandoned),
            ("write_release", 1) if run.value != "0" => self.note(Sight::Downgraded),
            ("cancel", -2) => self.note(Sight::Cancelled),
            ("cancel" | "semaphore_change" | "latch_change", 0..) if run.ms == 1 => {
                self.note(Sight::ToldAgain);
            }
            (_, 3) => self.note(Sight::Nothing),
            (_, -4) => self.note(Sight::BoundRequired),
            _ => {}
        }
    }

    fn acquired(&self, run: &Executed<'_>, seen: &Seen) {
        let others =
            || seen.grants.iter().any(|(owner, _)| client_of(owner) != usize::from(run.number));
        let inside = || run.after.field(NAME, "mode") == Some("write");
        match run.code {
            1 => {
                if others() {
                    self.note(Sight::BothGranted);
                }
                if run.name == "read_acquire" && inside() {
                    self.note(Sight::Inside);
                }
            }
            2 => self.note(Sight::Repeated),
            -1 => self.note(Sight::RefusedAsLate),
            -2 => self.note(Sight::RefusedAsGone),
            -3 => self.note(Sight::RefusedAsLost),
            _ => {}
        }
    }

    fn polled(&self, run: &Executed<'_>) {
        if run.is_stale() {
            return self.note(Sight::Stale);
        }
        let previous = run.previous().filter(|_| run.code == 0 || run.code == 1);
        if let Some(previous) = previous {
            self.note(Sight::TookOver);
            if run.before.field(NAME, previous).is_some() {
                self.note(Sight::HandedOver);
            }
        }
        let (owner, after) = (run.owner(), run.after.list(QUEUE));
        let leaves = |other: &str| other == owner || Some(other) == previous;
        let mut gone = run.before.list(QUEUE).into_iter().filter(|other| !after.contains(other));
        if gone.any(|other| !leaves(&other)) {
            self.note(Sight::PassedOver);
        }
        if after.iter().any(|other| other == owner) {
            self.note(if run.value.ends_with(",1") { Sight::Restored } else { Sight::Queued });
        }
    }

    /// Notes the events in the state of a client.
    pub(crate) fn client(&self, client: &Client) {
        if client.was_renewed() {
            self.note(Sight::Renewed);
        }
        if client.has_lost() {
            self.note(Sight::Lost);
        }
        match client.told() {
            Some(Told::Busy) => self.note(Sight::Busy),
            Some(Told::HeldAtMost { .. }) => self.note(Sight::Unknown),
            Some(Told::Done(..)) => self.note(Sight::Done),
            Some(Told::NotExecuted) => self.note(Sight::NotExecuted),
            Some(Told::Open) => self.note(Sight::Open),
            Some(Told::Nothing | Told::Refused) | None => {}
        }
    }

    fn note(&self, sight: Sight) {
        // Most events were noted before: then this writes nothing that the other threads would have
        // to wait for.
        if !self.saw(sight) {
            self.0.fetch_or(1 << sight as u32, Ordering::Relaxed);
        }
    }
}
