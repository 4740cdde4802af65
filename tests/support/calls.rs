//! Owners, request ids, tokens and calls, made the only way in which a program can: by a machine.

use edgelatch::machine::{Acquire, AcquireSpec, Entropy, Grant, Input, Machine as _, Output};
use edgelatch::name::{FencingToken, LockName, OwnerId, RequestId};
use edgelatch::protocol::reply::{Code, Reply};
use edgelatch::protocol::script::{Bound, LockCalls, Publish, ScriptCall};
use edgelatch::time::Instant;
use edgelatch::timing::{AttemptTime, LeaseTime, Patience};
use std::time::Duration;

/// A bound of a client that has not seen Redis' clock, with a short memory.
pub(crate) const UNBOUND: Bound = Bound { not_after: None, keep: Duration::from_secs(90) };

/// The owner that is made of this byte, sixteen times.
pub(crate) fn owner(number: u8) -> OwnerId {
    granted([number; 32], "1").1.owner
}

/// The field of an owner, as Redis has it.
pub(crate) fn field(owner: &OwnerId) -> String {
    let call = lock("x").inspect(request(1), Some(owner));
    call.args()[4].clone()
}

/// The request id of this number.
pub(crate) fn request(number: u64) -> RequestId {
    let mut bytes = [0; 32];
    bytes[16..24].copy_from_slice(&(number.wrapping_sub(1)).to_le_bytes());
    granted(bytes, "1").0.request
}

/// The token of this number.
pub(crate) fn token(number: u64) -> FencingToken {
    granted([0; 32], &number.to_string()).1.token
}

/// The calls about the lock of this name.
pub(crate) fn lock(name: &str) -> LockCalls {
    LockCalls { name: LockName::parse(name).unwrap(), publish: Publish::Plain }
}

/// A lease of so many milliseconds.
pub(crate) fn lease(ms: u64) -> LeaseTime {
    LeaseTime::new(Duration::from_millis(ms)).unwrap()
}

/// A bound that ends at this time of Redis, with a memory of so many milliseconds.
pub(crate) fn bound(not_after: u64, keep_ms: u64) -> Bound {
    Bound { not_after: Some(not_after), keep: Duration::from_millis(keep_ms) }
}

/// Moves an acquisition to its grant; answers its call and the grant.
fn granted(entropy: [u8; 32], value: &str) -> (ScriptCall, Grant) {
    let now = Instant::from_millis(0, 0);
    let spec = AcquireSpec {
        calls: lock("x"),
        lease: LeaseTime::DEFAULT,
        patience: Patience::Once,
        budget: None,
        attempt: AttemptTime::DEFAULT,
    };
    let mut machine = Acquire::new(spec, Entropy::new(entropy), None, now);
    let Output::Call { call, script, .. } = machine.poll(now) else {
        panic!("an acquisition begins with a call")
    };
    let reply = Reply { code: Code::Done, value: value.into(), ms: 30_000, server_ms: 1 };
    machine.handle(Input::Reply { call, reply }, now);
    let Output::Done(Ok(grant)) = machine.poll(now) else { panic!("a grant ends an acquisition") };
    (script, grant)
}
