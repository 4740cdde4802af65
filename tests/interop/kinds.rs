//! The exclusive kinds, and how each side creates their objects.

use edgelatch::client::{Client, FairSettings, Lease, Lock, ReadWriteSettings, SpinBackoff};
use edgelatch::host::{Host, TokioHost};
use edgelatch::timing::PeerSkew;
use edgelatch::transport::Reqwest;
use serde_json::{Value, json};

use super::peer::Service;

/// An edgelatch object that can be held.
pub(crate) type Ours = Lock<Reqwest, TokioHost>;

/// An edgelatch hold.
pub(crate) type Held = Lease<Reqwest, TokioHost>;

/// A kind of object that has one holder at a time.
pub(crate) trait Exclusive: 'static {
    /// The number of Redis servers that it uses.
    const NODES: usize = 1;

    /// Whether Redisson throws if a thread releases what it does not hold.
    const KNOWS_STRANGERS: bool = true;

    /// The object of this name, in the form of the Java side.
    fn java(service: &Service, name: &str) -> Value;

    /// The object of this name with edgelatch clients, one for each Redis. It is an owner's if the
    /// first client is an owner.
    fn ours<H: Host>(clients: &[Client<Reqwest, H>], name: &str) -> Lock<Reqwest, H>;
}

/// Defines a kind that has one name on one Redis.
macro_rules! exclusive {
    ($kind:ident, $java:tt, |$client:ident, $name:ident| $make:expr) => {
        #[doc = concat!("Redisson's `", stringify!($java), "`.")]
        pub(crate) struct $kind;

        impl Exclusive for $kind {
            fn java(_: &Service, name: &str) -> Value {
                let mut description = json!($java);
                description["name"] = json!(name);
                description
            }

            fn ours<H: Host>(clients: &[Client<Reqwest, H>], $name: &str) -> Lock<Reqwest, H> {
                let $client = &clients[0];
                $make.unwrap()
            }
        }
    };
}

exclusive!(Plain, { "kind": "lock" }, |client, name| client.lock(name));
exclusive!(NonReentrant, { "kind": "nonReentrantLock" }, |client, name| {
    client.non_reentrant_lock(name)
});
exclusive!(Fenced, { "kind": "fencedLock" }, |client, name| client.fenced_lock(name));
exclusive!(Spin, { "kind": "spinLock" }, |client, name| {
    client.spin_lock(name, SpinBackoff::default())
});
exclusive!(ConstantSpin, { "kind": "spinLock", "backOff": { "delay": 64 } }, |client, name| {
    client.spin_lock(name, SpinBackoff::CONSTANT)
});
exclusive!(Fair, { "kind": "fairLock" }, |client, name| {
    client.fair_lock(name, FairSettings::default())
});
exclusive!(NonReentrantFair, { "kind": "nonReentrantFairLock" }, |client, name| {
    client.non_reentrant_fair_lock(name, FairSettings::default())
});
exclusive!(WriteSide, { "kind": "writeLock" }, |client, name| {
    let both_sides = client.read_write_lock(name, ReadWriteSettings::default());
    both_sides.map(|lock| lock.write().clone())
});
exclusive!(Group, { "kind": "groupLock", "values": ["one", "two"] }, |client, name| {
    client.group_lock(name, ["two", "one"], PeerSkew::DEFAULT)
});

/// Redisson's `getMultiLock(locks)` of two locks.
pub(crate) struct MultiOfTwo;

impl Exclusive for MultiOfTwo {
    fn java(_: &Service, name: &str) -> Value {
        let [first, second, _] = members(name);
        several("multiLock", [lock("lock", &first), lock("lock", &second)])
    }

    fn ours<H: Host>(clients: &[Client<Reqwest, H>], name: &str) -> Lock<Reqwest, H> {
        let client = &clients[0];
        let [first, second, _] = members(name);
        client.multi_lock([client.lock(&first).unwrap(), client.lock(&second).unwrap()]).unwrap()
    }
}

/// Redisson's `getMultiLock(locks)` of three locks of several kinds. edgelatch gets them in another
/// order.
pub(crate) struct MultiOfThree;

impl Exclusive for MultiOfThree {
    fn java(_: &Service, name: &str) -> Value {
        let [first, second, third] = members(name);
        let locks = [lock("lock", &first), lock("fencedLock", &second), lock("writeLock", &third)];
        several("multiLock", locks)
    }

    fn ours<H: Host>(clients: &[Client<Reqwest, H>], name: &str) -> Lock<Reqwest, H> {
        let client = &clients[0];
        let [first, second, third] = members(name);
        let third = client.read_write_lock(&third, ReadWriteSettings::default()).unwrap();
        let second = client.fenced_lock(&second).unwrap();
        client.multi_lock([third.write().clone(), second, client.lock(&first).unwrap()]).unwrap()
    }
}

/// Redisson's `getRedLock(locks)`.
pub(crate) struct Red;

impl Exclusive for Red {
    const NODES: usize = 3;
    /// It ignores the exceptions of its members.
    const KNOWS_STRANGERS: bool = false;

    fn java(service: &Service, name: &str) -> Value {
        let member = |node: &str| json!({ "kind": "lock", "name": name, "service": node });
        several("redLock", service.nodes().map(member))
    }

    fn ours<H: Host>(clients: &[Client<Reqwest, H>], name: &str) -> Lock<Reqwest, H> {
        clients[0].red_lock(clients.iter().map(|client| client.lock(name).unwrap())).unwrap()
    }
}

/// The names of the members of an object of this name. The first is the name itself.
pub(crate) fn members(name: &str) -> [String; 3] {
    ["", "-2", "-3"].map(|end| format!("{name}{end}"))
}

fn lock(kind: &str, name: &str) -> Value {
    json!({ "kind": kind, "name": name })
}

fn several(kind: &str, locks: impl IntoIterator<Item = Value>) -> Value {
    json!({ "kind": kind, "locks": locks.into_iter().collect::<Vec<_>>() })
}
