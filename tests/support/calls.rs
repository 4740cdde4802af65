//! Owners, request ids, tokens and calls. All come from a state machine, as in a program.

use edgelatch_proto::machine::{Acquire, AcquireSpec, Entropy, Grant, Input, Machine as _, Output};
use edgelatch_proto::name::{FencingToken, LockName, OwnerId, RequestId};
use edgelatch_proto::protocol::calls::{Extension, LockCalls, Target, Try};
use edgelatch_proto::protocol::exchange::{Exchange, Step};
use edgelatch_proto::protocol::gateway::{Gateway, GatewayCapabilities, Request};
use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::{Bound, Publish, ScriptCall};
use edgelatch_proto::time::Instant;
use edgelatch_proto::timing::{LeaseTime, Replicas, WaitPolicy};
use std::time::Duration;

/// The bound of a client that has not seen Redis' clock; its results are kept for 90 s.
pub const UNBOUND: Bound = Bound { not_after: None, keep: Duration::from_secs(90) };

/// Starts the exchange of a call; returns it with its first request.
pub fn begin_exchange<'a>(
    gateway: &'a Gateway,
    call: &'a ScriptCall,
    capabilities: &GatewayCapabilities,
) -> (Exchange, Request) {
    match Exchange::new(gateway, call.clone(), capabilities) {
        (exchange, Step::Send(request)) => (exchange, request),
        (_, Step::Done(answer)) => panic!("nothing is sent: {answer:?}"),
    }
}

/// The owner whose 16 bytes all have this value.
pub fn owner(number: u8) -> OwnerId {
    granted([number; 32], "1").1.owner
}

/// The owner of this number; gives more distinct owners than [`owner`].
pub fn numbered_owner(number: u32) -> OwnerId {
    let mut bytes = [0; 32];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    granted(bytes, "1").1.owner
}

/// The field of an owner, as Redis stores it.
pub fn field(owner: &OwnerId) -> String {
    let call = lock("x").inspect(request(1), Some(*owner));
    call.args()[4].clone()
}

/// The request id of this number.
pub fn request(number: u64) -> RequestId {
    let mut bytes = [0; 32];
    bytes[16..24].copy_from_slice(&(number.wrapping_sub(1)).to_le_bytes());
    granted(bytes, "1").0.request
}

/// The token of this number.
pub fn token(number: u64) -> FencingToken {
    granted([0; 32], &number.to_string()).1.token
}

/// The calls about the lock of this name.
pub fn lock(name: &str) -> Calls {
    announced_lock(name, Publish::Plain)
}

/// The calls about the lock of this name, whose release is published as `publish` says.
pub fn announced_lock(name: &str, publish: Publish) -> Calls {
    Calls(Target::Lock(LockCalls::new(LockName::parse(name).unwrap(), publish)))
}

/// The calls about one target, with plain arguments.
pub struct Calls(pub Target);

impl Calls {
    pub fn acquire(
        &self,
        request: RequestId,
        bound: Bound,
        owner: &OwnerId,
        lease: LeaseTime,
        last: bool,
    ) -> ScriptCall {
        self.acquire_aloud(request, bound, owner, lease, last, false)
    }

    /// Like [`acquire`](Self::acquire); if `announces` is set, the script publishes the grant.
    pub fn acquire_aloud(
        &self,
        request: RequestId,
        bound: Bound,
        owner: &OwnerId,
        lease: LeaseTime,
        last: bool,
        announces: bool,
    ) -> ScriptCall {
        let owner = *owner;
        let one = Try { request, bound, owner, lease, last, number: 1, previous: None, announces };
        self.0.acquire(&one)
    }

    pub fn renew(
        &self,
        request: RequestId,
        bound: Bound,
        owner: &OwnerId,
        lease: LeaseTime,
        token: FencingToken,
    ) -> ScriptCall {
        let owner = *owner;
        self.0.renew(&Extension { request, bound, owner, lease, token })
    }

    pub fn release(&self, request: RequestId, bound: Bound, owner: &OwnerId) -> ScriptCall {
        self.0.release(request, bound, *owner)
    }

    pub fn force_release(&self, request: RequestId, bound: Bound) -> ScriptCall {
        self.0.force_release().call(request, bound)
    }

    pub fn inspect(&self, request: RequestId, owner: Option<OwnerId>) -> ScriptCall {
        self.0.inspect(request, owner)
    }
}

/// The first try of owner 1 for a lock, with the request id of this number; it waits for `replicas`
/// replicas.
pub fn replicated(number: u64, name: &str, replicas: u8) -> ScriptCall {
    let mut bytes = [1; 32];
    bytes[16..24].copy_from_slice(&number.wrapping_sub(1).to_le_bytes());
    let (now, replicas) = (Instant::from_millis(0, 0), Replicas::new(replicas).ok());
    let spec = AcquireSpec::new(lock(name).0, WaitPolicy::UntilCancelled);
    let spec = AcquireSpec { replicas, ..spec };
    match Acquire::new(spec, Entropy::new(bytes), None, now).poll(now) {
        Output::Call { script, .. } => script,
        other => panic!("an acquisition begins with a call: {other:?}"),
    }
}

/// A lease of `ms` milliseconds.
pub fn lease(ms: u64) -> LeaseTime {
    LeaseTime::new(Duration::from_millis(ms)).unwrap()
}

/// A bound that ends at `not_after` by Redis' clock; its results are kept for `keep_ms`
/// milliseconds.
pub fn bound(not_after: u64, keep_ms: u64) -> Bound {
    Bound { not_after: Some(not_after), keep: Duration::from_millis(keep_ms) }
}

/// Runs an acquisition until it is granted; returns its call and the grant.
fn granted(entropy: [u8; 32], value: &str) -> (ScriptCall, Grant) {
    let now = Instant::from_millis(0, 0);
    let spec = AcquireSpec::new(lock("x").0, WaitPolicy::Once);
    let mut machine = Acquire::new(spec, Entropy::new(entropy), None, now);
    let Output::Call { call, script, .. } = machine.poll(now) else {
        panic!("an acquisition begins with a call")
    };
    let reply = Reply {
        code: Code::Done,
        value: value.into(),
        ms: 30_000,
        server_ms: 1,
        acknowledged: None,
    };
    machine.handle(Input::Reply { call, reply }, now);
    let Output::Done(Ok(grant)) = machine.poll(now) else { panic!("a grant ends an acquisition") };
    (script, grant)
}
