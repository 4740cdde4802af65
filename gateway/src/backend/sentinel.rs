//! Connects to the master that Sentinels name.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use redis::sentinel::{SentinelClient, SentinelNodeConnectionInfo, SentinelServerType};
use redis::{
    Cmd, ConnectionAddr, ConnectionInfo, Pipeline, RedisResult, ServerError, ServerErrorKind,
    TlsMode, Value,
};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tracing::info;

use super::node::Node;
use super::single_flight::SingleFlight;
use super::{MessageStream, Topic, no_node};
use crate::policy::ConnectionKind;

/// The time limit for the replies of the Sentinels and of the master that they name.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(5);

/// The present master, and the Sentinels that name it.
///
/// The gateway queries the Sentinels every second, so that it soon leaves a master that was
/// replaced and does not know it yet; and before the next command after each failure of the present
/// master. A node that the Sentinels name must itself report that it is a master, or it is not
/// used.
pub(crate) struct Sentinel {
    refreshing: SingleFlight,
    sentinels: Mutex<SentinelClient>,
    master: RwLock<Option<Arc<Node>>>,
    connections: usize,
}

impl Sentinel {
    pub(super) fn new(
        sentinels: Vec<ConnectionInfo>,
        name: String,
        master: ConnectionInfo,
        connections: usize,
    ) -> RedisResult<Self> {
        let node = SentinelNodeConnectionInfo::default()
            .set_redis_connection_info(master.redis_settings().clone());
        let node = match master.addr() {
            ConnectionAddr::TcpTls { insecure: true, .. } => node.set_tls_mode(TlsMode::Insecure),
            ConnectionAddr::TcpTls { .. } => node.set_tls_mode(TlsMode::Secure),
            _ => node,
        };
        let sentinels =
            SentinelClient::build(sentinels, name, Some(node), SentinelServerType::Master)?;
        Ok(Self {
            refreshing: SingleFlight::default(),
            sentinels: Mutex::new(sentinels),
            master: RwLock::default(),
            connections,
        })
    }

    pub(super) async fn command(
        &self,
        command: &Cmd,
        connection: ConnectionKind,
    ) -> RedisResult<Value> {
        let master = self.master().await?;
        let reply = master.command(command, connection).await?;
        suspect_a_replica(&master, [&reply]);
        Ok(reply)
    }

    pub(super) async fn pipeline(
        &self,
        pipe: &Pipeline,
        connection: ConnectionKind,
    ) -> RedisResult<Vec<Value>> {
        let master = self.master().await?;
        let replies = master.pipeline(pipe, connection).await?;
        suspect_a_replica(&master, &replies);
        Ok(replies)
    }

    pub(super) async fn transaction(&self, pipe: &Pipeline) -> RedisResult<Value> {
        let master = self.master().await?;
        let reply = master.transaction(pipe).await?;
        suspect_a_replica(&master, [&reply]);
        Ok(reply)
    }

    pub(super) async fn subscribe(
        &self,
        topic: &Topic,
    ) -> RedisResult<Result<MessageStream, ServerError>> {
        self.master().await?.subscribe(topic).await
    }

    pub(super) async fn is_alive(&self) -> bool {
        match self.master().await {
            Ok(master) => master.is_alive().await,
            Err(_) => false,
        }
    }

    pub(super) async fn check(&self) -> bool {
        self.refresh().await;
        match self.current() {
            Some(master) => master.check().await,
            None => false,
        }
    }

    /// Returns the present master. A suspect one is not used before the Sentinels have named it
    /// again: it may have restarted as a master that no replica or Sentinel follows.
    async fn master(&self) -> RedisResult<Arc<Node>> {
        if let Some(master) = self.current().filter(|master| !master.is_suspect()) {
            return Ok(master);
        }
        self.refresh().await;
        self.current().filter(|master| !master.is_suspect()).ok_or_else(no_node)
    }

    fn current(&self) -> Option<Arc<Node>> {
        self.master.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn refresh(&self) {
        self.refreshing
            .run(async {
                let mut sentinels = self.sentinels.lock().await;
                if let Ok(Ok(found)) =
                    timeout(DISCOVERY_TIMEOUT, sentinels.async_get_client()).await
                {
                    self.set_master(found.get_connection_info().clone());
                }
            })
            .await;
    }

    fn set_master(&self, found: ConnectionInfo) {
        let mut master = self.master.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = master.as_ref().filter(|known| known.address() == found.addr()) {
            same.clear_suspicion();
            return;
        }
        let Ok(fresh) = Node::new(found, self.connections) else { return };
        if let Some(former) = master.replace(fresh) {
            info!("the Sentinels name another master");
            former.retire();
        }
    }
}

/// Marks the master as suspect if it refuses a write with `READONLY`: it has become a replica.
fn suspect_a_replica<'a>(master: &Node, replies: impl IntoIterator<Item = &'a Value>) {
    let is_replica = replies.into_iter().any(|reply| {
        matches!(reply, Value::ServerError(error) if error.kind() == Some(ServerErrorKind::ReadOnly))
    });
    if is_replica {
        master.mark_suspect();
    }
}
