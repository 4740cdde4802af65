//! The observation of a client: passes the steps of its locks, its requests and its notification
//! mode to `tracing` (`spans`) and to `metrics` (`meters`), whichever feature is on. `off.rs` has
//! the same items for a client with neither.

mod subject;

pub(super) use subject::{Address, Ending, Subject, loss};

use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use core::future::poll_fn;
use core::pin::{Pin, pin};
use core::task::{Context, Poll};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::lease::HoldRef;
use super::lock::Lock;
use super::shared::{Shared, Source};
use super::{meters, spans};
use crate::error::{AcquireError, FailureKind, LossReason, ReleaseError};
use crate::host::Host;
use crate::transport::{Response, Transport};
use edgelatch_proto::engine::{EndpointId, HoldId, NotificationMode, Situation};
use edgelatch_proto::machine::{LeaseState, Released};
use edgelatch_proto::time::Instant;

/// An acquisition under way. Dropped without an end, it was cancelled.
pub(super) struct Acquisition<'a, T: Transport, H: Host> {
    shared: &'a Shared<T, H>,
    subject: Arc<Subject>,
    began: Instant,
    span: spans::Span,
    is_over: bool,
}

impl<'a, T: Transport, H: Host> Acquisition<'a, T, H> {
    pub(super) fn begin(lock: &'a Lock<T, H>) -> Self {
        let subject = Subject::of(lock);
        let span = spans::acquire(&subject);
        let shared = &*lock.shared;
        Self { shared, subject, began: shared.host.now(), span, is_over: false }
    }

    pub(super) fn end(mut self, acquired: &Result<HoldId, AcquireError>) -> ObservedHold {
        let (ending, is_contended) = match acquired {
            Ok(id) => self.shared.read(|engine| {
                let token = engine.token(*id).map(|token| token.as_u64());
                let has_waited = engine.has_waited(*id) && engine.hold_count(*id) == 1;
                (Ending::Granted(token), has_waited)
            }),
            Err(error) => (Ending::Failed(error), matches!(error, AcquireError::Busy { .. })),
        };
        self.ended(&ending, is_contended);
        let Ending::Granted(token) = ending else { return ObservedHold(None) };
        let (subject, began) = (Arc::clone(&self.subject), self.shared.host.now());
        let span = spans::hold(&subject, token);
        ObservedHold(Some(Mutex::new(HoldState {
            subject,
            began,
            span,
            seen: None,
            is_over: false,
        })))
    }

    fn ended(&mut self, ending: &Ending<'_>, is_contended: bool) {
        self.is_over = true;
        let waited = self.shared.host.now().max_elapsed(self.began);
        meters::acquired(&self.subject, ending, waited, is_contended);
        spans::acquired(&self.span, &self.subject, ending, waited, is_contended);
    }
}

impl<T: Transport, H: Host> Drop for Acquisition<'_, T, H> {
    fn drop(&mut self) {
        if !self.is_over {
            self.ended(&Ending::Dropped, false);
        }
    }
}

/// The observation of a hold by one lease; `None` for a failed acquisition.
pub(super) struct ObservedHold(Option<Mutex<HoldState>>);

struct HoldState {
    subject: Arc<Subject>,
    began: Instant,
    span: spans::Span,
    seen: Option<Situation>,
    /// Whether its end was observed.
    is_over: bool,
}

impl HoldState {
    fn changed(&mut self, situation: Situation, now: Instant) {
        let is_new = self.seen.replace(situation) != Some(situation);
        // A release changes the situation too.
        if !is_new || self.is_over || situation.released {
            return;
        }
        match situation.state {
            LeaseState::Held => {}
            LeaseState::Renewed => {
                meters::renewed(&self.subject);
                spans::renewed(&self.span, &self.subject);
            }
            LeaseState::Unknown => spans::unconfirmed(&self.span, &self.subject),
            LeaseState::Lost(reason) => self.lost(reason, now),
        }
    }

    fn lost(&mut self, reason: LossReason, now: Instant) {
        meters::lost(&self.subject, reason);
        spans::lost(&self.span, &self.subject, reason);
        self.end("lost", now);
    }

    fn end(&mut self, outcome: &'static str, now: Instant) {
        if !core::mem::replace(&mut self.is_over, true) {
            let held = now.max_elapsed(self.began);
            meters::held(&self.subject, outcome, held);
            spans::held(&self.span, &self.subject, outcome, held);
            self.span = spans::none();
        }
    }
}

impl<T: Transport, H: Host> HoldRef<T, H> {
    /// Locks the observation. No lock of the client is held meanwhile, since subscribers and
    /// recorders are called.
    fn observed(&self) -> Option<MutexGuard<'_, HoldState>> {
        self.observed.0.as_ref().map(|state| state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Observes a change of the hold.
    pub(super) fn observe(&self) {
        let situation = self.shared.read(|engine| engine.situation(self.id));
        if let (Some(situation), Some(mut state)) = (situation, self.observed()) {
            state.changed(situation, self.shared.host.now());
        }
    }

    /// Observes that the last handle to the hold is dropped.
    pub(super) fn observe_drop(&self) {
        self.observe();
        if let Some(mut state) = self.observed() {
            state.end("dropped", self.shared.host.now());
        }
    }

    /// Observes each change while `keep` runs.
    pub(super) async fn observe_keep<F: Future>(&self, keep: F) -> F::Output {
        let mut keep = pin!(keep);
        let kept = poll_fn(|cx| {
            self.shared.keep_waker(Source::Hold(self.id), cx.waker());
            self.observe();
            keep.as_mut().poll(cx)
        })
        .await;
        self.observe();
        kept
    }

    /// Observes the beginning of a release.
    pub(super) fn observe_release(&self) -> Release<'_, T, H> {
        self.observe();
        let began = self.shared.host.now();
        let span = self.observed().map_or_else(spans::none, |state| spans::release(&state.subject));
        Release { hold: self, began, span }
    }
}

/// A release under way.
pub(super) struct Release<'a, T: Transport, H: Host> {
    hold: &'a HoldRef<T, H>,
    began: Instant,
    span: spans::Span,
}

impl<T: Transport, H: Host> Release<'_, T, H> {
    pub(super) fn end(self, released: &Result<Released, ReleaseError>) {
        let now = self.hold.shared.host.now();
        let Some(mut state) = self.hold.observed() else { return };
        let took = now.max_elapsed(self.began);
        let error = match released {
            Ok(Released::Released) => None,
            Ok(_) => Some("lease-lost"),
            Err(error) => Some(subject::release_error(error)),
        };
        spans::released(&self.span, &state.subject, error, took);
        match released {
            Ok(Released::Released) => state.end("released", now),
            Ok(_) if !state.is_over => state.lost(LossReason::Gone, now),
            Ok(_) => {}
            Err(_) => state.end("unknown", now),
        }
    }
}

/// The observation of a gateway.
pub(super) struct ObservedGateway {
    address: Arc<Address>,
    seen: Mutex<Seen>,
}

#[derive(Clone, Copy, Default)]
struct Seen {
    notification_mode: Option<NotificationMode>,
    rollbacks: u32,
}

impl ObservedGateway {
    pub(super) fn new(authority: &str) -> Self {
        meters::describe();
        Self { address: Address::new(authority), seen: Mutex::default() }
    }

    pub(super) fn sending<F>(&self, sending: F) -> Sending<F> {
        Sending { sending, address: Arc::clone(&self.address), is_over: false }
    }
}

impl<T: Transport, H: Host> Shared<T, H> {
    /// Observes how waiters learn of releases, and the clocks of the gateways' Redis.
    pub(super) fn observe_gateways(&self) {
        for (index, endpoint) in (0..).zip(&self.endpoints) {
            let ObservedGateway { address, seen } = &endpoint.observed;
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            let (mode, rollback) = self.read(|engine| {
                let id = EndpointId(index);
                (engine.notification_mode(id), engine.last_rollback(id, seen.rollbacks))
            });
            let was = core::mem::replace(&mut seen.notification_mode, mode);
            let rollback = rollback.map(|(number, by)| {
                seen.rollbacks = number;
                by
            });
            drop(seen);
            if let Some(mode) = mode.filter(|_| mode != was) {
                mode_changed(address, mode);
            }
            if let Some(by) = rollback {
                spans::clock_set_back(address, by);
            }
        }
    }
}

fn mode_changed(address: &Address, mode: NotificationMode) {
    let is_polling = matches!(mode, NotificationMode::Polling);
    if is_polling {
        meters::polling(address);
    }
    spans::mode_changed(address, is_polling);
}

/// A request under way. Dropped before its end, it was cancelled.
pub(super) struct Sending<F> {
    sending: F,
    address: Arc<Address>,
    is_over: bool,
}

impl<F> Sending<F> {
    fn end(&mut self, error: Option<String>) {
        self.is_over = true;
        spans::request(&self.address, error.as_deref());
        meters::request(&self.address, error);
    }
}

impl<F: Future<Output = Result<Response, FailureKind>> + Unpin> Future for Sending<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let result = core::task::ready!(Pin::new(&mut self.sending).poll(cx));
        self.end(match &result {
            Ok(response) => Some(response.status).filter(|it| *it >= 400).map(|it| it.to_string()),
            Err(kind) => Some(subject::failure(*kind)),
        });
        Poll::Ready(result)
    }
}

impl<F> Drop for Sending<F> {
    fn drop(&mut self) {
        if !self.is_over {
            self.end(Some("cancelled".into()));
        }
    }
}
