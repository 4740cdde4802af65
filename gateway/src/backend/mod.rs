//! Connects the gateway to Redis: one server, the master that Sentinels name, or a cluster.
//!
//! This module never sends a command twice, except to follow a redirection of a cluster, with which
//! Redis says that it did not run the command. A request whose connection breaks fails.

mod cluster;
mod node;
mod pubsub;
mod sentinel;
mod single_flight;
mod topology;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, Pipeline, RedisError, RedisResult, ServerError, Value};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::{info, warn};

use self::cluster::Cluster;
use self::node::{NODE_TIMEOUT, Node};
pub(crate) use self::pubsub::{MessageStream, Topic};
use self::sentinel::Sentinel;
pub(crate) use self::topology::Topology;
use crate::dispatch::Dispatcher;
use crate::observe::UpGauge;
use crate::policy::ConnectionKind;

/// The largest portion of a pipeline, in commands. Redis runs the commands of other requests
/// between two portions: a command on an object at its limits takes Redis about a millisecond. A
/// command with many words or names counts as several, see [`weight`], and so does one of the
/// scripts that take Redis longer.
const MAX_PORTION_WEIGHT: usize = 16;
/// The number of words of a command (names, ids, fields) that take Redis about as long as one more
/// command.
const WORDS_PER_COMMAND: usize = 64;
/// The interval between two checks of the connections.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// One command of a pipeline, and the kind of connection that it needs.
pub(crate) struct PipelineCommand {
    pub(crate) command: Cmd,
    pub(crate) connection: ConnectionKind,
    /// The number of commands that it counts as for the rates of its client, see [`weight`].
    pub(crate) weight: usize,
    /// The number of commands that it counts as in a portion.
    pub(crate) portion_weight: usize,
}

/// Returns the number of commands that one command with `words` words and `names` names counts as:
/// one, one more for every [`WORDS_PER_COMMAND`] words, and at least one per name, since a script
/// acquires locks one by one.
pub(crate) fn weight(words: usize, names: usize) -> usize {
    (1 + words / WORDS_PER_COMMAND).max(names)
}

/// The Redis behind the gateway.
///
/// The future of a command is a part of the future of its request. The futures of a cluster are
/// large, so they are boxed; those of the other variants are not.
pub(crate) enum Backend {
    Cluster(Box<Cluster>),
    Standalone(Arc<Node>),
    Sentinel(Arc<Sentinel>),
}

/// Omits the servers: their addresses may have a login.
impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backend").finish_non_exhaustive()
    }
}

impl Backend {
    /// Creates the backend without opening a connection: Redis may start after the gateway.
    ///
    /// # Errors
    ///
    /// If the driver cannot connect to this kind of server.
    pub(crate) fn new(topology: Topology, connections: usize) -> RedisResult<Self> {
        Ok(match topology {
            Topology::Cluster(seeds) => Self::Cluster(Box::new(Cluster::new(seeds, connections)?)),
            Topology::Standalone(info) => Self::Standalone(Node::new(info, connections)?),
            Topology::Sentinel { sentinels, name, master } => {
                Self::Sentinel(Arc::new(Sentinel::new(sentinels, name, master, connections)?))
            }
        })
    }

    /// Returns the number of nodes that commands are sent to.
    pub(crate) fn nodes(&self) -> usize {
        match self {
            Self::Cluster(cluster) => cluster.nodes(),
            Self::Standalone(_) | Self::Sentinel(_) => 1,
        }
    }

    pub(crate) async fn command(
        &self,
        command: &Cmd,
        connection: ConnectionKind,
    ) -> RedisResult<Value> {
        match self {
            Self::Cluster(cluster) => Box::pin(cluster.command(command, connection)).await,
            Self::Standalone(node) => node.command(command, connection).await,
            Self::Sentinel(sentinel) => sentinel.command(command, connection).await,
        }
    }

    /// Returns the reply of each command in the order of `commands`, errors of Redis included. If
    /// one node of a cluster fails, the commands for the other nodes still have their replies.
    ///
    /// Sends a long pipeline to each node in portions, each with the send permit of its client, so
    /// that Redis runs the commands of other requests between them.
    pub(crate) async fn pipeline(
        &self,
        commands: Vec<PipelineCommand>,
        dispatcher: &Dispatcher,
    ) -> Vec<RedisResult<Value>> {
        match self {
            Self::Cluster(cluster) => Box::pin(cluster.pipeline(&commands, dispatcher)).await,
            Self::Standalone(node) => {
                let send = |pipe, connection| {
                    let node = Arc::clone(node);
                    async move { node.pipeline(&pipe, connection).await }
                };
                send_in_portions(commands, dispatcher, send).await
            }
            Self::Sentinel(sentinel) => {
                let send = |pipe, connection| {
                    let sentinel = Arc::clone(sentinel);
                    async move { sentinel.pipeline(&pipe, connection).await }
                };
                send_in_portions(commands, dispatcher, send).await
            }
        }
    }

    /// Runs all commands or none, as one write on one connection. Returns the reply of `EXEC`, or
    /// the error for which Redis discarded the transaction.
    pub(crate) async fn transaction(&self, commands: Vec<Cmd>) -> RedisResult<Value> {
        let mut pipe = Pipeline::with_capacity(commands.len());
        pipe.atomic();
        for command in commands {
            pipe.add_command(command);
        }
        match self {
            Self::Cluster(cluster) => Box::pin(cluster.transaction(&pipe)).await,
            Self::Standalone(node) => node.transaction(&pipe).await,
            Self::Sentinel(sentinel) => sentinel.transaction(&pipe).await,
        }
    }

    /// Subscribes, and returns the messages that are published from then on, or the error with
    /// which Redis refused the subscription.
    pub(crate) async fn subscribe(
        &self,
        topic: &Topic,
    ) -> RedisResult<Result<MessageStream, ServerError>> {
        match self {
            Self::Cluster(cluster) => cluster.subscribe(topic).await,
            Self::Standalone(node) => node.subscribe(topic).await,
            Self::Sentinel(sentinel) => sentinel.subscribe(topic).await,
        }
    }

    /// Whether Redis replies; on a cluster, whether every slot has a master and all masters reply.
    pub(crate) async fn is_alive(&self) -> bool {
        match self {
            Self::Cluster(cluster) => cluster.is_alive().await,
            Self::Standalone(node) => node.is_alive().await,
            Self::Sentinel(sentinel) => sentinel.is_alive().await,
        }
    }

    /// Checks the shared connections every [`CHECK_INTERVAL`] until the future is dropped, and logs
    /// when Redis stops replying and when it replies again. `servers` names Redis in the log.
    pub(crate) async fn monitor(self: Arc<Self>, servers: String, up: UpGauge) {
        let mut ticks = interval(CHECK_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut was_alive, mut was_eviction_checked) = (true, false);
        loop {
            ticks.tick().await;
            let is_alive = match &*self {
                Self::Cluster(cluster) => cluster.check().await,
                Self::Standalone(node) => node.check().await,
                Self::Sentinel(sentinel) => sentinel.check().await,
            };
            up.set(is_alive);
            match (was_alive, is_alive) {
                (true, false) => warn!("Redis does not reply at {servers}"),
                (false, true) => info!("Redis replies again at {servers}"),
                _ => {}
            }
            was_alive = is_alive;
            if is_alive && !was_eviction_checked {
                was_eviction_checked = true;
                self.warn_about_eviction().await;
            }
        }
    }

    /// Logs a warning if Redis may evict keys, and with them locks. Queries one node of a cluster.
    /// Logs nothing if Redis refuses `INFO` or does not reply within [`NODE_TIMEOUT`].
    async fn warn_about_eviction(&self) {
        let mut memory = redis::cmd("INFO");
        memory.arg("memory");
        // The timeout is needed because the caller replaces silent connections, and must not wait
        // here for one of them.
        let reply = timeout(NODE_TIMEOUT, self.command(&memory, ConnectionKind::Shared)).await;
        let Ok(Ok(info)) = reply else { return };
        if let Ok(info) = redis::from_redis_value::<String>(info)
            && can_evict(&info)
        {
            warn!(
                "Redis evicts keys when its memory is full, locks too: set maxmemory-policy to noeviction"
            );
        }
    }
}

/// Whether `info`, the reply to `INFO memory`, has a memory limit and a policy that evicts keys.
fn can_evict(info: &str) -> bool {
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name));
    field("maxmemory:").is_some_and(|limit| limit != "0")
        && field("maxmemory_policy:").is_some_and(|policy| policy != "noeviction")
}

/// Sends one portion after the other. Sends no further portion after one that has failed, or when
/// the request's deadline has passed or its token has expired.
async fn send_in_portions<F>(
    mut commands: Vec<PipelineCommand>,
    dispatcher: &Dispatcher,
    send: impl Fn(Pipeline, ConnectionKind) -> F,
) -> Vec<RedisResult<Value>>
where
    F: Future<Output = RedisResult<Vec<Value>>> + Send + 'static,
{
    let number = commands.len();
    let mut replies = Vec::with_capacity(number);
    for size in portion_sizes(&commands) {
        let (pipe, connection) = to_pipeline(commands.drain(..size));
        let rest = match dispatcher.send(connection, send(pipe, connection)).await {
            Ok(Ok(sent)) => {
                replies.extend(sent.into_iter().map(Ok));
                continue;
            }
            Ok(Err(error)) => Err(error),
            Err(reason) => reason.reply(),
        };
        replies.resize(number, rest);
        break;
    }
    replies
}

/// Returns the number of commands in each portion. No portion counts as more than
/// [`MAX_PORTION_WEIGHT`] commands, unless a single command does, or a `WAIT` follows: it stays in
/// the portion of the command that it waits for, since both need the same connection.
fn portion_sizes<'a>(commands: impl IntoIterator<Item = &'a PipelineCommand>) -> Vec<usize> {
    let mut sizes: Vec<usize> = Vec::new();
    let mut weight = 0;
    for command in commands {
        match sizes.last_mut() {
            Some(size)
                if weight + command.portion_weight <= MAX_PORTION_WEIGHT
                    || command.connection == ConnectionKind::Dedicated =>
            {
                *size += 1;
                weight += command.portion_weight;
            }
            _ => {
                sizes.push(1);
                weight = command.portion_weight;
            }
        }
    }
    sizes
}

/// Joins the commands into one pipeline. It gets a dedicated connection if one of the commands
/// makes its connection wait.
fn to_pipeline(
    commands: impl ExactSizeIterator<Item = PipelineCommand>,
) -> (Pipeline, ConnectionKind) {
    let mut connection = ConnectionKind::Shared;
    let mut pipe = Pipeline::with_capacity(commands.len());
    for command in commands {
        if command.connection == ConnectionKind::Dedicated {
            connection = ConnectionKind::Dedicated;
        }
        pipe.add_command(command.command);
    }
    (pipe, connection)
}

/// Returns the error of a command whose reply from Redis has timed out.
pub(crate) fn timed_out() -> RedisError {
    io::Error::from(io::ErrorKind::TimedOut).into()
}

/// Returns the error of a command when no node to send it to is known.
fn no_node() -> RedisError {
    io::Error::from(io::ErrorKind::NotConnected).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(groups: &[(ConnectionKind, usize, usize)]) -> Vec<usize> {
        let command = |connection, weight| PipelineCommand {
            command: redis::cmd("PING"),
            connection,
            weight: 1,
            portion_weight: weight,
        };
        let group = |(connection, number, weight): &(ConnectionKind, usize, usize)| {
            (0..*number).map(|_| command(*connection, *weight)).collect::<Vec<_>>()
        };
        portion_sizes(&groups.iter().flat_map(group).collect::<Vec<_>>())
    }

    #[test]
    fn a_long_pipeline_is_sent_in_portions() {
        assert_eq!(sizes(&[]), [0; 0]);
        assert_eq!(sizes(&[(ConnectionKind::Shared, 16, 1)]), [16]);
        assert_eq!(sizes(&[(ConnectionKind::Shared, 38, 1)]), [16, 16, 6]);
    }

    #[test]
    fn a_portion_has_fewer_commands_with_many_words() {
        assert_eq!([0, 63, 64, 200, 1016].map(|words| weight(words, 1)), [1, 1, 2, 4, 16]);
        assert_eq!([0, 1, 2, 100].map(|names| weight(200, names)), [4, 4, 4, 100]);
        assert_eq!(
            sizes(&[(ConnectionKind::Shared, 3, 4), (ConnectionKind::Shared, 9, 2)]),
            [5, 7]
        );
        assert_eq!(
            sizes(&[(ConnectionKind::Shared, 1, 1), (ConnectionKind::Shared, 2, 100)]),
            [1, 1, 1]
        );
    }

    #[test]
    fn a_wait_stays_in_the_portion_of_the_command_before_it() {
        let waits = [
            (ConnectionKind::Shared, 16, 1),
            (ConnectionKind::Dedicated, 1, 1),
            (ConnectionKind::Shared, 1, 1),
            (ConnectionKind::Dedicated, 1, 1),
        ];
        assert_eq!(sizes(&waits), [17, 2]);
    }
}
