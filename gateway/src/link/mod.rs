//! The way to Redis: one server, the master that Sentinels name, or a cluster.
//!
//! Nothing here sends a command twice. What was under way on a lost connection fails; only a
//! redirection is followed, by which Redis says that it did not run the command.

mod cluster;
mod gate;
mod messages;
mod node;
mod sentinel;
mod target;

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

/// The most commands of a pipeline that Redis runs before it runs those of other requests: one on
/// an object at its limits takes it about a millisecond. A command with many words counts as
/// several.
const PORTION_MAX: usize = 16;
/// As many words of a command (names, ids, fields) take Redis about as long as one more command.
const WORDS_PER_COMMAND: usize = 64;
/// How often the connections are asked whether they live.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// One command of a pipeline, and how it travels.
pub(crate) struct Step {
    pub(crate) command: Cmd,
    pub(crate) lane: Lane,
    /// As how many commands it counts: see [`weight`].
    pub(crate) weight: usize,
}

/// As how many commands one of so many words counts, which is about so many names: locks are taken
/// one by one.
pub(crate) fn weight(words: usize, names: usize) -> usize {
    (1 + words / WORDS_PER_COMMAND).max(names)
}

/// What stands behind the gateway.
///
/// Every request carries the future of its command about. A cluster's is large, so it is boxed and
/// the others are not.
pub(crate) enum Link {
    Cluster(Box<Cluster>),
    One(Arc<Node>),
    Sentinel(Arc<Sentinel>),
}

impl Link {
    /// Opens nothing yet: Redis may come up after the gateway.
    ///
    /// # Errors
    ///
    /// If the target is not one that the driver knows.
    pub(crate) fn new(target: Target, connections: usize) -> RedisResult<Self> {
        Ok(match target {
            Target::Cluster(seeds) => Self::Cluster(Box::new(Cluster::new(seeds, connections)?)),
            Target::One(info) => Self::One(Node::new(info, connections)?),
            Target::Sentinel { sentinels, name, master } => {
                Self::Sentinel(Arc::new(Sentinel::new(sentinels, name, master, connections)?))
            }
        })
    }

    pub(crate) async fn command(&self, command: &Cmd, lane: Lane) -> RedisResult<Value> {
        match self {
            Self::Cluster(cluster) => Box::pin(cluster.command(command, lane)).await,
            Self::One(node) => node.command(command, lane).await,
            Self::Sentinel(sentinel) => sentinel.command(command, lane).await,
        }
    }

    /// Answers each command in its place, Redis' errors included. What is lost with one node of
    /// a cluster is not lost with the others.
    ///
    /// A long pipeline goes to each node in portions, each in its turn: the commands of other
    /// requests run between them.
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

    /// All commands or none, as one write on one connection: what `EXEC` replied, or the error
    /// for which Redis threw the transaction away.
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

    /// What is published from now on, or Redis' refusal.
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

    /// Whether commands would get through: on a cluster, those of every key.
    pub(crate) async fn is_alive(&self) -> bool {
        match self {
            Self::Cluster(cluster) => cluster.is_alive().await,
            Self::One(node) => node.is_alive().await,
            Self::Sentinel(sentinel) => sentinel.is_alive().await,
        }
    }

    /// Watches over the shared connections until the future is dropped. `servers` names Redis in
    /// the log.
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

    /// Whoever runs a Redis that may evict locks is to know. Of a cluster one node is asked; one
    /// that may not be asked has said no.
    async fn warn_of_eviction(&self) {
        let mut memory = redis::cmd("INFO");
        memory.arg("memory");
        // A connection that has fallen silent answers this neither, and whoever waits for it
        // replaces none.
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

/// Whether what `INFO memory` tells has a limit, and a way to stay below it that takes keys away.
fn evicts(told: &str) -> bool {
    let field = |name: &str| told.lines().find_map(|line| line.strip_prefix(name));
    field("maxmemory:").is_some_and(|limit| limit != "0")
        && field("maxmemory_policy:").is_some_and(|policy| policy != "noeviction")
}

/// Sends one portion after the other. When one is lost, or the connection, the time or the token is
/// over, the rest is not sent.
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

/// How many commands each part of a pipeline has, so that none counts as more than [`PORTION_MAX`],
/// unless a single command does. A `WAIT` stays with what it waits for, since both need one
/// connection.
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

/// All commands for one connection; if one of them makes it wait, for a connection of its own.
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

/// There is nobody to send to at present.
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
