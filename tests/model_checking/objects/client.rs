//! One client of the model: a program that takes something, holds it for as long as it likes, and
//! lets it go; or has something done. By the real machines.

use std::sync::Arc;

use edgelatch::error::{AcquireError, FailureKind, RequestError};
use edgelatch::machine::{
    Acquire, AcquireSpec, Awaiting, CallId, Entropy, Grant, Input, LeaseState, Once, Reach,
    Release, Renew, Renewal, Renewed,
};
use edgelatch::name::{FencingToken, OwnerId};
use edgelatch::protocol::reply::{Reply, ServerClock};
use edgelatch::protocol::script::ScriptCall;
use edgelatch::time::Instant;
use edgelatch::timing::{LeaseTime, RequestBudget};

use super::plan::{Does, Plan, latch, owner_of};
use super::stage::{Ended, Leg, Outbox, Stage, Told};

/// R6: a client whose write has ended gives the read inside the token that the answer says. A model
/// may leave that out.
pub(crate) const HANDS_ON: &str = "a read takes over what the release of its write says";

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    number: u8,
    does: Does,
    stage: Stage,
    clock: Option<ServerClock>,
    /// Under which owner it has asked last, until it is all over.
    owner: Option<Arc<str>>,
    /// What the end of its write has left to the read inside; and what the write around it has left
    /// to it.
    handed_on: Option<FencingToken>,
    taken_over: Option<FencingToken>,
    /// The calls whose answers are awaited, and the deadlines of the machines: one each per
    /// machine.
    under_way: Vec<(Leg, CallId)>,
    deadlines: Vec<(Leg, Instant)>,
    sent: [u8; Leg::COUNT],
    /// What may still be done of what it has asked for its hold.
    reach: Option<Reach>,
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
            reach: None,
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

    /// The hold in which the client believes now, by its own clock, and the token that it has by
    /// now.
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

    /// What the end of its write has left to the read inside.
    pub(crate) const fn handed_on(&self) -> Option<FencingToken> {
        self.handed_on
    }

    /// Takes over what the end of the write around it has left to it, also before it has heard of
    /// its own grant.
    pub(crate) const fn take_over(&mut self, token: FencingToken) {
        self.taken_over = Some(token);
    }

    /// Begins. `around`: the owner inside whose write hold it reads.
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
            let machine = Awaiting::new(latch(), plan.patience, budget, attempt, entropy, now);
            self.stage = Stage::Awaiting(machine);
            return self.drain(Leg::Await, now);
        }
        let target = self.does.target();
        let target = around.into_iter().fold(target, |target, writer| target.inside(writer));
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

    /// Releases. `inside`: the owner who reads inside its write hold.
    pub(crate) fn release(&mut self, inside: Option<OwnerId>, now: Instant) -> Outbox {
        let grant = match &self.stage {
            Stage::Holding { grant, .. } | Stage::Lost { grant } => grant.clone(),
            _ => return Outbox::new(),
        };
        let target = self.does.target();
        let machine = Release::new(
            &inside.into_iter().fold(target, |target, reader| target.around(reader)),
            &grant,
            self.reach.unwrap_or_else(|| grant.reach()),
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

    /// A reply, read as the exchange reads it.
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

    /// The connection of a call broke: its reply will never be heard.
    pub(crate) fn broken(&mut self, leg: Leg, call: CallId, now: Instant) -> Outbox {
        let outbox = self.tell(leg, Input::Failed { call, kind: FailureKind::Broken }, now);
        self.under_way.retain(|awaited| *awaited != (leg, call));
        outbox
    }

    pub(crate) fn woken(&mut self, leg: Leg, now: Instant) -> Outbox {
        self.tell(leg, Input::Woken, now)
    }

    pub(crate) fn cancelled(&mut self, now: Instant) -> Outbox {
        self.tell(Leg::Acquire, Input::Cancelled, now)
    }

    /// Whether the client has kept to the bounds of the model.
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
            (self.owner, self.reach) = (None, None);
        }
        self.stage = stage;
        self.under_way.clear();
        self.deadlines.clear();
    }

    /// Polls a machine until it waits or is done, as the driver does, and goes on to what comes
    /// next.
    fn drain(&mut self, leg: Leg, now: Instant) -> Outbox {
        let mut outbox = Outbox::new();
        self.reach = self.stage.reach(self.reach);
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

    /// Keeps what the driver keeps of a machine: the call under way, and when to wake it.
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
                // What has no end needs no renewal.
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

/// What a client relies on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Belief<'a> {
    pub(crate) owner: &'a str,
    pub(crate) grant: &'a Grant,
    pub(crate) token: u64,
}
