//! Pipelines on a cluster.
//!
//! The commands are grouped by node. The groups run concurrently, each in the order of its
//! commands, so a node that is away delays only its own commands. A command without a key goes to
//! the node of the command before it, and `WAIT` on the same connection.

use std::sync::Arc;

use futures_util::future::join_all;
use redis::cluster_routing::Slot;
use redis::{Pipeline, RedisResult, Value};
use tokio::time::timeout_at;

use super::{Cluster, RequestConnections, route};
use crate::backend::node::Node;
use crate::backend::{PipelineCommand, no_node, portion_sizes, timed_out};
use crate::dispatch::{Dispatcher, NotSent};
use crate::policy::ConnectionKind;

/// A command, its position in the pipeline, and the slot of its first key.
struct RoutedCommand<'a> {
    index: usize,
    source: &'a PipelineCommand,
    slot: Option<Slot>,
}

/// The commands of a pipeline for one node.
struct NodeBatch<'a> {
    node: Arc<Node>,
    commands: Vec<RoutedCommand<'a>>,
}

type Replies = Vec<RedisResult<Value>>;
/// `Ok(Ok(()))` if all commands were sent, `Ok(Err(_))` if the rest was not sent, `Err` if a
/// portion failed.
type BatchOutcome = RedisResult<Result<(), NotSent>>;

impl Cluster {
    /// Returns the reply of each command in the order of `commands`, errors of Redis included.
    pub(in crate::backend) async fn pipeline(
        &self,
        commands: &[PipelineCommand],
        dispatcher: &Dispatcher,
    ) -> Replies {
        let routed = timeout_at(dispatcher.deadline(), self.group_by_node(commands)).await;
        let batches = match routed.unwrap_or_else(|_| Err(timed_out())) {
            Ok(batches) => batches,
            Err(error) => return vec![Err(error); commands.len()],
        };
        let ran = join_all(batches.iter().map(|batch| self.run(batch, dispatcher))).await;
        let mut replies: Vec<_> = batches
            .iter()
            .zip(ran)
            .flat_map(|(batch, replies)| {
                batch.commands.iter().map(|command| command.index).zip(replies)
            })
            .collect();
        replies.sort_unstable_by_key(|(index, _)| *index);
        replies.into_iter().map(|(_, reply)| reply).collect()
    }

    /// Routes each command to its node.
    async fn group_by_node<'a>(
        &self,
        commands: &'a [PipelineCommand],
    ) -> RedisResult<Vec<NodeBatch<'a>>> {
        let mut batches: Vec<NodeBatch<'a>> = Vec::new();
        let slots: Vec<_> = commands.iter().map(|source| route::slot(&source.command)).collect();
        // Commands before the first one with a key go to the node of that key.
        let first = slots.iter().copied().find_map(|slot| slot);
        let mut last: Option<Arc<Node>> = None;
        for (index, (source, slot)) in commands.iter().zip(slots).enumerate() {
            let node = match last.filter(|_| slot.is_none()) {
                Some(node) => node,
                None => self.node(slot.or(first)).await?,
            };
            last = Some(Arc::clone(&node));
            let command = RoutedCommand { index, source, slot };
            match batches.iter_mut().find(|batch| Arc::ptr_eq(&batch.node, &node)) {
                Some(batch) => batch.commands.push(command),
                None => batches.push(NodeBatch { node, commands: vec![command] }),
            }
        }
        Ok(batches)
    }

    /// Returns one reply for each command of the batch; a missing reply is an error.
    async fn run(&self, batch: &NodeBatch<'_>, dispatcher: &Dispatcher) -> Replies {
        let mut replies = Vec::with_capacity(batch.commands.len());
        let waits = batch
            .commands
            .iter()
            .any(|command| command.source.connection == ConnectionKind::Dedicated);
        let deadline = dispatcher.deadline();
        let outcome = if waits {
            timeout_at(deadline, self.send_sequentially(batch, dispatcher, &mut replies)).await
        } else {
            timeout_at(deadline, self.send_in_portions(batch, dispatcher, &mut replies)).await
        };
        let rest = match outcome {
            Ok(Ok(Ok(()))) => Err(no_node()),
            Ok(Ok(Err(reason))) => reason.reply(),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(timed_out()),
        };
        replies.resize(batch.commands.len(), rest);
        replies
    }

    /// Sends each portion in one write. Redirected commands follow their redirections afterwards,
    /// one after the other. Ends with the first portion that fails or is not sent.
    async fn send_in_portions(
        &self,
        batch: &NodeBatch<'_>,
        dispatcher: &Dispatcher,
        replies: &mut Replies,
    ) -> BatchOutcome {
        let mut commands = batch.commands.as_slice();
        for size in portion_sizes(commands.iter().map(|command| command.source)) {
            let Some((portion, rest)) = commands.split_at_checked(size) else { break };
            commands = rest;
            let mut pipe = Pipeline::with_capacity(portion.len());
            for command in portion {
                pipe.add_command(command.source.command.clone());
            }
            let node = Arc::clone(&batch.node);
            let sending = async move { node.pipeline(&pipe, ConnectionKind::Shared).await };
            let sent = match dispatcher.send(ConnectionKind::Shared, sending).await {
                Ok(sent) => sent?,
                Err(reason) => return Ok(Err(reason)),
            };
            for (RoutedCommand { source, slot, .. }, reply) in portion.iter().zip(sent) {
                let (mut node, mut connections) =
                    (Arc::clone(&batch.node), RequestConnections::Shared);
                let followed = self.follow_redirections(
                    &source.command,
                    *slot,
                    &mut node,
                    reply,
                    &mut connections,
                );
                replies.push(followed.await);
            }
        }
        Ok(Ok(()))
    }

    /// Sends the commands one by one on connections of the request's own, so that a `WAIT` behind a
    /// redirected command goes to the same node. Ends with the first command that fails or is not
    /// sent.
    async fn send_sequentially(
        &self,
        batch: &NodeBatch<'_>,
        dispatcher: &Dispatcher,
        replies: &mut Replies,
    ) -> BatchOutcome {
        let mut connections = RequestConnections::Dedicated(Vec::new());
        let mut last = Arc::clone(&batch.node);
        for RoutedCommand { source, slot, .. } in &batch.commands {
            if slot.is_some() {
                last = Arc::clone(&batch.node);
            }
            if let Err(reason) = dispatcher.check() {
                return Ok(Err(reason));
            }
            let reply = connections.send(&last, &source.command).await?;
            let followed = self.follow_redirections(
                &source.command,
                *slot,
                &mut last,
                reply,
                &mut connections,
            );
            replies.push(Ok(followed.await?));
        }
        Ok(Ok(()))
    }
}
