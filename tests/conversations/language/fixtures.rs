//! Machines of each kind in their initial state, and the values that they need.

use edgelatch_proto::machine::{
    Acquire, AcquireAll, AcquireAllSpec, AcquireQuorum, AcquireQuorumSpec, AcquireSpec, AwaitLatch,
    Entropy, ExecuteOnce, Grant, Query, Release, Renewal, RenewalOnDemand,
};
use edgelatch_proto::name::LockName;
use edgelatch_proto::protocol::calls::{
    CountDownLatchCalls, FairCalls, FairSettings, LockCalls, Target,
};
use edgelatch_proto::protocol::script::Publish;
use edgelatch_proto::timing::{AttemptTime, LeaseTime, RequestBudget, WaitPolicy, WaitTime};

use super::clock::{SERVER_START, START, known_clock, ms};
use super::conversation::Conversation;
use super::reply::granted;

/// A fencing token as Redis mints it: its time in microseconds.
pub(crate) const TOKEN: u64 = SERVER_START * 1_000;

pub(crate) fn lock_name(name: &str) -> LockName {
    LockName::parse(name).unwrap()
}

/// A lock without a queue.
pub(crate) fn lock(name: &str) -> Target {
    Target::Lock(LockCalls::new(lock_name(name), Publish::Plain))
}

/// A lock with a queue.
pub(crate) fn fair_lock(name: &str) -> Target {
    Target::Fair(FairCalls::new(lock_name(name), FairSettings::default(), Publish::Plain))
}

/// The lock of most conversations.
pub(crate) fn target() -> Target {
    lock("invoice:42")
}

pub(crate) const fn entropy() -> Entropy {
    Entropy::new([7; 32])
}

pub(crate) fn lease(millis: u64) -> LeaseTime {
    LeaseTime::new(ms(millis)).unwrap()
}

pub(crate) fn up_to(wait_ms: u64) -> WaitPolicy {
    WaitPolicy::UpTo(WaitTime::new(ms(wait_ms)).unwrap())
}

/// A budget for the parameters of an acquisition.
pub(crate) fn budget(requests: u32) -> Option<RequestBudget> {
    Some(RequestBudget::new(requests).unwrap())
}

/// An acquisition of a 30 s lease without a budget.
pub(crate) fn acquire_spec(wait_policy: WaitPolicy) -> AcquireSpec {
    AcquireSpec::new(target(), wait_policy)
}

/// An acquisition by a client that knows Redis' clock.
pub(crate) fn acquire_machine(spec: AcquireSpec) -> Acquire {
    Acquire::new(spec, entropy(), Some(known_clock()), START)
}

pub(crate) fn acquire(wait_policy: WaitPolicy) -> Conversation<Acquire> {
    acquire_with(acquire_spec(wait_policy))
}

pub(crate) fn acquire_with(spec: AcquireSpec) -> Conversation<Acquire> {
    Conversation::new(acquire_machine(spec))
}

/// An acquisition by a client that does not know Redis' clock yet.
pub(crate) fn acquire_without_clock(spec: AcquireSpec) -> Conversation<Acquire> {
    Conversation::new(Acquire::new(spec, entropy(), None, START))
}

/// A grant whose request was sent at [`START`]; its reply came 10 ms later.
pub(crate) fn grant(lease: LeaseTime) -> Grant {
    let acquire = acquire_with(AcquireSpec { lease, ..acquire_spec(WaitPolicy::Once) });
    acquire.expect_call("lock_acquire").advance(10).reply(granted(TOKEN)).expect_done().unwrap()
}

/// The renewals of a hold. Without `renews`, the machine only watches the lease's end.
pub(crate) fn auto_renewal_machine(lease: LeaseTime, renews: bool) -> Renewal {
    let (grant, attempt) = (grant(lease), AttemptTime::DEFAULT);
    Renewal::new(target(), grant, renews, attempt, entropy(), Some(known_clock()))
}

/// The renewals of a hold with the default lease.
pub(crate) fn renewal() -> Conversation<Renewal> {
    Conversation::new(auto_renewal_machine(LeaseTime::DEFAULT, true))
}

/// A renewal on demand, at the start, to this lease.
pub(crate) fn renew_on_demand_machine(lease: LeaseTime) -> RenewalOnDemand {
    let (grant, attempt) = (grant(LeaseTime::DEFAULT), AttemptTime::DEFAULT);
    RenewalOnDemand::new(&target(), &grant, lease, attempt, entropy(), Some(known_clock()), START)
}

/// The release of a hold with this lease that was never renewed.
pub(crate) fn release_machine(lease: LeaseTime) -> Release {
    let (grant, attempt) = (grant(lease), AttemptTime::DEFAULT);
    Release::new(&target(), &grant, grant.outstanding(), attempt, Some(known_clock()))
}

/// An idempotent call: the forced release of a lock.
pub(crate) fn force_release_machine(knows_clock: bool) -> ExecuteOnce {
    let clock = knows_clock.then(known_clock);
    ExecuteOnce::new(target().force_release(), AttemptTime::DEFAULT, entropy(), clock, START)
}

/// The query of a lock's state.
pub(crate) fn inspect_machine() -> Query {
    Query::new(|request| target().inspect(request, None), AttemptTime::DEFAULT, entropy())
}

/// The wait for a count-down latch, with at most this number of queries.
pub(crate) fn latch_wait(wait_ms: u64, queries: Option<u32>) -> Conversation<AwaitLatch> {
    let calls = CountDownLatchCalls::new(lock_name("job"), Publish::Plain);
    let (budget, attempt) = (queries.and_then(budget), AttemptTime::DEFAULT);
    Conversation::new(AwaitLatch::new(calls, up_to(wait_ms), budget, attempt, entropy(), START))
}

/// The part of a multi-lock at this gateway, without a queue.
pub(crate) fn plain_part(gateway: usize) -> Target {
    lock(PART_NAMES[gateway])
}

/// The part of a multi-lock at this gateway, with a queue.
pub(crate) fn fair_part(gateway: usize) -> Target {
    fair_lock(PART_NAMES[gateway])
}

const PART_NAMES: [&str; 4] = ["a", "b", "c", "d"];

pub(crate) fn multi_lock_spec(parts: Vec<Target>, wait_policy: WaitPolicy) -> AcquireAllSpec {
    AcquireAllSpec::new(parts, wait_policy)
}

/// The acquisition of a multi-lock by a client that knows the clock of every Redis.
pub(crate) fn multi_lock_machine(spec: AcquireAllSpec) -> AcquireAll {
    let clocks = vec![Some(known_clock()); spec.targets.parts.len()];
    AcquireAll::new(spec, entropy(), clocks, START)
}

pub(crate) fn multi_lock_with(spec: AcquireAllSpec) -> Conversation<AcquireAll> {
    Conversation::new(multi_lock_machine(spec))
}

/// A multi-lock of `count` parts without a queue.
pub(crate) fn multi_lock(count: usize, wait_policy: WaitPolicy) -> Conversation<AcquireAll> {
    multi_lock_with(multi_lock_spec((0..count).map(plain_part).collect(), wait_policy))
}

pub(crate) fn red_lock_spec(nodes: usize, wait_policy: WaitPolicy) -> AcquireQuorumSpec {
    let node = LockCalls::new(lock_name("job"), Publish::Plain);
    AcquireQuorumSpec::new(vec![node; nodes], wait_policy)
}

/// The acquisition of a redLock by a client that knows the clock of every node.
pub(crate) fn red_lock_machine(spec: AcquireQuorumSpec) -> AcquireQuorum {
    let clocks = vec![Some(known_clock()); spec.targets.parts.len()];
    AcquireQuorum::new(spec, entropy(), clocks, START)
}

pub(crate) fn red_lock_with(spec: AcquireQuorumSpec) -> Conversation<AcquireQuorum> {
    Conversation::new(red_lock_machine(spec))
}

pub(crate) fn red_lock(nodes: usize, wait_policy: WaitPolicy) -> Conversation<AcquireQuorum> {
    red_lock_with(red_lock_spec(nodes, wait_policy))
}
