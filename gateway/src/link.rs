//! The connections to Redis.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use redis::aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig, PubSub};
use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionInfo, IntoConnectionInfo, Pipeline,
    ProtocolVersion, RedisResult, Value,
};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::{info, warn};

use crate::policy::Lane;

/// How long a new connection may take, and a `PING` on a running one.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often each shared connection is asked whether it lives.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// Commands queued for one connection before their requests have to wait in line.
const QUEUE: usize = 1024;

/// The shared connections, and the means to open another.
///
/// Nothing here sends a command twice. The connection managers reconnect by themselves, but
/// whatever was under way on a lost connection fails.
pub(crate) struct Link {
    client: Client,
    shared: Vec<RwLock<ConnectionManager>>,
    next: AtomicUsize,
}

impl Link {
    /// Opens nothing yet: Redis may come up after the gateway.
    ///
    /// # Errors
    ///
    /// If the target is not one that the driver knows.
    pub(crate) fn new(target: impl IntoConnectionInfo, connections: usize) -> RedisResult<Self> {
        let client = Client::open(settings(target.into_connection_info()?))?;
        let shared = (0..connections.max(1))
            .map(|_| manager(&client).map(RwLock::new))
            .collect::<RedisResult<_>>()?;
        Ok(Self { client, shared, next: AtomicUsize::new(0) })
    }

    pub(crate) async fn command(&self, command: &Cmd, lane: Lane) -> RedisResult<Value> {
        match lane {
            Lane::Own => self.own().await?.req_packed_command(command).await,
            Lane::Shared => self.shared().send_packed_command(command).await,
        }
    }

    /// Sends the commands in one go and answers each in its place, errors included.
    pub(crate) async fn pipeline(&self, pipe: &Pipeline, lane: Lane) -> RedisResult<Vec<Value>> {
        // Redis answers MULTI and each queued command before EXEC answers for all of them.
        let (skipped, kept) =
            if pipe.is_transaction() { (pipe.len() + 1, 1) } else { (0, pipe.len()) };
        match lane {
            Lane::Own => self.own().await?.req_packed_commands(pipe, skipped, kept).await,
            Lane::Shared => self.shared().send_packed_commands(pipe, skipped, kept).await,
        }
    }

    /// A connection that can subscribe.
    pub(crate) async fn subscriber(&self) -> RedisResult<PubSub> {
        self.client.get_async_pubsub().await
    }

    pub(crate) async fn is_alive(&self) -> bool {
        answers(&mut self.shared()).await
    }

    /// Watches over the shared connections until the future is dropped.
    ///
    /// A manager notices a lost connection only when it is used, so a gateway that was idle
    /// while Redis restarted would fail the first request; and it never gives up one that is open
    /// but silent. The check finds both before a request does.
    pub(crate) async fn keep(self: Arc<Self>) {
        let mut ticks = interval(CHECK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut was_alive = true;
        loop {
            ticks.tick().await;
            let mut is_alive = true;
            for slot in &self.shared {
                is_alive &= self.check(slot).await;
            }
            match (was_alive, is_alive) {
                (true, false) => warn!("Redis does not answer"),
                (false, true) => info!("Redis answers again"),
                _ => {}
            }
            was_alive = is_alive;
        }
    }

    /// Replaces a connection that does not answer. Requests that are under way on it hold it
    /// until they end.
    async fn check(&self, slot: &RwLock<ConnectionManager>) -> bool {
        let mut current = slot.read().unwrap_or_else(PoisonError::into_inner).clone();
        if answers(&mut current).await {
            return true;
        }
        if let Ok(fresh) = manager(&self.client) {
            *slot.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        }
        false
    }

    fn shared(&self) -> ConnectionManager {
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.shared.len();
        #[expect(clippy::indexing_slicing, reason = "a remainder is less than its divisor")]
        let slot = &self.shared[turn];
        slot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn own(&self) -> RedisResult<impl ConnectionLike + use<>> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(None);
        self.client.get_multiplexed_async_connection_with_config(&config).await
    }
}

/// Any reply will do: a Redis that is busy or loading is there.
async fn answers(connection: &mut ConnectionManager) -> bool {
    let ping = redis::cmd("PING");
    matches!(timeout(PATIENCE, connection.send_packed_command(&ping)).await, Ok(Ok(_)))
}

fn manager(client: &Client) -> RedisResult<ConnectionManager> {
    let config = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(PATIENCE))
        // The request's own time is the bound; two clocks for one thing would disagree.
        .set_response_timeout(None)
        // These attempts are to connect, never to send again. Few and short: a request should
        // outlive a restart of Redis, and fail soon when Redis is away.
        .set_number_of_retries(2)
        .set_min_delay(Duration::from_millis(50))
        .set_pipeline_buffer_size(QUEUE);
    ConnectionManager::new_lazy_with_config(client.clone(), config)
}

/// What every connection is set to, whatever the URL says.
fn settings(info: ConnectionInfo) -> ConnectionInfo {
    // The dialect's results are those of RESP2: no maps, no doubles.
    let redis = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP2);
    let keep_alive = TcpKeepalive::new()
        .with_time(Duration::from_secs(15))
        .with_interval(Duration::from_secs(5));
    let tcp = TcpSettings::default().set_nodelay(true).set_keepalive(keep_alive);
    #[cfg(target_os = "linux")]
    let tcp = tcp.set_user_timeout(Duration::from_secs(30));
    info.set_redis_settings(redis).set_tcp_settings(tcp)
}
