//! Locks that a majority of Redis nodes grants.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use super::client::{Client, Command, ONLY, SCOPE, a_minute};
use crate::engine::{AcquirePolicy, EndpointId, HoldId, HoldTime, LockSpec, Outcome};
use crate::error::{LossReason, RequestError};
use crate::machine::LeaseState;
use crate::name::LockName;
use crate::protocol::gateway::Gateway;
use crate::protocol::script::scripts;

const NODES: u32 = 5;
const TOKEN: &str = "1795276611386445";

/// A hold that each node has granted before the machine decided, so all of them count.
fn hold() -> (Client, HoldId) {
    let mut client = Client::with_streams(0);
    for port in 1..NODES {
        let gateway = Gateway::upstash(&format!("http://localhost:{port}"), "t").unwrap();
        client.engine.add_endpoint(gateway, 0);
    }
    let name = LockName::parse("job").unwrap();
    let lock = |node| client.engine.lock(EndpointId(node), name.clone(), true);
    let locks: Vec<LockSpec> = (0..NODES).map(lock).collect();
    let all: Vec<&LockSpec> = locks.iter().collect();
    let red = Arc::new(client.engine.red_lock(&all, None).unwrap());
    let policy = AcquirePolicy::new(HoldTime::AsUsual, a_minute(), None);
    let op = client.with(|engine, cx| engine.acquire(SCOPE, red, (policy, None), false, cx));
    client.serve(op, |_, command| Some(command.reply(1, TOKEN, 30_000)));
    let hold = client.acquired(op);
    (client, hold)
}

/// Renews a hold on demand: these nodes renew it, those have lost it, and the rest does not reply.
fn renew(
    client: &mut Client,
    hold: HoldId,
    renewed: Range<u32>,
    lost: Range<u32>,
) -> Result<(), RequestError> {
    let op = client.with(|engine, cx| engine.renew(SCOPE, hold, None, cx));
    client.serve(op, |EndpointId(node), command| match node {
        node if renewed.contains(&node) => Some(command.reply(1, TOKEN, 30_000)),
        node if lost.contains(&node) => Some(command.reply(-3, "0", 0)),
        _ => None,
    });
    match client.engine.take_outcome(op) {
        Some(Outcome::Renewed(outcome)) => outcome,
        other => panic!("{other:?}"),
    }
}

/// Queries whether a hold exists: the first `held` nodes have it, and the others do not reply.
fn is_held(client: &mut Client, hold: HoldId, held: u32) -> Result<bool, RequestError> {
    let op = client.with(|engine, cx| engine.query_hold(SCOPE, hold, cx));
    client
        .serve(op, |EndpointId(node), command| (node < held).then(|| command.reply(1, "5,1,1", 9)));
    match client.engine.take_outcome(op) {
        Some(Outcome::IsHeld(outcome)) => outcome,
        other => panic!("{other:?}"),
    }
}

fn state(client: &mut Client, hold: HoldId) -> LeaseState {
    client.with(|engine, cx| engine.hold_state(hold, cx))
}

#[test]
fn a_hold_of_five_nodes_is_renewed_by_three_and_lost_without_them() {
    let (mut client, hold) = hold();
    assert_eq!(renew(&mut client, hold, 0..3, 3..5), Ok(()));
    assert_eq!(state(&mut client, hold), LeaseState::Renewed);
    assert_eq!(renew(&mut client, hold, 0..2, 2..5), Err(RequestError::Lost(LossReason::Gone)));
    assert_eq!(state(&mut client, hold), LeaseState::Lost(LossReason::Gone));
}

#[test]
fn a_hold_survives_the_loss_of_nodes_that_granted_it_first() {
    let (mut client, hold) = hold();
    assert_eq!(renew(&mut client, hold, 2..5, 0..2), Ok(()));
    assert_eq!(state(&mut client, hold), LeaseState::Renewed);
}

#[test]
fn a_renewal_by_less_than_a_majority_renews_nothing() {
    let (mut client, hold) = hold();
    let failure = renew(&mut client, hold, 0..2, 2..2).unwrap_err();
    assert!(!matches!(failure, RequestError::Lost(_)), "{failure:?}");
    assert_eq!(state(&mut client, hold), LeaseState::Held);
}

#[test]
fn a_majority_of_replies_shows_that_a_hold_exists() {
    let (mut client, hold) = hold();
    assert_eq!(is_held(&mut client, hold, 3), Ok(true));
    let failure = is_held(&mut client, hold, 2).unwrap_err();
    assert!(!matches!(failure, RequestError::Lost(_)), "{failure:?}");
    assert_eq!(state(&mut client, hold), LeaseState::Held);
}

#[test]
fn the_token_of_a_majority_is_no_sign_that_the_tokens_of_a_node_went_back() {
    let (mut client, _) = hold();
    let op = client.acquire("job");
    let older = |_: EndpointId, command: &Command| -> Option<String> {
        assert!(command.runs(&scripts::LOCK_ACQUIRE), "{command:?}");
        Some(command.reply(1, "1795276611386444", 30_000))
    };
    client.serve(op, older);
    let hold = client.acquired(op);
    assert_eq!(client.engine.first_counting_part(hold).unwrap().0, ONLY);
}
