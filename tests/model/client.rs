//! One client of the model: a program that takes the lock, holds it for as long as it likes, and lets it go, by the real machines.

use std::sync::Arc;
use std::time::Duration;

use edgelatch::error::{AcquireError, FailureKind, ReleaseError, RequestError};
use edgelatch::machine::{
    Acquire, AcquireSpec, CallId, Entropy, Grant, Input, LeaseState, Machine, Output, Release,
    Renew, Renewal,
};
use edgelatch::name::LockName;
use edgelatch::protocol::reply::{Reply, ServerClock};
use edgelatch::protocol::script::{LockCalls, Publish, ScriptCall};
use edgelatch::time::Instant;
use edgelatch::timing::{AttemptTime, LeaseTime, Patience, RequestBudget};

/// The lock that everybody wants.
pub(crate) const LOCK: &str = "lock";

/// What a client is going to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Whether it does anything.
    pub(crate) takes_part: bool,
    pub(crate) patience: Patience,
    pub(crate) lease: LeaseTime,
    /// Whether it has seen the server's clock before.
    pub(crate) knows_clock: bool,
    /// Whether it may be cancelled while it waits.
    pub(crate) cancels: bool,
    /// How many requests it sends at most to renew as they fall due, to renew on demand, and to release.
    pub(crate) renewals: u8,
    pub(crate) renews: u8,
    pub(crate) releases: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    number: u8,
    stage: Stage,
    clock: Option<ServerClock>,
    /// The calls whose answers are awaited, and the deadlines of the machines: one each per machine.
    under_way: Vec<(Leg, CallId)>,
    deadlines: Vec<(Leg, Instant)>,
    sent: [u8; 4],
}

/// Which machine of a client: they count their calls by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Leg {
    Acquire,
    Renewal,
    Renew,
    Release,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::large_enum_variant, reason = "a client is behind a pointer anyway")]
enum Stage {
    Idle,
    Acquiring(Acquire),
    Holding {
        grant: Grant,
        renewal: Renewal,
        renew: Option<Renew>,
    },
    /// The holder knows that it has lost the lock.
    Lost {
        grant: Grant,
    },
    Releasing(Release),
    Over(Told),
}

/// What the program has heard at last about what is left of it in Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Told {
    Busy,
    /// Nothing is held, for another reason.
    Nothing,
    /// Nothing is held any more at this time on the client's clock.
    NothingAfter(Instant),
    Refused,
}

/// The calls that a client makes while it handles one thing.
pub(crate) type Outbox = Vec<(Leg, CallId, Arc<ScriptCall>)>;

impl Client {
    pub(crate) const fn new(number: u8, clock: Option<ServerClock>) -> Self {
        Self {
            number,
            stage: Stage::Idle,
            clock,
            under_way: Vec::new(),
            deadlines: Vec::new(),
            sent: [0; 4],
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

    pub(crate) const fn told(&self) -> Option<Told> {
        if let Stage::Over(told) = self.stage { Some(told) } else { None }
    }

    /// The hold in which the client believes now, by its own clock.
    pub(crate) fn believes(&self, now: Instant) -> Option<&Grant> {
        match &self.stage {
            Stage::Holding { grant, renewal, .. }
                if !now.has_reached(renewal.lease().expires_at()) =>
            {
                Some(grant)
            }
            _ => None,
        }
    }

    pub(crate) fn begin(&mut self, plan: &Plan, now: Instant) -> Outbox {
        let (calls, attempt) = (calls(), AttemptTime::DEFAULT);
        let Plan { lease, patience, .. } = *plan;
        // The smallest that there is: two tries, and one request to undo them.
        let budget = RequestBudget::new(3).ok();
        let spec = AcquireSpec { calls, lease, patience, budget, attempt };
        self.stage =
            Stage::Acquiring(Acquire::new(spec, self.entropy(Leg::Acquire), self.clock, now));
        self.drain(Leg::Acquire, now)
    }

    pub(crate) fn release(&mut self, now: Instant) -> Outbox {
        let grant = match &self.stage {
            Stage::Holding { grant, .. } | Stage::Lost { grant } => grant.clone(),
            _ => return Outbox::new(),
        };
        let machine = Release::new(
            &calls(),
            &grant,
            grant.lease.time(),
            AttemptTime::DEFAULT,
            self.entropy(Leg::Release),
        );
        self.go(Stage::Releasing(machine));
        self.drain(Leg::Release, now)
    }

    pub(crate) fn renew(&mut self, lease: LeaseTime, now: Instant) -> Outbox {
        let (entropy, clock) = (self.entropy(Leg::Renew), self.clock);
        let Stage::Holding { grant, renew, .. } = &mut self.stage else { return Outbox::new() };
        *renew =
            Some(Renew::new(&calls(), grant, lease, AttemptTime::DEFAULT, entropy, clock, now));
        self.drain(Leg::Renew, now)
    }

    /// A reply, read as the exchange reads it.
    pub(crate) fn hear(&mut self, leg: Leg, call: CallId, reply: Reply, now: Instant) -> Outbox {
        self.clock = Some(ServerClock::new(reply.server_ms, now));
        self.tell(leg, Input::Reply { call, reply }, now)
    }

    pub(crate) fn tell(&mut self, leg: Leg, input: Input, now: Instant) -> Outbox {
        match (&mut self.stage, leg) {
            (Stage::Acquiring(machine), Leg::Acquire) => machine.handle(input, now),
            (Stage::Holding { renewal, .. }, Leg::Renewal) => renewal.handle(input, now),
            (Stage::Holding { renew: Some(machine), .. }, Leg::Renew) => machine.handle(input, now),
            (Stage::Releasing(machine), Leg::Release) => machine.handle(input, now),
            _ => return Outbox::new(),
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
        let [_, renewals, renews, releases] = self.sent;
        renewals <= plan.renewals && renews <= plan.renews && releases <= plan.releases
    }

    fn go(&mut self, stage: Stage) {
        self.stage = stage;
        self.under_way.clear();
        self.deadlines.clear();
    }

    /// Polls a machine until it waits or is done, as the driver does, and goes on to what comes next.
    fn drain(&mut self, leg: Leg, now: Instant) -> Outbox {
        let mut outbox = Outbox::new();
        match (&mut self.stage, leg) {
            (Stage::Acquiring(machine), Leg::Acquire) => {
                let polled = drain(machine, leg, now, &mut outbox);
                self.note(leg, polled.as_ref().err(), &outbox);
                if let Ok(outcome) = polled {
                    self.acquired(outcome, now);
                }
            }
            (Stage::Holding { renewal, grant, .. }, Leg::Renewal) => {
                let polled = drain(renewal, leg, now, &mut outbox);
                let lost = polled.is_ok().then(|| Stage::Lost { grant: grant.clone() });
                self.note(leg, polled.as_ref().err(), &outbox);
                if let Some(lost) = lost {
                    self.go(lost);
                }
            }
            (Stage::Holding { renew: Some(machine), .. }, Leg::Renew) => {
                let polled = drain(machine, leg, now, &mut outbox);
                self.note(leg, polled.as_ref().err(), &outbox);
                if let Ok(outcome) = polled {
                    self.renewed(outcome, now);
                }
            }
            (Stage::Releasing(machine), Leg::Release) => {
                let polled = drain(machine, leg, now, &mut outbox);
                self.note(leg, polled.as_ref().err(), &outbox);
                if let Ok(outcome) = polled {
                    self.go(Stage::Over(match outcome {
                        Ok(_) => Told::Nothing,
                        Err(ReleaseError::Unknown { held_at_most, .. }) => {
                            Told::NothingAfter(now + held_at_most)
                        }
                        Err(_) => Told::Refused,
                    }));
                }
            }
            _ => {}
        }
        outbox
    }

    /// Keeps what the driver keeps of a machine: the call under way, and when to wake it.
    fn note(&mut self, leg: Leg, until: Option<&Instant>, outbox: &Outbox) {
        self.sent[leg as usize] += u8::try_from(outbox.len()).unwrap();
        if let Some((_, call, _)) = outbox.last() {
            self.under_way.retain(|(other, _)| *other != leg);
            self.under_way.push((leg, *call));
        }
        self.deadlines.retain(|(other, _)| *other != leg);
        self.deadlines.extend(until.map(|until| (leg, *until)));
        self.under_way.sort_unstable();
        self.deadlines.sort_unstable_by_key(|(leg, _)| *leg);
    }

    fn acquired(&mut self, outcome: Result<Grant, AcquireError>, now: Instant) {
        match outcome {
            Ok(grant) => {
                let entropy = self.entropy(Leg::Renewal);
                let renewal = Renewal::new(
                    calls(),
                    grant.clone(),
                    true,
                    AttemptTime::DEFAULT,
                    entropy,
                    self.clock,
                );
                self.go(Stage::Holding { grant, renewal, renew: None });
                self.drain(Leg::Renewal, now);
            }
            Err(error) => self.go(Stage::Over(match error {
                AcquireError::Busy { .. } => Told::Busy,
                AcquireError::Unknown { held_at_most, .. }
                | AcquireError::Cancelled { held_at_most: Some(held_at_most) } => {
                    Told::NothingAfter(now + held_at_most)
                }
                _ => Told::Nothing,
            })),
        }
    }

    fn renewed(&mut self, outcome: Result<edgelatch::machine::Lease, RequestError>, now: Instant) {
        let Stage::Holding { renewal, renew, grant } = &mut self.stage else { return };
        *renew = None;
        self.under_way.retain(|(leg, _)| *leg != Leg::Renew);
        match outcome {
            Ok(lease) => {
                renewal.adopt(lease);
                self.drain(Leg::Renewal, now);
            }
            Err(RequestError::Lost(_)) => {
                let grant = grant.clone();
                self.go(Stage::Lost { grant });
            }
            Err(_) => {}
        }
    }

    const fn entropy(&self, leg: Leg) -> Entropy {
        Entropy::new([self.number * 16 + leg as u8; 32])
    }
}

/// A machine up to its next wait (`Err`) or its end (`Ok`).
fn drain<M: Machine>(
    machine: &mut M,
    leg: Leg,
    now: Instant,
    outbox: &mut Outbox,
) -> Result<M::Outcome, Instant> {
    loop {
        match machine.poll(now) {
            Output::Call { call, script, .. } => outbox.push((leg, call, Arc::new(script))),
            Output::Wait { until, .. } => return Err(until),
            Output::Done(outcome) => return Ok(outcome),
        }
    }
}

fn calls() -> LockCalls {
    LockCalls { name: LockName::parse(LOCK).unwrap(), publish: Publish::Plain }
}

/// The start of every owner field of this client.
pub(crate) fn owner_prefix(number: u8) -> String {
    format!("{:02x}", number * 16 + Leg::Acquire as u8)
}

/// So many seconds.
pub(crate) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
