//! One client of the model: it takes several parts, or a majority, by the real machines, and lets them go again.

use std::sync::Arc;

use edgelatch::LockName;
use edgelatch::error::{AcquireError, FailureKind, ReleaseError};
use edgelatch::machine::{
    CallId, Endpoint, Entropy, Gather, GatherSpec, Gathered, GatheredPart, Input, Machine,
    Majority, MajoritySpec, Output, Release, ReleaseAll,
};
use edgelatch::protocol::calls::{LockCalls, Target};
use edgelatch::protocol::reply::{Reply, ServerClock};
use edgelatch::protocol::script::{Publish, ScriptCall};
use edgelatch::time::Instant;
use edgelatch::timing::{AttemptTime, LeaseTime, Patience};

use std::time::Duration;

/// How many parts make a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Rule {
    All,
    Majority,
}

/// What a client is going to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) rule: Rule,
    /// The nodes that it takes, in their order. Each has a Redis of its own.
    pub(crate) nodes: &'static [usize],
    pub(crate) lease: LeaseTime,
    pub(crate) patience: Patience,
    /// Whether it may be cancelled while it waits.
    pub(crate) cancels: bool,
    /// How many calls it makes at most to take it, and to let it go.
    pub(crate) calls: [u8; 2],
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    number: u8,
    stage: Stage,
    /// What it knew of the servers' clocks when it began.
    clock: Option<ServerClock>,
    /// The calls whose answers are awaited: one for each part. And when the machine is to be woken.
    under_way: Vec<(usize, CallId)>,
    deadline: Option<Instant>,
    made: [u8; 2],
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Idle,
    Gathering(Gather),
    Voting(Majority),
    Holding(Gathered),
    Releasing(ReleaseAll),
    Over(Told),
}

/// What the program has heard at last about what is left of it in Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Told {
    Busy,
    Nothing,
    HeldAtMost { since: Instant, time: Duration },
    Refused,
}

/// The calls that a client makes while it handles one thing, and to which of its parts.
pub(crate) type Outbox = Vec<(usize, CallId, Arc<ScriptCall>)>;

impl Client {
    pub(crate) const fn new(number: u8) -> Self {
        Self {
            number,
            stage: Stage::Idle,
            clock: None,
            under_way: Vec::new(),
            deadline: None,
            made: [0; 2],
        }
    }

    pub(crate) fn awaits(&self, place: usize, call: CallId) -> bool {
        self.under_way.contains(&(place, call))
    }

    pub(crate) fn under_way(&self) -> impl Iterator<Item = CallId> {
        self.under_way.iter().map(|(_, call)| *call)
    }

    /// Whether it waits for nothing but time.
    pub(crate) const fn waits(&self) -> bool {
        matches!(self.stage, Stage::Gathering(_)) && self.under_way.is_empty()
    }

    pub(crate) const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    pub(crate) const fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle)
    }

    pub(crate) const fn is_acquiring(&self) -> bool {
        matches!(self.stage, Stage::Gathering(_) | Stage::Voting(_))
    }

    pub(crate) const fn gathered(&self) -> Option<&Gathered> {
        if let Stage::Holding(gathered) = &self.stage { Some(gathered) } else { None }
    }

    pub(crate) const fn told(&self) -> Option<Told> {
        if let Stage::Over(told) = self.stage { Some(told) } else { None }
    }

    /// The hold in which the client believes now, by its own clock.
    pub(crate) fn believes(&self, plan: &Plan, now: Instant) -> Option<&Gathered> {
        let gathered = self.gathered()?;
        let stands =
            |part: &&GatheredPart| part.counts && !part.grant.lease.remaining(now).is_zero();
        (gathered.parts.iter().filter(stands).count() >= plan.quorum()).then_some(gathered)
    }

    pub(crate) fn begin(&mut self, plan: &Plan, clock: ServerClock, now: Instant) -> Outbox {
        self.clock = Some(clock);
        self.stage = plan.machine(self.entropy(0), clock, now);
        self.drain(plan, now)
    }

    pub(crate) fn release(&mut self, plan: &Plan, now: Instant) -> Outbox {
        let Some(gathered) = self.gathered() else { return Outbox::new() };
        let targets = plan.targets();
        let releases = targets.iter().zip(&gathered.parts).map(|(target, part)| {
            let (grant, attempt) = (&part.grant, AttemptTime::DEFAULT);
            (Release::new(target, grant, grant.reach(), attempt, self.clock), part.counts)
        });
        let releases = ReleaseAll::new(releases, plan.quorum());
        self.go(Stage::Releasing(releases));
        self.drain(plan, now)
    }

    pub(crate) fn hear(&mut self, plan: &Plan, call: CallId, reply: Reply, now: Instant) -> Outbox {
        self.tell(plan, Input::Reply { call, reply }, now)
    }

    /// The connection of a call broke: its answer will never be heard.
    pub(crate) fn broken(&mut self, plan: &Plan, call: CallId, now: Instant) -> Outbox {
        self.under_way.retain(|(_, other)| *other != call);
        self.tell(plan, Input::Failed { call, kind: FailureKind::Broken }, now)
    }

    pub(crate) fn woken(&mut self, plan: &Plan, now: Instant) -> Outbox {
        self.tell(plan, Input::Woken, now)
    }

    pub(crate) fn cancelled(&mut self, plan: &Plan, now: Instant) -> Outbox {
        self.tell(plan, Input::Cancelled, now)
    }

    /// Whether the client has kept to the bounds of the model.
    pub(crate) const fn is_within(&self, plan: &Plan) -> bool {
        self.made[0] <= plan.calls[0] && self.made[1] <= plan.calls[1]
    }

    fn tell(&mut self, plan: &Plan, input: Input, now: Instant) -> Outbox {
        if let Input::Reply { call, .. } = &input {
            let call = *call;
            self.under_way.retain(|(_, other)| *other != call);
        }
        match &mut self.stage {
            Stage::Gathering(machine) => machine.handle(input, now),
            Stage::Voting(machine) => machine.handle(input, now),
            Stage::Releasing(machine) => machine.handle(input, now),
            Stage::Idle | Stage::Holding(_) | Stage::Over(_) => return Outbox::new(),
        }
        self.drain(plan, now)
    }

    /// Polls the machine until it waits or is done, as the driver does, and goes on to what comes next.
    fn drain(&mut self, plan: &Plan, now: Instant) -> Outbox {
        let mut outbox = Outbox::new();
        let next = match &mut self.stage {
            Stage::Gathering(machine) => drain(machine, now, &mut outbox).map(acquired(now)),
            Stage::Voting(machine) => drain(machine, now, &mut outbox).map(acquired(now)),
            Stage::Releasing(machine) => {
                drain(machine, now, &mut outbox).map(|outcome| match outcome {
                    Ok(_) => Stage::Over(Told::Nothing),
                    Err(ReleaseError::Unknown { held_at_most, .. }) => {
                        Stage::Over(Told::HeldAtMost { since: now, time: held_at_most })
                    }
                    Err(_) => Stage::Over(Told::Refused),
                })
            }
            Stage::Idle | Stage::Holding(_) | Stage::Over(_) => return outbox,
        };
        let leg = usize::from(matches!(self.stage, Stage::Releasing(_)));
        self.made[leg] += u8::try_from(outbox.len()).unwrap();
        for (place, call, _) in &outbox {
            self.under_way.retain(|(other, _)| other != place);
            self.under_way.push((*place, *call));
        }
        self.under_way.sort_unstable();
        match next {
            Ok(stage) => {
                // Of what is silent when a majority is there, nothing is of interest.
                self.go(stage);
                self.made[leg] = self.made[leg].min(plan.calls[leg]);
            }
            Err(until) => self.deadline = Some(until),
        }
        outbox
    }

    fn go(&mut self, stage: Stage) {
        self.stage = stage;
        self.under_way.clear();
        self.deadline = None;
    }

    const fn entropy(&self, leg: u8) -> Entropy {
        Entropy::new([self.number * 16 + leg; 32])
    }
}

impl Plan {
    pub(crate) const fn quorum(&self) -> usize {
        match self.rule {
            Rule::All => self.nodes.len(),
            Rule::Majority => self.nodes.len() / 2 + 1,
        }
    }

    fn calls_of(node: usize) -> LockCalls {
        LockCalls::new(LockName::parse(name(node)).unwrap(), Publish::Plain)
    }

    fn targets(&self) -> Vec<Target> {
        self.nodes.iter().map(|node| Target::Lock(Self::calls_of(*node))).collect()
    }

    fn machine(&self, entropy: Entropy, clock: ServerClock, now: Instant) -> Stage {
        let Self { lease, patience, .. } = *self;
        let (budget, attempt, keeps) = (None, AttemptTime::DEFAULT, Duration::from_secs(1));
        let (replicas, is_crowded) = (None, false);
        let clocks = vec![Some(clock); self.nodes.len()];
        match self.rule {
            Rule::All => {
                let parts = self.targets();
                let pacing = Vec::new();
                let spec = GatherSpec {
                    parts,
                    lease,
                    patience,
                    budget,
                    attempt,
                    keeps,
                    replicas,
                    pacing,
                    newest: Vec::new(),
                    is_crowded,
                };
                Stage::Gathering(Gather::new(spec, entropy, clocks, now))
            }
            Rule::Majority => {
                let parts = self.nodes.iter().map(|node| Self::calls_of(*node)).collect();
                let spec = MajoritySpec {
                    parts,
                    lease,
                    patience,
                    budget,
                    attempt,
                    keeps,
                    replicas,
                    is_crowded,
                };
                Stage::Voting(Majority::new(spec, entropy, clocks, now))
            }
        }
    }
}

/// The lock on a node.
pub(crate) const fn name(node: usize) -> &'static str {
    ["a", "b", "c"][node]
}

/// The start of every owner field of this client.
pub(crate) fn owner_prefix(number: u8) -> String {
    format!("{:02x}", number * 16)
}

fn acquired(now: Instant) -> impl FnOnce(Result<Gathered, AcquireError>) -> Stage {
    move |outcome| match outcome {
        Ok(gathered) => Stage::Holding(gathered),
        Err(AcquireError::Busy { .. }) => Stage::Over(Told::Busy),
        Err(
            AcquireError::Unknown { held_at_most, .. }
            | AcquireError::Cancelled { held_at_most: Some(held_at_most) },
        ) => Stage::Over(Told::HeldAtMost { since: now, time: held_at_most }),
        Err(_) => Stage::Over(Told::Nothing),
    }
}

/// A machine up to its next wait (`Err`) or its end (`Ok`).
fn drain<M: Machine>(
    machine: &mut M,
    now: Instant,
    outbox: &mut Outbox,
) -> Result<M::Outcome, Instant> {
    loop {
        match machine.poll(now) {
            Output::Call { call, to: Endpoint(place), script } => {
                outbox.push((place, call, Arc::new(script)));
            }
            Output::Listen { .. } => {}
            Output::Wait { until, .. } => return Err(until),
            Output::Done(outcome) => return Ok(outcome),
        }
    }
}
