//! Connects the gateway to Redis: one server, the master that Sentinels name, or a cluster.
//!
//! This module never sends a command twice, except to follow a redirection of a cluster, with which
//! Redis says that it did not run the command. A request whose connection breaks fails.

mod cluster;
mod gate;
mod messages;
mod node;
mod sentinel;
mod target;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, Pipeline, RedisError, RedisResult, ServerError, Value};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::{info, warn};

use self::cluster::Cluster;
pub(crate) use self::messages::{Messages, Topic};
use self::node::{Node, PATIENCE};
use self::sentinel::Sentinel;
pub(crate) use self::target::Target;
use crate::policy::Lane;
use crate::turns::Turns;

/// The largest portion of a pipeline, in commands. Redis runs the commands of other requests
/// between two portions: a command on an object at its limits takes Redis about a millisecond. A
/// command with many words or names counts as several, see [`weight`].
const PORTION_MAX: usize = 16;
/// The number of words of a command (names, ids, fields) that take Redis about as long as one more
/// command.
const WORDS_PER_COMMAND: usize = 64;
/// The interval between two checks of the connections.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// One command of a pipeline, and the connection that it needs.
pub(crate) struct Step {
    pub(crate) command: Cmd,
    pub(crate) lane: Lane,
    /// The number of commands that it counts as, see [`weight`].
    pub(crate) weight: usize,
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
pub(crate) enum Link {
    Cluster(Box<Cluster>),
    One(Arc<Node>),
    Sentinel(Arc<Sentinel>),
}

/// Omits the servers: their addresses may have a login.
impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").finish_non_exhaustive()
    }
}

impl Link {
    /// Creates the link without opening a connection: Redis may start after the gateway.
    ///
    /// # Errors
    ///
    /// If the driver cannot connect to this kind of target.
    pub(crate) fn new(target: Target, connections: usize) -> RedisResult<Self> {
        Ok(match target {
            Target::Cluster(seeds) => Self::Cluster(Box::new(Cluster::new(seeds, connections)?)),
            Target::One(info) => Self::One(Node::new(info, connections)?),
            Target::Sentinel { sentinels, name, master } => {
                Self::Sentinel(Arc::new(Sentinel::new(sentinels, name, master, connections)?))
            }
        })
    }

    /// Returns the number of nodes that commands are sent to.
    pub(crate) fn nodes(&self) -> usize {
        match self {
            Self::Cluster(cluster) => cluster.nodes(),
            Self::One(_) | Self::Sentinel(_) => 1,
        }
    }

    pub(crate) async fn command(&self, command: &Cmd, lane: Lane) -> RedisResult<Value> {
        match self {
            Self::Cluster(cluster) => Box::pin(cluster.command(command, lane)).await,
            Self::One(node) => node.command(command, lane).await,
            Self::Sentinel(sentinel) => sentinel.command(command, lane).await,
        }
    }

    /// Returns the reply of each command in the order of `steps`, errors of Redis included. If one
    /// node of a cluster fails, the commands for the other nodes still have their replies.
    ///
    /// Sends a long pipeline to each node in portions, each after it has the turn of its client, so
    /// that Redis runs the commands of other requests between them.
    pub(crate) async fn pipeline(
        &self,
        steps: Vec<Step>,
        turns: &Turns,
    ) -> Vec<RedisResult<Value>> {
        match self {
            Self::Cluster(cluster) => Box::pin(cluster.pipeline(&steps, turns)).await,
            Self::One(node) => {
                let send = |pipe, lane| {
                    let node = Arc::clone(node);
                    async move { node.pipeline(&pipe, lane).await }
                };
                in_portions(steps, turns, send).await
            }
            Self::Sentinel(sentinel) => {
                let send = |pipe, lane| {
                    let sentinel = Arc::clone(sentinel);
                    async move { sentinel.pipeline(&pipe, lane).await }
                };
                in_portions(steps, turns, send).await
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
            Self::One(node) => node.transaction(&pipe).await,
            Self::Sentinel(sentinel) => sentinel.transaction(&pipe).await,
        }
    }

    /// Subscribes, and returns the messages that are published from then on, or the error with
    /// which Redis refused the subscription.
    pub(crate) async fn subscribe(
        &self,
        topic: &Topic,
    ) -> RedisResult<Result<Messages, ServerError>> {
        match self {
            Self::Cluster(cluster) => cluster.subscribe(topic).await,
            Self::One(node) => node.subscribe(topic).await,
            Self::Sentinel(sentinel) => sentinel.subscribe(topic).await,
        }
    }

    /// Whether Redis replies; on a cluster, whether every slot has a master and all masters reply.
    pub(crate) async fn is_alive(&self) -> bool {
        match self {
            Self::Cluster(cluster) => cluster.is_alive().await,
            Self::One(node) => node.is_alive().await,
            Self::Sentinel(sentinel) => sentinel.is_alive().await,
        }
    }

    /// Checks the shared connections every [`CHECK_EVERY`] until the future is dropped, and logs
    /// when Redis stops replying and when it replies again. `servers` names Redis in the log.
    pub(crate) async fn keep(self: Arc<Self>, servers: String) {
        let mut ticks = interval(CHECK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut was_alive, mut was_asked) = (true, false);
        loop {
            ticks.tick().await;
            let is_alive = match &*self {
                Self::Cluster(cluster) => cluster.check().await,
                Self::One(node) => node.check().await,
                Self::Sentinel(sentinel) => sentinel.check().await,
            };
            match (was_alive, is_alive) {
                (true, false) => warn!("Redis does not answer at {servers}"),
                (false, true) => info!("Redis answers again at {servers}"),
                _ => {}
            }
            was_alive = is_alive;
            if is_alive && !was_asked {
                was_asked = true;
                self.warn_of_eviction().await;
            }
        }
    }

    /// Logs a warning if Redis may evict keys, and with them locks. Asks one node of a cluster.
    /// Logs nothing if Redis refuses `INFO` or does not reply within [`PATIENCE`].
    async fn warn_of_eviction(&self) {
        let mut memory = redis::cmd("INFO");
        memory.arg("memory");
        // The timeout is needed because the caller replaces silent connections, and must not wait
        // here for one of them.
        let asked = timeout(PATIENCE, self.command(&memory, Lane::Shared)).await;
        let Ok(Ok(told)) = asked else { return };
        if let Ok(told) = redis::from_redis_value::<String>(told)
            && evicts(&told)
        {
            warn!(
                "Redis evicts keys when its memory is full, locks too: set maxmemory-policy to noeviction"
            );
        }
    }
}

/// Whether `told`, the reply to `INFO memory`, has a memory limit and a policy that evicts keys.
fn evicts(told: &str) -> bool {
    let field = |name: &str| told.lines().find_map(|line| line.strip_prefix(name));
    field("maxmemory:").is_some_and(|limit| limit != "0")
        && field("maxmemory_policy:").is_some_and(|policy| policy != "noeviction")
}

/// Sends one portion after the other. Sends no further portion after one that has failed, or when
/// the request's deadline has passed or its token has expired.
async fn in_portions<F>(
    mut steps: Vec<Step>,
    turns: &Turns,
    send: impl Fn(Pipeline, Lane) -> F,
) -> Vec<RedisResult<Value>>
where
    F: Future<Output = RedisResult<Vec<Value>>> + Send + 'static,
{
    let number = steps.len();
    let mut replies = Vec::with_capacity(number);
    for size in portions(&steps) {
        let (pipe, lane) = together(steps.drain(..size));
        let rest = match turns.send(lane, send(pipe, lane)).await {
            Ok(Ok(answered)) => {
                replies.extend(answered.into_iter().map(Ok));
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

/// Returns the number of commands in each portion. No portion counts as more than [`PORTION_MAX`]
/// commands, unless a single command does, or a `WAIT` follows: it stays in the portion of the
/// command that it waits for, since both need the same connection.
fn portions<'a>(steps: impl IntoIterator<Item = &'a Step>) -> Vec<usize> {
    let mut sizes: Vec<usize> = Vec::new();
    let mut weight = 0;
    for step in steps {
        match sizes.last_mut() {
            Some(size) if weight + step.weight <= PORTION_MAX || step.lane == Lane::Own => {
                *size += 1;
                weight += step.weight;
            }
            _ => {
                sizes.push(1);
                weight = step.weight;
            }
        }
    }
    sizes
}

/// Joins the commands into one pipeline. It gets a connection of its own if one of the commands
/// makes its connection wait.
fn together(steps: impl ExactSizeIterator<Item = Step>) -> (Pipeline, Lane) {
    let mut lane = Lane::Shared;
    let mut pipe = Pipeline::with_capacity(steps.len());
    for step in steps {
        if step.lane == Lane::Own {
            lane = Lane::Own;
        }
        pipe.add_command(step.command);
    }
    (pipe, lane)
}

pub(crate) fn too_late() -> RedisError {
    io::Error::from(io::ErrorKind::TimedOut).into()
}

/// Returns the error of a command when no node to send it to is known.
fn nobody() -> RedisError {
    io::Error::from(io::ErrorKind::NotConnected).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(groups: &[(Lane, usize, usize)]) -> Vec<usize> {
        let step = |lane, weight| Step { command: redis::cmd("PING"), lane, weight };
        let group = |(lane, number, weight): &(Lane, usize, usize)| {
            (0..*number).map(|_| step(*lane, *weight)).collect::<Vec<_>>()
        };
        portions(&groups.iter().flat_map(group).collect::<Vec<_>>())
    }

    #[test]
    fn a_long_pipeline_goes_out_in_portions() {
        assert_eq!(sizes(&[]), [0; 0]);
        assert_eq!(sizes(&[(Lane::Shared, 16, 1)]), [16]);
        assert_eq!(sizes(&[(Lane::Shared, 38, 1)]), [16, 16, 6]);
    }

    #[test]
    fn a_portion_has_fewer_commands_with_many_words() {
        assert_eq!([0, 63, 64, 200, 1016].map(|words| weight(words, 1)), [1, 1, 2, 4, 16]);
        assert_eq!([0, 1, 2, 100].map(|names| weight(200, names)), [4, 4, 4, 100]);
        assert_eq!(sizes(&[(Lane::Shared, 3, 4), (Lane::Shared, 9, 2)]), [5, 7]);
        assert_eq!(sizes(&[(Lane::Shared, 1, 1), (Lane::Shared, 2, 100)]), [1, 1, 1]);
    }

    #[test]
    fn a_wait_stays_with_what_it_waits_for() {
        let waits =
            [(Lane::Shared, 16, 1), (Lane::Own, 1, 1), (Lane::Shared, 1, 1), (Lane::Own, 1, 1)];
        assert_eq!(sizes(&waits), [17, 2]);
    }
}
