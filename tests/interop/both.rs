//! A Redis that both sides use: edgelatch through a gateway, and Java. Several Redis servers for
//! objects on several of them.

use std::iter;

use edgelatch::Gateway;
use edgelatch::client::{AcquireOptions, Client, Lock};
use edgelatch::transport::Reqwest;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::kinds::{Exclusive, Held, Ours};
use super::peer::{Object, Service};
use super::port::Port;
use test_support::fake_host::FakeHost;
use test_support::redis::TOKEN;
use test_support::test_env::{NativeClient, TestEnv, in_virtual_time, until};

/// The object that a test is about; each test has a Redis of its own.
pub(crate) const NAME: &str = "job";

/// Both sides on one Redis. Fields are dropped in order: Java before the ports and the Redis that
/// it uses.
pub(crate) struct Both {
    /// A Java service.
    pub(crate) java: Service,
    ports: Vec<Port>,
    pub(crate) env: TestEnv,
    /// Further Redis servers, for a kind that needs them.
    others: Vec<TestEnv>,
}

impl Both {
    pub(crate) async fn start() -> Self {
        Self::with(json!({})).await
    }

    /// Starts one Redis, and a Java service with this configuration.
    pub(crate) async fn with(config: Value) -> Self {
        Self::on(1, config).await
    }

    /// Starts as many Redis servers as this kind uses.
    pub(crate) async fn of<K: Exclusive>() -> Self {
        Self::on(K::NODES, json!({})).await
    }

    /// Starts as many Redis servers as this kind uses, and a Java service with this configuration.
    pub(crate) async fn of_with<K: Exclusive>(config: Value) -> Self {
        Self::on(K::NODES, config).await
    }

    async fn on(nodes: usize, config: Value) -> Self {
        let env = TestEnv::new().await;
        let mut others = Vec::new();
        for _ in 1..nodes {
            others.push(TestEnv::new().await);
        }
        let mut ports = Vec::new();
        for env in iter::once(&env).chain(&others) {
            let socket = env.redis.gateway().redis_socket().unwrap();
            ports.push(Port::open(socket.to_owned()).await);
        }
        let java = service(&ports, &config).await;
        Self { java, ports, env, others }
    }

    /// Starts another Java service.
    pub(crate) async fn another(&self, config: Value) -> Service {
        service(&self.ports, &config).await
    }

    /// The test's object in a Java thread.
    pub(crate) fn java<K: Exclusive>(&self, thread: &str) -> Object {
        self.java.thread(thread).object(K::java(&self.java, NAME))
    }

    /// The object of this kind with the test's name in a Java thread.
    pub(crate) fn object(&self, thread: &str, kind: &str) -> Object {
        self.java.thread(thread).object(json!({ "kind": kind, "name": NAME }))
    }

    /// The test's object of a new edgelatch client.
    pub(crate) fn ours<K: Exclusive>(&self) -> Ours {
        K::ours(&self.clients(), NAME)
    }

    /// The test's object of an edgelatch owner, for re-entry.
    pub(crate) fn ours_as_one_owner<K: Exclusive>(&self) -> Ours {
        let mut clients = self.clients();
        clients[0] = clients[0].owner();
        K::ours(&clients, NAME)
    }

    /// The test's object of a client that uses the gateway without the proxy.
    pub(crate) fn ours_directly<K: Exclusive>(&self) -> Ours {
        K::ours(&self.envs().map(direct_client).collect::<Vec<_>>(), NAME)
    }

    /// The test's object of a client in virtual time, and the client's host.
    pub(crate) fn ours_led<K: Exclusive>(&self) -> (Lock<Reqwest, FakeHost>, FakeHost) {
        let host = FakeHost::new();
        let client = |env: &TestEnv| Client::new(env.gateway(), Reqwest::new(), host.clone());
        (K::ours(&self.envs().map(client).collect::<Vec<_>>(), NAME), host)
    }

    /// Awaits `call` of a client in virtual time while its time passes: see [`in_virtual_time`].
    pub(crate) async fn in_virtual_time<T>(
        &self,
        host: &FakeHost,
        call: impl Future<Output = T>,
    ) -> T {
        in_virtual_time(host, || self.envs().all(|env| env.proxy.is_idle()), call).await
    }

    /// A plain lock of the test's name on each Redis.
    pub(crate) fn ours_of_each_node(&self) -> Vec<Ours> {
        self.clients().iter().map(|client| client.lock(NAME).unwrap()).collect()
    }

    /// A client that uses the gateway without the proxy.
    pub(crate) fn direct_client(&self) -> NativeClient {
        direct_client(&self.env)
    }

    /// Starts an edgelatch waiter; returns once it has been refused.
    pub(crate) async fn wait_for(&self, ours: Ours) -> JoinHandle<Held> {
        let asked = self.env.proxy.calls().len();
        let options = AcquireOptions::new().wait_until_cancelled();
        let waiting = tokio::spawn(async move { ours.acquire_with(options).await.unwrap() });
        until(async || self.env.proxy.calls().len() > asked).await;
        waiting
    }

    /// Whether this Java thread holds the object. Redisson's own reply is true only if a red lock
    /// holds all its members, but it locks with a majority of them.
    pub(crate) async fn java_holds<K: Exclusive>(&self, thread: &str) -> bool {
        let object = K::java(&self.java, NAME);
        let voters = match object["locks"].as_array() {
            Some(members) if K::NODES > 1 => members.clone(),
            _ => vec![object],
        };
        let majority = voters.len() / 2 + 1;
        let mut held = 0;
        for voter in voters {
            let voter = self.java.thread(thread).object(voter);
            held += usize::from(voter.get::<bool>("isHeldByCurrentThread").await);
        }
        held >= majority
    }

    /// The remaining time of the hold in the first Redis, in milliseconds.
    pub(crate) async fn pttl(&self) -> i64 {
        self.env.redis.query(&["PTTL", NAME]).await
    }

    /// Sets the remaining time of the hold on each Redis that has it.
    pub(crate) async fn shorten(&self, ms: i64) {
        for env in self.envs() {
            env.redis.query::<u64>(&["PEXPIRE", NAME, &ms.to_string()]).await;
        }
    }

    /// The number of Redis servers on which more than this is left of the hold.
    pub(crate) async fn longer_than(&self, ms: i64) -> usize {
        let mut count = 0;
        for env in self.envs() {
            count += usize::from(env.redis.query::<i64>(&["PTTL", NAME]).await > ms);
        }
        count
    }

    /// Waits until the remaining time of the hold has risen `times` times in a Redis, or has ended
    /// in one, since a renewal came too late. Java's red lock may lack the hold on some.
    pub(crate) async fn renewed(&self, times: u32) {
        let mut renewals = vec![(0, i64::MAX); self.envs().count()];
        until(async || {
            for (env, (renewals, last)) in self.envs().zip(&mut renewals) {
                let now = env.redis.query(&["PTTL", NAME]).await;
                *renewals += u32::from(now > *last);
                *last = now;
            }
            renewals.iter().any(|(count, _)| *count >= times) || self.has_expired().await
        })
        .await;
    }

    /// Whether a Redis has expired any key.
    pub(crate) async fn has_expired(&self) -> bool {
        let mut has_expired = false;
        for env in self.envs() {
            let info: String = env.redis.query(&["INFO", "stats"]).await;
            has_expired |= !info.lines().any(|line| line == "expired_keys:0");
        }
        has_expired
    }

    fn clients(&self) -> Vec<NativeClient> {
        self.envs().map(TestEnv::client).collect()
    }

    fn envs(&self) -> impl Iterator<Item = &TestEnv> {
        iter::once(&self.env).chain(&self.others)
    }
}

fn direct_client(env: &TestEnv) -> NativeClient {
    let address = format!("http://{}", env.redis.address());
    Client::connect(Gateway::upstash(&address, TOKEN).unwrap())
}

/// Redisson's time for a reply, in milliseconds. With its default of 3 s a busy machine makes an
/// acquisition fail whose hold stays.
const PATIENT: u64 = 60_000;

/// Redisson clients with few connections and threads, one for each port, with the settings of
/// `config`. Values are encoded as plain text, which only values of groups show.
async fn service(ports: &[Port], config: &Value) -> Service {
    let configs = ports.iter().map(|port| {
        let mut whole = json!({
            "threads": 4,
            "nettyThreads": 4,
            "codec": "string",
            "singleServerConfig": {
                "address": port.address(),
                "timeout": PATIENT,
                "connectTimeout": PATIENT,
                "subscriptionTimeout": PATIENT,
                "connectionMinimumIdleSize": 1,
                "connectionPoolSize": 16,
                "subscriptionConnectionMinimumIdleSize": 1,
                "subscriptionConnectionPoolSize": 4,
            },
        });
        for (name, value) in config.as_object().unwrap() {
            whole[name] = value.clone();
        }
        whole
    });
    Service::open(configs).await
}
