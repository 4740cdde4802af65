//! A gateway in front of a Redis, with the default or the documented user, or in front of a Redis
//! Cluster.

use std::convert::Infallible;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};

use edgelatch_gateway::Gateway;
use edgelatch_proto::protocol::script::scripts;
use redis::aio::MultiplexedConnection;
use redis::{PushInfo, PushKind, from_redis_value};
use test_support::redis::{Keyspace, look_at, patient};
use test_support::servers::Cluster;

use super::messages::Message;
use crate::acl::create_documented_user;
use crate::scopes::with_scopes;
use crate::support::{Redis, TOKEN, TestClient, gateway};

/// Makes each time in Redis earlier.
const LATER: &str = include_str!("later.lua");

/// The gateway under attack, and the Redis servers behind it.
pub(crate) struct Env {
    address: String,
    /// Direct connections to each server with keys.
    servers: Vec<MultiplexedConnection>,
    /// Whether names may have a hash tag. The documented user's patterns allow only names without
    /// one.
    pub(crate) has_tags: bool,
    /// Whether other clients hold every object, so that no name is free at first.
    pub(crate) is_contended: bool,
    /// A subscription to all channels of a single Redis, and the messages that have arrived on it.
    /// A cluster has none: its nodes pass messages on later than their replies.
    subscriber: Option<(MultiplexedConnection, Arc<Mutex<Vec<Message>>>)>,
    _gateway: Gateway,
    _redis: Option<Redis>,
    _cluster: Option<Arc<Cluster>>,
}

impl Env {
    pub(crate) async fn redis() -> Self {
        let redis = Redis::start().await;
        let servers = vec![redis.connect().await];
        Self::new(redis.url(), servers, true, Some(redis), None).await
    }

    /// Starts a Redis in which other clients will hold every object.
    pub(crate) async fn contended() -> Self {
        Self { is_contended: true, ..Self::redis().await }
    }

    /// Starts a Redis that the gateway uses as the user of SECURITY.md.
    pub(crate) async fn user() -> Self {
        let redis = Redis::start().await;
        let mut connection = redis.connect().await;
        let url = create_documented_user(&redis, &mut connection).await;
        Self::new(url, vec![connection], false, Some(redis), None).await
    }

    pub(crate) async fn cluster() -> Self {
        let cluster = Cluster::shared();
        let mut servers = Vec::new();
        for key in cluster.keys("node:") {
            let server = &cluster.servers()[cluster.places(&key).0];
            let client = redis::Client::open(server.info()).unwrap();
            let connection =
                client.get_multiplexed_async_connection_with_config(&patient()).await.unwrap();
            servers.push(connection);
        }
        Self::new(cluster.url(), servers, true, None, Some(cluster)).await
    }

    async fn new(
        url: String,
        servers: Vec<MultiplexedConnection>,
        has_tags: bool,
        redis: Option<Redis>,
        cluster: Option<Arc<Cluster>>,
    ) -> Self {
        let gateway = gateway(url, |config| {
            with_scopes(config);
            // `client_limits.rs` tests the limits of rates.
            (config.client_requests, config.client_commands) = (NonZeroU32::MAX, NonZeroU32::MAX);
        })
        .await;
        let address = format!("http://{}", gateway.address());
        let subscriber = match &redis {
            Some(redis) => Some(listen(redis).await),
            None => None,
        };
        let mut env = Self {
            is_contended: false,
            subscriber,
            address,
            servers,
            has_tags,
            _gateway: gateway,
            _redis: redis,
            _cluster: cluster,
        };
        for script in scripts::ALL {
            env.everywhere(&["SCRIPT", "LOAD", &script.source(false)]).await;
        }
        let client = env.client(TOKEN);
        client.connected().await;
        env
    }

    /// Returns a client of the gateway with this token.
    pub(crate) fn client(&self, token: &str) -> TestClient {
        TestClient::new(&self.address, token)
    }

    /// Runs a command on every server.
    async fn everywhere(&mut self, words: &[&str]) {
        for server in &mut self.servers {
            redis::cmd(words[0]).arg(&words[1..]).exec_async(server).await.unwrap();
        }
    }

    /// The URL of the gateway.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Lets this many milliseconds pass for everything that is stored: `later.lua` makes each time
    /// earlier.
    pub(crate) async fn later(&mut self, ms: u64) {
        self.everywhere(&["EVAL", LATER, "0", &ms.to_string()]).await;
    }

    pub(crate) async fn flush(&mut self) {
        self.everywhere(&["FLUSHALL"]).await;
    }

    /// Whether the messages of this Redis are received.
    pub(crate) fn has_messages(&self) -> bool {
        self.subscriber.is_some()
    }

    /// Takes the messages that were published since the last call.
    pub(crate) async fn messages(&mut self) -> Vec<Message> {
        let Some((connection, received)) = &mut self.subscriber else { return Vec::new() };
        // Redis sends the messages of earlier commands before this reply, on the same connection.
        redis::cmd("PING").exec_async(connection).await.unwrap();
        std::mem::take(&mut received.lock().unwrap())
    }

    /// Returns all keys and values, and Redis' clock.
    pub(crate) async fn look(&mut self) -> Snapshot {
        let (mut keys, mut now) = (Keyspace::new(), 0);
        for server in &mut self.servers {
            let (part, at) = look_at(server).await;
            keys.extend(part);
            now = now.max(at);
        }
        Snapshot { keys, now }
    }
}

/// Subscribes to all channels.
async fn listen(redis: &Redis) -> (MultiplexedConnection, Arc<Mutex<Vec<Message>>>) {
    let received = Arc::new(Mutex::new(Vec::new()));
    let inbox = Arc::clone(&received);
    let config = patient().set_push_sender(move |push: PushInfo| {
        if push.kind == PushKind::PMessage {
            let mut words = push.data.into_iter().skip(1).map(from_redis_value::<String>);
            let mut word = || words.next().unwrap().unwrap();
            let message = Message { channel: word(), text: word() };
            inbox.lock().unwrap().push(message);
        }
        Ok::<(), Infallible>(())
    });
    let url = redis.url().replacen("unix:", "unix://", 1) + "?protocol=resp3";
    let client = redis::Client::open(url).unwrap();
    let mut connection =
        client.get_multiplexed_async_connection_with_config(&config).await.unwrap();
    connection.psubscribe("*").await.unwrap();
    (connection, received)
}

/// All keys and values at one time.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) keys: Keyspace,
    /// Redis' clock in milliseconds, read right after the keys.
    pub(crate) now: u64,
}
