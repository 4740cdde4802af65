//! One client of the model, driven by the real machines. It acquires a hold, keeps it for an
//! arbitrary time and releases it; or it makes one idempotent call; or it awaits a latch.

use std::sync::Arc;

use edgelatch_proto::error::{AcquireError, FailureKind, RequestError};
use edgelatch_proto::machine::{
    Acquire, AcquireSpec, AwaitLatch, CallId, Entropy, Grant, Input, LeaseState, Once,
    OutstandingBound, Release, Renew, Renewal, Renewed,
};
use edgelatch_proto::name::{FencingToken, OwnerId};
use edgelatch_proto::protocol::reply::{Reply, ServerClock};
use edgelatch_proto::protocol::script::ScriptCall;
use edgelatch_proto::time::Instant;
use edgelatch_proto::timing::{LeaseTime, RequestBudget};

use super::plan::{Does, Plan, latch, owner_of};
use super::stage::{Ended, Leg, Outbox, Stage, Told};

/// Rule R6, which a model may switch off: after a client has released its write, its read inside
/// takes over the token in the reply to that release.
pub(crate) const HANDS_ON: &str = "a read takes over what the release of its write says";

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    number: u8,
    does: Does,
    stage: Stage,
    clock: Option<ServerClock>,
    /// The owner field of its last acquisition, until the client is done.
    owner: Option<Arc<str>>,
    /// The token that the release of its write returned for the read inside, and the token that the
    /// release of the write around it returned for this client.
    handed_on: Option<FencingToken>,
    taken_over: Option<FencingToken>,
    /// The calls without a reply yet, and the timeouts of the machines: at most one of each for
    /// each machine.
    under_way: Vec<(Leg, CallId)>,
    deadlines: Vec<(Leg, Instant)>,
    sent: [u8; Leg::COUNT],
    /// Bounds the requests for its hold that may still be executed.
    outstanding: Option<OutstandingBound>,
}

impl Client {
    pub(crate) const fn new(number: u8, does: Does, clock: Option<ServerClock>) -> Self {
        Self {
            number,
            does,
            stage: Stage::Idle,
            clock,
            owner: None,
            handed_on: None,
            taken_over: None,
            under_way: Vec::new(),
            deadlines: Vec::new(),
            sent: [0; Leg::COUNT],
            outstanding: None,
        }
    }

    pub(crate) fn awaits(&self, leg: Leg, call: CallId) -> bool {
        self.under_way.contains(&(leg, call))
    }

    pub(crate) fn under_way(&self) -> impl Iterator<Item = (Leg, CallId)> {
        self.under_way.iter().copied()
    }

    pub(crate) fn deadlines(&self) -> impl Iterator<Item = (Leg, Instant)> {
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

    pub(crate) const fn told(&self) -> Option<&Told> {
        if let Stage::Over(told) = &self.stage { Some(told) } else { None }
    }

    /// The unexpired hold by this client's own clock, with its current token.
    pub(crate) fn believes(&self, now: Instant) -> Option<Belief<'_>> {
        match &self.stage {
            Stage::Holding { grant, renewal, .. }
                if !now.has_reached(renewal.lease().expires_at()) =>
            {
                let owner = self.owner.as_deref()?;
                let token = self.taken_over.unwrap_or(grant.token).max(renewal.token());
                Some(Belief { owner, grant, token: token.as_u64() })
            }
            _ => None,
        }
    }

    /// The token that the release of its write returned for the read inside.
    pub(crate) const fn handed_on(&self) -> Option<FencingToken> {
        self.handed_on
    }

    /// Takes over the token that the release of the write around it returned; this may happen
    /// before the reply to its own acquisition arrives.
    pub(crate) const fn take_over(&mut self, token: FencingToken) {
        self.taken_over = Some(token);
    }

    /// Begins. `around` is the owner of the write hold inside which it reads.
    pub(crate) fn begin(&mut self, plan: &Plan, around: Option<OwnerId>, now: Instant) -> Outbox {
        let (attempt, budget) =
            (self.does.attempt_time(), Some(RequestBudget::new(plan.budget).unwrap()));
        if let Some(call) = self.does.once() {
            let machine = Once::new(call, attempt, self.entropy(Leg::Once), self.clock, now);
            self.stage = Stage::Doing(machine);
            return self.drain(Leg::Once, now);
        }
        if self.does == Does::Await {
            let entropy = self.entropy(Leg::Await);
            let machine = AwaitLatch::new(latch(), plan.patience, budget, attempt, entropy, now);
            self.stage = Stage::AwaitLatch(machine);
            return self.drain(Leg::Await, now);
        }
        let target = self.does.target();
        let target =
            around.into_iter().fold(target, |target, writer| target.nested_in_write(writer));
        let spec = AcquireSpec {
            lease: plan.lease,
            budget,
            attempt,
            ..AcquireSpec::new(target, plan.patience)
        };
        self.stage =
            Stage::Acquiring(Acquire::new(spec, self.entropy(Leg::Acquire), self.clock, now));
        self.drain(Leg::Acquire, now)
    }

    /// Releases. `inside` is the owner of the read hold inside its write hold.
    pub(crate) fn release(&mut self, inside: Option<OwnerId>, now: Instant) -> Outbox {
        let grant = match &self.stage {
            Stage::Holding { grant, .. } | Stage::Lost { grant } => grant.clone(),
            _ => return Outbox::new(),
        };
        let target = self.does.target();
        let machine = Release::new(
            &inside.into_iter().fold(target, |target, reader| target.with_nested_read(reader)),
            &grant,
            self.outstanding.unwrap_or_else(|| grant.outstanding()),
            self.does.attempt_time(),
            self.clock,
        );
        self.go(Stage::Releasing(machine));
        self.drain(Leg::Release, now)
    }

    pub(crate) fn renew(&mut self, lease: LeaseTime, now: Instant) -> Outbox {
        let (entropy, clock) = (self.entropy(Leg::Renew), self.clock);
        let (target, attempt) = (self.does.target(), self.does.attempt_time());
        let Stage::Holding { grant, renew, .. } = &mut self.stage else { return Outbox::new() };
        *renew = Some(Renew::new(&target, grant, lease, attempt, entropy, clock, now));
        self.drain(Leg::Renew, now)
    }

    /// Handles a reply, and takes the server's time from it as `protocol::exchange` does.
    pub(crate) fn hear(&mut self, leg: Leg, call: CallId, reply: Reply, now: Instant) -> Outbox {
        self.clock = Some(ServerClock::new(reply.server_ms, now));
        self.tell(leg, Input::Reply { call, reply }, now)
    }

    pub(crate) fn tell(&mut self, leg: Leg, input: Input, now: Instant) -> Outbox {
        if !self.stage.handle(leg, input, now) {
            return Outbox::new();
        }
        self.drain(leg, now)
    }

    /// The connection of a call breaks: no reply to it will arrive.
    pub(crate) fn broken(&mut self, leg: Leg, call: CallId, now: Instant) -> Outbox {
        let outbox = self.tell(leg, Input::Failed { call, kind: FailureKind::Broken }, now);
        self.under_way.retain(|awaited| *awaited != (leg, call));
        outbox
    }

    pub(crate) fn woken(&mut self, leg: Leg, now: Instant) -> Outbox {
        self.tell(leg, Input::Timeout, now)
    }

    pub(crate) fn cancelled(&mut self, now: Instant) -> Outbox {
        self.tell(Leg::Acquire, Input::Cancelled, now)
    }

    /// Whether the client has sent no more requests than the model allows.
    pub(crate) const fn is_within(&self, plan: &Plan) -> bool {
        let [_, renewals, renews, releases, once, awaits] = self.sent;
        renewals <= plan.renewals
            && renews <= plan.renews
            && releases <= plan.releases
            && once <= plan.requests
            && awaits <= plan.requests
    }

    fn go(&mut self, stage: Stage) {
        if matches!(stage, Stage::Over(_)) {
            (self.owner, self.outstanding) = (None, None);
        }
        self.stage = stage;
        self.under_way.clear();
        self.deadlines.clear();
    }

    /// Polls a machine until it waits or is done, as the driver does, and enters the stage that
    /// follows.
    fn drain(&mut self, leg: Leg, now: Instant) -> Outbox {
        let mut outbox = Outbox::new();
        self.outstanding = self.stage.outstanding(self.outstanding);
        let Some(polled) = self.stage.poll(leg, now, &mut outbox) else { return outbox };
        self.note(leg, polled.as_ref().err(), &outbox);
        match polled {
            Ok(Ended::Acquired(outcome)) => self.acquired(outcome, now),
            Ok(Ended::Lost) => self.lost(),
            Ok(Ended::Renewed(outcome)) => self.renewed(outcome, now),
            Ok(Ended::Released(told, handed_on)) => {
                self.handed_on = handed_on;
                self.go(Stage::Over(told));
            }
            Ok(Ended::Over(told)) => self.go(Stage::Over(told)),
            Err(_) => {}
        }
        outbox
    }

    /// Records what the driver records of a machine: its call in flight and its next timeout.
    fn note(&mut self, leg: Leg, until: Option<&Instant>, outbox: &Outbox) {
        self.sent[leg as usize] += u8::try_from(outbox.len()).unwrap();
        if let Some((_, call, script)) = outbox.last() {
            self.under_way.retain(|(other, _)| *other != leg);
            self.under_way.push((leg, *call));
            if script.script().name.ends_with("_acquire") {
                self.asks_as(script);
            }
        }
        self.deadlines.retain(|(other, _)| *other != leg);
        self.deadlines.extend(until.map(|until| (leg, *until)));
        self.under_way.sort_unstable();
        self.deadlines.sort_unstable_by_key(|(leg, _)| *leg);
    }

    fn asks_as(&mut self, script: &ScriptCall) {
        let owner = owner_of(script);
        if self.owner.as_deref() != Some(owner) {
            self.owner = Some(owner.into());
        }
    }

    fn acquired(&mut self, outcome: Result<Grant, AcquireError>, now: Instant) {
        match outcome {
            Ok(grant) => {
                let (entropy, attempt) = (self.entropy(Leg::Renewal), self.does.attempt_time());
                // A hold without an end is never renewed.
                let renews = !grant.lease.time().is_endless();
                let (target, clock) = (self.does.target(), self.clock);
                let renewal = Renewal::new(target, grant.clone(), renews, attempt, entropy, clock);
                self.go(Stage::Holding { grant, renewal, renew: None });
                self.drain(Leg::Renewal, now);
            }
            Err(error) => self.go(Stage::Over(Told::without_grant(&error, now))),
        }
    }

    fn lost(&mut self) {
        if let Stage::Holding { grant, .. } = &self.stage {
            let grant = grant.clone();
            self.go(Stage::Lost { grant });
        }
    }

    fn renewed(&mut self, outcome: Result<Renewed, RequestError>, now: Instant) {
        let Stage::Holding { renewal, renew, .. } = &mut self.stage else { return };
        *renew = None;
        self.under_way.retain(|(leg, _)| *leg != Leg::Renew);
        match outcome {
            Ok(renewed) => {
                renewal.adopt(renewed.lease);
                self.drain(Leg::Renewal, now);
            }
            Err(RequestError::Lost(_)) => self.lost(),
            Err(_) => {}
        }
    }

    const fn entropy(&self, leg: Leg) -> Entropy {
        Entropy::new([self.number * 16 + leg as u8; 32])
    }
}

/// The hold that a client relies on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Belief<'a> {
    pub(crate) owner: &'a str,
    pub(crate) grant: &'a Grant,
    pub(crate) token: u64,
}
