//! A test environment: a Redis, a gateway, a fault-injecting proxy, and a client.

use std::time::Duration;

use edgelatch::client::{Client, Driver};
use edgelatch::host::TokioHost;
use edgelatch::transport::Reqwest;
use edgelatch_proto::protocol::gateway::Gateway;
use edgelatch_proto::timing::AttemptTime;

use super::fake_host::FakeHost;
use super::fault_proxy::{FaultProxy, RecordedCall};
use super::faults::Fault;
use super::redis::{Content, Keyspace, Redis, TOKEN};

/// The client that most programs use.
pub type NativeClient = Client<Reqwest, TokioHost>;
/// A client in virtual time.
pub type VirtualClient = Client<Reqwest, FakeHost>;

/// The time limit of a test: reached only by a failing one.
const TIME_LIMIT: Duration = Duration::from_secs(300);
/// The time for an attempt that gets a response: far more than a busy machine needs, so that no
/// response comes too late.
pub const LONG_ATTEMPT: Duration = Duration::from_secs(25);
/// The step by which virtual time advances: little beside the time for any attempt.
const STEP: Duration = Duration::from_millis(10);
/// How many turns of the event loop must be idle before virtual time advances, so that the client
/// has read every response.
const IDLE_TURNS: u32 = 50;

pub struct TestEnv {
    pub redis: Redis,
    pub proxy: FaultProxy,
}

impl TestEnv {
    /// Starts an environment whose gateway works correctly until it has a plan.
    pub async fn new() -> Self {
        let mut redis = Redis::start().await;
        // The scripts are loaded, so that each call takes one request.
        redis.load_scripts().await;
        let proxy = FaultProxy::start(redis.address()).await;
        Self { redis, proxy }
    }

    /// Starts an environment whose gateway handles each request as `plan` says.
    pub async fn with(plan: impl Fn(&RecordedCall) -> Fault + Send + Sync + 'static) -> Self {
        let env = Self::new().await;
        env.proxy.plan(plan);
        env
    }

    /// Starts over: an empty Redis, and a gateway that handles each request as `plan` says.
    pub async fn reset(&self, plan: impl Fn(&RecordedCall) -> Fault + Send + Sync + 'static) {
        self.redis.query::<String>(&["FLUSHALL"]).await;
        self.proxy.plan(plan);
    }

    /// Replaces its Redis by an empty one, as if it had crashed and restarted without its data.
    pub async fn crash(&mut self) {
        self.redis = Redis::start().await;
        self.proxy.set_target(self.redis.address());
        self.proxy.set_clocks(|clocks| clocks.uptime = 0);
    }

    pub fn gateway(&self) -> Gateway {
        Gateway::upstash(&self.proxy.url(), TOKEN).unwrap()
    }

    /// A client of its own, with its own connections.
    pub fn client(&self) -> NativeClient {
        Client::connect(self.gateway())
    }

    /// A client that abandons an attempt after this time.
    pub fn client_with_timeout(&self, attempt: Duration) -> NativeClient {
        let attempt = AttemptTime::new(attempt).unwrap();
        Client::connect(self.gateway().request_timeout(attempt))
    }

    /// The gateway for clients whose every attempt gets a response, however slow the machine is.
    pub fn gateway_with_long_attempts(&self) -> Gateway {
        self.gateway().request_timeout(AttemptTime::new(LONG_ATTEMPT).unwrap())
    }

    /// A client for a gateway that responds to every attempt.
    pub fn client_with_long_attempts(&self) -> NativeClient {
        Client::connect(self.gateway_with_long_attempts())
    }

    /// A client in virtual time, and the host that advances it.
    pub fn virtual_client(&self) -> (VirtualClient, FakeHost) {
        let host = FakeHost::new();
        (self.virtual_client_on(&host), host)
    }

    /// A client in virtual time that abandons an attempt after `attempt_ms` virtual milliseconds.
    pub fn virtual_client_with_timeout(&self, attempt_ms: u64) -> (VirtualClient, FakeHost) {
        let attempt = AttemptTime::new(Duration::from_millis(attempt_ms)).unwrap();
        let (gateway, host) = (self.gateway().request_timeout(attempt), FakeHost::new());
        (virtual_client(gateway, &host), host)
    }

    /// A client in the virtual time of this host.
    pub fn virtual_client_on(&self, host: &FakeHost) -> VirtualClient {
        virtual_client(self.gateway(), host)
    }

    /// Awaits `call` of a client of this environment while its time passes: see
    /// [`in_virtual_time`].
    pub async fn in_virtual_time<T>(&self, host: &FakeHost, call: impl Future<Output = T>) -> T {
        in_virtual_time(host, || self.proxy.is_idle(), call).await
    }

    /// Asserts that no owner holds the lock, and that nothing but a tombstone, the last token and
    /// Redisson's records of its releases is left. Redisson deletes such a record after it has
    /// reported the release.
    pub async fn assert_nothing_is_held(&self, name: &str) {
        let keyspace = self.redis.dump().await;
        let harmless = |key: &str, content: &Content| match content {
            Content::Text(text) if key.starts_with("el:") => {
                text == "x0" || text == "x1" || text.contains(':')
            }
            Content::Text(_) => {
                key.starts_with("redisson_lock_token:") || key.starts_with("redisson_unlock_latch:")
            }
            _ => false,
        };
        let left: Keyspace =
            keyspace.into_iter().filter(|(key, stored)| !harmless(key, &stored.value)).collect();
        assert!(left.is_empty(), "{name}: {left:?}");
    }
}

/// A client of this gateway in the virtual time of a host.
pub fn virtual_client(gateway: Gateway, host: &FakeHost) -> VirtualClient {
    let spawn = |driver: Driver<Reqwest, FakeHost>| drop(tokio::spawn(driver.run()));
    Client::with_driver(gateway, Reqwest::new(), host.clone(), spawn)
}

/// Polls until the condition holds; virtual time advances in steps of this size whenever no request
/// is pending. A silenced request is pending for ever.
pub async fn until_in_virtual_time(
    env: &TestEnv,
    host: &FakeHost,
    step: Duration,
    mut condition: impl FnMut() -> bool,
) {
    let mut quiet = 0;
    until(async || {
        quiet = if env.proxy.is_quiet() { quiet + 1 } else { 0 };
        if quiet == IDLE_TURNS {
            host.pass(step);
            quiet = 0;
        }
        condition()
    })
    .await;
}

/// Awaits `call`. Virtual time advances whenever no gateway has work left, as `is_idle` reports: so
/// pauses and attempts without a response end at once, and no response comes too late, however slow
/// the machine is.
pub async fn in_virtual_time<T>(
    host: &FakeHost,
    is_idle: impl Fn() -> bool,
    call: impl Future<Output = T>,
) -> T {
    let advancing = async {
        let mut idle = 0;
        loop {
            idle = if is_idle() { idle + 1 } else { 0 };
            if idle == IDLE_TURNS {
                host.pass(STEP);
                idle = 0;
            }
            tokio::task::yield_now().await;
        }
    };
    let call = async {
        tokio::select! {
            outcome = call => outcome,
            () = advancing => unreachable!("time never ends"),
        }
    };
    tokio::time::timeout(TIME_LIMIT, call).await.unwrap()
}

/// Polls until the condition holds.
pub async fn until(mut condition: impl AsyncFnMut() -> bool) {
    let asking = async {
        while !condition().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIME_LIMIT, asking).await.unwrap();
}
