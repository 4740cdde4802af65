//! The objects of the package, and their creation.

use alloc::rc::Rc;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::{OnceCell, RefCell};

use wasm_bindgen::prelude::*;

use super::events::Events;
use super::numbers::kind;
use super::options::Numbers;
use crate::error::InvalidOption;
use edgelatch_proto::engine::{self, EndpointId, LockSpec, OwnerHandle};
use edgelatch_proto::machine::check_protecting_lock;
use edgelatch_proto::name::{ClientId, GuardKey, LockName};
use edgelatch_proto::protocol::calls::{
    BatchSize, CountDownLatchCalls, FairMode, FairReadWriteCalls, GuardCalls, PermitCalls,
    PermitCount, SemaphoreCalls, Target,
};
use edgelatch_proto::timing::PeerSkew;

/// Any object of the package but leases.
#[wasm_bindgen(skip_typescript)]
pub struct Handle(pub(super) Object);

/// The object behind a `Handle`.
pub(super) enum Object {
    Client(Client),
    /// Every kind of lock.
    Lock(Lock),
    /// Locks that are collected for a multi-lock or a redLock.
    Several(Client, Vec<Lock>),
    Semaphore(Client, SemaphoreCalls),
    Permits(Client, PermitCalls, PeerSkew),
    Latch(Client, CountDownLatchCalls),
    Guard(Guard),
    Events(Events),
}

/// A gateway, and the owner that acquires there, if it is one.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) endpoint: Rc<Used<EndpointId>>,
    owner: Option<Rc<Used<OwnerHandle>>>,
    /// Whether errors leave out the names of locks and keys.
    redacts: bool,
}

#[derive(Clone)]
pub(super) struct Lock {
    pub(super) spec: Arc<LockSpec>,
    owner: Option<Rc<Used<OwnerHandle>>>,
    /// Keeps the gateways in the engine.
    endpoints: Vec<Rc<Used<EndpointId>>>,
}

pub(super) struct Guard {
    pub(super) client: Client,
    pub(super) calls: GuardCalls,
    /// The name of the lock that protects the key, once it is known.
    lock: OnceCell<String>,
}

/// An entry of the engine, which is removed once no object uses it.
pub(super) struct Used<T: Copy + Into<Unused>> {
    pub(super) id: T,
    unused: UnusedEntries,
}

/// Entries of the engine that no object uses any more.
pub(super) type UnusedEntries = Rc<RefCell<Vec<Unused>>>;

#[derive(Clone, Copy)]
pub(super) enum Unused {
    Endpoint(EndpointId),
    Owner(OwnerHandle),
}

impl From<EndpointId> for Unused {
    fn from(id: EndpointId) -> Self {
        Self::Endpoint(id)
    }
}

impl From<OwnerHandle> for Unused {
    fn from(id: OwnerHandle) -> Self {
        Self::Owner(id)
    }
}

/// An object may be dropped while the engine is in use, so the entry is removed later.
impl<T: Copy + Into<Unused>> Drop for Used<T> {
    fn drop(&mut self) {
        if let Ok(mut unused) = self.unused.try_borrow_mut() {
            unused.push(self.id.into());
        }
    }
}

impl Client {
    pub(super) fn new(id: EndpointId, redacts: bool, unused: &UnusedEntries) -> Self {
        let endpoint = Rc::new(Used { id, unused: Rc::clone(unused) });
        Self { endpoint, owner: None, redacts }
    }

    /// The same gateway for a new owner.
    fn owner(&self, id: OwnerHandle) -> Self {
        let unused = Rc::clone(&self.endpoint.unused);
        Self { owner: Some(Rc::new(Used { id, unused })), ..self.clone() }
    }

    pub(super) fn to(&self) -> EndpointId {
        self.endpoint.id
    }

    fn lock(&self, spec: LockSpec) -> Lock {
        let endpoints = [Rc::clone(&self.endpoint)].into();
        Lock { spec: Arc::new(spec), owner: self.owner.clone(), endpoints }
    }
}

impl Lock {
    pub(super) fn owner(&self) -> Option<OwnerHandle> {
        self.owner.as_ref().map(|owner| owner.id)
    }

    /// The gateway and the target of the only member. A lock of several members is force-released
    /// and inspected one by one.
    pub(super) fn single(&self) -> Result<(EndpointId, &Target), InvalidOption> {
        let only = self.spec.only().ok_or_else(|| InvalidOption::new("lock", "a single one"))?;
        Ok((only.endpoint, &only.target))
    }
}

impl Guard {
    /// Makes the lock `name` the one that protects the key, unless one is set already.
    ///
    /// # Errors
    /// [`InvalidOption`] about the lease if another lock protects the key.
    pub(super) fn bind_lock(&self, name: &str) -> Result<(), InvalidOption> {
        let protecting = self.lock.get_or_init(|| name.into());
        check_protecting_lock(protecting, name, self.client.redacts)
    }
}

/// Creates an object of this kind from another object.
pub(super) fn create(
    engine: &mut engine::Engine,
    of: (&Object, u32),
    other: &Object,
    name: &str,
    numbers: &Numbers<'_>,
    bytes: &[u8],
) -> Result<Object, InvalidOption> {
    let (_, what) = of;
    Ok(match of {
        (Object::Client(client), kind::OWNER) => Object::Client(client.owner(engine.new_owner())),
        (Object::Client(client), kind::LIST) => Object::Several(client.clone(), Vec::new()),
        (Object::Client(client), kind::GROUP_LOCK) => {
            let (name, values) = (LockName::parse(name)?, values(numbers, bytes));
            let spec = engine.group_lock(client.to(), name, values, numbers.skew()?)?;
            Object::Lock(client.lock(spec))
        }
        (Object::Client(client), kind::FAIR_READ | kind::FAIR_WRITE | kind::FAIR_READ_WRITE) => {
            let mode = match what {
                kind::FAIR_READ => FairMode::Shared,
                kind::FAIR_WRITE => FairMode::Exclusive,
                _ => FairMode::Steal,
            };
            let (name, settings) = (LockName::parse(name)?, numbers.fair_read_write()?);
            let client_id = ClientId::parse(core::str::from_utf8(bytes).unwrap_or_default())?;
            let announces = engine.announces(client.to());
            let calls = FairReadWriteCalls::new(name, mode, settings, client_id, announces);
            Object::Lock(client.lock(engine.fair_read_write_lock(client.to(), calls)))
        }
        (Object::Client(client), kind::GUARD) => guard(client, name, numbers, bytes)?,
        (Object::Client(client), _) => {
            named(engine, client, what, LockName::parse(name)?, numbers)?
        }
        (Object::Several(client, locks), kind::LIST) => {
            let Object::Lock(lock) = other else { return Err(stray()) };
            let mut locks = locks.clone();
            locks.push(lock.clone());
            Object::Several(client.clone(), locks)
        }
        (Object::Several(client, locks), _) => {
            let specs: Vec<&LockSpec> = locks.iter().map(|lock| &*lock.spec).collect();
            let spec = if what == kind::MULTI_LOCK {
                engine.multi_lock(&specs)?
            } else {
                engine.red_lock(&specs, numbers.rejoin_delay()?)?
            };
            let mut endpoints = Vec::new();
            for lock in locks {
                endpoints.extend_from_slice(&lock.endpoints);
            }
            Object::Lock(Lock { endpoints, ..client.lock(spec) })
        }
        _ => return Err(stray()),
    })
}

/// The error of a call that `pkg/api.js` never makes: the object has no such method.
pub(super) fn stray() -> InvalidOption {
    InvalidOption::new("this", "an object that can do this")
}

/// Creates an object that has the name of a lock.
fn named(
    engine: &engine::Engine,
    client: &Client,
    what: u32,
    name: LockName,
    numbers: &Numbers<'_>,
) -> Result<Object, InvalidOption> {
    let to = client.to();
    let announces = engine.announces(to);
    let spec = match what {
        kind::LOCK | kind::NON_REENTRANT_LOCK => engine.lock(to, name, what == kind::LOCK),
        kind::FENCED_LOCK => engine.fenced_lock(to, name),
        kind::SPIN_LOCK => engine.spin_lock(to, name, numbers.pauses())?,
        kind::FAIR_LOCK | kind::NON_REENTRANT_FAIR_LOCK => {
            engine.fair_lock(to, name, numbers.fair()?, what == kind::FAIR_LOCK)
        }
        kind::READ_LOCK => engine.read_lock(to, name, numbers.peer_watchdog()?),
        kind::WRITE_LOCK => engine.write_lock(to, name, numbers.prefers_writers()?),
        kind::SEMAPHORE => {
            let calls = SemaphoreCalls::new(name, announces, PermitCount::new(1)?);
            return Ok(Object::Semaphore(client.clone(), calls));
        }
        kind::PERMITS => {
            let skew = numbers.skew()?;
            let calls = PermitCalls::new(name, announces, BatchSize::new(1)?, skew);
            return Ok(Object::Permits(client.clone(), calls, skew));
        }
        _ => {
            let calls = CountDownLatchCalls::new(name, announces);
            return Ok(Object::Latch(client.clone(), calls));
        }
    };
    Ok(Object::Lock(client.lock(spec)))
}

/// Creates a guard of this key. `lock` is the name of the lock that protects the key, or empty.
fn guard(
    client: &Client,
    key: &str,
    numbers: &Numbers<'_>,
    lock: &[u8],
) -> Result<Object, InvalidOption> {
    let calls = GuardCalls::new(GuardKey::parse(key)?, numbers.memory()?);
    let known = OnceCell::new();
    if !lock.is_empty() {
        let lock = LockName::parse(core::str::from_utf8(lock).unwrap_or_default());
        let lock = lock.map_err(|bad| InvalidOption::new("lock", bad.accepted()))?;
        drop(known.set(lock.as_str().into()));
    }
    Ok(Object::Guard(Guard { client: client.clone(), calls, lock: known }))
}

/// Splits concatenated values; the numbers after the first are their lengths.
fn values<'a>(numbers: &Numbers<'_>, bytes: &'a [u8]) -> Vec<&'a [u8]> {
    let (mut values, mut rest) = (Vec::new(), bytes);
    for place in 1..numbers.0.len() {
        let Some((value, after)) = rest.split_at_checked(numbers.small(place) as usize) else {
            break;
        };
        values.push(value);
        rest = after;
    }
    values
}
