//! Records the results that the clients of one object received, in order.

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

use super::holder_log::{HolderLog, is_full};
use super::object::Object;
use test_support::history::{AcquireResult, Claim, History, Hold, Loss, Mode, NEVER, Time};
use test_support::servers::Server;

/// The number of results by kind.
pub(crate) type Tally = BTreeMap<&'static str, usize>;

/// The kinds of results of calls that were not executed, or may not have been.
pub(crate) const FAILED: [&str; 3] = ["refused", "unreachable", "unknown"];

/// The history of one object, recorded by its clients.
pub(crate) struct Recorder {
    pub(crate) object: Object,
    pub(crate) holder_log: HolderLog,
    clock: Instant,
    news: Arc<Notify>,
    records: Mutex<Records>,
}

struct Records {
    history: History,
    told: Tally,
    /// The number of grants of each client.
    grants: Vec<usize>,
}

impl Recorder {
    pub(crate) fn new(
        object: Object,
        holder_log: HolderLog,
        clients: usize,
        clock: Instant,
        news: Arc<Notify>,
    ) -> Self {
        let history = History { assumptions: object.assumptions(), ..History::default() };
        let records = Records { history, told: Tally::new(), grants: vec![0; clients] };
        Self { object, holder_log, clock, news, records: Mutex::new(records) }
    }

    pub(crate) fn now(&self) -> Time {
        Time::try_from(self.clock.elapsed().as_micros()).unwrap()
    }

    fn with_history<R>(&self, note: impl FnOnce(&mut History) -> R) -> R {
        note(&mut self.records.lock().unwrap().history)
    }

    fn count(&self, what: &'static str) {
        *self.records.lock().unwrap().told.entry(what).or_default() += 1;
        self.news.notify_waiters();
    }

    /// Records that Redis may have lost writes that it confirmed between these times.
    pub(crate) fn record_data_loss(&self, mut loss: Loss) {
        self.with_history(|history| {
            if history.assumptions.permits.is_some() {
                // The number of permits is unknown from then on.
                loss.to = NEVER;
            }
            if self.object == Object::ReadWrite {
                // A joining reader gets the token of the present readers, which Redis may have
                // lost.
                history.assumptions.tokens_until.get_or_insert(loss.from);
            }
            history.assumptions.losses.push(loss);
        });
    }

    pub(crate) fn record_call(&self, mode: Mode, lease: Duration) -> usize {
        let now = self.now();
        self.with_history(|history| history.record_call(now, &[Claim { name: 0, mode }], lease))
    }

    pub(crate) fn record_grant<H: Host>(
        &self,
        client: usize,
        acquisition: usize,
        lease: &Lease<Reqwest, H>,
    ) {
        let (tokens, count) = (vec![Some(lease.token().as_u64())], Some(lease.hold_count()));
        let hold = Hold { tokens, count, ..Hold::default() };
        let now = self.now();
        self.with_history(|history| {
            history.record_result(now, acquisition, AcquireResult::Held(hold))
        });
        self.record_lease(acquisition, lease);
        self.records.lock().unwrap().grants[client] += 1;
        self.count("granted");
    }

    pub(crate) fn record_refusal(&self, acquisition: usize, error: &AcquireError) {
        let now = self.now();
        self.with_history(|history| history.record_refusal(now, acquisition, error));
        self.count(match error {
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
    pub(crate) fn record_lease<H: Host>(
        &self,
        acquisition: usize,
        lease: &Lease<Reqwest, H>,
    ) -> Time {
        // The test's clock is read first, so that time between the two readings does not lengthen
        // the lease.
        let (now, left) = (self.now(), lease.remaining());
        self.with_history(|history| history.record_lease(now, acquisition, left));
        now
    }

    /// Records the result of a call that also reports whether the hold exists.
    pub(crate) fn record_result<H: Host>(
        &self,
        acquisition: usize,
        lease: &Lease<Reqwest, H>,
        asked: Time,
        answer: Result<(), EvalError>,
    ) {
        let now = self.now();
        let error = match answer {
            Ok(()) => None,
            Err(EvalError::Request(error)) => Some(error),
            Err(EvalError::ScriptFailed(text)) if is_full(&text) => return self.count("full"),
            Err(other) => panic!("{:?}: {other:?}", self.object),
        };
        self.count(match error {
            None => {
                self.with_history(|history| history.record_held(now, acquisition, asked));
                "stood"
            }
            Some(RequestError::Lost(LossReason::Gone)) => {
                self.with_history(|history| history.record_gone(now, acquisition));
                "gone"
            }
            Some(RequestError::Lost(LossReason::Expired)) => "expired",
            Some(RequestError::NotExecuted(_) | RequestError::Unreachable(_)) => "unreachable",
            Some(RequestError::Refused(no)) => refused(&no),
            Some(other) => panic!("{:?}: {other:?}", self.object),
        });
        self.record_lease(acquisition, lease);
    }

    pub(crate) fn record_release_call<H: Host>(
        &self,
        acquisition: usize,
        lease: &Lease<Reqwest, H>,
    ) {
        let now = self.record_lease(acquisition, lease);
        self.with_history(|history| history.record_release_call(now, acquisition));
    }

    pub(crate) fn record_release_result(
        &self,
        acquisition: usize,
        answer: &Result<Released, ReleaseError>,
    ) {
        let now = self.now();
        self.with_history(|history| history.record_release_result(now, acquisition, answer));
        self.count(match answer {
            Ok(Released::Released) => "released",
            Ok(Released::WasLost) => "was lost",
            Err(ReleaseError::Unknown { .. }) => "unknown",
            Err(ReleaseError::Refused(no)) => refused(no),
            Err(other) => panic!("{:?}: {other:?}", self.object),
        });
    }

    /// Returns the number of grants of each client.
    pub(crate) fn grants(&self) -> Vec<usize> {
        self.records.lock().unwrap().grants.clone()
    }

    pub(crate) fn tally(&self) -> Tally {
        self.records.lock().unwrap().told.clone()
    }

    /// Checks that the entries in Redis are consistent with the history; returns their number.
    pub(crate) fn check_entries(&self, redis: &Server) -> usize {
        self.with_history(|history| self.holder_log.check(redis, history))
            .unwrap_or_else(|what| panic!("{:?}: {what}", self.object))
    }

    /// Checks that the results which the clients received are consistent.
    pub(crate) fn check(&self) {
        let verdict = self.with_history(|history| {
            let lines = || history.lines().collect::<Vec<_>>().join("\n");
            history.check().map_err(|what| format!("{what}, by its history:\n{}", lines()))
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
