//! Which locks form one lock, and which lease each request then has.

use alloc::format;
use alloc::string::ToString as _;
use core::time::Duration;

use super::*;
use crate::engine::HoldTime;
use crate::machine::SpinBackoff;
use crate::protocol::calls::{FairCalls, FairSettings, GroupCalls, PermitCount, SemaphoreCalls};
use crate::protocol::gateway::Gateway;
use crate::protocol::script::Publish;
use crate::timing::PeerSkew;

/// An engine with this number of gateways.
fn engine(gateways: u16) -> (Engine, Vec<EndpointId>) {
    let mut engine = Engine::new();
    let add = |port: u16| {
        let gateway = Gateway::upstash(&format!("http://localhost:{port}"), "t").unwrap();
        engine.add_endpoint(gateway, 0)
    };
    let endpoints = (1..=gateways).map(add).collect();
    (engine, endpoints)
}

fn name(text: &str) -> LockName {
    LockName::parse(text).unwrap()
}

fn group(engine: &Engine, to: EndpointId, value: &str) -> LockSpec {
    engine.group_lock(to, name("job"), [value], PeerSkew::DEFAULT).unwrap()
}

fn accepted<T>(result: Result<T, InvalidOption>) -> bool {
    result.is_ok()
}

#[test]
fn a_multi_lock_has_one_to_a_hundred_different_locks() {
    let (engine, to) = engine(1);
    let locks: Vec<LockSpec> =
        (0..=MEMBERS_MAX).map(|at| engine.lock(to[0], name(&at.to_string()), true)).collect();
    let all: Vec<&LockSpec> = locks.iter().collect();
    assert!(!accepted(engine.multi_lock(&[])) && !accepted(engine.multi_lock(&all)));
    let hundred = engine.multi_lock(&all[..MEMBERS_MAX]).unwrap();
    assert_eq!(hundred.names().count(), MEMBERS_MAX);
    let doubled: Vec<&LockSpec> =
        all[..MEMBERS_MAX].iter().chain(&all[..MEMBERS_MAX]).copied().collect();
    assert_eq!(engine.multi_lock(&doubled).unwrap().names().count(), MEMBERS_MAX);
}

#[test]
fn a_multi_lock_has_no_two_locks_of_one_name_and_different_kinds_on_one_gateway() {
    let (engine, to) = engine(2);
    let plain = engine.lock(to[0], name("job"), true);
    let fenced = engine.fenced_lock(to[0], name("job"));
    let other_name = engine.fenced_lock(to[0], name("other"));
    let elsewhere = engine.fenced_lock(to[1], name("job"));
    assert!(!accepted(engine.multi_lock(&[&other_name, &plain, &fenced])));
    assert!(accepted(engine.multi_lock(&[&plain, &other_name])));
    assert!(accepted(engine.multi_lock(&[&plain, &elsewhere])));
    let [a, b] = ["a", "b"].map(|value| group(&engine, to[0], value));
    assert!(accepted(engine.multi_lock(&[&a, &b])), "their values differ");
    assert!(!accepted(engine.multi_lock(&[&a, &plain])));
}

#[test]
fn the_locks_of_a_multi_lock_have_one_order_for_all_clients() {
    let (engine, to) = engine(2);
    let locks =
        [(0, "a"), (0, "b"), (1, "a")].map(|(at, text)| engine.lock(to[at], name(text), true));
    let fair = FairCalls::new(name("queue"), FairSettings::default(), Publish::Plain);
    let fair = engine.jittered(to[1], Target::Fair(fair));
    let [a, b, c] = &locks;
    let one = engine.multi_lock(&[a, b, c, &fair]).unwrap();
    let other = engine.multi_lock(&[&fair, c, b, a]).unwrap();
    assert_eq!(one.key, other.key);
    assert_eq!(one.name(), &name("queue"), "fair locks first");
    assert_eq!(one.endpoints().len(), 2);
    assert!(one.only().is_none() && !one.is_majority());
}

#[test]
fn the_shortest_longest_lease_of_the_members_is_that_of_a_multi_lock() {
    let (engine, to) = engine(1);
    let lease = |seconds| LeaseTime::new(Duration::from_secs(seconds)).unwrap();
    let limited =
        |text: &str, seconds: Option<u64>| engine.read_lock(to[0], name(text), seconds.map(lease));
    let [a, b, c] = [("a", Some(20)), ("b", None), ("c", Some(10))].map(|(n, s)| limited(n, s));
    let multi = engine.multi_lock(&[&a, &b, &c]).unwrap();
    assert_eq!(multi.lease_max, Some(lease(10)));
    let policy = multi.lease_policy(HoldTime::Fixed(lease(60)));
    assert_eq!((policy.lease, policy.whole, policy.renews), (lease(10), lease(60), true));
    let policy = multi.lease_policy(HoldTime::Fixed(lease(10)));
    assert_eq!((policy.lease, policy.renews), (lease(10), false));
    let policy = multi.lease_policy(HoldTime::AsUsual);
    assert_eq!((policy.lease, policy.renews), (lease(10), true));
}

#[test]
fn a_red_lock_has_an_odd_number_of_plain_locks_each_of_a_gateway_of_its_own() {
    let (engine, to) = engine(9);
    let locks: Vec<LockSpec> = to.iter().map(|to| engine.lock(*to, name("job"), true)).collect();
    let all: Vec<&LockSpec> = locks.iter().collect();
    for count in 0..=9 {
        let is_accepted = matches!(count, 3 | 5 | 7 | 9);
        assert_eq!(accepted(engine.red_lock(&all[..count], None)), is_accepted, "{count}");
    }
    assert!(!accepted(engine.red_lock(&[all[0], all[1], all[0]], None)));
    let read = engine.read_lock(to[0], name("job"), None);
    assert!(!accepted(engine.red_lock(&[&read, all[1], all[2]], None)));
    let red = engine.red_lock(&all[..3], None).unwrap();
    assert!(red.is_majority() && red.only().is_none());
    assert_eq!(red.endpoints(), to[..3]);
    assert!(!accepted(engine.multi_lock(&[&red])), "a redLock is no member");
}

#[test]
fn a_lock_of_one_member_names_it() {
    let (engine, to) = engine(1);
    let lock = engine.lock(to[0], name("job"), true);
    assert_eq!(lock.only().unwrap().endpoint, to[0]);
    assert_eq!(lock.names().collect::<Vec<_>>(), [&name("job")]);
    assert!(!lock.is_majority());
    let moved = lock.map_endpoints(|to| EndpointId(to.0 + 5));
    assert_eq!(moved.endpoints(), [EndpointId(to[0].0 + 5)]);
    let calls = GroupCalls::new(name("job"), ["v"], PeerSkew::DEFAULT, Publish::Plain).unwrap();
    assert_eq!(engine.jittered(to[0], Target::Group(calls)).name(), &name("job"));
}

#[test]
fn the_scripts_for_a_gateway_publish_as_it_requires() {
    let mut engine = Engine::new();
    let gateway = Gateway::upstash("http://localhost", "t").unwrap().publish(Publish::Sharded);
    let sharded = engine.add_endpoint(gateway, 0);
    let lock = engine.lock(sharded, name("job"), true);
    let calls = LockCalls::new(name("job"), Publish::Sharded);
    assert_eq!(lock.first(), &Target::Lock(calls));
}

#[test]
fn permits_are_held_without_an_end_unless_the_caller_says_otherwise() {
    let (engine, to) = engine(1);
    let permits = PermitCount::new(2).unwrap();
    let calls = SemaphoreCalls::new(name("pool"), Publish::Plain, permits);
    let permits = engine.jittered(to[0], Target::Semaphore(calls));
    let policy = permits.lease_policy(HoldTime::AsUsual);
    assert_eq!((policy.lease, policy.renews), (LeaseTime::ENDLESS, false));
    let policy = permits.lease_policy(HoldTime::Renewed);
    assert_eq!((policy.lease, policy.renews), (LeaseTime::DEFAULT, true));
}

/// Locks of one slot share a script, and so the pauses of their retries.
#[test]
fn locks_that_share_a_script_retry_as_all_of_them_require_or_at_jittered_intervals() {
    let (engine, to) = engine(1);
    let backoff = SpinBackoff::Constant(Duration::from_millis(10));
    let spin = |text: &str| engine.spin_lock(to[0], name(text), backoff).unwrap();
    let (a, b) = (spin("a"), spin("b"));
    let plain = engine.lock(to[0], name("c"), true);
    let pacing = |locks: &[&LockSpec]| {
        let multi = engine.multi_lock(locks).unwrap();
        let Members::All(members) = multi.members else { panic!("several members") };
        let parts = engine.combine_into_parts(&members, false);
        assert_eq!(parts.len(), 1);
        parts[0].pacing
    };
    assert_eq!(pacing(&[&a, &b]), Pacing::Spin(backoff));
    assert_eq!(pacing(&[&a, &b, &plain]), Pacing::Jittered);
}
