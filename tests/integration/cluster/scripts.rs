//! The keys of every script are in one slot, whatever the names; a node that does not know a script
//! receives its source.

use std::collections::BTreeSet;
use std::time::Duration;

use edgelatch::client::{AcquireOptions, FairSettings, GuardedWrite, UserScript};
use edgelatch::error::InvalidOption;
use edgelatch::name::LockName;
use edgelatch::timing::GuardMemory;
use edgelatch::transport::Transport as _;
use edgelatch::{Gateway, Publish};
use edgelatch_proto::protocol::calls::{FairCalls, LockCalls, Target};
use edgelatch_proto::protocol::exchange::{Answer, Exchange, Step};
use edgelatch_proto::protocol::gateway::GatewayCapabilities;
use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::{ScriptCall, scripts};
use tokio::task::block_in_place;

use super::env::{RecordingTransport, TestEnv, names};
use super::objects::{beside, count, exclude, kinds, open, protect, share, share_in_order};
use super::replicas::acquire;
use test_support::calls;
use test_support::redis::TOKEN;
use test_support::servers::Cluster;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_script_uses_one_slot_for_any_name() {
    let cluster = Cluster::shared();
    let env = TestEnv::new(cluster.url()).await;
    let (client, recorder) = env.client();
    for name in names("excluding") {
        exclude(&client, &name).await;
    }
    for name in names("sharing") {
        share(&client, &name).await;
    }
    for name in names("sharing-in-order") {
        share_in_order(&client, &name).await;
    }
    for name in names("counting") {
        count(&client, &name).await;
    }
    for name in names("opening") {
        open(&client, &name).await;
    }
    for name in names("protecting") {
        protect(&client, &name).await;
    }
    for name in names("asking") {
        query(&env, &recorder, &name).await;
    }
    majority(&env, &recorder).await;
    assert_eq!(recorder.redis_errors(), Vec::<String>::new());
    let all: BTreeSet<String> = scripts::ALL.iter().map(|script| script.name.to_owned()).collect();
    assert_eq!(recorder.scripts().intersection(&all).cloned().collect::<BTreeSet<_>>(), all);
}

/// Calls that no object makes as long as nothing goes wrong: the queue of a fair lock, and the
/// cancellation of a request.
async fn query(env: &TestEnv, recorder: &RecordingTransport, name: &str) {
    let name = LockName::parse(name).unwrap();
    let fair = FairCalls::new(name.clone(), FairSettings::default(), Publish::Plain);
    let reply = send(env, recorder, &fair.queue(calls::request(1), None)).await;
    assert_eq!(reply.value, "0,0", "{name:?}");
    let once = Target::Lock(LockCalls::new(name.clone(), Publish::Plain)).force_release();
    let bound = calls::bound(1 << 45, 60_000);
    let reply = send(env, recorder, &once.cancel(calls::request(2), bound)).await;
    assert_eq!(reply.code, Code::Gone, "{name:?}");
    let reply = send(env, recorder, &once.call(calls::request(2), bound)).await;
    assert_eq!(reply.code, Code::Gone, "{name:?}");
}

async fn send(env: &TestEnv, recorder: &RecordingTransport, call: &ScriptCall) -> Reply {
    let (gateway, mut memory) =
        (Gateway::upstash(&env.url(), TOKEN).unwrap(), GatewayCapabilities::default());
    let (mut exchange, mut step) = Exchange::new(&gateway, call.clone(), &memory);
    loop {
        match step {
            Step::Send(request) => {
                step = exchange.answered(&gateway, recorder.send(request).await, &mut memory);
            }
            Step::Done(Answer::Reply(reply)) => return reply,
            Step::Done(other) => panic!("{other:?}"),
        }
    }
}

/// Nodes that mint different tokens, so that the lower one is raised. Here the nodes are names in
/// slots of their own.
async fn majority(env: &TestEnv, recorder: &RecordingTransport) {
    let nodes = ["voting", "{voting-2}:x", "x{voting-3}b"].map(|name| {
        let gateway = Gateway::upstash(&env.url(), TOKEN).unwrap().named(name);
        let host = edgelatch::host::TokioHost::new();
        let client = edgelatch::Client::new(gateway, recorder.clone(), host);
        let lock = client.lock(name).unwrap();
        (client, lock)
    });
    let lock = nodes[0].0.red_lock(nodes.iter().map(|(_, lock)| lock.clone())).unwrap();
    let lease = lock.acquire().await.unwrap();
    assert!(lease.is_held().await.unwrap());
    lease.release().await.unwrap();
}

/// S61.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_has_forgotten_its_scripts_is_sent_them_again() {
    // A cluster of its own: other tests would load the scripts that its nodes must have lost.
    let cluster = block_in_place(|| Cluster::start(Duration::from_secs(15)));
    let env = TestEnv::new(cluster.url()).await;
    let (client, recorder) = env.client();
    for name in cluster.keys("forgetting:") {
        let (master, _) = cluster.places(&name);
        for (kind, lock) in kinds(&client, &name) {
            let lease = lock.acquire().await.unwrap();
            cluster.servers()[master].query::<()>(&["SCRIPT", "FLUSH"]).unwrap();
            let before = recorder.count();
            assert!(lease.is_held().await.unwrap(), "{kind}");
            assert_eq!(recorder.count(), before + 1, "{kind}");
            assert!(lease.is_held().await.unwrap(), "{kind}");
            assert_eq!(recorder.count(), before + 2, "{kind}");
            cluster.servers()[master].query::<()>(&["SCRIPT", "FLUSH"]).unwrap();
            lease.release().await.unwrap();
            let options = AcquireOptions::new().replicas(1);
            cluster.servers()[master].query::<()>(&["SCRIPT", "FLUSH"]).unwrap();
            acquire(&lock, options).await.release().await.unwrap();
        }
    }
    assert_eq!(recorder.redis_errors(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_of_the_caller_s_keeps_to_the_slot_of_its_lock() {
    let cluster = Cluster::shared();
    let env = TestEnv::new(cluster.url()).await;
    let (client, recorder) = env.client();
    let [here, there]: [String; 2] = cluster.keys("own:")[..2].to_vec().try_into().unwrap();
    let lease = client.lock(&here).unwrap().acquire().await.unwrap();
    let before = recorder.count();
    for keys in [vec![there.clone()], vec![beside(&here), there.clone()]] {
        let script = UserScript::new("return 1", keys, vec![]).unwrap();
        let refused = lease.eval(&script).await.unwrap_err();
        let edgelatch::error::EvalError::Request(edgelatch::error::RequestError::InvalidOption(no)) =
            refused.kind
        else {
            panic!("{refused:?}")
        };
        assert_eq!(InvalidOption::option(&no), "keys");
    }
    assert_eq!(recorder.count(), before);
    let keys = vec![here.clone(), format!("{}:a", beside(&here)), beside(&here)];
    let script = UserScript::new("return #KEYS + redis.call('INCR', KEYS[2])", keys, vec![]);
    assert_eq!(lease.eval(&script.unwrap()).await.as_deref(), Ok("4"));
    // A guard is in a slot of its own.
    let guard = client.guard(&there, GuardMemory::DEFAULT).unwrap();
    guard.write(&lease, None, &GuardedWrite::set("guarded", None)).await.unwrap();
    assert_eq!(guard.newest().await, Ok(Some(lease.token().as_u64())));
    lease.release().await.unwrap();
    assert_eq!(recorder.redis_errors(), Vec::<String>::new());
}
