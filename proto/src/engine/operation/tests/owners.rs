//! The acquisitions of an owner: re-entrance, and the order in which they run.

use alloc::string::ToString as _;
use alloc::sync::Arc;
use core::time::Duration;

use super::client::{Client, ONLY, SCOPE, a_minute};
use crate::engine::{AcquirePolicy, HoldId, HoldTime, LockSpec, OpId, Outcome, OwnerHandle};
use crate::error::AcquireError;
use crate::name::LockName;
use crate::timing::WaitPolicy;

/// Begins an acquisition for an owner, which waits at most a minute.
fn begin(client: &mut Client, lock: &LockSpec, owner: OwnerHandle) -> OpId {
    begin_waiting(client, lock, owner, a_minute())
}

/// Begins an acquisition for an owner.
fn begin_waiting(
    client: &mut Client,
    lock: &LockSpec,
    owner: OwnerHandle,
    wait: WaitPolicy,
) -> OpId {
    let policy = AcquirePolicy::new(HoldTime::AsUsual, wait, None);
    let lock = Arc::new(lock.clone());
    client.with(|engine, cx| engine.acquire(SCOPE, lock, (policy, Some(owner)), false, cx))
}

/// Takes the outcome of an acquisition; `None` if it has none yet.
fn outcome(client: &mut Client, op: OpId) -> Option<Result<HoldId, AcquireError>> {
    match client.engine.take_outcome(op)? {
        Outcome::Acquired(outcome) => Some(outcome),
        other => panic!("{other:?}"),
    }
}

/// Replies to the next request that it is granted.
fn grant(client: &mut Client) {
    let sent = client.sent();
    let granted = sent.command().reply(1, "1795276611386445", 30_000);
    client.respond(&sent, &granted);
}

/// Acquires a free lock for an owner.
fn hold(client: &mut Client, lock: &LockSpec, owner: OwnerHandle) -> HoldId {
    let op = begin(client, lock, owner);
    grant(client);
    client.acquired(op)
}

/// A client with an owner.
fn client() -> (Client, OwnerHandle) {
    let mut client = Client::with_streams(0);
    let owner = client.engine.new_owner();
    (client, owner)
}

fn lock(client: &Client, is_reentrant: bool) -> LockSpec {
    client.engine.lock(ONLY, name(), is_reentrant)
}

/// The read side and the write side of a lock.
fn sides(client: &Client) -> [LockSpec; 2] {
    let Client { engine, .. } = client;
    [engine.read_lock(ONLY, name(), None), engine.write_lock(ONLY, name(), None)]
}

fn name() -> LockName {
    LockName::parse("job").unwrap()
}

#[test]
fn a_second_acquisition_of_an_owner_waits_for_the_first_and_shares_its_hold() {
    let (mut client, owner) = client();
    let lock = lock(&client, true);
    let ops = [(); 3].map(|()| begin(&mut client, &lock, owner));
    grant(&mut client);
    assert!(client.poll_sent().is_none(), "one request for all");
    let hold = client.acquired(ops[0]);
    assert_eq!(outcome(&mut client, ops[1]), Some(Ok(hold)));
    assert_eq!(outcome(&mut client, ops[2]), Some(Ok(hold)));
    assert_eq!(client.engine.hold_count(hold), 3);
}

#[test]
fn when_the_first_acquisition_of_an_owner_is_cancelled_the_next_one_runs() {
    let (mut client, owner) = client();
    let lock = lock(&client, true);
    let [first, second] = [(); 2].map(|()| begin(&mut client, &lock, owner));
    client.with(|engine, cx| engine.cancel(first, cx));
    let cancelled = AcquireError::Cancelled { held_at_most: None };
    assert_eq!(outcome(&mut client, first), Some(Err(cancelled)));
    assert_eq!(outcome(&mut client, second), None);
    grant(&mut client);
    assert!(outcome(&mut client, second).unwrap().is_ok());
}

#[test]
fn an_acquisition_that_waits_for_another_of_its_owner_ends_with_its_wait_or_by_a_cancellation() {
    let (mut client, owner) = client();
    let lock = lock(&client, true);
    let first = begin_waiting(&mut client, &lock, owner, WaitPolicy::UntilCancelled);
    let [second, third] = [(); 2].map(|()| begin(&mut client, &lock, owner));
    client.with(|engine, cx| engine.cancel(third, cx));
    let cancelled = AcquireError::Cancelled { held_at_most: None };
    assert_eq!(outcome(&mut client, third), Some(Err(cancelled)));
    let end = client.now + Duration::from_secs(60);
    while !client.engine.is_over(second) {
        assert!(!client.now.is_later(end), "{:?}", client.now);
        if let Some(sent) = client.poll_sent() {
            client.respond(&sent, &sent.command().busy());
        } else {
            client.now = client.engine.poll_timeout(SCOPE).expect("the end of the wait");
            client.with(|engine, cx| engine.handle_timeout(SCOPE, cx));
        }
    }
    assert_eq!(client.now, end);
    let busy = AcquireError::Busy { remaining: None };
    assert_eq!(outcome(&mut client, second), Some(Err(busy)));
    assert!(!client.engine.is_over(first), "its own wait has no end");
}

#[test]
fn a_lock_that_is_not_reentrant_refuses_its_owner_until_the_release() {
    let (mut client, owner) = client();
    let lock = lock(&client, false);
    let first = hold(&mut client, &lock, owner);
    let second = begin(&mut client, &lock, owner);
    assert_eq!(outcome(&mut client, second), Some(Err(AcquireError::HeldAlready)));
    client.release(first);
    let release = client.sent();
    client.confirm_release(&release);
    hold(&mut client, &lock, owner);
}

#[test]
fn a_writer_that_reads_already_would_wait_for_itself() {
    let (mut client, owner) = client();
    let [read, write] = sides(&client);
    let reading = hold(&mut client, &read, owner);
    let writer = begin(&mut client, &write, owner);
    assert_eq!(outcome(&mut client, writer), Some(Err(AcquireError::SelfDeadlock)));
    client.release(reading);
    let sent = client.sent();
    client.respond(&sent, &sent.command().reply(1, "0", 0));
    hold(&mut client, &write, owner);
    // Inside the write the owner reads.
    hold(&mut client, &read, owner);
}

#[test]
fn the_acquisitions_of_a_forgotten_owner_share_nothing() {
    let (mut client, owner) = client();
    let lock = lock(&client, true);
    let first = hold(&mut client, &lock, owner);
    client.engine.forget_owner(owner);
    assert_ne!(hold(&mut client, &lock, owner), first);
}

#[test]
fn a_cancelled_acquisition_of_an_owner_takes_no_other_one_with_it() {
    let (mut client, owner) = client();
    let lock = lock(&client, true);
    let [first, second, third] = [(); 3].map(|()| begin(&mut client, &lock, owner));
    client.with(|engine, cx| engine.cancel(second, cx));
    grant(&mut client);
    let hold = client.acquired(first);
    assert_eq!(outcome(&mut client, third), Some(Ok(hold)));
    assert_eq!(client.engine.hold_count(hold), 2);
}

/// R6 in `proto/src/protocol/README.md`. The reply to the release of the write has the newer token.
#[test]
fn a_read_that_begins_inside_a_write_continues_with_a_newer_token() {
    for is_granted_first in [true, false] {
        let (mut client, owner) = client();
        let [read, write] = sides(&client);
        let writer = hold(&mut client, &write, owner);
        let reader = begin(&mut client, &read, owner);
        let request = client.sent();
        let granted = request.command().reply(1, "1795276611386445", 30_000);
        if is_granted_first {
            client.respond(&request, &granted);
        }
        client.release(writer);
        let release = client.sent();
        let reader_id = request.command().owner();
        let is_named = release.command().0.iter().any(|word| word.contains(reader_id));
        assert_eq!(is_named, is_granted_first, "{release:?}");
        client.respond(&release, &release.command().reply(1, "1795276611386446", 0));
        if !is_granted_first {
            client.respond(&request, &granted);
        }
        let reader = client.acquired(reader);
        let token = client.engine.token(reader).unwrap();
        assert_eq!(token.to_string(), "1795276611386446");
    }
}
