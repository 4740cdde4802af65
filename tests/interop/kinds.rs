//! The kinds of which one holder has one at a time, with what each side calls them.

use edgelatch::client::{Client, Lease, Lock, ReadWriteSettings};
use edgelatch::host::{Host, TokioHost};
use edgelatch::machine::SpinBackoff;
use edgelatch::protocol::calls::FairSettings;
use edgelatch::timing::PeerSkew;
use edgelatch::transport::Reqwest;
use serde_json::{Value, json};

use super::peer::Service;

/// An object of ours of which something can be held.
pub(crate) type Ours = Lock<Reqwest, TokioHost>;

/// A hold of ours.
pub(crate) type Held = Lease<Reqwest, TokioHost>;

/// A kind of which one holder has one at a time.
pub(crate) trait Exclusive: 'static {
    /// How many Redis it lies on.
    const NODES: usize = 1;

    /// Whether Redisson throws at who gives back what it does not hold.
    const KNOWS_STRANGERS: bool = true;

    /// The object of this name, as the Java side is told of it.
    fn java(service: &Service, name: &str) -> Value;

    /// The same for clients of ours, one for each Redis. An owner's when the first client is one.
    fn ours<H: Host>(clients: &[Client<Reqwest, H>], name: &str) -> Lock<Reqwest, H>;
}

/// A kind that lies on one Redis under one name.
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

/// Redisson's `getMultiLock(locks)` of two.
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

/// The same of three, of several kinds. Ours is told of them in another order.
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
    /// It ignores what its members throw.
    const KNOWS_STRANGERS: bool = false;

    fn java(service: &Service, name: &str) -> Value {
        let member = |node: &str| json!({ "kind": "lock", "name": name, "service": node });
        several("redLock", service.nodes().map(member))
    }

    fn ours<H: Host>(clients: &[Client<Reqwest, H>], name: &str) -> Lock<Reqwest, H> {
        clients[0].red_lock(clients.iter().map(|client| client.lock(name).unwrap())).unwrap()
    }
}

/// The names of the members of what goes by this name. The first is that name.
pub(crate) fn members(name: &str) -> [String; 3] {
    ["", "-2", "-3"].map(|end| format!("{name}{end}"))
}

fn lock(kind: &str, name: &str) -> Value {
    json!({ "kind": kind, "name": name })
}

fn several(kind: &str, locks: impl IntoIterator<Item = Value>) -> Value {
    json!({ "kind": kind, "locks": locks.into_iter().collect::<Vec<_>>() })
}
