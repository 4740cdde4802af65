//! Keeping a hold: renewing it in time, and knowing at once when it cannot be trusted any more.

use core::time::Duration;

use super::backoff::{Backoff, Pacing};
use super::call::{CallOutcome, RetriedCall};
use super::ids::Ids;
use super::{
    Entropy, Grant, Input, Lease, LeaseState, Machine, Output, OutstandingBound, TimeoutReason,
};
use crate::error::LossReason;
use crate::name::FencingToken;
use crate::protocol::calls::Target;
use crate::protocol::reply::{Code, ServerClock};
use crate::protocol::script::{Bound, ScriptCall};
use crate::time::{Instant, millis};
use crate::timing::{AttemptTime, LeaseTime};

/// What a renewal's bound leaves for clocks that were read a little too early.
const SLACK: Duration = Duration::from_secs(1);

/// A renewal of its own bound: one that comes later than its attempt could wait for is not done.
/// And what its copies may do.
pub(super) fn call(
    target: &Target,
    grant: &Grant,
    lease: LeaseTime,
    attempt: AttemptTime,
    clock: Option<ServerClock>,
    now: Instant,
    ids: &mut Ids,
) -> (ScriptCall, OutstandingBound) {
    let bound = Bound::after(attempt.within(lease) + SLACK, clock, now);
    let script = target.renew(ids.request(), bound, grant.owner, lease, grant.token);
    (script, OutstandingBound::of(bound, lease))
}

/// The machine that watches over a hold until it is lost or its holder has had enough.
///
/// Ends with the reason of the loss, or with `None` when it was [cancelled](Input::Cancelled), as
/// it is by a release. What it knows of the lease meanwhile is [`lease`](Self::lease) and
/// [`state`](Self::state).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Renewal {
    target: Target,
    grant: Grant,
    attempt: AttemptTime,
    /// Whether it renews, or only watches a lease that was taken for a fixed time.
    renews: bool,
    /// When it is to renew no more.
    renews_until: Option<Instant>,
    ids: Ids,
    clock: Option<ServerClock>,
    backoff: Backoff,
    /// The lease that was asked for last.
    asked: LeaseTime,
    outstanding: OutstandingBound,
    lease: Lease,
    lease_state: LeaseState,
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    Resting { until: Instant },
    Asking { request: RetriedCall },
    Over(Option<LossReason>),
}

impl Renewal {
    /// Watches over the hold that was granted with `grant`; renews it when `renews`.
    pub fn new(
        target: Target,
        grant: Grant,
        renews: bool,
        attempt: AttemptTime,
        entropy: Entropy,
        clock: Option<ServerClock>,
    ) -> Self {
        let lease = grant.lease;
        let outstanding = grant.outstanding();
        let until = if renews { lease.renew_together_at() } else { lease.expires_at() };
        Self {
            target,
            grant,
            attempt,
            renews,
            renews_until: None,
            ids: Ids::new(entropy),
            clock,
            backoff: Backoff::new(Pacing::Jittered),
            asked: lease.time(),
            outstanding,
            lease,
            lease_state: LeaseState::Held,
            state: State::Resting { until },
        }
    }

    /// Renews only so that the hold lasts until then.
    #[must_use]
    pub const fn until(mut self, time: Option<Instant>) -> Self {
        self.renews_until = time;
        self
    }

    /// For how long to ask now; `None` when the hold lasts as long as it should.
    fn lease_to_ask(&self, now: Instant) -> Option<LeaseTime> {
        let Some(end) = self.renews_until else { return Some(self.lease.time()) };
        let left = LeaseTime::new(Duration::from_millis(millis(now.until(end)))).ok()?;
        Some(left.min(self.lease.time()))
    }

    /// The lease as last confirmed.
    pub const fn lease(&self) -> Lease {
        self.lease
    }

    /// The fencing token of the hold: that of its grant, or a newer one that a renewal has brought.
    pub const fn token(&self) -> FencingToken {
        self.grant.token
    }

    /// What copies of the acquisition and of its renewals may still do.
    pub const fn outstanding(&self) -> OutstandingBound {
        self.outstanding
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
    pub fn stop_renewing(&mut self) {
        self.renews = false;
        if !matches!(self.state, State::Over(_)) {
            self.rest();
        }
    }

    fn confirmed(&mut self, lease: Lease) {
        // It reaches to the end that was asked for.
        self.renews &= self.asked == lease.time();
        self.lease = lease;
        self.lease_state = LeaseState::Renewed;
        self.backoff = Backoff::new(Pacing::Jittered);
        self.rest();
    }

    fn rest(&mut self) {
        let until =
            if self.renews { self.lease.renew_together_at() } else { self.lease.expires_at() };
        self.state = State::Resting { until };
    }

    fn lost(&mut self, reason: LossReason) {
        self.lease_state = LeaseState::Lost(reason);
        self.state = State::Over(Some(reason));
    }

    fn ask(&mut self, now: Instant) {
        let Some(lease) = self.lease_to_ask(now) else { return self.stop_renewing() };
        self.asked = lease;
        let (script, outstanding) =
            call(&self.target, &self.grant, lease, self.attempt, self.clock, now, &mut self.ids);
        self.outstanding = self.outstanding.and(outstanding);
        // At most half of what is left, so that another one fits before the end.
        let attempt_time = self.attempt.within(lease).min(self.lease.remaining(now) / 2);
        self.state = State::Asking { request: RetriedCall::new(script, 1, attempt_time) };
    }

    fn answered(&mut self, outcome: CallOutcome, now: Instant) {
        if let CallOutcome::Answered(reply, sent_at) = &outcome {
            self.clock = Some(ServerClock::new(reply.server_ms, now));
            match reply.code {
                Code::Done => {
                    // A reader's rises when a writer of its own owner has gone.
                    if let Some(token) = FencingToken::parse(&reply.value) {
                        self.grant.token = self.grant.token.max(token);
                    }
                    let confirmed = Lease::confirmed(self.asked, *sent_at);
                    return self.confirmed(self.lease.extended_by(&confirmed));
                }
                Code::Lost => return self.lost(LossReason::Gone),
                _ => {}
            }
        }
        // Late, refused or unheard of: not lost, but not known either. Ask again, for as long as
        // the lease lasts.
        self.lease_state = LeaseState::Unknown;
        let rest = match outcome {
            CallOutcome::GaveUp(kind) => kind.retry_after().unwrap_or_default(),
            CallOutcome::Answered(..) | CallOutcome::Refused(_) => Duration::ZERO,
        };
        // A gateway that wants to be left alone is asked all the same before the lease ends.
        let rest = rest.min(self.lease.remaining(now) / 2);
        let pause = self.backoff.next(Duration::ZERO, &mut self.ids).max(rest);
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
        // A reply that confirms the lease counts before the clock does: it may have been here
        // before the end.
        match &mut self.state {
            State::Asking { request } => {
                if let Some(outcome) = request.handle(input, now, &mut self.ids) {
                    self.answered(outcome, now);
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
                Output::Timeout { until: *until, why: TimeoutReason::RenewalDue }
            }
            State::Resting { .. } => {
                return Output::Timeout { until: ends, why: TimeoutReason::LeaseEnds };
            }
            State::Asking { request } => request.poll(now, &mut self.ids),
        };
        match output {
            Output::Timeout { until, .. } if until.has_reached(ends) => {
                Output::Timeout { until: ends, why: TimeoutReason::LeaseEnds }
            }
            output => output,
        }
    }
}
