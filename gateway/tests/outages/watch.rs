//! Records the results that the visitors of one object received, in order.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use edgelatch::Lease;
use edgelatch::client::Released;
use edgelatch::error::{
    AcquireError, EvalError, LossReason, Refusal, RefusalKind, ReleaseError, RequestError,
};
use edgelatch::host::Host;
use edgelatch::transport::Reqwest;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::object::Object;
use super::proofs::{Proofs, is_full};
use test_support::history::{Claim, History, Hold, Loss, NEVER, Share, Time, Told};
use test_support::servers::Server;

/// The number of results by kind.
pub(crate) type Tally = BTreeMap<&'static str, usize>;

/// The kinds of results of calls that were not executed, or may not have been.
pub(crate) const FAILED: [&str; 3] = ["refused", "unreachable", "unknown"];

/// The history of one object, recorded by its visitors.
pub(crate) struct Watch {
    pub(crate) object: Object,
    pub(crate) proofs: Proofs,
    clock: Instant,
    news: Arc<Notify>,
    notes: Mutex<Notes>,
}

struct Notes {
    history: History,
    told: Tally,
    /// The number of grants of each visitor.
    grants: Vec<usize>,
}

impl Watch {
    pub(crate) fn new(
        object: Object,
        proofs: Proofs,
        visitors: usize,
        clock: Instant,
        news: Arc<Notify>,
    ) -> Self {
        let history = History { ground: object.ground(), ..History::default() };
        let notes = Notes { history, told: Tally::new(), grants: vec![0; visitors] };
        Self { object, proofs, clock, news, notes: Mutex::new(notes) }
    }

    pub(crate) fn now(&self) -> Time {
        Time::try_from(self.clock.elapsed().as_micros()).unwrap()
    }

    fn note<R>(&self, note: impl FnOnce(&mut History) -> R) -> R {
        note(&mut self.notes.lock().unwrap().history)
    }

    fn tells(&self, what: &'static str) {
        *self.notes.lock().unwrap().told.entry(what).or_default() += 1;
        self.news.notify_waiters();
    }

    /// Records that Redis may have lost writes that it confirmed between these times.
    pub(crate) fn loses(&self, mut loss: Loss) {
        self.note(|history| {
            if history.ground.permits.is_some() {
                // The number of permits is unknown from then on.
                loss.to = NEVER;
            }
            if self.object == Object::ReadWrite {
                // A joining reader gets the token of the present readers, which Redis may have
                // lost.
                history.ground.tokens_until.get_or_insert(loss.from);
            }
            history.ground.losses.push(loss);
        });
    }

    pub(crate) fn invokes(&self, share: Share, lease: Duration) -> usize {
        let now = self.now();
        self.note(|history| history.invokes(now, &[Claim { name: 0, share }], lease))
    }

    pub(crate) fn is_told_held<H: Host>(
        &self,
        visitor: usize,
        take: usize,
        lease: &Lease<Reqwest, H>,
    ) {
        let (tokens, count) = (vec![Some(lease.token().as_u64())], Some(lease.hold_count()));
        let hold = Hold { tokens, count, ..Hold::default() };
        let now = self.now();
        self.note(|history| history.is_told(now, take, Told::Held(hold)));
        self.sees(take, lease);
        self.notes.lock().unwrap().grants[visitor] += 1;
        self.tells("granted");
    }

    pub(crate) fn is_told_no(&self, take: usize, error: &AcquireError) {
        let now = self.now();
        self.note(|history| history.is_told_no(now, take, error));
        self.tells(match error {
            AcquireError::Busy { .. } => "busy",
            AcquireError::TooSlow => "too slow",
            AcquireError::Unreachable(_) => "unreachable",
            AcquireError::Unknown { .. } => "unknown",
            AcquireError::Refused(no) if no.kind() == RefusalKind::OutOfMemory => "full",
            AcquireError::Refused(no) => refused(no),
            // Redis has restarted without its data, and the permits are not set again yet.
            AcquireError::NotSetUp if self.object == Object::Permits => "not set up",
            other => panic!("{:?}: {other:?}", self.object),
        });
    }

    /// Records the remaining time of a holder's lease.
    pub(crate) fn sees<H: Host>(&self, take: usize, lease: &Lease<Reqwest, H>) -> Time {
        // The test's clock is read first, so that time between the two readings does not lengthen
        // the lease.
        let (now, left) = (self.now(), lease.remaining());
        self.note(|history| history.sees(now, take, left));
        now
    }

    /// Records the result of a call that also reports whether the hold exists.
    pub(crate) fn is_told<H: Host>(
        &self,
        take: usize,
        lease: &Lease<Reqwest, H>,
        asked: Time,
        answer: Result<(), EvalError>,
    ) {
        let now = self.now();
        let error = match answer {
            Ok(()) => None,
            Err(EvalError::Request(error)) => Some(error),
            Err(EvalError::ScriptFailed(text)) if is_full(&text) => return self.tells("full"),
            Err(other) => panic!("{:?}: {other:?}", self.object),
        };
        self.tells(match error {
            None => {
                self.note(|history| history.stood(now, take, asked));
                "stood"
            }
            Some(RequestError::Lost(LossReason::Gone)) => {
                self.note(|history| history.is_gone(now, take));
                "gone"
            }
            Some(RequestError::Lost(LossReason::Expired)) => "expired",
            Some(RequestError::NotExecuted(_) | RequestError::Unreachable(_)) => "unreachable",
            Some(RequestError::Refused(no)) => refused(&no),
            Some(other) => panic!("{:?}: {other:?}", self.object),
        });
        self.sees(take, lease);
    }

    pub(crate) fn asks_to_release<H: Host>(&self, take: usize, lease: &Lease<Reqwest, H>) {
        let now = self.sees(take, lease);
        self.note(|history| history.asks_to_release(now, take));
    }

    pub(crate) fn is_told_of_release(&self, take: usize, answer: &Result<Released, ReleaseError>) {
        let now = self.now();
        self.note(|history| history.is_told_of_release(now, take, answer));
        self.tells(match answer {
            Ok(Released::Released) => "released",
            Ok(Released::WasLost) => "was lost",
            Err(ReleaseError::Unknown { .. }) => "unknown",
            Err(ReleaseError::Refused(no)) => refused(no),
            Err(other) => panic!("{:?}: {other:?}", self.object),
        });
    }

    /// Returns the number of grants of each visitor.
    pub(crate) fn grants(&self) -> Vec<usize> {
        self.notes.lock().unwrap().grants.clone()
    }

    pub(crate) fn tally(&self) -> Tally {
        self.notes.lock().unwrap().told.clone()
    }

    /// Checks that the entries in Redis are consistent with the history; returns their number.
    pub(crate) fn judge_proofs(&self, redis: &Server) -> usize {
        self.note(|history| self.proofs.judge(redis, history))
            .unwrap_or_else(|what| panic!("{:?}: {what}", self.object))
    }

    /// Checks that the results which the clients received are consistent.
    pub(crate) fn judge(&self) {
        let verdict = self.note(|history| {
            let lines = || history.lines().collect::<Vec<_>>().join("\n");
            history.judge().map_err(|what| format!("{what}, by its history:\n{}", lines()))
        });
        verdict.unwrap_or_else(|what| panic!("{:?}: {what}", self.object));
    }
}

/// Checks that a refusal says that Redis is unavailable. No other refusal is expected: a Redis
/// without memory still runs renewals and releases.
fn refused(no: &Refusal) -> &'static str {
    assert_eq!(no.kind(), RefusalKind::Unavailable, "{no:?}");
    "refused"
}
