//! A red lock on three Redis servers; any two decide. Also with different clocks, and when one
//! server loses its data.
//!
//! T2, T6, T7 and T8 are the schedules by which models of other schemes hand out falling tokens;
//! here they run with the real scripts, gateway and client. The proxy sets the time of day and the
//! uptime that a node's scripts see.

use std::time::Duration;

use edgelatch::Error;
use edgelatch::FencingToken;
use edgelatch::client::{AcquireOptions, Client, Lease, Lock, RedLockSettings, Released};
use edgelatch::error::AcquireError;
use edgelatch::timing::{AttemptTime, RejoinDelay};
use edgelatch::transport::Reqwest;

use test_support::fake_host::FakeHost;
use test_support::faults::{Fault, FaultResponse};
use test_support::test_env::{TestEnv, VirtualClient, in_virtual_time};

type VirtualLock = Lock<Reqwest, FakeHost>;
type VirtualLease = Lease<Reqwest, FakeHost>;

const TOKEN_KEY: &str = "redisson_lock_token:{job}";
/// The uptime of nodes that never crash, in seconds.
const LONG: i64 = 86_400;

/// Three nodes, and what all clients share. Silent nodes cost only virtual time.
struct Nodes {
    envs: [TestEnv; 3],
    host: FakeHost,
    /// Created once, since it reads the system's certificates.
    transport: Reqwest,
}

impl Nodes {
    async fn new() -> Self {
        let envs = [TestEnv::new().await, TestEnv::new().await, TestEnv::new().await];
        Self { envs, host: FakeHost::new(), transport: Reqwest::new() }
    }

    /// Nodes with a long uptime whose clocks are ahead by these numbers of seconds.
    async fn ahead_by(ahead: [i64; 3]) -> Self {
        let nodes = Self::new().await;
        for (env, ahead) in nodes.envs.iter().zip(ahead) {
            env.proxy.set_clocks(|clocks| (clocks.time, clocks.uptime) = (ahead, LONG));
        }
        nodes
    }

    fn clients(&self) -> Vec<VirtualClient> {
        // Redis executes no request after this time on its own clock, which goes on while virtual
        // time waits for a busy machine. A longer time would outlast leases.
        let attempt = AttemptTime::new(Duration::from_secs(4)).unwrap();
        let gateways = self.envs.iter().map(|env| env.gateway().request_timeout(attempt));
        let client = |gateway| Client::new(gateway, self.transport.clone(), self.host.clone());
        gateways.map(client).collect()
    }

    /// Awaits a call of clients in the virtual time of these nodes.
    async fn run<T>(&self, call: impl Future<Output = T>) -> T {
        let is_idle = || self.envs.iter().all(|env| env.proxy.is_idle());
        in_virtual_time(&self.host, is_idle, call).await
    }

    /// The lock of a program that has just started: it has not seen any clock, so it proposes no
    /// token.
    fn lock(&self) -> VirtualLock {
        self.lock_with(RedLockSettings::default())
    }

    fn lock_with(&self, settings: RedLockSettings) -> VirtualLock {
        let clients = self.clients();
        let locks = clients.iter().map(|client| client.lock("job").unwrap());
        clients[0].red_lock_with(locks, settings).unwrap()
    }

    /// Makes one node unresponsive.
    fn silence(&self, silent: Option<usize>) {
        for (number, env) in self.envs.iter().enumerate() {
            env.proxy.plan(move |_| match silent {
                Some(silent) if silent == number => Fault::not_executed(FaultResponse::Silence),
                _ => Fault::none(),
            });
        }
    }

    /// Makes one node ignore acquisitions.
    fn leave_out(&self, out: Option<usize>) {
        self.answer_acquisitions(out, &FaultResponse::Silence);
    }

    /// Makes one node respond to acquisitions with `response`, without executing them.
    fn answer_acquisitions(&self, out: Option<usize>, response: &FaultResponse) {
        for (number, env) in self.envs.iter().enumerate() {
            let fault = Fault::not_executed(response.clone());
            let is_out = out == Some(number);
            env.proxy.plan(move |seen| match seen.script {
                "lock_acquire" if is_out => fault.clone(),
                _ => Fault::none(),
            });
        }
    }

    /// Acquires and releases the lock with the majority that excludes this node.
    async fn hand_out(&self, without: usize, lock: &VirtualLock) -> FencingToken {
        self.leave_out(Some(without));
        let lease = self.run(lock.acquire()).await.unwrap();
        let released = self.run(lease.release()).await;
        assert_eq!(released, Ok(Released::Released), "without {without}");
        lease.token()
    }

    /// Tries to acquire the lock for at most 100 ms.
    async fn try_briefly(&self, lock: &VirtualLock) -> Result<VirtualLease, Error<AcquireError>> {
        let options = AcquireOptions::new().wait(Duration::from_millis(100));
        self.run(lock.acquire_with(options)).await
    }

    /// The last token that a node has stored.
    async fn stored(&self, node: usize) -> Option<u64> {
        self.envs[node].redis.query(&["GET", TOKEN_KEY]).await
    }
}

fn after(delay: u64) -> RedLockSettings {
    let delay = RejoinDelay::new(Duration::from_secs(delay)).unwrap();
    RedLockSettings::default().rejoin_delay(delay)
}

#[tokio::test]
async fn a_majority_decides_and_its_tokens_rise() {
    let nodes = Nodes::new().await;
    let mut last = None;
    for silent in [None, Some(0), Some(2), Some(1)] {
        nodes.silence(silent);
        let lease = nodes.run(nodes.lock().acquire()).await.unwrap();
        assert!(Some(lease.token()) > last, "{silent:?}");
        last = Some(lease.token());
        let rival = nodes.try_briefly(&nodes.lock()).await;
        assert!(
            matches!(
                rival.as_ref().map_err(|error| &error.kind),
                Err(AcquireError::Busy { .. }
                    | AcquireError::Unreachable(_)
                    | AcquireError::Unknown { .. })
            ),
            "{silent:?}: {rival:?}"
        );
        assert_eq!(nodes.run(lease.renew(None)).await, Ok(()), "{silent:?}");
        assert_eq!(nodes.run(lease.release()).await, Ok(Released::Released), "{silent:?}");
    }
}

#[tokio::test]
async fn a_minority_is_not_enough_and_is_given_back() {
    let nodes = Nodes::new().await;
    for env in &nodes.envs[1..] {
        env.proxy.plan(|_| Fault::not_executed(FaultResponse::Silence));
    }
    let options = AcquireOptions::new().wait(Duration::from_millis(200));
    assert!(nodes.run(nodes.lock().acquire_with(options)).await.is_err());
    nodes.envs[0].assert_nothing_is_held("minority").await;
}

#[tokio::test]
async fn a_hold_of_all_nodes_is_renewed_without_any_one_of_them() {
    let nodes = Nodes::new().await;
    let lease = nodes.run(nodes.lock().acquire()).await.unwrap();
    for silent in 0..3 {
        nodes.silence(Some(silent));
        assert_eq!(nodes.run(lease.renew(None)).await, Ok(()), "without {silent}");
        assert!(nodes.run(lease.is_held()).await.unwrap(), "without {silent}");
    }
    nodes.silence(None);
    assert_eq!(nodes.run(lease.release()).await, Ok(Released::Released));
}

#[tokio::test]
async fn a_lost_majority_is_reported() {
    let nodes = Nodes::new().await;
    let lease = nodes.run(nodes.lock().acquire()).await.unwrap();
    assert!(nodes.run(lease.is_held()).await.unwrap());
    nodes.envs[0].redis.query::<u64>(&["DEL", "job"]).await;
    nodes.envs[1].redis.query::<u64>(&["DEL", "job"]).await;
    assert!(!nodes.run(lease.is_held()).await.unwrap());
    assert_eq!(nodes.run(lease.release()).await, Ok(Released::WasLost));
}

/// T2: The clock that is ahead is not in the second majority, which must still not hand out a lower
/// token than the first.
#[tokio::test]
async fn tokens_rise_although_the_clock_that_is_ahead_is_not_in_the_next_majority() {
    // At most 50 s apart: a node refuses a token that is more than a minute ahead of its clock.
    for ahead in [[25, 0, -25], [0, -25, 25]] {
        let nodes = Nodes::ahead_by(ahead).await;
        let known = nodes.lock();
        let mut last = None;
        for without in [2, 0, 1, 0, 2, 1] {
            // By a program that has seen no clock, and by one that has seen all of them and
            // proposes by the fastest.
            for lock in [&nodes.lock(), &known] {
                let token = nodes.hand_out(without, lock).await;
                assert!(Some(token) > last, "{ahead:?} without {without}: {token:?} {last:?}");
                for node in (0..3).filter(|node| *node != without) {
                    let stored = nodes.stored(node).await;
                    assert_eq!(stored, Some(token.as_u64()), "{ahead:?} without {without}");
                }
                last = Some(token);
            }
        }
    }
}

/// T2: The other nodes refuse its tokens; with such a token no other holder could write to a
/// guarded key.
#[tokio::test]
async fn a_node_whose_clock_is_more_than_a_minute_ahead_is_outvoted() {
    let nodes = Nodes::ahead_by([900, 0, 0]).await;
    let lease = nodes.run(nodes.lock().acquire()).await.unwrap();
    let token = Some(lease.token().as_u64());
    assert_eq!((nodes.stored(1).await, nodes.stored(2).await), (token, token));
    assert!(nodes.stored(0).await > token);
    nodes.run(lease.release()).await.unwrap();
    // Without one of the other nodes no two nodes could store the same token.
    nodes.leave_out(Some(2));
    assert!(nodes.try_briefly(&nodes.lock()).await.is_err());
    nodes.leave_out(None);
    assert!(nodes.run(nodes.lock().acquire()).await.unwrap().token() > lease.token());
}

/// S62: T6: Counters would start over on the node that has lost its data. Tokens are times.
#[tokio::test]
async fn no_token_is_granted_twice_when_a_node_has_lost_its_data_and_the_clocks_agree() {
    let mut nodes = Nodes::new().await;
    let mut last = None;
    for (without, crashes) in [(2, 1), (0, 2), (1, 0), (2, 1), (0, 1), (0, 2)] {
        let token = nodes.hand_out(without, &nodes.lock()).await;
        assert!(Some(token) > last, "without {without}: {token:?} {last:?}");
        last = Some(token);
        nodes.envs[crashes].crash().await;
        assert_eq!(nodes.stored(crashes).await, None);
    }
}

/// T7: No scheme without a delay prevents this. The token was stored on the fast node and on the
/// one that has lost its data.
#[tokio::test]
async fn tokens_fall_when_the_node_that_knew_the_last_one_forgets_it_and_votes_at_once() {
    let mut nodes = Nodes::ahead_by([20, 0, 0]).await;
    let first = nodes.hand_out(2, &nodes.lock()).await;
    nodes.envs[1].crash().await;
    assert!(nodes.hand_out(0, &nodes.lock()).await < first);
}

/// T8: T7 with a delay that is longer than the difference of the clocks.
#[tokio::test]
async fn tokens_rise_when_a_node_that_has_forgotten_them_rejoins_after_a_delay() {
    let mut nodes = Nodes::ahead_by([20, 0, 0]).await;
    let lock = |nodes: &Nodes| nodes.lock_with(after(30));
    let first = nodes.hand_out(2, &lock(&nodes)).await;
    nodes.envs[1].crash().await;
    // The restarted node does not vote, and the remaining one is no majority.
    nodes.leave_out(Some(0));
    assert!(nodes.try_briefly(&lock(&nodes)).await.is_err());
    nodes.envs[2].assert_nothing_is_held("minority").await;
    for env in &nodes.envs {
        env.proxy.set_clocks(|clocks| {
            clocks.time += 31;
            clocks.uptime += 31;
        });
    }
    assert!(nodes.hand_out(0, &lock(&nodes)).await > first);
}

#[tokio::test]
async fn a_node_that_has_lost_a_hold_does_not_vote_while_the_hold_may_exist() {
    for delayed in [false, true] {
        let mut nodes = Nodes::ahead_by([0; 3]).await;
        let settings = if delayed { after(30) } else { RedLockSettings::default() };
        nodes.leave_out(Some(2));
        let held = nodes.run(nodes.lock_with(settings).acquire()).await.unwrap();
        nodes.envs[1].crash().await;
        nodes.leave_out(None);
        let rival = nodes.lock_with(settings);
        let taken = nodes.try_briefly(&rival).await;
        if !delayed {
            // Two clients believe in their leases: the delay prevents this.
            assert!(taken.is_ok() && !held.remaining().is_zero());
            continue;
        }
        assert!(matches!(taken, Err(Error { kind: AcquireError::Busy { .. }, .. })), "{taken:?}");
        // The two nodes that have lost nothing are a majority without it.
        let until_cancelled = AcquireOptions::new().wait_until_cancelled();
        let both = async { tokio::join!(rival.acquire_with(until_cancelled), held.release()) };
        let (lease, released) = nodes.run(both).await;
        assert!(released.is_ok());
        let lease = lease.unwrap();
        assert!(lease.token() > held.token());
        assert_eq!(nodes.run(lease.release()).await, Ok(Released::Released));
    }
}

// Slow: a real Redis has to be up for four whole seconds.
#[tokio::test]
async fn a_node_that_was_started_again_votes_when_it_has_been_up_for_the_delay() {
    let mut nodes = Nodes::ahead_by([0; 3]).await;
    nodes.envs[1].crash().await;
    // This test runs in real time, where a silent node would cost a whole attempt.
    nodes.answer_acquisitions(Some(0), &FaultResponse::Reset);
    let clients: Vec<_> = nodes.envs.iter().map(TestEnv::client).collect();
    let locks = clients.iter().map(|client| client.lock("job").unwrap());
    let lock = clients[0].red_lock_with(locks, after(3)).unwrap();
    let briefly = AcquireOptions::new().wait(Duration::from_millis(100));
    let lease = match lock.acquire_with(briefly).await {
        // On a slow machine the delay may have ended by now.
        Ok(lease) => lease,
        Err(_) => lock.acquire_with(AcquireOptions::new().wait_until_cancelled()).await.unwrap(),
    };
    assert!(uptime(&nodes.envs[1]).await >= 4, "whole seconds, and one of them may be short");
    lease.release().await.unwrap();
}

/// The uptime of a node's Redis, in whole seconds.
async fn uptime(env: &TestEnv) -> u64 {
    let info: String = env.redis.query(&["INFO", "server"]).await;
    let uptime = info.lines().find_map(|line| line.strip_prefix("uptime_in_seconds:"));
    uptime.unwrap().parse().unwrap()
}

#[tokio::test]
async fn no_lease_is_longer_than_the_delay() {
    let nodes = Nodes::ahead_by([0; 3]).await;
    let lock = nodes.lock_with(after(10));
    for options in [AcquireOptions::new(), AcquireOptions::new().lease(Duration::from_secs(60))] {
        let lease = nodes.run(lock.acquire_with(options)).await.unwrap();
        assert!(lease.remaining() <= Duration::from_secs(10));
        for time in [None, Some(Duration::from_secs(60))] {
            assert_eq!(nodes.run(lease.renew(time)).await, Ok(()));
            assert!(lease.remaining() <= Duration::from_secs(10));
        }
        nodes.run(lease.release()).await.unwrap();
    }
    for bad in [999, 86_400_001] {
        let error = RejoinDelay::new(Duration::from_millis(bad)).unwrap_err();
        assert_eq!(error.option(), "rejoinDelay");
    }
}
