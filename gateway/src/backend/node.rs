//! The connections to one Redis.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig, MultiplexedConnection};
use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, Pipeline, ProtocolVersion,
    RedisResult, ServerError, Value,
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{MessageStream, Topic};
use crate::policy::ConnectionKind;

/// The time limit for opening a connection, and for the reply to a `PING` on an open one.
pub(super) const NODE_TIMEOUT: Duration = Duration::from_secs(2);
/// The number of commands queued for one connection, beyond which requests wait to enter the queue.
const MAX_QUEUED_COMMANDS: usize = 1024;

/// The shared connections to one Redis, and the client that opens others.
///
/// The connection managers reconnect by themselves; requests on a lost connection fail.
pub(crate) struct Node {
    client: Client,
    shared: Vec<RwLock<ConnectionManager>>,
    next_index: AtomicUsize,
    /// Set after a failure. A cluster or Sentinels then look up again which node is the right one
    /// before they send another command to this one.
    suspect: AtomicBool,
    retired: CancellationToken,
}

impl Node {
    /// Creates the node without opening a connection.
    ///
    /// # Errors
    ///
    /// If the driver cannot connect to this kind of server.
    pub(super) fn new(info: ConnectionInfo, connections: usize) -> RedisResult<Arc<Self>> {
        let client = Client::open(settings(info))?;
        let shared = (0..connections.max(1))
            .map(|_| connection_manager(&client).map(RwLock::new))
            .collect::<RedisResult<_>>()?;
        Ok(Arc::new(Self {
            client,
            shared,
            next_index: AtomicUsize::new(0),
            suspect: AtomicBool::new(false),
            retired: CancellationToken::new(),
        }))
    }

    pub(super) fn address(&self) -> &ConnectionAddr {
        self.client.get_connection_info().addr()
    }

    pub(super) async fn command(
        &self,
        command: &Cmd,
        connection: ConnectionKind,
    ) -> RedisResult<Value> {
        self.track_failure(async {
            match connection {
                ConnectionKind::Dedicated => {
                    self.connect().await?.send_packed_command(command).await
                }
                ConnectionKind::Shared => self.next_shared().send_packed_command(command).await,
            }
        })
        .await
    }

    /// Sends the commands in one write, and returns the replies in their order, errors included.
    pub(super) async fn pipeline(
        &self,
        pipe: &Pipeline,
        connection: ConnectionKind,
    ) -> RedisResult<Vec<Value>> {
        let number = pipe.len();
        self.track_failure(async {
            match connection {
                ConnectionKind::Dedicated => {
                    self.connect().await?.send_packed_commands(pipe, 0, number).await
                }
                ConnectionKind::Shared => {
                    self.next_shared().send_packed_commands(pipe, 0, number).await
                }
            }
        })
        .await
    }

    /// Returns the reply of `EXEC`, or the first of the errors for which Redis discarded the
    /// transaction.
    pub(super) async fn transaction(&self, pipe: &Pipeline) -> RedisResult<Value> {
        // Redis replies to `MULTI` and to each queued command before it replies to `EXEC`.
        let skipped = pipe.len() + 1;
        let sent = self.next_shared().send_packed_commands(pipe, skipped, 1).await;
        let error = match sent {
            Ok(mut replies) => return Ok(replies.pop().unwrap_or(Value::Nil)),
            Err(error) => error,
        };
        match error.clone().into_server_errors().as_deref() {
            Some([(at, first), ..]) if *at < pipe.len() => Ok(Value::ServerError(first.clone())),
            // Redis refused `MULTI` itself, so the commands after it were no transaction; or the
            // connection failed.
            _ => self.track_failure(async { Err(error) }).await,
        }
    }

    /// Opens a connection for one request. It does not reconnect.
    pub(super) async fn dedicated(&self) -> RedisResult<MultiplexedConnection> {
        self.track_failure(self.connect()).await
    }

    pub(super) async fn subscribe(
        &self,
        topic: &Topic,
    ) -> RedisResult<Result<MessageStream, ServerError>> {
        self.track_failure(MessageStream::open(&self.client, topic, self.retired.clone())).await
    }

    pub(super) async fn is_alive(&self) -> bool {
        replies_to_ping(&mut self.next_shared()).await
    }

    /// Sends a `PING` on each shared connection, and returns whether all replied.
    ///
    /// A connection manager notices a lost connection only when a request uses it, so without
    /// checks the first request after a restart of Redis would fail; and it never replaces a
    /// connection that is open but silent. The check finds both before a request does.
    pub(super) async fn check(&self) -> bool {
        let mut is_alive = true;
        for slot in &self.shared {
            is_alive &= self.check_one(slot).await;
        }
        if !is_alive {
            self.mark_suspect();
        }
        is_alive
    }

    pub(super) fn is_suspect(&self) -> bool {
        self.suspect.load(Ordering::Relaxed)
    }

    pub(super) fn mark_suspect(&self) {
        self.suspect.store(true, Ordering::Relaxed);
    }

    pub(super) fn clear_suspicion(&self) {
        self.suspect.store(false, Ordering::Relaxed);
    }

    /// Ends the streams of this node. Requests in flight end by themselves.
    pub(super) fn retire(&self) {
        self.retired.cancel();
    }

    /// Runs `work`, and marks the node as suspect if it fails.
    async fn track_failure<T>(&self, work: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
        let result = work.await;
        if result.is_err() {
            self.mark_suspect();
        }
        result
    }

    /// Replaces a connection that does not reply. Requests in flight keep the old one open until
    /// they end.
    async fn check_one(&self, slot: &RwLock<ConnectionManager>) -> bool {
        let mut current = slot.read().unwrap_or_else(PoisonError::into_inner).clone();
        if replies_to_ping(&mut current).await {
            return true;
        }
        if let Ok(fresh) = connection_manager(&self.client) {
            *slot.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        }
        false
    }

    fn next_shared(&self) -> ConnectionManager {
        let index = self.next_index.fetch_add(1, Ordering::Relaxed) % self.shared.len();
        #[expect(clippy::indexing_slicing, reason = "a remainder is less than its divisor")]
        let slot = &self.shared[index];
        slot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn connect(&self) -> RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(NODE_TIMEOUT))
            .set_response_timeout(None);
        self.client.get_multiplexed_async_connection_with_config(&config).await
    }
}

/// Whether Redis replies to a `PING`. Any reply counts, since a Redis that is busy or loading
/// replies with an error.
async fn replies_to_ping(connection: &mut ConnectionManager) -> bool {
    let ping = redis::cmd("PING");
    matches!(timeout(NODE_TIMEOUT, connection.send_packed_command(&ping)).await, Ok(Ok(_)))
}

fn connection_manager(client: &Client) -> RedisResult<ConnectionManager> {
    let config = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(NODE_TIMEOUT))
        // The request has a deadline of its own; a second time limit here could end it earlier.
        .set_response_timeout(None)
        // These retries only connect; they never send a command again. They are few and short, so
        // that a request survives a restart of Redis, and fails soon when Redis is away.
        .set_number_of_retries(2)
        .set_min_delay(Duration::from_millis(50))
        .set_pipeline_buffer_size(MAX_QUEUED_COMMANDS);
    ConnectionManager::new_lazy_with_config(client.clone(), config)
}

/// Returns `info` with the settings of every connection, which override those of the URL.
fn settings(info: ConnectionInfo) -> ConnectionInfo {
    // Upstash's protocol has the results of RESP2: no maps, no doubles.
    let redis = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP2);
    let keep_alive = TcpKeepalive::new()
        .with_time(Duration::from_secs(15))
        .with_interval(Duration::from_secs(5));
    let tcp = TcpSettings::default().set_nodelay(true).set_keepalive(keep_alive);
    #[cfg(target_os = "linux")]
    let tcp = tcp.set_user_timeout(Duration::from_secs(30));
    info.set_redis_settings(redis).set_tcp_settings(tcp)
}
