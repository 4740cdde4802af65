//! Redis Cluster: sends each command to the node that has its slot.
//!
//! The driver's own cluster client is not used, because it sends commands again. With retries
//! enabled it repeats a whole pipeline when one reply is a redirection, and any command after a
//! lost connection. With retries disabled it follows no redirection, and one redirection discards
//! all other replies of a pipeline. It also provides no connection for one request, which `WAIT`
//! needs.

mod batch;
mod layout;
mod map;
mod redirection;
mod route;
mod way;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use futures_util::future::join_all;
use redis::cluster_routing::Slot;
use redis::{Cmd, ConnectionInfo, Pipeline, RedisResult, ServerError, ServerErrorKind, Value};
use tokio::time::timeout;
use tracing::info;

use self::layout::{Layout, Ranges};
use self::map::Map;
use self::redirection::Redirection;
use self::way::Way;
use super::gate::Gate;
use super::node::{Node, PATIENCE};
use super::{Messages, Topic, nobody};
use crate::policy::Lane;

/// The most redirections that a command follows, one after the other. Two are usual while slots
/// move.
const REDIRECTIONS: usize = 5;
/// The number of checks, one per second, after which the map of slots is refreshed without a cause.
const CHECKS: u32 = 30;
/// The most nodes that one refresh asks.
const WITNESSES: usize = 9;

/// The nodes of a cluster, and the map from slots to masters.
pub(crate) struct Cluster {
    gate: Gate,
    map: RwLock<Map>,
    /// The nodes to ask while no node is known, and when no known node replies.
    seeds: Vec<Arc<Node>>,
    /// Set by a redirection and by `CLUSTERDOWN`: the next check refreshes the map.
    stale: AtomicBool,
}

impl Cluster {
    pub(super) fn new(seeds: Vec<ConnectionInfo>, connections: usize) -> RedisResult<Self> {
        let template = seeds.first().cloned().ok_or_else(nobody)?;
        let seeds = seeds.into_iter().map(|seed| Node::new(seed, 1)).collect::<RedisResult<_>>()?;
        Ok(Self {
            gate: Gate::default(),
            map: RwLock::new(Map::new(template, connections)),
            seeds,
            stale: AtomicBool::new(true),
        })
    }

    /// Returns the number of connected nodes, and at least that of the seeds.
    pub(super) fn nodes(&self) -> usize {
        self.read(Map::nodes).len().max(self.seeds.len())
    }

    pub(super) async fn command(&self, command: &Cmd, lane: Lane) -> RedisResult<Value> {
        let slot = route::slot(command);
        let mut node = self.node(slot).await?;
        let reply = node.command(command, lane).await?;
        match slot {
            Some(slot) => self.settle(command, slot, &mut node, reply, &mut Way::Shared).await,
            None => Ok(reply),
        }
    }

    /// Runs a transaction on one node. Its keys must be in one slot, else the reply is `CROSSSLOT`.
    pub(super) async fn transaction(&self, pipe: &Pipeline) -> RedisResult<Value> {
        let mut slots = pipe.cmd_iter().filter_map(route::slot);
        let slot = slots.next();
        if slots.any(|other| Some(other) != slot) {
            return refusal(b"-CROSSSLOT Keys in request don't hash to the same slot\r\n");
        }
        let mut node = self.node(slot).await?;
        let mut reply = node.transaction(pipe).await?;
        let Some(slot) = slot else { return Ok(reply) };
        for _ in 0..REDIRECTIONS {
            // If `EXEC` or one of the queued commands was redirected, none of them has run.
            let Some(redirection) = self.redirection(&reply, slot) else { break };
            if redirection.is_ask() {
                // `ASKING` applies to one command only.
                return refusal(b"-TRYAGAIN The slot of this transaction is being moved\r\n");
            }
            let Some(next) = self.follow(&redirection, &node).await else { break };
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
    ) -> RedisResult<Result<Messages, ServerError>> {
        let slot = match topic {
            Topic::Channel(channel) | Topic::Shard(channel) => Some(Slot::for_key(channel)),
            Topic::Pattern(_) => None,
        };
        let mut node = self.node(slot).await?;
        let mut messages = node.subscribe(topic).await?;
        for _ in 0..REDIRECTIONS {
            let (Err(error), Some(slot)) = (&messages, slot) else { break };
            let reply = Value::ServerError(error.clone());
            let Some(redirection) = self.redirection(&reply, slot) else { break };
            let Some(next) = self.follow(&redirection, &node).await else { break };
            messages = next.subscribe(topic).await?;
            node = next;
        }
        Ok(messages)
    }

    pub(super) async fn is_alive(&self) -> bool {
        let nodes = self.read(Map::nodes);
        let answers = join_all(nodes.iter().map(|node| node.is_alive())).await;
        self.read(Map::is_whole) && answers.into_iter().all(|is_alive| is_alive)
    }

    /// Checks the connections to every node, and refreshes the map of slots when a check fails,
    /// when the map is stale, and every [`CHECKS`] checks.
    pub(super) async fn check(&self) -> bool {
        let nodes = self.read(Map::nodes);
        let answers = join_all(nodes.iter().map(|node| node.check())).await;
        let is_alive = answers.into_iter().all(|is_alive| is_alive);
        let is_due = self.write(|map| map.count_check() >= CHECKS);
        if !is_alive || is_due || self.stale.swap(false, Ordering::Relaxed) {
            self.refresh().await;
        }
        is_alive && self.read(Map::is_whole)
    }

    /// Returns the master of a slot. Without a slot it is always the same node, so that a `SCAN`
    /// can continue.
    ///
    /// If the node is doubted, the map is refreshed first, since another node may have replaced it.
    async fn node(&self, slot: Option<Slot>) -> RedisResult<Arc<Node>> {
        if let Some(node) = self.read(|map| map.master(slot)).filter(|node| !node.is_doubted()) {
            return Ok(node);
        }
        self.refresh().await;
        self.read(|map| map.master(slot)).ok_or_else(nobody)
    }

    /// Follows redirections from `node` to the node that runs the command, and returns its reply.
    async fn settle(
        &self,
        command: &Cmd,
        slot: Slot,
        node: &mut Arc<Node>,
        mut reply: Value,
        way: &mut Way,
    ) -> RedisResult<Value> {
        for _ in 0..REDIRECTIONS {
            let Some(redirection) = self.redirection(&reply, slot) else { break };
            let Some(next) = self.follow(&redirection, node).await else { break };
            *node = next;
            reply = if redirection.is_ask() {
                way.ask(node, command).await?
            } else {
                way.send(node, command).await?
            };
        }
        Ok(reply)
    }

    /// Returns the redirection, if the reply is one of this slot.
    fn redirection(&self, reply: &Value, slot: Slot) -> Option<Redirection> {
        let Value::ServerError(error) = reply else { return None };
        if error.kind() == Some(ServerErrorKind::ClusterDown) {
            self.stale.store(true, Ordering::Relaxed);
        }
        Redirection::read(error, slot)
    }

    /// Returns the node that the redirection names. `None` if the cluster does not name it too: a
    /// script can reply with any error text, and must not direct the gateway and its password to
    /// another host.
    async fn follow(&self, redirection: &Redirection, from: &Node) -> Option<Arc<Node>> {
        self.stale.store(true, Ordering::Relaxed);
        let address = redirection.address(from)?;
        if !self.read(|map| map.knows(&address)) {
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

    /// Refreshes the map of slots. Asks the nodes that are not doubted; if none replies, all nodes;
    /// then the seeds.
    async fn refresh(&self) {
        let work = async {
            let all = self.read(Map::nodes);
            let trusted: Vec<_> = all.iter().filter(|node| !node.is_doubted()).cloned().collect();
            let present = self.read(Map::ranges);
            for nodes in [&trusted, &all, &self.seeds] {
                if let Some(layout) = ask(nodes, &present).await {
                    if self.write(|map| map.settle(layout)) {
                        info!("the masters of the cluster have changed");
                    }
                    return;
                }
            }
        };
        self.gate.once(work).await;
    }

    fn read<T>(&self, look: impl FnOnce(&Map) -> T) -> T {
        look(&self.map.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, change: impl FnOnce(&mut Map) -> T) -> T {
        change(&mut self.map.write().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Asks up to [`WITNESSES`] nodes for the map, and returns the one that most of them report: a node
/// that is cut off from its cluster still reports an old one. `present` is the map in use.
async fn ask(nodes: &[Arc<Node>], present: &Ranges) -> Option<Layout> {
    let question = layout::question();
    let answers = nodes.iter().take(WITNESSES).map(|node| async {
        let reply = timeout(PATIENCE, node.command(&question, Lane::Shared)).await.ok()?.ok()?;
        Layout::read(&reply, node.address())
    });
    Layout::prevailing(join_all(answers).await.into_iter().flatten(), present)
}

/// Returns an error as Redis itself would reply it.
fn refusal(line: &[u8]) -> RedisResult<Value> {
    redis::parse_redis_value(line)
}
