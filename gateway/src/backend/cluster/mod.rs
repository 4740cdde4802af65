//! Redis Cluster: sends each command to the node that has its slot.
//!
//! The driver's own cluster client is not used, because it sends commands again. With retries
//! enabled it repeats a whole pipeline when one reply is a redirection, and any command after a
//! lost connection. With retries disabled it follows no redirection, and one redirection discards
//! all other replies of a pipeline. It also provides no connection for one request, which `WAIT`
//! needs.

mod connections;
mod layout;
mod pipeline;
mod redirection;
mod route;
mod slot_map;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use futures_util::future::join_all;
use redis::cluster_routing::Slot;
use redis::{Cmd, ConnectionInfo, Pipeline, RedisResult, ServerError, ServerErrorKind, Value};
use tokio::time::timeout;
use tracing::info;

use self::connections::RequestConnections;
use self::layout::{Layout, Ranges};
use self::redirection::Redirection;
use self::slot_map::SlotMap;
use super::node::{NODE_TIMEOUT, Node};
use super::single_flight::SingleFlight;
use super::{MessageStream, Topic, no_node};
use crate::policy::ConnectionKind;

/// The most redirections that a command follows, one after the other. Two are usual while slots
/// move.
const MAX_REDIRECTIONS: usize = 5;
/// The number of checks, one per second, after which the map of slots is refreshed without a cause.
const CHECKS_PER_REFRESH: u32 = 30;
/// The most nodes that one refresh queries.
const MAX_QUERIED_NODES: usize = 9;

/// The nodes of a cluster, and the map from slots to masters.
pub(crate) struct Cluster {
    refreshing: SingleFlight,
    map: RwLock<SlotMap>,
    /// The nodes to query while no node is known, and when no known node replies.
    seeds: Vec<Arc<Node>>,
    /// Set by a redirection and by `CLUSTERDOWN`: the next check refreshes the map.
    stale: AtomicBool,
}

impl Cluster {
    pub(super) fn new(seeds: Vec<ConnectionInfo>, connections: usize) -> RedisResult<Self> {
        let template = seeds.first().cloned().ok_or_else(no_node)?;
        let seeds = seeds.into_iter().map(|seed| Node::new(seed, 1)).collect::<RedisResult<_>>()?;
        Ok(Self {
            refreshing: SingleFlight::default(),
            map: RwLock::new(SlotMap::new(template, connections)),
            seeds,
            stale: AtomicBool::new(true),
        })
    }

    /// Returns the number of connected nodes, and at least that of the seeds.
    pub(super) fn nodes(&self) -> usize {
        self.read(SlotMap::nodes).len().max(self.seeds.len())
    }

    pub(super) async fn command(
        &self,
        command: &Cmd,
        connection: ConnectionKind,
    ) -> RedisResult<Value> {
        let slot = route::slot(command);
        let mut node = self.node(slot).await?;
        let reply = node.command(command, connection).await?;
        let mut connections = RequestConnections::Shared;
        self.follow_redirections(command, slot, &mut node, reply, &mut connections).await
    }

    /// Runs a transaction on one node. Its keys must be in one slot, else the reply is `CROSSSLOT`.
    pub(super) async fn transaction(&self, pipe: &Pipeline) -> RedisResult<Value> {
        let mut slots = pipe.cmd_iter().filter_map(route::slot);
        let slot = slots.next();
        if slots.any(|other| Some(other) != slot) {
            return error_reply(b"-CROSSSLOT Keys in request don't hash to the same slot\r\n");
        }
        let mut node = self.node(slot).await?;
        let mut reply = node.transaction(pipe).await?;
        for _ in 0..MAX_REDIRECTIONS {
            // If `EXEC` or one of the queued commands was redirected, none of them has run.
            let Some(redirection) = self.redirection(&reply, slot) else { break };
            if redirection.is_ask() {
                // `ASKING` applies to one command only.
                return error_reply(b"-TRYAGAIN The slot of this transaction is being moved\r\n");
            }
            let Some(next) = self.redirection_target(&redirection, &node).await else { break };
            reply = next.transaction(pipe).await?;
            node = next;
        }
        Ok(reply)
    }

    /// Subscribes on the node of the channel's slot. A sharded channel's messages stay on that
    /// node; other messages reach all nodes.
    pub(super) async fn subscribe(
        &self,
        topic: &Topic,
    ) -> RedisResult<Result<MessageStream, ServerError>> {
        let slot = match topic {
            Topic::Channel(channel) | Topic::Shard(channel) => Some(Slot::for_key(channel)),
            Topic::Pattern(_) => None,
        };
        let mut node = self.node(slot).await?;
        let mut messages = node.subscribe(topic).await?;
        for _ in 0..MAX_REDIRECTIONS {
            let Err(error) = &messages else { break };
            let reply = Value::ServerError(error.clone());
            let Some(redirection) = self.redirection(&reply, slot) else { break };
            let Some(next) = self.redirection_target(&redirection, &node).await else { break };
            messages = next.subscribe(topic).await?;
            node = next;
        }
        Ok(messages)
    }

    pub(super) async fn is_alive(&self) -> bool {
        let nodes = self.read(SlotMap::nodes);
        let replies = join_all(nodes.iter().map(|node| node.is_alive())).await;
        self.read(SlotMap::is_complete) && replies.into_iter().all(|is_alive| is_alive)
    }

    /// Checks the connections to every node, and refreshes the map of slots when a check fails,
    /// when the map is stale, and every [`CHECKS_PER_REFRESH`] checks.
    pub(super) async fn check(&self) -> bool {
        let nodes = self.read(SlotMap::nodes);
        let replies = join_all(nodes.iter().map(|node| node.check())).await;
        let is_alive = replies.into_iter().all(|is_alive| is_alive);
        let is_due = self.write(|map| map.count_check() >= CHECKS_PER_REFRESH);
        if !is_alive || is_due || self.stale.swap(false, Ordering::Relaxed) {
            self.refresh().await;
        }
        is_alive && self.read(SlotMap::is_complete)
    }

    /// Returns the master of a slot. Without a slot it is always the same node, so that a `SCAN`
    /// can continue.
    ///
    /// If the node is suspect, the map is refreshed first, since another node may have replaced it.
    async fn node(&self, slot: Option<Slot>) -> RedisResult<Arc<Node>> {
        if let Some(node) = self.read(|map| map.master(slot)).filter(|node| !node.is_suspect()) {
            return Ok(node);
        }
        self.refresh().await;
        self.read(|map| map.master(slot)).ok_or_else(no_node)
    }

    /// Follows redirections from `node` to the node that runs the command, and returns its reply. A
    /// command without a slot is not redirected.
    async fn follow_redirections(
        &self,
        command: &Cmd,
        slot: Option<Slot>,
        node: &mut Arc<Node>,
        mut reply: Value,
        connections: &mut RequestConnections,
    ) -> RedisResult<Value> {
        for _ in 0..MAX_REDIRECTIONS {
            let Some(redirection) = self.redirection(&reply, slot) else { break };
            let Some(next) = self.redirection_target(&redirection, node).await else { break };
            *node = next;
            reply = if redirection.is_ask() {
                connections.send_asking(node, command).await?
            } else {
                connections.send(node, command).await?
            };
        }
        Ok(reply)
    }

    /// Returns the redirection, if the reply is one of this slot.
    fn redirection(&self, reply: &Value, slot: Option<Slot>) -> Option<Redirection> {
        let (Value::ServerError(error), Some(slot)) = (reply, slot) else { return None };
        if error.kind() == Some(ServerErrorKind::ClusterDown) {
            self.stale.store(true, Ordering::Relaxed);
        }
        Redirection::read(error, slot)
    }

    /// Returns the node that the redirection names. `None` if the cluster does not name it too: a
    /// script can reply with any error text, and must not direct the gateway and its password to
    /// another host.
    async fn redirection_target(
        &self,
        redirection: &Redirection,
        from: &Node,
    ) -> Option<Arc<Node>> {
        self.stale.store(true, Ordering::Relaxed);
        let address = redirection.address(from)?;
        if !self.read(|map| map.contains(&address)) {
            self.refresh().await;
        }
        self.write(|map| {
            let node = map.node(&address)?;
            if !redirection.is_ask() {
                map.assign(redirection.slot(), &node);
            }
            Some(node)
        })
    }

    /// Refreshes the map of slots. Queries the nodes that are not suspect; if none replies,
    /// all nodes; then the seeds.
    async fn refresh(&self) {
        let work = async {
            let all = self.read(SlotMap::nodes);
            let trusted: Vec<_> = all.iter().filter(|node| !node.is_suspect()).cloned().collect();
            let current = self.read(SlotMap::ranges);
            for nodes in [&trusted, &all, &self.seeds] {
                if let Some(layout) = query_layout(nodes, &current).await {
                    if self.write(|map| map.apply(layout)) {
                        info!("the masters of the cluster have changed");
                    }
                    return;
                }
            }
        };
        self.refreshing.run(work).await;
    }

    fn read<T>(&self, read: impl FnOnce(&SlotMap) -> T) -> T {
        read(&self.map.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, change: impl FnOnce(&mut SlotMap) -> T) -> T {
        change(&mut self.map.write().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Queries up to [`MAX_QUERIED_NODES`] nodes for the layout, and returns the one that most of them
/// report: a node that is cut off from its cluster still reports an old one. `current` is the
/// layout in use.
async fn query_layout(nodes: &[Arc<Node>], current: &Ranges) -> Option<Layout> {
    let query = layout::query();
    let layouts = nodes.iter().take(MAX_QUERIED_NODES).map(|node| async {
        let reply =
            timeout(NODE_TIMEOUT, node.command(&query, ConnectionKind::Shared)).await.ok()?.ok()?;
        Layout::read(&reply, node.address())
    });
    Layout::prevailing(join_all(layouts).await.into_iter().flatten(), current)
}

/// Returns an error as Redis itself would reply it.
fn error_reply(line: &[u8]) -> RedisResult<Value> {
    redis::parse_redis_value(line)
}
