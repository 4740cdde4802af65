//! Every call that the library makes about the given names.

use std::time::Duration;

use edgelatch_proto::name::{ClientId, GuardKey, LockName, OwnerId, PermitId};
use edgelatch_proto::protocol::calls::{
    BatchSize, CountDownLatchCalls, Extension, FairCalls, FairMode, FairReadWriteCalls,
    FairReadWriteSettings, FairSettings, GroupCalls, GuardCalls, GuardedWrite, IdempotentCall,
    LatchCount, LockCalls, Member, PermitCalls, PermitCount, PermitTotal, ReadCalls,
    SemaphoreCalls, Stamp, Target, Try, WriteCalls,
};
use edgelatch_proto::protocol::scope::{ObjectKind, Right};
use edgelatch_proto::protocol::script::{Bound, Publish, ScriptCall};
use edgelatch_proto::timing::{GuardMemory, LeaseTime, LifeTime, PeerSkew, RejoinDelay, WantTime};

use crate::calls::{bound, lease, owner, request, token};

// Each of these values is unique in a call, so a test can replace it by another value.

/// The lease of all calls that have one, in milliseconds.
pub const LEASE: u64 = 45_000;
/// The bound of the calls that have one, in milliseconds.
pub const NOT_AFTER: u64 = 1_700_000_090_000;
/// The fencing token of renewals and guarded writes.
pub const TOKEN: u64 = 1_600_000_000_000_009;
/// The skew of Redisson's clocks that groups and permits allow for, in milliseconds.
pub const PEER_SKEW: u64 = 1_234;
/// The client id of a fair read-write lock's callers.
pub const CLIENT_ID: &str = "tab|7";
/// The calling owner, its previous owner, and its owner on the other side of a read-write lock.
pub const OWNERS: [u8; 3] = [1, 2, 3];
/// The request ids of idempotent calls, and of all other calls.
pub const REQUESTS: [u64; 2] = [5, 7];

/// A call, the names that it touches, and the right that it needs.
#[derive(Clone)]
pub struct Known {
    pub call: ScriptCall,
    pub names: Vec<String>,
    pub lease: Option<LeaseTime>,
    pub kind: Option<ObjectKind>,
    pub right: Option<Right>,
    /// Whether the call may leave keys without an expiry.
    pub lasts: bool,
}

impl Known {
    /// A call that holds or inspects an object.
    fn new(call: ScriptCall, names: &[String], kind: ObjectKind) -> Self {
        let (names, right) = (names.to_vec(), Some(Right::Hold));
        Self { call, names, lease: None, kind: Some(kind), right, lasts: false }
    }

    pub fn words(&self) -> (Vec<&str>, Vec<&str>) {
        (
            self.call.keys().iter().map(String::as_str).collect(),
            self.call.args().iter().map(String::as_str).collect(),
        )
    }
}

fn name(text: &str) -> LockName {
    LockName::parse(text).unwrap()
}

fn peer_skew() -> PeerSkew {
    PeerSkew::new(Duration::from_millis(PEER_SKEW)).unwrap()
}

fn me() -> OwnerId {
    owner(OWNERS[0])
}

fn before() -> OwnerId {
    owner(OWNERS[1])
}

fn other_side() -> OwnerId {
    owner(OWNERS[2])
}

fn bounds() -> [Bound; 2] {
    [bound(NOT_AFTER, 90_000), Bound { not_after: None, keep: Duration::from_secs(600) }]
}

const fn kind(target: &Target) -> ObjectKind {
    match target {
        Target::Semaphore(_) => ObjectKind::Semaphore,
        Target::Permits(_) => ObjectKind::Permits,
        _ => ObjectKind::Lock,
    }
}

/// Whether the call stores the token key of a lock without an expiry.
fn is_fenced(call: &ScriptCall) -> bool {
    let kinds = call.args().get(8).filter(|_| call.script().name == "lock_acquire");
    kinds.is_some_and(|kinds| kinds.contains('f'))
}

/// Whether the call ends the holds of other owners of a fair read-write lock.
fn steals(call: &ScriptCall) -> bool {
    call.script().name == "fair_rw_acquire" && call.args()[5] == "steal"
}

/// All calls about an object that can be held.
pub fn of_target(target: &Target) -> Vec<Known> {
    let names: Vec<String> = target.names().iter().map(|name| name.as_str().to_owned()).collect();
    let known = |call, lease| {
        let known = Known::new(call, &names, kind(target));
        let right = if steals(&known.call) { Some(Right::Force) } else { known.right };
        Known { lease, right, lasts: is_fenced(&known.call), ..known }
    };
    // The call concerns only the first of several locks.
    let of_one = |call| Known::new(call, &names[..1], kind(target));
    let (id, me, before) = (request(REQUESTS[1]), me(), before());
    let mut calls = Vec::new();
    let mut leases = vec![lease(LEASE)];
    leases.extend(target.holds_permits().then_some(LeaseTime::ENDLESS));
    for bound in bounds() {
        for asked in &leases {
            for (last, announces, previous) in
                [(false, false, None), (true, true, None), (false, true, Some(before))]
            {
                let (request, lease, owner) = (id, *asked, me);
                let one =
                    Try { request, bound, owner, lease, last, number: 3, previous, announces };
                calls.push(known(target.acquire(&one), Some(*asked)));
            }
            let (request, owner, lease, token) = (id, me, *asked, token(TOKEN));
            let extension = Extension { request, bound, owner, lease, token };
            calls.push(known(target.renew(&extension), Some(lease)));
        }
        calls.push(known(target.release(id, bound, me), None));
        calls.push(known(target.abandon(id, bound, me, Some(before)), None));
        let forced = of_one(target.force_release().call(id, bound));
        calls.push(Known { right: Some(Right::Force), ..forced });
    }
    calls.push(of_one(target.inspect(id, None)));
    calls.push(of_one(target.inspect(id, Some(me))));
    calls
}

/// An idempotent call, and its cancellation.
fn once(name: &str, change: &Change) -> Vec<Known> {
    let Change { call, kind, right, lease, lasts } = change;
    let names = [name.to_owned()];
    let calls = bounds().map(|bound| {
        let done = Known::new(call.call(request(REQUESTS[0]), bound), &names, *kind);
        let cancelled = Known::new(call.cancel(request(REQUESTS[0]), bound), &names, *kind);
        [
            Known { lease: *lease, right: Some(*right), lasts: *lasts, ..done },
            Known { kind: None, right: None, ..cancelled },
        ]
    });
    calls.into_iter().flatten().collect()
}

/// A call that changes an object.
struct Change {
    call: IdempotentCall,
    kind: ObjectKind,
    right: Right,
    lease: Option<LeaseTime>,
    lasts: bool,
}

/// Every target that can be held, under the name `one` or under both names.
pub fn targets(one: &str, two: &str, publish: Publish) -> Vec<Target> {
    let lock = |fenced| {
        let member = |text| Member { name: name(text), fenced };
        LockCalls::of_set([member(one), member(two)], publish).unwrap()
    };
    let delay = RejoinDelay::new(Duration::from_secs(60)).unwrap();
    let group = GroupCalls::new(name(one), ["a", "b"], peer_skew(), publish).unwrap();
    let permits = BatchSize::new(3).unwrap();
    let fair = |mode| {
        let (settings, client) = (FairReadWriteSettings::default(), ClientId::parse(CLIENT_ID));
        let calls = FairReadWriteCalls::new(name(one), mode, settings, client.unwrap(), publish);
        Target::FairReadWrite(calls)
    };
    vec![
        Target::Lock(LockCalls::new(name(one), publish)),
        Target::Lock(LockCalls::new(name(one), publish).not_before(delay)),
        Target::Lock(lock(false)),
        Target::Lock(lock(true)),
        Target::Fair(FairCalls::new(name(one), FairSettings::default(), publish)),
        fair(FairMode::Exclusive),
        fair(FairMode::Shared),
        fair(FairMode::Steal),
        Target::Group(group),
        Target::Semaphore(SemaphoreCalls::new(name(one), publish, PermitCount::new(4).unwrap())),
        Target::Permits(PermitCalls::new(name(one), publish, permits, peer_skew())),
        Target::Read(ReadCalls::new(name(one), publish)),
        Target::Read(ReadCalls::new(name(one), publish).nested_in_write(other_side())),
        Target::Write(WriteCalls::new(name(one), publish)),
        Target::Write(
            WriteCalls::new(name(one), publish)
                .prefers_writers(WantTime::DEFAULT)
                .with_nested_read(other_side()),
        ),
    ]
}

/// The calls that change or inspect an object as a whole.
fn of_objects(one: &str, publish: Publish) -> Vec<Known> {
    let names = [one.to_owned()];
    let ids: Vec<_> = ["0f", "a0"].map(|half| PermitId::parse(&half.repeat(16)).unwrap()).into();
    let permits = PermitCalls::new(name(one), publish, BatchSize::new(1).unwrap(), peer_skew());
    let latch = CountDownLatchCalls::new(name(one), publish);
    let fair = FairCalls::new(name(one), FairSettings::default(), publish);
    let changes = [
        of_semaphore(one, publish),
        of_permits(&permits, &ids),
        [
            (latch.count_down(), Right::Count, false),
            (latch.try_set(LatchCount::new(3).unwrap()), Right::Manage, true),
            (latch.delete(), Right::Manage, false),
        ]
        .map(|(call, right, lasts)| change(call, ObjectKind::Latch, right, lasts))
        .into(),
    ];
    let mut calls: Vec<Known> =
        changes.iter().flatten().flat_map(|change| once(one, change)).collect();
    let id = request(REQUESTS[1]);
    calls.push(Known::new(permits.inspect_ids(id, &ids), &names, ObjectKind::Permits));
    calls.push(Known::new(latch.inspect(id), &names, ObjectKind::Latch));
    calls.push(Known::new(fair.queue(id, None), &names, ObjectKind::Lock));
    calls.push(Known::new(fair.queue(id, Some(me())), &names, ObjectKind::Lock));
    calls
}

fn change(call: IdempotentCall, kind: ObjectKind, right: Right, lasts: bool) -> Change {
    Change { call, kind, right, lease: None, lasts }
}

fn of_semaphore(one: &str, publish: Publish) -> Vec<Change> {
    let semaphore = SemaphoreCalls::new(name(one), publish, PermitCount::new(1).unwrap());
    let total = PermitTotal::new(5).unwrap();
    let life = |seconds| LifeTime::new(Duration::from_secs(seconds)).ok();
    let changes = [
        (semaphore.add(-3), true),
        (semaphore.add(i32::MAX), true),
        (semaphore.add_if_exists(PermitCount::new(2).unwrap()), false),
        (semaphore.drain(), false),
        (semaphore.try_set(total, None), true),
        (semaphore.try_set(total, life(9)), false),
        (semaphore.try_set(total, life(86_400)), false),
        (semaphore.try_set(total, life(86_401)), true),
    ];
    let manage = |(call, lasts)| change(call, ObjectKind::Semaphore, Right::Manage, lasts);
    changes.map(manage).into()
}

fn of_permits(permits: &PermitCalls, ids: &[PermitId]) -> Vec<Change> {
    let total = PermitTotal::new(5).unwrap();
    let hold =
        |call, lease| Change { lease, ..change(call, ObjectKind::Permits, Right::Hold, false) };
    let mut changes: Vec<Change> =
        [permits.add(i32::MIN), permits.set(total), permits.try_set(total)]
            .map(|call| change(call, ObjectKind::Permits, Right::Manage, true))
            .into();
    changes.push(hold(permits.release_ids(ids), None));
    for asked in [lease(LEASE), LeaseTime::ENDLESS] {
        changes.push(hold(permits.update_lease(ids, asked), Some(asked)));
    }
    changes
}

/// The calls about a guarded key.
fn of_guard(key: &str) -> Vec<Known> {
    let names = [key.to_owned()];
    let known = |call, lasts| Known {
        right: Some(Right::Guard),
        lasts,
        ..Known::new(call, &names, ObjectKind::Guard)
    };
    let calls = |memory| GuardCalls::new(GuardKey::parse(key).unwrap(), memory);
    let (a_day, for_ever) = (calls(GuardMemory::DEFAULT), calls(GuardMemory::FOR_EVER));
    let life = LifeTime::new(Duration::from_secs(9)).ok();
    let stamp = Stamp { token: token(TOKEN), owner: me(), number: 1 };
    let writes = [
        (GuardedWrite::set("{\"any\":\"value\"}", None), true),
        (GuardedWrite::set("", life), false),
        (GuardedWrite::delete(), false),
        (GuardedWrite::claim(), false),
    ];
    let mut all = vec![known(a_day.newest(request(REQUESTS[1])), false)];
    for bound in bounds() {
        for (write, lasts) in &writes {
            all.push(known(a_day.write(request(REQUESTS[1]), bound, stamp, write), *lasts));
            all.push(known(for_ever.write(request(REQUESTS[1]), bound, stamp, write), true));
        }
    }
    all
}

/// Every call about these names: objects called `one`, targets with both names, and a guarded key
/// called `one`.
pub fn every_call(one: &str, two: &str, publish: Publish) -> Vec<Known> {
    let mut calls: Vec<Known> = targets(one, two, publish).iter().flat_map(of_target).collect();
    calls.extend(of_objects(one, publish));
    calls.extend(of_guard(one));
    calls
}
