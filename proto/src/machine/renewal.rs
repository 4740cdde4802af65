//! Renews a hold in time, and notices at once when it can no longer be relied on.

use core::time::Duration;

use super::backoff::{Backoff, PAUSE_MIN, Pacing};
use super::call::{CallOutcome, RetriedCall};
use super::ids::Ids;
use super::{
    Entropy, Grant, Input, Lease, LeaseState, Machine, Output, OutstandingBound, TimeoutReason,
};
use crate::error::LossReason;
use crate::name::FencingToken;
use crate::protocol::calls::{Extension, Target};
use crate::protocol::reply::{Code, ServerClock};
use crate::protocol::script::{Bound, ScriptCall};
use crate::time::{Instant, millis};
use crate::timing::{AttemptTime, LeaseTime};

/// Added to a renewal's bound: the estimate of Redis' clock lags by up to the travel time of a
/// reply.
const CLOCK_LAG_ALLOWANCE: Duration = Duration::from_secs(1);

/// Creates the script call of a renewal, and the limit of how long its copies can still extend the
/// hold. If Redis' clock is known, the call has a bound, so that Redis does not execute it long
/// after its attempt has timed out; otherwise a copy may still arrive within 10 minutes.
pub(super) fn renewal_call(
    target: &Target,
    grant: &Grant,
    lease_time: LeaseTime,
    attempt: AttemptTime,
    clock: Option<ServerClock>,
    now: Instant,
    ids: &mut Ids,
) -> (ScriptCall, OutstandingBound) {
    let bound = Bound::after(attempt.within(lease_time) + CLOCK_LAG_ALLOWANCE, clock, now);
    let Grant { owner, token, .. } = *grant;
    let request = ids.request();
    let script = target.renew(&Extension { request, bound, owner, lease: lease_time, token });
    (script, OutstandingBound::of(bound, lease_time))
}

/// The machine that renews a hold whenever a renewal is due, and watches the hold until it is lost
/// or cancelled. [`RenewalOnDemand`](super::RenewalOnDemand) renews once, at the caller's request.
///
/// Ends with the reason of the loss, or with `None` when it was [cancelled](Input::Cancelled), as
/// by a release. Meanwhile [`lease`](Self::lease) and [`state`](Self::state) return the state of
/// the hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Renewal {
    target: Target,
    grant: Grant,
    attempt: AttemptTime,
    /// Whether it renews the lease; otherwise it only watches the lease to its end.
    renews: bool,
    /// The requested end of the hold; `None` to renew without an end.
    ends_at: Option<Instant>,
    ids: Ids,
    clock: Option<ServerClock>,
    backoff: Backoff,
    /// The lease that the last renewal requested.
    requested: LeaseTime,
    /// How long copies of the acquisition and the renewals can still extend the hold. A release
    /// without a reply reports it.
    outstanding: OutstandingBound,
    lease: Lease,
    lease_state: LeaseState,
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    /// No call is under way. `until` is when the renewal or its retry is due, or the end of the
    /// lease.
    Waiting {
        until: Instant,
    },
    Requesting {
        request: RetriedCall,
    },
    Over(Option<LossReason>),
}

impl State {
    /// Waits until the renewal is due, at a step that the leases of a client share, or for the end
    /// of the lease if it is not renewed.
    fn waiting(lease: Lease, renews: bool) -> Self {
        let until = if renews { lease.renew_together_at() } else { lease.expires_at() };
        Self::Waiting { until }
    }
}

impl Renewal {
    /// Watches the hold of `grant`, and renews it if `renews`.
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
        Self {
            target,
            grant,
            attempt,
            renews,
            ends_at: None,
            ids: Ids::new(entropy),
            clock,
            backoff: Backoff::new(Pacing::Jittered),
            requested: lease.time(),
            outstanding,
            lease,
            lease_state: LeaseState::Held,
            state: State::waiting(lease, renews),
        }
    }

    /// Sets the end of the hold, by the holder's clock: renewals request no lease beyond it, and
    /// none when less than the shortest lease is left. `None`, the default, renews without an end.
    #[must_use]
    pub const fn with_end(mut self, ends_at: Option<Instant>) -> Self {
        self.ends_at = ends_at;
        self
    }

    /// Returns the lease to request now, at most until the requested end; `None` if less than the
    /// shortest lease is left until then.
    fn lease_to_request(&self, now: Instant) -> Option<LeaseTime> {
        let Some(end) = self.ends_at else { return Some(self.lease.time()) };
        let left = Duration::from_millis(millis(now.until(end)));
        LeaseTime::new(left.min(self.lease.time().get())).ok()
    }

    /// The confirmed lease that ends last.
    pub const fn lease(&self) -> Lease {
        self.lease
    }

    /// The fencing token of the hold: that of its grant, or a newer one that a renewal has brought.
    pub const fn token(&self) -> FencingToken {
        self.grant.token
    }

    /// The limit of how long copies of the acquisition and the renewals can still extend the hold.
    pub const fn outstanding(&self) -> OutstandingBound {
        self.outstanding
    }

    /// The state of the hold, as last known.
    pub const fn state(&self) -> LeaseState {
        self.lease_state
    }

    /// Adopts a lease that a renewal outside of this machine has confirmed.
    pub fn adopt(&mut self, lease: Lease) {
        let extended = self.lease.extended_by(&lease);
        if extended == self.lease {
            return;
        }
        self.lease = extended;
        if !matches!(self.lease_state, LeaseState::Lost(_)) {
            self.lease_state = LeaseState::Renewed;
        }
        // A call under way continues: its reply may report a loss.
        if matches!(self.state, State::Waiting { .. }) {
            self.start_waiting();
        }
    }

    /// Stops renewing, but still watches the lease to its end. A renewal under way is abandoned:
    /// its reply is ignored.
    pub fn stop_renewing(&mut self) {
        self.renews = false;
        if !matches!(self.state, State::Over(_)) {
            self.start_waiting();
        }
    }

    fn on_confirmed(&mut self, lease: Lease) {
        // Only the last renewal, until `ends_at`, requests less than the whole lease, which
        // `lease.time()` remains.
        self.renews &= self.requested == lease.time();
        self.lease = lease;
        self.lease_state = LeaseState::Renewed;
        self.backoff = Backoff::new(Pacing::Jittered);
        self.start_waiting();
    }

    fn start_waiting(&mut self) {
        self.state = State::waiting(self.lease, self.renews);
    }

    fn on_lost(&mut self, reason: LossReason) {
        self.lease_state = LeaseState::Lost(reason);
        self.state = State::Over(Some(reason));
    }

    fn send_renewal(&mut self, now: Instant) {
        let Some(lease_time) = self.lease_to_request(now) else { return self.stop_renewing() };
        self.requested = lease_time;
        let (script, outstanding) = renewal_call(
            &self.target,
            &self.grant,
            lease_time,
            self.attempt,
            self.clock,
            now,
            &mut self.ids,
        );
        self.outstanding = self.outstanding.and(outstanding);
        // At most half of the rest of the lease, so that a retry has time too. The retry is another
        // renewal, with a bound of its own, so this call has one attempt.
        let attempt_time = self.attempt.within(lease_time).min(self.lease.remaining(now) / 2);
        self.state = State::Requesting { request: RetriedCall::new(script, 1, attempt_time) };
    }

    fn on_reply(&mut self, outcome: CallOutcome, now: Instant) {
        if let CallOutcome::Replied(reply, sent_at) = &outcome {
            self.clock = Some(ServerClock::new(reply.server_ms, now));
            match reply.code {
                Code::Done => {
                    // The token of a read inside a write of its owner rises when the write ends (R6
                    // in `proto/src/protocol/README.md`).
                    if let Some(token) = FencingToken::parse(&reply.value) {
                        self.grant.token = self.grant.token.max(token);
                    }
                    let confirmed = Lease::confirmed(self.requested, *sent_at);
                    return self.on_confirmed(self.lease.extended_by(&confirmed));
                }
                Code::Lost => {
                    return self.on_lost(super::query::loss(self.target.can_be_stolen(), reply));
                }
                _ => {}
            }
        }
        // A refusal, no reply, or a reply with any other code, such as `Late`: the hold is not
        // lost, but its state is unknown. Renewal is retried for as long as the lease lasts.
        self.lease_state = LeaseState::Unknown;
        let retry_after = match outcome {
            CallOutcome::GaveUp(kind) => kind.retry_after().unwrap_or_default(),
            CallOutcome::Replied(..) | CallOutcome::Refused(_) => Duration::ZERO,
        };
        // At most half of the rest of the lease, whatever the gateway's `Retry-After` is, so that
        // there is time for a retry.
        let longest = (self.lease.remaining(now) / 2).max(PAUSE_MIN);
        let pause = self.backoff.next(Duration::ZERO, &mut self.ids).max(retry_after).min(longest);
        self.state = State::Waiting { until: now + pause };
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
        // A reply that confirms the lease is handled before the end of the lease is checked: it may
        // have arrived before that end.
        match &mut self.state {
            State::Requesting { request } => {
                if let Some(outcome) = request.handle(input, now, &mut self.ids) {
                    self.on_reply(outcome, now);
                }
            }
            State::Waiting { until } if self.renews && now.has_reached(*until) => {
                self.send_renewal(now)
            }
            State::Waiting { .. } | State::Over(_) => {}
        }
        if now.has_reached(self.lease.expires_at()) && !matches!(self.state, State::Over(_)) {
            self.on_lost(LossReason::Expired);
        }
    }

    fn poll(&mut self, now: Instant) -> Output<Self::Outcome> {
        let ends = self.lease.expires_at();
        let output = match &mut self.state {
            State::Over(outcome) => return Output::Done(*outcome),
            State::Waiting { until } if self.renews => {
                Output::Timeout { until: *until, why: TimeoutReason::RenewalDue }
            }
            State::Waiting { .. } => {
                return Output::Timeout { until: ends, why: TimeoutReason::LeaseEnds };
            }
            State::Requesting { request } => request.poll(now, &mut self.ids),
        };
        match output {
            Output::Timeout { until, .. } if until.has_reached(ends) => {
                Output::Timeout { until: ends, why: TimeoutReason::LeaseEnds }
            }
            output => output,
        }
    }
}
