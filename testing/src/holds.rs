//! The list of held objects, and holds of another client.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use edgelatch_proto::error::InvalidOption;
use edgelatch_proto::name::{FencingToken, LockName, OwnerId, RequestId};
use edgelatch_proto::protocol::calls::{Target, Try};
use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::scope::PEER_SKEW_DEFAULT;
use edgelatch_proto::protocol::script::{Bound, ScriptCall};
use edgelatch_proto::time::millis;
use edgelatch_proto::timing::LeaseTime;

use crate::gateway::MemoryGateway;
use crate::kind::Kind;
use crate::redis::{Redis, now_millis};
use crate::script_model::Value;
use crate::script_model::holds::NEVER;

/// The bound of a client that has not seen Redis' clock.
const UNBOUND: Bound = Bound { not_after: None, keep: Duration::from_secs(90) };
/// The id of the requests of another client.
const REQUEST: RequestId = RequestId::new(0);
/// The length of a field of a group that stands for a value. The fields about its owner are longer.
const VALUE_FIELD_LENGTH: usize = 22;

/// An object that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The object's name.
    pub name: String,
    /// The object's kind.
    pub kind: Kind,
    /// The number of holds: of a lock, the hold counts of all owners; of a semaphore, its
    /// permits in use; of a group, its values in use.
    pub holds: u64,
    /// The time until the last hold of a lock or group ends, or the first hold of a semaphore;
    /// `None` if it has no end.
    pub remaining: Option<Duration>,
}

/// The options of a hold of another client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldOptions {
    /// The kind of the object. Default: [`Kind::Lock`].
    pub kind: Kind,
    /// The length of the lease, 100 ms to 24 h. Default: 30 s. It is not renewed.
    pub lease: Duration,
    /// The number of permits of a semaphore. Default: 1. Ignored for locks.
    pub permits: u32,
}

impl Default for HoldOptions {
    fn default() -> Self {
        Self { kind: Kind::Lock, lease: Duration::from_secs(30), permits: 1 }
    }
}

/// A hold of another client.
#[derive(Clone, Debug)]
pub struct OtherHold {
    target: Target,
    owner: OwnerId,
    token: FencingToken,
}

impl OtherHold {
    /// The fencing token of the grant.
    pub const fn token(&self) -> FencingToken {
        self.token
    }
}

/// Why another client does not get a hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldError {
    /// An option is out of range, or the name is invalid.
    InvalidOption(InvalidOption),
    /// The object is held, has too few permits, or is of another kind.
    NotFree,
}

impl fmt::Display for HoldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidOption(error) => error.fmt(f),
            Self::NotFree => f.write_str(
                "another client cannot acquire it: it is held, has too few permits, or is of another kind",
            ),
        }
    }
}

impl std::error::Error for HoldError {}

impl From<InvalidOption> for HoldError {
    fn from(error: InvalidOption) -> Self {
        Self::InvalidOption(error)
    }
}

impl MemoryGateway {
    /// Acquires an object for another client at `now`, without a request: faults do not apply.
    ///
    /// # Errors
    /// [`HoldError::InvalidOption`] for an invalid name, lease or number of permits, or a group;
    /// [`HoldError::NotFree`] if the object cannot be acquired at once.
    pub fn hold(
        &mut self,
        name: &str,
        options: HoldOptions,
        now: Duration,
    ) -> Result<OtherHold, HoldError> {
        if options.kind == Kind::GroupLock {
            return Err(InvalidOption::new("kind", "any kind but a group").into());
        }
        let target = options.kind.target(LockName::parse(name)?, options.permits)?;
        let lease = LeaseTime::new(options.lease)?;
        let owner = self.redis.new_owner();
        let call = target.acquire(&Try {
            request: REQUEST,
            bound: UNBOUND,
            owner,
            lease,
            last: true,
            number: 1,
            previous: None,
            announces: true,
        });
        let reply = self.run(&call, now).filter(|reply| reply.code == Code::Done);
        let token = reply.and_then(|reply| FencingToken::parse(&reply.value));
        Ok(OtherHold { target, owner, token: token.ok_or(HoldError::NotFree)? })
    }

    /// Ends a hold of another client; returns whether it existed.
    pub fn release(&mut self, hold: &OtherHold, now: Duration) -> bool {
        let call = hold.target.release(REQUEST, UNBOUND, hold.owner);
        self.run(&call, now).is_some_and(|reply| reply.code == Code::Done)
    }

    fn run(&mut self, call: &ScriptCall, now: Duration) -> Option<Reply> {
        let values = self.redis.run(call.script(), call.keys(), call.args(), now);
        self.publish();
        Reply::read(&values.ok()?, REQUEST)
    }

    /// Ends the leases of all holds of this name, of any kind and owner, or of every name, as if
    /// their time were over. Redis publishes nothing then. Returns the number of objects whose
    /// holds have ended.
    pub fn expire(&mut self, name: Option<&str>, now: Duration) -> usize {
        let held = self.held(now).into_iter();
        let ends = held.filter(|held| name.is_none_or(|name| name == held.name));
        ends.map(|held| self.redis.expire(&held)).count()
    }

    /// Lists what is held at `now`, by name.
    pub fn held(&self, now: Duration) -> Vec<Held> {
        let objects = self.redis.objects.iter();
        objects.filter_map(|(name, kind)| self.redis.held(name, *kind, now_millis(now))).collect()
    }
}

impl Redis {
    /// Creates an owner that no client has.
    fn new_owner(&mut self) -> OwnerId {
        self.last_owner += 1;
        OwnerId::new([0; 16], self.last_owner)
    }

    fn held(&self, name: &str, kind: Kind, now_ms: u64) -> Option<Held> {
        let key = stored_under(name, kind)?;
        let (holds, ends_at) = match self.model.value(&key, now_ms)? {
            Value::Hash(fields) => (holds_in(fields, kind), self.model.expiry(&key)),
            Value::Sorted(members) => permits_in(members, kind, now_ms),
            Value::Text(_) | Value::List(_) => return None,
        };
        let remaining = ends_at.map(|at| Duration::from_millis(at.saturating_sub(now_ms)));
        (holds > 0).then(|| Held { name: name.to_owned(), kind, holds, remaining })
    }

    fn expire(&mut self, held: &Held) {
        let Some(key) = stored_under(&held.name, held.kind) else { return };
        match held.kind {
            Kind::Lock | Kind::FairLock | Kind::Read | Kind::Write | Kind::GroupLock => {
                self.model.delete(&key);
            }
            _ => self.model.run_out(&key, 0),
        }
    }
}

/// The number of holds in the hash of a lock or a group.
fn holds_in(fields: &BTreeMap<String, String>, kind: Kind) -> u64 {
    let count = |(field, count): (&String, &String)| match kind {
        Kind::GroupLock => u64::from(field.len() == VALUE_FIELD_LENGTH),
        Kind::Read | Kind::Write if field.ends_with(":write") != (kind == Kind::Write) => 0,
        _ => count.parse().unwrap_or(0),
    };
    fields.iter().map(count).sum()
}

/// The number of permits, or of holders, in the set of a semaphore or fair read-write lock, and the
/// end of the first hold.
fn permits_in(members: &BTreeMap<String, i64>, kind: Kind, now_ms: u64) -> (u64, Option<u64>) {
    let skew = match kind {
        Kind::PermitExpirableSemaphore => PEER_SKEW_DEFAULT,
        _ => Duration::ZERO,
    };
    let ends = |score: i64| u64::try_from(score).ok()?.checked_sub(millis(skew));
    let permits = |member: &str| match kind {
        Kind::Semaphore => member.split('|').next().and_then(|it| it.parse().ok()).unwrap_or(0),
        Kind::FairRead => u64::from(member.starts_with('s')),
        Kind::FairWrite => u64::from(member.starts_with('x')),
        _ => 1,
    };
    let held = members.iter().filter_map(|(member, score)| Some((permits(member), ends(*score)?)));
    let held: Vec<(u64, u64)> =
        held.filter(|(permits, end)| *permits > 0 && *end > now_ms).collect();
    let first = held.iter().map(|(_, end)| *end).min();
    let never = u64::try_from(NEVER).unwrap_or(u64::MAX).saturating_sub(millis(skew));
    (held.iter().map(|(permits, _)| permits).sum(), first.filter(|end| *end < never))
}

/// The key that holds are stored under.
fn stored_under(name: &str, kind: Kind) -> Option<String> {
    let target = kind.target(LockName::parse(name).ok()?, 1).ok()?;
    let call = target.inspect(REQUEST, None);
    let place = match kind {
        Kind::Lock | Kind::FairLock | Kind::FairRead | Kind::FairWrite => 0,
        Kind::Read | Kind::Write => 0,
        Kind::GroupLock => 1,
        Kind::Semaphore | Kind::PermitExpirableSemaphore => 2,
    };
    call.keys().get(place).cloned()
}
