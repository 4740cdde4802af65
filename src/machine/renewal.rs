//! Keeping a hold: renewing it in time, and knowing at once when it cannot be trusted any more.

use core::time::Duration;

use super::backoff::Backoff;
use super::call::{Errand, Verdict};
use super::ids::Ids;
use super::{Entropy, Grant, Input, Lease, LeaseState, Machine, Output, Wake};
use crate::error::LossReason;
use crate::protocol::reply::{Code, ServerClock};
use crate::protocol::script::{Bound, LockCalls, ScriptCall};
use crate::time::Instant;
use crate::timing::{AttemptTime, HORIZON, LeaseTime};

/// What a renewal's bound leaves for clocks that were read a little too early.
pub(super) const SLACK: Duration = Duration::from_secs(1);

/// A renewal of its own bound: one that comes later than its attempt could wait for is not done.
pub(super) fn call(
    calls: &LockCalls,
    grant: &Grant,
    lease: LeaseTime,
    attempt: AttemptTime,
    clock: Option<ServerClock>,
    now: Instant,
    ids: &mut Ids,
) -> ScriptCall {
    let wait = attempt.within(lease) + SLACK;
    let bound = Bound { not_after: clock.map(|clock| clock.after(wait, now)), keep: HORIZON };
    calls.renew(ids.request(), bound, &grant.owner, lease, grant.token)
}

/// The machine that watches over a hold until it is lost or its holder has had enough.
///
/// Ends with the reason of the loss, or with `None` when it was [cancelled](Input::Cancelled), as it is by a release. What it
/// knows of the lease meanwhile is [`lease`](Self::lease) and [`state`](Self::state).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Renewal {
    calls: LockCalls,
    grant: Grant,
    attempt: AttemptTime,
    /// Whether it renews, or only watches a lease that was taken for a fixed time.
    renews: bool,
    ids: Ids,
    clock: Option<ServerClock>,
    backoff: Backoff,
    lease: Lease,
    lease_state: LeaseState,
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    Resting { until: Instant },
    Asking { errand: Errand },
    Over(Option<LossReason>),
}

impl Renewal {
    /// Watches over the hold that was granted with `grant`; renews it when `renews`.
    pub fn new(
        calls: LockCalls,
        grant: Grant,
        renews: bool,
        attempt: AttemptTime,
        entropy: Entropy,
        clock: Option<ServerClock>,
    ) -> Self {
        let lease = grant.lease;
        let until = if renews { lease.renew_at() } else { lease.expires_at() };
        Self {
            calls,
            grant,
            attempt,
            renews,
            ids: Ids::new(entropy),
            clock,
            backoff: Backoff::new(),
            lease,
            lease_state: LeaseState::Held,
            state: State::Resting { until },
        }
    }

    /// The lease as last confirmed.
    pub const fn lease(&self) -> Lease {
        self.lease
    }

    /// What is known of the hold.
    pub const fn state(&self) -> LeaseState {
        self.lease_state
    }

    /// Takes over what a renewal besides this machine has confirmed.
    pub fn adopt(&mut self, lease: Lease) {
        let extended = self.lease.extended_by(&lease);
        if extended == self.lease {
            return;
        }
        self.lease = extended;
        // A call that is under way is not given up: it may bring news of a loss.
        if matches!(self.state, State::Resting { .. }) {
            self.rest();
        }
    }

    /// Renews no more, but still watches the lease to its end.
    pub fn only_watch(&mut self) {
        self.renews = false;
        if !matches!(self.state, State::Over(_)) {
            self.rest();
        }
    }

    fn confirmed(&mut self, lease: Lease) {
        self.lease = lease;
        self.lease_state = LeaseState::Renewed;
        self.backoff = Backoff::new();
        self.rest();
    }

    fn rest(&mut self) {
        let until = if self.renews { self.lease.renew_at() } else { self.lease.expires_at() };
        self.state = State::Resting { until };
    }

    fn lost(&mut self, reason: LossReason) {
        self.lease_state = LeaseState::Lost(reason);
        self.state = State::Over(Some(reason));
    }

    fn ask(&mut self, now: Instant) {
        let lease = self.lease.time();
        let script =
            call(&self.calls, &self.grant, lease, self.attempt, self.clock, now, &mut self.ids);
        // At most half of what is left, so that another one fits before the end.
        let attempt_time = self.attempt.within(lease).min(self.lease.remaining(now) / 2);
        self.state = State::Asking { errand: Errand::new(script, 1, attempt_time) };
    }

    fn answered(&mut self, verdict: Verdict, now: Instant) {
        if let Verdict::Answered(reply, sent_at) = &verdict {
            self.clock = Some(ServerClock::new(reply.server_ms, now));
            match reply.code {
                Code::Done => {
                    let confirmed = Lease::confirmed(self.lease.time(), *sent_at);
                    return self.confirmed(self.lease.extended_by(&confirmed));
                }
                Code::Lost => return self.lost(LossReason::Gone),
                _ => {}
            }
        }
        // Late, refused or unheard of: not lost, but not known either. Ask again, for as long as the lease lasts.
        self.lease_state = LeaseState::Unknown;
        let pause = self.backoff.next(Duration::ZERO, &mut self.ids);
        self.state = State::Resting { until: now + pause };
    }
}

impl Machine for Renewal {
    type Outcome = Option<LossReason>;

    fn handle(&mut self, input: Input, now: Instant) {
        if matches!(self.state, State::Over(_)) {
            return;
        }
        if matches!(input, Input::Cancelled) {
            self.state = State::Over(None);
            return;
        }
        // A reply that confirms the lease counts before the clock does: it may have been here before the end.
        match &mut self.state {
            State::Asking { errand } => {
                if let Some(verdict) = errand.handle(input, now, &mut self.ids) {
                    self.answered(verdict, now);
                }
            }
            State::Resting { until } if self.renews && now.has_reached(*until) => self.ask(now),
            State::Resting { .. } | State::Over(_) => {}
        }
        if now.has_reached(self.lease.expires_at()) && !matches!(self.state, State::Over(_)) {
            self.lost(LossReason::Expired);
        }
    }

    fn poll(&mut self, now: Instant) -> Output<Self::Outcome> {
        let ends = self.lease.expires_at();
        let output = match &mut self.state {
            State::Over(outcome) => return Output::Done(*outcome),
            State::Resting { until } if self.renews => {
                Output::Wait { until: *until, why: Wake::RenewalDue }
            }
            State::Resting { .. } => return Output::Wait { until: ends, why: Wake::LeaseEnds },
            State::Asking { errand } => errand.poll(now, &mut self.ids),
        };
        match output {
            Output::Wait { until, .. } if until.has_reached(ends) => {
                Output::Wait { until: ends, why: Wake::LeaseEnds }
            }
            output => output,
        }
    }
}
