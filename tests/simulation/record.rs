//! Records what clients observe for the checker of histories, and nothing else.

use std::time::Duration;

use edgelatch::Lease;
use edgelatch::client::Released;
use edgelatch::error::{AcquireError, ReleaseError, RequestError};

use super::engine::Sim;
use super::faults::Fault;
use super::host::HostHandle;
use super::objects::NAMES;
use super::plan::Kind;
use super::transport::SimTransport;
use test_support::history::{
    AcquireResult, Acquisition, Assumptions, Claim, Hold, LatchCall, LatchOperation, Loss, Mode,
    NEVER,
};

/// The numbers of Redisson's owners start here.
const JAVA: u32 = 1 << 20;

impl Sim {
    /// Sets the assumptions before the first fault.
    pub(crate) fn set_assumptions(&self) {
        let counts = matches!(self.plan.kind, Kind::Semaphore | Kind::Permits);
        let drifts = self.plan.has(Fault::Drift);
        self.history.borrow_mut().assumptions = Assumptions {
            permits: counts.then_some((self.plan.permits, NEVER)),
            losses: drifts.then_some(Loss { from: 0, to: NEVER }).into_iter().collect(),
            tokens_until: None,
            queues: matches!(self.plan.kind, Kind::Fair | Kind::ReadWrite | Kind::FairReadWrite),
            releasable_after_expiry: self.plan.kind == Kind::Group,
            needs_majority: self.plan.kind == Kind::Red,
        };
    }

    /// Redis may have lost data. Without `tokens`, tokens may not rise any more from now on.
    pub(crate) fn record_data_loss(&self, tokens: bool) {
        let (now, assumptions) = (self.now(), &mut self.history.borrow_mut().assumptions);
        // Permits that a client sets up again exceed the number at the start once earlier holders
        // return theirs.
        let to = if assumptions.permits.is_some() { NEVER } else { now };
        assumptions.losses.push(Loss { from: now, to });
        if !tokens {
            assumptions.tokens_until.get_or_insert(now);
        }
    }

    /// The permits are set up now.
    pub(crate) fn record_permits_set_up(&self) {
        let (now, assumptions) = (self.now(), &mut self.history.borrow_mut().assumptions);
        assumptions.permits = assumptions.permits.map(|(permits, since)| (permits, since.min(now)));
    }

    /// A client on this host starts an acquisition; returns its number.
    pub(crate) fn record_call(&self, host: usize, claims: &[Claim], lease: Duration) -> usize {
        self.callers.borrow_mut().push(Some(host));
        self.history.borrow_mut().record_call(self.now(), claims, lease)
    }

    /// A Redisson client acquires a lock, for `time` microseconds at most.
    pub(crate) fn record_java_hold(&self, time: u64) {
        self.callers.borrow_mut().push(None);
        let acquisitions = &mut self.history.borrow_mut().acquisitions;
        acquisitions.push(Acquisition {
            owner: JAVA + acquisitions.len() as u32,
            claims: [Claim { name: 0, mode: Mode::Exclusive }].into(),
            invoked: self.now(),
            completed: NEVER,
            lease: time,
            result: AcquireResult::Unknown { ends_by: self.now() + time + 2_000 },
        });
    }

    pub(crate) fn record_grant(&self, acquisition: usize, lease: &Lease<SimTransport, HostHandle>) {
        let several = self.plan.kind == Kind::Multi;
        let token = |claim: &Claim| match several {
            true => Some(lease.token_of(NAMES[usize::from(claim.name)])?.as_u64()),
            false => Some(lease.token().as_u64()),
        };
        let tokens =
            self.history.borrow().acquisitions[acquisition].claims.iter().map(token).collect();
        let count = Some(lease.hold_count());
        let hold = Hold { tokens, count, ..Hold::default() };
        self.history.borrow_mut().record_result(self.now(), acquisition, AcquireResult::Held(hold));
        self.record_lease(acquisition, lease);
    }

    pub(crate) fn record_refusal(&self, acquisition: usize, error: &AcquireError) {
        self.history.borrow_mut().record_refusal(self.now(), acquisition, error);
    }

    /// A holder reads its remaining lease.
    pub(crate) fn record_lease(&self, acquisition: usize, lease: &Lease<SimTransport, HostHandle>) {
        self.history.borrow_mut().record_lease(self.now(), acquisition, lease.remaining());
    }

    /// Redis has confirmed that a hold existed at some time since `after`.
    pub(crate) fn record_held(&self, acquisition: usize, after: u64) {
        self.history.borrow_mut().record_held(self.now(), acquisition, after);
    }

    /// Redis has reported that a hold does not exist any more.
    pub(crate) fn record_gone(&self, acquisition: usize) {
        self.history.borrow_mut().record_gone(self.now(), acquisition);
    }

    pub(crate) fn record_release_call(&self, acquisition: usize) {
        self.history.borrow_mut().record_release_call(self.now(), acquisition);
    }

    pub(crate) fn record_release_result(
        &self,
        acquisition: usize,
        result: &Result<Released, ReleaseError>,
    ) {
        self.history.borrow_mut().record_release_result(self.now(), acquisition, result);
    }

    /// A client on this host starts a call to a latch, which may be executed even if its result
    /// stays unknown. Returns its number.
    pub(crate) fn record_latch_call(&self, host: usize, operation: LatchOperation) -> usize {
        self.callers.borrow_mut().push(Some(host));
        let calls = &mut self.history.borrow_mut().latch_calls;
        calls.push(LatchCall { name: 0, invoked: self.now(), completed: NEVER, operation });
        calls.len() - 1
    }

    pub(crate) fn record_latch_result<T>(
        &self,
        call: usize,
        result: Result<T, RequestError>,
        operation: impl FnOnce(T) -> LatchOperation,
    ) {
        let history = &mut self.history.borrow_mut();
        let has_lost = !history.assumptions.losses.is_empty();
        let call = &mut history.latch_calls[call];
        call.completed = self.now();
        match result {
            Ok(value) => call.operation = operation(value),
            Err(RequestError::NotExecuted(_) | RequestError::Refused(_)) if !has_lost => {
                call.operation = LatchOperation::Ignored;
            }
            // Redis may have lost the record of the call together with other data.
            Err(_) => {}
        }
    }

    /// The violation that the checker of histories finds, if any.
    pub(crate) fn check_history(&self) -> Option<String> {
        self.history.borrow().check().err().map(|what| format!("{what} (by its history)"))
    }
}
