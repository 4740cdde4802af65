//! One client of the model, driven by the real machines. It acquires several parts or a majority,
//! keeps the hold for a while, and releases it.

use std::time::Duration;

use edgelatch_proto::error::{AcquireError, FailureKind, ReleaseError};
use edgelatch_proto::machine::{
    AcquireAll, AcquireAllSpec, AcquireQuorum, AcquireQuorumSpec, CallId, Endpoint, Entropy, Input,
    Lease, LeaseState, Machine, MultiGrant, QuorumLease, Release, ReleaseAll, Renewal,
};
use edgelatch_proto::name::RequestId;
use edgelatch_proto::protocol::reply::{Reply, ServerClock};
use edgelatch_proto::protocol::script::ScriptCall;
use edgelatch_proto::time::Instant;
use edgelatch_proto::timing::AttemptTime;

use super::plan::{Calls, Plan, Rule};
use crate::model_checking::hashed::Hashed;
use test_support::machines::poll_to_wait;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    number: u8,
    stage: Stage,
    /// The servers' clock, as the client knew it when it began.
    clock: Option<ServerClock>,
    /// The calls without a reply yet, at most one for each part, with the index of the part.
    under_way: Vec<(usize, CallId, RequestId)>,
    /// The machine's next timeout.
    deadline: Option<Instant>,
    /// The calls sent so far.
    sent: Calls,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Idle,
    AcquiringAll(AcquireAll),
    AcquiringQuorum(AcquireQuorum),
    Holding(MultiGrant),
    Renewing(MultiGrant, QuorumLease),
    Releasing(ReleaseAll),
    Finished(Outcome),
}

/// The result of a client whose machines have ended: whether it may still have a hold in Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Outcome {
    /// Another client held the lock; this one holds nothing.
    Busy,
    /// It holds nothing.
    NothingHeld,
    /// It may hold the lock until `time` after `since`, by its own clock.
    HeldAtMost { since: Instant, time: Duration },
    /// Redis has refused the release.
    ReleaseRefused,
}

/// The calls that a client sends while it handles one input, each with the index of its part.
pub(crate) type Outbox = Vec<(usize, CallId, Hashed<ScriptCall>)>;

impl Client {
    pub(crate) const fn new(number: u8) -> Self {
        Self {
            number,
            stage: Stage::Idle,
            clock: None,
            under_way: Vec::new(),
            deadline: None,
            sent: Calls { acquire: 0, release: 0, renew: 0 },
        }
    }

    pub(crate) fn awaits(&self, index: usize, call: CallId, request: RequestId) -> bool {
        self.under_way.contains(&(index, call, request))
    }

    pub(crate) fn under_way(&self) -> impl Iterator<Item = CallId> {
        self.under_way.iter().map(|(_, call, _)| *call)
    }

    /// Whether the client has no call in flight and only waits for a timeout.
    pub(crate) const fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::AcquiringAll(_)) && self.under_way.is_empty()
    }

    pub(crate) const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    pub(crate) const fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle)
    }

    pub(crate) const fn is_acquiring(&self) -> bool {
        matches!(self.stage, Stage::AcquiringAll(_) | Stage::AcquiringQuorum(_))
    }

    pub(crate) const fn multi_grant(&self) -> Option<&MultiGrant> {
        match &self.stage {
            Stage::Holding(multi_grant) | Stage::Renewing(multi_grant, _) => Some(multi_grant),
            _ => None,
        }
    }

    pub(crate) const fn quorum_lease(&self) -> Option<&QuorumLease> {
        if let Stage::Renewing(_, quorum_lease) = &self.stage { Some(quorum_lease) } else { None }
    }

    /// The renewed parts of its hold, each with its index.
    pub(crate) fn renewed_parts(&self) -> impl Iterator<Item = (usize, &Renewal)> {
        let counting = self.multi_grant().map_or_else(Vec::new, counting);
        counting.into_iter().zip(self.quorum_lease().into_iter().flat_map(QuorumLease::parts))
    }

    pub(crate) const fn outcome(&self) -> Option<Outcome> {
        if let Stage::Finished(outcome) = self.stage { Some(outcome) } else { None }
    }

    /// The leases of the counting parts of its hold that it has not noticed as lost.
    pub(crate) fn leases(&self) -> Vec<Lease> {
        match &self.stage {
            Stage::Renewing(_, quorum_lease) => {
                let is_held = |part: &&Renewal| !matches!(part.state(), LeaseState::Lost(_));
                quorum_lease.parts().filter(is_held).map(Renewal::lease).collect()
            }
            Stage::Holding(multi_grant) => {
                let counting = multi_grant.parts.iter().filter(|part| part.counts);
                counting.map(|part| part.grant.lease).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether the client relies on its hold at `now`, by its own clock.
    pub(crate) fn is_trusting(&self, plan: &Plan, now: Instant) -> bool {
        let leases = self.leases().into_iter();
        leases.filter(|lease| !lease.remaining(now).is_zero()).count() >= plan.quorum()
    }

    pub(crate) fn begin(&mut self, plan: &Plan, clock: ServerClock, now: Instant) -> Outbox {
        self.clock = Some(clock);
        self.stage = acquiring_stage(plan, self.entropy(0), clock, now);
        self.drain(plan, now)
    }

    pub(crate) fn release(&mut self, plan: &Plan, now: Instant) -> Outbox {
        let Some(multi_grant) = self.multi_grant() else { return Outbox::new() };
        let targets = plan.targets();
        let parts = targets.iter().zip(&multi_grant.parts).enumerate();
        let releases = parts.map(|(index, (target, part))| {
            let (grant, attempt) = (&part.grant, AttemptTime::DEFAULT);
            let renewed = self.renewed_parts().find(|(kept, _)| *kept == index);
            let outstanding =
                renewed.map_or_else(|| grant.outstanding(), |(_, renewal)| renewal.outstanding());
            (Release::new(target, grant, outstanding, attempt, self.clock), part.counts)
        });
        let releases = ReleaseAll::new(releases, plan.quorum());
        self.enter(Stage::Releasing(releases));
        self.drain(plan, now)
    }

    pub(crate) fn on_reply(
        &mut self,
        plan: &Plan,
        call: CallId,
        reply: Reply,
        now: Instant,
    ) -> Outbox {
        self.handle(plan, Input::Reply { call, reply }, now)
    }

    /// The connection of a call breaks: no reply to it will arrive.
    pub(crate) fn on_connection_broken(
        &mut self,
        plan: &Plan,
        call: CallId,
        now: Instant,
    ) -> Outbox {
        self.under_way.retain(|(_, other, _)| *other != call);
        self.handle(plan, Input::Failed { call, kind: FailureKind::Broken }, now)
    }

    pub(crate) fn on_timeout(&mut self, plan: &Plan, now: Instant) -> Outbox {
        self.handle(plan, Input::Timeout, now)
    }

    pub(crate) fn cancel(&mut self, plan: &Plan, now: Instant) -> Outbox {
        self.handle(plan, Input::Cancelled, now)
    }

    /// Whether the client has sent no more calls than the model allows.
    pub(crate) const fn is_within(&self, plan: &Plan) -> bool {
        let (sent, max) = (self.sent, plan.max_calls);
        sent.acquire <= max.acquire && sent.release <= max.release && sent.renew <= max.renew
    }

    fn handle(&mut self, plan: &Plan, input: Input, now: Instant) -> Outbox {
        if let Input::Reply { call, .. } = &input {
            let call = *call;
            self.under_way.retain(|(_, other, _)| *other != call);
        }
        match &mut self.stage {
            Stage::AcquiringAll(machine) => machine.handle(input, now),
            Stage::AcquiringQuorum(machine) => machine.handle(input, now),
            Stage::Renewing(_, machine) => machine.handle(input, now),
            Stage::Releasing(machine) => machine.handle(input, now),
            Stage::Idle | Stage::Holding(_) | Stage::Finished(_) => return Outbox::new(),
        }
        self.drain(plan, now)
    }

    /// Polls the machine until it waits or is done, as the driver does, and enters the stage that
    /// follows.
    fn drain(&mut self, plan: &Plan, now: Instant) -> Outbox {
        let mut outbox = Outbox::new();
        let next = match &mut self.stage {
            Stage::AcquiringAll(machine) => drain(machine, now, &mut outbox).map(acquired(now)),
            Stage::AcquiringQuorum(machine) => drain(machine, now, &mut outbox).map(acquired(now)),
            Stage::Renewing(multi_grant, machine) => {
                let outcome = drain(machine, now, &mut outbox);
                // `QuorumLease` numbers only the parts that count.
                let indices = counting(multi_grant);
                outbox.iter_mut().for_each(|(index, ..)| *index = indices[*index]);
                // A lost hold stays in this stage until the client releases it.
                outcome.map(|_| self.stage.clone())
            }
            Stage::Releasing(machine) => {
                drain(machine, now, &mut outbox).map(|outcome| match outcome {
                    Ok(_) => Stage::Finished(Outcome::NothingHeld),
                    Err(ReleaseError::Unknown { held_at_most, .. }) => {
                        Stage::Finished(Outcome::HeldAtMost { since: now, time: held_at_most })
                    }
                    Err(_) => Stage::Finished(Outcome::ReleaseRefused),
                })
            }
            Stage::Idle | Stage::Holding(_) | Stage::Finished(_) => return outbox,
        };
        let (sent, max) = match self.stage {
            Stage::Releasing(_) => (&mut self.sent.release, Some(plan.max_calls.release)),
            Stage::Renewing(..) => (&mut self.sent.renew, None),
            _ => (&mut self.sent.acquire, Some(plan.max_calls.acquire)),
        };
        *sent += u8::try_from(outbox.len()).unwrap();
        if let (Ok(_), Some(max)) = (&next, max) {
            // The calls to nodes without a reply when the majority is complete do not count.
            *sent = max.min(*sent);
        }
        for (index, call, script) in &outbox {
            self.under_way.retain(|(other, ..)| other != index);
            self.under_way.push((*index, *call, script.request));
        }
        self.under_way.sort_unstable();
        match next {
            Ok(stage) => {
                self.enter(stage);
                self.start_renewing(plan, now);
            }
            Err(until) => self.deadline = Some(until),
        }
        outbox
    }

    fn enter(&mut self, stage: Stage) {
        self.stage = stage;
        self.under_way.clear();
        self.deadline = None;
    }

    /// Starts to renew a new hold, if the plan has calls for it.
    fn start_renewing(&mut self, plan: &Plan, now: Instant) {
        let Stage::Holding(multi_grant) = &self.stage else { return };
        if plan.max_calls.renew == 0 {
            return;
        }
        let targets = plan.targets();
        let renewals = counting(multi_grant).into_iter().map(|index| {
            let (target, grant) = (targets[index].clone(), multi_grant.parts[index].grant.clone());
            let entropy = self.entropy(2 + u8::try_from(index).unwrap());
            Renewal::new(target, grant, true, AttemptTime::DEFAULT, entropy, self.clock)
        });
        let quorum_lease = QuorumLease::new(renewals, plan.quorum());
        self.enter(Stage::Renewing(multi_grant.clone(), quorum_lease));
        let outbox = self.drain(plan, now);
        assert!(outbox.is_empty(), "nothing is renewed at once");
    }

    /// The entropy of one of its machines: 0 acquires, 2 and above renew a part each.
    const fn entropy(&self, machine: u8) -> Entropy {
        Entropy::new([self.number * 16 + machine; 32])
    }
}

/// Returns the stage with the machine that acquires the plan's parts.
fn acquiring_stage(plan: &Plan, entropy: Entropy, clock: ServerClock, now: Instant) -> Stage {
    let Plan { lease, wait_policy, .. } = *plan;
    let clocks = vec![Some(clock); plan.nodes.len()];
    match plan.rule {
        Rule::All => {
            let spec = AcquireAllSpec { lease, ..AcquireAllSpec::new(plan.targets(), wait_policy) };
            Stage::AcquiringAll(AcquireAll::new(spec, entropy, clocks, now))
        }
        Rule::Majority => {
            let nodes = plan.nodes.iter().map(|node| Plan::calls_of(*node)).collect();
            let spec = AcquireQuorumSpec { lease, ..AcquireQuorumSpec::new(nodes, wait_policy) };
            Stage::AcquiringQuorum(AcquireQuorum::new(spec, entropy, clocks, now))
        }
    }
}

/// The start of every owner field of this client.
pub(crate) fn owner_prefix(number: u8) -> String {
    format!("{:02x}", number * 16)
}

/// The indices of the parts that count.
fn counting(multi_grant: &MultiGrant) -> Vec<usize> {
    let parts = multi_grant.parts.iter().enumerate();
    parts.filter(|(_, part)| part.counts).map(|(index, _)| index).collect()
}

fn acquired(now: Instant) -> impl FnOnce(Result<MultiGrant, AcquireError>) -> Stage {
    move |outcome| match outcome {
        Ok(multi_grant) => Stage::Holding(multi_grant),
        Err(AcquireError::Busy { .. }) => Stage::Finished(Outcome::Busy),
        Err(
            AcquireError::Unknown { held_at_most, .. }
            | AcquireError::Cancelled { held_at_most: Some(held_at_most) },
        ) => Stage::Finished(Outcome::HeldAtMost { since: now, time: held_at_most }),
        Err(_) => Stage::Finished(Outcome::NothingHeld),
    }
}

/// Polls a machine until its next wait (`Err`) or its end (`Ok`).
fn drain<M: Machine>(
    machine: &mut M,
    now: Instant,
    outbox: &mut Outbox,
) -> Result<M::Outcome, Instant> {
    poll_to_wait(machine, now, |Endpoint(index), call, script| {
        outbox.push((index, call, Hashed::new(script)));
    })
}
