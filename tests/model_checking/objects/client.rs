//! One client of the model, driven by the real machines. It acquires a hold, keeps it for an
//! arbitrary time and releases it; or it makes one idempotent call; or it awaits a latch.

use std::sync::Arc;

use edgelatch_proto::error::{AcquireError, FailureKind, RequestError};
use edgelatch_proto::machine::{
    Acquire, AcquireSpec, AwaitLatch, CallId, Entropy, ExecuteOnce, Grant, Input, LeaseState,
    OutstandingBound, Release, Renewal, RenewalOnDemand, Renewed,
};
use edgelatch_proto::name::{FencingToken, OwnerId};
use edgelatch_proto::protocol::reply::{Reply, ServerClock};
use edgelatch_proto::protocol::script::ScriptCall;
use edgelatch_proto::time::Instant;
use edgelatch_proto::timing::{LeaseTime, RequestBudget};

use super::plan::{Operation, Plan, latch, owner_of};
use super::stage::{MachineKind, MachineOutcome, Outbox, Outcome, Stage};

/// Rule R6, which a model may switch off: after a client has released its write, its read inside
/// takes over the token in the reply to that release.
pub(crate) const TOKEN_HANDOVER: &str = "a read gets the token of the release of its write";

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    number: u8,
    operation: Operation,
    stage: Stage,
    clock: Option<ServerClock>,
    /// The owner field of its last acquisition, until the client is done.
    owner: Option<Arc<str>>,
    /// The token that the release of its write returned for the read inside.
    handed_over: Option<FencingToken>,
    /// The token that the release of the write around this client's read returned.
    taken_over: Option<FencingToken>,
    /// The calls without a reply yet, and the timeouts of the machines: at most one of each for
    /// each machine.
    under_way: Vec<(MachineKind, CallId)>,
    deadlines: Vec<(MachineKind, Instant)>,
    /// The number of requests that each machine has sent.
    sent: [u8; MachineKind::COUNT],
    /// Bounds the requests for its hold that may still be executed.
    outstanding: Option<OutstandingBound>,
}

impl Client {
    pub(crate) const fn new(number: u8, operation: Operation, clock: Option<ServerClock>) -> Self {
        Self {
            number,
            operation,
            stage: Stage::Idle,
            clock,
            owner: None,
            handed_over: None,
            taken_over: None,
            under_way: Vec::new(),
            deadlines: Vec::new(),
            sent: [0; MachineKind::COUNT],
            outstanding: None,
        }
    }

    pub(crate) fn awaits(&self, kind: MachineKind, call: CallId) -> bool {
        self.under_way.contains(&(kind, call))
    }

    pub(crate) fn under_way(&self) -> impl Iterator<Item = (MachineKind, CallId)> {
        self.under_way.iter().copied()
    }

    pub(crate) fn deadlines(&self) -> impl Iterator<Item = (MachineKind, Instant)> {
        self.deadlines.iter().copied()
    }

    pub(crate) const fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle)
    }

    pub(crate) const fn is_acquiring(&self) -> bool {
        matches!(self.stage, Stage::Acquiring(_))
    }

    pub(crate) const fn has_lost(&self) -> bool {
        matches!(self.stage, Stage::Lost { .. })
    }

    pub(crate) const fn may_release(&self) -> bool {
        matches!(self.stage, Stage::Holding { .. } | Stage::Lost { .. })
    }

    pub(crate) const fn may_renew(&self) -> bool {
        matches!(self.stage, Stage::Holding { renew: None, .. })
    }

    pub(crate) const fn was_renewed(&self) -> bool {
        matches!(&self.stage, Stage::Holding { renewal, .. } if matches!(renewal.state(), LeaseState::Renewed))
    }

    pub(crate) const fn outcome(&self) -> Option<&Outcome> {
        if let Stage::Finished(outcome) = &self.stage { Some(outcome) } else { None }
    }

    /// The unexpired hold by this client's own clock, with its current token.
    pub(crate) fn trusted_hold(&self, now: Instant) -> Option<TrustedHold<'_>> {
        match &self.stage {
            Stage::Holding { grant, renewal, .. }
                if !now.has_reached(renewal.lease().expires_at()) =>
            {
                let owner = self.owner.as_deref()?;
                let token = self.taken_over.unwrap_or(grant.token).max(renewal.token());
                Some(TrustedHold { owner, grant, token: token.as_u64() })
            }
            _ => None,
        }
    }

    /// The token that the release of its write returned for the read inside.
    pub(crate) const fn handed_over(&self) -> Option<FencingToken> {
        self.handed_over
    }

    /// Takes over the token that the release of the write around it returned; this may happen
    /// before the reply to its own acquisition arrives.
    pub(crate) const fn take_over(&mut self, token: FencingToken) {
        self.taken_over = Some(token);
    }

    /// Begins. `around` is the owner of the write hold inside which it reads.
    pub(crate) fn begin(&mut self, plan: &Plan, around: Option<OwnerId>, now: Instant) -> Outbox {
        let (attempt, budget) =
            (self.operation.attempt_time(), Some(RequestBudget::new(plan.budget).unwrap()));
        if let Some(call) = self.operation.once() {
            let machine =
                ExecuteOnce::new(call, attempt, self.entropy(MachineKind::Once), self.clock, now);
            self.stage = Stage::Executing(machine);
            return self.drain(MachineKind::Once, now);
        }
        if self.operation == Operation::Await {
            let entropy = self.entropy(MachineKind::AwaitLatch);
            let machine = AwaitLatch::new(latch(), plan.wait_policy, budget, attempt, entropy, now);
            self.stage = Stage::AwaitLatch(machine);
            return self.drain(MachineKind::AwaitLatch, now);
        }
        let target = self.operation.target();
        let target =
            around.into_iter().fold(target, |target, writer| target.nested_in_write(writer));
        let spec = AcquireSpec {
            lease: plan.lease,
            budget,
            attempt_time: attempt,
            ..AcquireSpec::new(target, plan.wait_policy)
        };
        self.stage = Stage::Acquiring(Acquire::new(
            spec,
            self.entropy(MachineKind::Acquire),
            self.clock,
            now,
        ));
        self.drain(MachineKind::Acquire, now)
    }

    /// Releases. `inside` is the owner of the read hold inside its write hold.
    pub(crate) fn release(&mut self, inside: Option<OwnerId>, now: Instant) -> Outbox {
        let grant = match &self.stage {
            Stage::Holding { grant, .. } | Stage::Lost { grant } => grant.clone(),
            _ => return Outbox::new(),
        };
        let target = self.operation.target();
        let machine = Release::new(
            &inside.into_iter().fold(target, |target, reader| target.with_nested_read(reader)),
            &grant,
            self.outstanding.unwrap_or_else(|| grant.outstanding()),
            self.operation.attempt_time(),
            self.clock,
        );
        self.enter(Stage::Releasing(machine));
        self.drain(MachineKind::Release, now)
    }

    pub(crate) fn renew(&mut self, lease: LeaseTime, now: Instant) -> Outbox {
        let (entropy, clock) = (self.entropy(MachineKind::RenewalOnDemand), self.clock);
        let (target, attempt) = (self.operation.target(), self.operation.attempt_time());
        let Stage::Holding { grant, renew, .. } = &mut self.stage else { return Outbox::new() };
        *renew = Some(RenewalOnDemand::new(&target, grant, lease, attempt, entropy, clock, now));
        self.drain(MachineKind::RenewalOnDemand, now)
    }

    /// Handles a reply, and takes the server's time from it as `protocol::exchange` does.
    pub(crate) fn on_reply(
        &mut self,
        kind: MachineKind,
        call: CallId,
        reply: Reply,
        now: Instant,
    ) -> Outbox {
        self.clock = Some(ServerClock::new(reply.server_ms, now));
        self.handle(kind, Input::Reply { call, reply }, now)
    }

    pub(crate) fn handle(&mut self, kind: MachineKind, input: Input, now: Instant) -> Outbox {
        if !self.stage.handle(kind, input, now) {
            return Outbox::new();
        }
        self.drain(kind, now)
    }

    /// The connection of a call breaks: no reply to it will arrive.
    pub(crate) fn on_connection_broken(
        &mut self,
        kind: MachineKind,
        call: CallId,
        now: Instant,
    ) -> Outbox {
        let outbox = self.handle(kind, Input::Failed { call, kind: FailureKind::Broken }, now);
        self.under_way.retain(|awaited| *awaited != (kind, call));
        outbox
    }

    pub(crate) fn on_timeout(&mut self, kind: MachineKind, now: Instant) -> Outbox {
        self.handle(kind, Input::Timeout, now)
    }

    pub(crate) fn cancel(&mut self, now: Instant) -> Outbox {
        self.handle(MachineKind::Acquire, Input::Cancelled, now)
    }

    /// Whether the client has sent no more requests than the model allows.
    pub(crate) const fn is_within(&self, plan: &Plan) -> bool {
        let [_, due_renewals, renewals_on_demand, releases, once, awaits] = self.sent;
        due_renewals <= plan.due_renewals
            && renewals_on_demand <= plan.renewals_on_demand
            && releases <= plan.releases
            && once <= plan.requests
            && awaits <= plan.requests
    }

    fn enter(&mut self, stage: Stage) {
        if matches!(stage, Stage::Finished(_)) {
            (self.owner, self.outstanding) = (None, None);
        }
        self.stage = stage;
        self.under_way.clear();
        self.deadlines.clear();
    }

    /// Polls a machine until it waits or is done, as the driver does, and enters the stage that
    /// follows.
    fn drain(&mut self, kind: MachineKind, now: Instant) -> Outbox {
        let mut outbox = Outbox::new();
        self.outstanding = self.stage.outstanding(self.outstanding);
        let Some(polled) = self.stage.poll(kind, now, &mut outbox) else { return outbox };
        self.record_output(kind, polled.as_ref().err(), &outbox);
        match polled {
            Ok(MachineOutcome::Acquired(outcome)) => self.acquired(outcome, now),
            Ok(MachineOutcome::Lost) => self.lost(),
            Ok(MachineOutcome::Renewed(outcome)) => self.renewed(outcome, now),
            Ok(MachineOutcome::Released(outcome, handed_over)) => {
                self.handed_over = handed_over;
                self.enter(Stage::Finished(outcome));
            }
            Ok(MachineOutcome::Finished(outcome)) => self.enter(Stage::Finished(outcome)),
            Err(_) => {}
        }
        outbox
    }

    /// Records a machine's call in flight and its next timeout, as the driver does.
    fn record_output(&mut self, kind: MachineKind, until: Option<&Instant>, outbox: &Outbox) {
        self.sent[kind as usize] += u8::try_from(outbox.len()).unwrap();
        if let Some((_, call, script)) = outbox.last() {
            self.under_way.retain(|(other, _)| *other != kind);
            self.under_way.push((kind, *call));
            if script.script().name.ends_with("_acquire") {
                self.set_owner(script);
            }
        }
        self.deadlines.retain(|(other, _)| *other != kind);
        self.deadlines.extend(until.map(|until| (kind, *until)));
        self.under_way.sort_unstable();
        self.deadlines.sort_unstable_by_key(|(kind, _)| *kind);
    }

    fn set_owner(&mut self, script: &ScriptCall) {
        let owner = owner_of(script);
        if self.owner.as_deref() != Some(owner) {
            self.owner = Some(owner.into());
        }
    }

    fn acquired(&mut self, outcome: Result<Grant, AcquireError>, now: Instant) {
        match outcome {
            Ok(grant) => {
                let (entropy, attempt) =
                    (self.entropy(MachineKind::DueRenewal), self.operation.attempt_time());
                // A hold without an end is never renewed.
                let renews = !grant.lease.time().is_endless();
                let (target, clock) = (self.operation.target(), self.clock);
                let renewal = Renewal::new(target, grant.clone(), renews, attempt, entropy, clock);
                self.enter(Stage::Holding { grant, renewal, renew: None });
                self.drain(MachineKind::DueRenewal, now);
            }
            Err(error) => self.enter(Stage::Finished(Outcome::without_grant(&error, now))),
        }
    }

    fn lost(&mut self) {
        if let Stage::Holding { grant, .. } = &self.stage {
            let grant = grant.clone();
            self.enter(Stage::Lost { grant });
        }
    }

    fn renewed(&mut self, outcome: Result<Renewed, RequestError>, now: Instant) {
        let Stage::Holding { renewal, renew, .. } = &mut self.stage else { return };
        *renew = None;
        self.under_way.retain(|(kind, _)| *kind != MachineKind::RenewalOnDemand);
        match outcome {
            Ok(renewed) => {
                renewal.adopt(renewed.lease);
                self.drain(MachineKind::DueRenewal, now);
            }
            Err(RequestError::Lost(_)) => self.lost(),
            Err(_) => {}
        }
    }

    const fn entropy(&self, kind: MachineKind) -> Entropy {
        Entropy::new([self.number * 16 + kind as u8; 32])
    }
}

/// The hold that a client relies on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrustedHold<'a> {
    pub(crate) owner: &'a str,
    pub(crate) grant: &'a Grant,
    pub(crate) token: u64,
}
