//! Which names Redisson can place in a cluster, and which of them the client rejects before it
//! sends a request.

use edgelatch::client::{Client, FairSettings};
use edgelatch::error::InvalidOption;
use edgelatch::name::LockName;
use edgelatch::timing::PeerSkew;
use edgelatch_proto::protocol::slot::slot;

use super::env::{RecordingTransport, TestEnv};
use test_support::servers::Cluster;

/// Names, and whether Redisson can place a lock, a read lock and a latch of that name:
/// redisson-wire, A2. Observed in Redisson.
const TABLE: [(&str, [bool; 3]); 9] = [
    ("myLock", [true, true, true]),
    ("{a}b", [true, true, false]),
    ("x{a}b", [true, true, false]),
    ("a{b}{c}", [true, true, false]),
    ("a}b{c}", [true, true, false]),
    ("a{b", [false, false, true]),
    ("map{", [false, false, true]),
    ("a}b", [false, false, false]),
    ("{}x", [false, false, false]),
];

/// Redisson's prefix form of the keys of a lock and of the channel of a latch.
fn spelt(prefix: &str, name: &str, always_braced: bool) -> String {
    if name.contains('{') && !always_braced {
        format!("{prefix}:{name}")
    } else {
        format!("{prefix}:{{{name}}}")
    }
}

#[test]
fn names_that_redisson_rejects_are_refused_and_accepted_ones_lie_in_one_slot() {
    let cluster = Cluster::shared();
    for (name, [lock, read, _]) in TABLE {
        let placed = |key: &str| cluster.slot(key) == cluster.slot(name);
        assert_eq!(placed(&spelt("redisson_lock__channel", name, false)), lock, "{name}");
        let timeouts = if name.contains('{') { name.to_owned() } else { format!("{{{name}}}") };
        assert_eq!(placed(&format!("{timeouts}:x:1:rwlock_timeout:1")), read, "{name}");
        // edgelatch accepts a subset of what Redisson can place: it rejects more than one pair of
        // braces.
        if LockName::parse(name).is_ok() {
            assert!(lock && read, "{name}");
        }
        assert_eq!(usize::from(slot(name)), cluster.slot(name), "{name}");
    }
    let accepted: Vec<&str> = TABLE
        .map(|(name, _)| name)
        .into_iter()
        .filter(|name| LockName::parse(name).is_ok())
        .collect();
    assert_eq!(accepted, ["myLock", "{a}b", "x{a}b"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_is_refused_is_refused_by_every_object_and_nothing_is_sent() {
    let cluster = Cluster::shared();
    let env = TestEnv::new(cluster.url()).await;
    let (client, recorder) = env.client();
    for name in ["a{b}{c}", "a}b{c}", "a{b", "map{", "a}b", "{}x", "}{", "", "a\u{7}b", "el:x"] {
        for refused in refusals(&client, name) {
            assert_eq!(refused.option(), "name", "{name}");
        }
    }
    assert_eq!(recorder.count(), 0);
}

fn refusals(
    client: &Client<RecordingTransport, edgelatch::host::TokioHost>,
    name: &str,
) -> [InvalidOption; 8] {
    let fair = FairSettings::default();
    [
        client.lock(name).unwrap_err(),
        client.fenced_lock(name).unwrap_err(),
        client.fair_lock(name, fair).unwrap_err(),
        client.read_write_lock(name, Default::default()).unwrap_err(),
        client.group_lock(name, ["v"], PeerSkew::DEFAULT).unwrap_err(),
        client.semaphore(name).unwrap_err(),
        client.permit_expirable_semaphore(name, PeerSkew::DEFAULT).unwrap_err(),
        client.count_down_latch(name).unwrap_err(),
    ]
}
