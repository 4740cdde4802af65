//! What must happen in some run of a model, or the model shows nothing.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use super::client::Client;
use super::plan::{NAME, client_of};
use super::seen::{Executed, QUEUE, Seen};
use super::stage::Told;

/// Something that came up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    BothGranted,
    Busy,
    /// The end of an owner that was never granted.
    Abandoned,
    Renewed,
    Lost,
    /// A client cannot tell whether it holds anything.
    Unknown,
    /// It is granted something after that, or what it holds is extended.
    Ghost,
    RefusedAsLate,
    RefusedAsGone,
    RefusedAsLost,
    Repeated,
    /// A read was let in by its writer; a write was released around it.
    Inside,
    Downgraded,
    /// A queue: somebody waits, is passed over because it is silent, comes back to its seat.
    Queued,
    PassedOver,
    Restored,
    /// A copy of a poll came after a newer one.
    Stale,
    /// An owner was taken over: its seat, its hold.
    TookOver,
    HandedOver,
    Done,
    NotExecuted,
    /// An answer was told again; a cancel came first, or found the answer.
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

/// What came up so far, in any run.
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

    /// A script of this client was executed and answered; `seen` has it already.
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

    /// A client did something.
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
        // Most have been noted before: then nothing is written, which the other threads would have
        // to wait for.
        if !self.saw(sight) {
            self.0.fetch_or(1 << sight as u32, Ordering::Relaxed);
        }
    }
}
