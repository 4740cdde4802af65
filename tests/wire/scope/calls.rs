//! Every call that the library makes about some names.

use std::time::Duration;

use edgelatch::name::{GuardKey, LockName, PermitId};
use edgelatch::protocol::calls::{
    BatchSize, CountDownLatchCalls, FairCalls, FairSettings, GroupCalls, GuardCalls, GuardedWrite,
    LatchCount, LockCalls, Member, OnceCall, PermitCalls, PermitCount, PermitTotal, ReadCalls,
    SemaphoreCalls, Stamp, Target, Try, WriteCalls,
};
use edgelatch::protocol::script::{Bound, Publish, ScriptCall};
use edgelatch::timing::{GuardMemory, LeaseTime, LifeTime, PeerSkew, RejoinDelay, WantTime};

use test_support::calls::{bound, lease, owner, request, token};

/// The lease of all that asks for one.
pub(crate) const LEASE: u64 = 45_000;

/// A call, and what it is about.
pub(crate) struct Known {
    pub(crate) call: ScriptCall,
    pub(crate) names: Vec<String>,
    pub(crate) lease: Option<LeaseTime>,
    pub(crate) forces: bool,
}

impl Known {
    pub(crate) fn words(&self) -> (Vec<&str>, Vec<&str>) {
        (
            self.call.keys().iter().map(String::as_str).collect(),
            self.call.args().iter().map(String::as_str).collect(),
        )
    }
}

fn name(text: &str) -> LockName {
    LockName::parse(text).unwrap()
}

fn bounds() -> [Bound; 2] {
    [bound(1_700_000_090_000, 90_000), Bound { not_after: None, keep: Duration::from_secs(600) }]
}

/// All that can be asked about what can be held.
pub(crate) fn of_target(target: &Target) -> Vec<Known> {
    let names: Vec<String> = target.names().iter().map(|name| name.as_str().to_owned()).collect();
    let known = |call, lease, forces| Known { call, names: names.clone(), lease, forces };
    // Of several locks only the first.
    let of_one = |call, forces| Known { names: names[..1].to_vec(), ..known(call, None, forces) };
    let (id, me, before) = (request(7), owner(1), owner(2));
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
                calls.push(known(target.acquire(&one), Some(*asked), false));
            }
            calls.push(known(target.renew(id, bound, me, *asked, token(9)), Some(*asked), false));
        }
        calls.push(known(target.release(id, bound, me), None, false));
        calls.push(known(target.abandon(id, bound, me, Some(before)), None, false));
        calls.push(of_one(target.force_release().call(id, bound), true));
    }
    calls.push(of_one(target.inspect(id, None), false));
    calls.push(of_one(target.inspect(id, Some(me)), false));
    calls
}

/// A request that is done once, and its end.
fn once(names: &[&str], call: &OnceCall, lease: Option<LeaseTime>) -> Vec<Known> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let known = |call, lease| Known { call, names: names.clone(), lease, forces: false };
    let calls = bounds().map(|bound| {
        [known(call.call(request(5), bound), lease), known(call.cancel(request(5), bound), None)]
    });
    calls.into_iter().flatten().collect()
}

/// Everything that can be held, under this name or these two.
pub(crate) fn targets(one: &str, two: &str, publish: Publish) -> Vec<Target> {
    let lock = |fenced| {
        let member = |text| Member { name: name(text), fenced };
        LockCalls::of_set([member(one), member(two)], publish).unwrap()
    };
    let delay = RejoinDelay::new(Duration::from_secs(60)).unwrap();
    let group = GroupCalls::new(name(one), ["a", "b"], PeerSkew::DEFAULT, publish).unwrap();
    let permits = BatchSize::new(3).unwrap();
    vec![
        Target::Lock(LockCalls::new(name(one), publish)),
        Target::Lock(LockCalls::new(name(one), publish).not_before(delay)),
        Target::Lock(lock(false)),
        Target::Lock(lock(true)),
        Target::Fair(FairCalls::new(name(one), FairSettings::default(), publish)),
        Target::Group(group),
        Target::Semaphore(SemaphoreCalls::new(name(one), publish, PermitCount::new(4).unwrap())),
        Target::Permits(PermitCalls::new(name(one), publish, permits, PeerSkew::DEFAULT)),
        Target::Read(ReadCalls::new(name(one), publish)),
        Target::Read(ReadCalls::new(name(one), publish).inside(owner(3))),
        Target::Write(WriteCalls::new(name(one), publish)),
        Target::Write(
            WriteCalls::new(name(one), publish).prefers_writers(WantTime::DEFAULT).around(owner(3)),
        ),
    ]
}

/// What is asked of an object as a whole.
fn of_objects(one: &str, publish: Publish) -> Vec<Known> {
    let known = |call| Known { call, names: vec![one.to_owned()], lease: None, forces: false };
    let ids: Vec<_> = ["0f", "a0"].map(|half| PermitId::parse(&half.repeat(16)).unwrap()).into();
    let (id, total) = (request(7), PermitTotal::new(5).unwrap());
    let semaphore = SemaphoreCalls::new(name(one), publish, PermitCount::new(1).unwrap());
    let permits =
        PermitCalls::new(name(one), publish, BatchSize::new(1).unwrap(), PeerSkew::DEFAULT);
    let latch = CountDownLatchCalls::new(name(one), publish);
    let fair = FairCalls::new(name(one), FairSettings::default(), publish);
    let life = LifeTime::new(Duration::from_secs(9)).ok();
    let mut calls: Vec<Known> = [
        (semaphore.add(-3), None),
        (semaphore.add(i32::MAX), None),
        (semaphore.add_if_exists(PermitCount::new(2).unwrap()), None),
        (semaphore.drain(), None),
        (semaphore.try_set(total, None), None),
        (semaphore.try_set(total, life), None),
        (permits.add(i32::MIN), None),
        (permits.set(total), None),
        (permits.try_set(total), None),
        (permits.release_ids(&ids), None),
        (permits.update_lease(&ids, lease(LEASE)), Some(lease(LEASE))),
        (permits.update_lease(&ids, LeaseTime::ENDLESS), Some(LeaseTime::ENDLESS)),
        (latch.count_down(), None),
        (latch.try_set(LatchCount::new(3).unwrap()), None),
        (latch.delete(), None),
    ]
    .iter()
    .flat_map(|(call, lease)| once(&[one], call, *lease))
    .collect();
    calls.push(known(permits.inspect_ids(id, &ids)));
    calls.push(known(latch.inspect(id)));
    calls.push(known(fair.queue(id, None)));
    calls.push(known(fair.queue(id, Some(owner(1)))));
    calls
}

/// What is asked of a guarded key.
fn of_guard(key: &str) -> Vec<Known> {
    let known = |call| Known { call, names: vec![key.to_owned()], lease: None, forces: false };
    let calls = GuardCalls::new(GuardKey::parse(key).unwrap(), GuardMemory::DEFAULT);
    let life = LifeTime::new(Duration::from_secs(9)).ok();
    let stamp = Stamp { token: token(9), owner: owner(1), number: 1 };
    let writes = [
        GuardedWrite::set("{\"any\":\"value\"}", None),
        GuardedWrite::set("", life),
        GuardedWrite::delete(),
        GuardedWrite::claim(),
    ];
    let mut all = vec![known(calls.newest(request(7)))];
    for bound in bounds() {
        all.extend(writes.iter().map(|write| known(calls.write(request(7), bound, stamp, write))));
    }
    all
}

/// Every call about these names: objects of the first, what takes both, and a guarded key called like the first.
pub(crate) fn every_call(one: &str, two: &str, publish: Publish) -> Vec<Known> {
    let mut calls: Vec<Known> = targets(one, two, publish).iter().flat_map(of_target).collect();
    calls.extend(of_objects(one, publish));
    calls.extend(of_guard(one));
    calls
}
