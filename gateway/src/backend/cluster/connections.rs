//! The connections on which the commands of one request go to their nodes.

use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, Pipeline, RedisResult, Value};

use crate::backend::node::Node;
use crate::policy::ConnectionKind;

/// The connections that a request uses.
pub(super) enum RequestConnections {
    /// Dedicated connections, at most one to each node, reused for its later commands.
    Dedicated(Vec<(Arc<Node>, MultiplexedConnection)>),
    /// The connections that all requests share.
    Shared,
}

impl RequestConnections {
    pub(super) async fn send(&mut self, node: &Arc<Node>, command: &Cmd) -> RedisResult<Value> {
        match self {
            Self::Dedicated(open) => {
                let sent = dedicated(open, node).await?.send_packed_command(command).await;
                sent.inspect_err(|_| node.mark_suspect())
            }
            Self::Shared => node.command(command, ConnectionKind::Shared).await,
        }
    }

    /// Sends a command to a node that its slot is still being moved to, in one write with the
    /// `ASKING` that makes the node accept it.
    pub(super) async fn send_asking(
        &mut self,
        node: &Arc<Node>,
        command: &Cmd,
    ) -> RedisResult<Value> {
        let mut pipe = Pipeline::with_capacity(2);
        pipe.cmd("ASKING").add_command(command.clone());
        let replies = match self {
            Self::Dedicated(open) => {
                let sent = dedicated(open, node).await?.send_packed_commands(&pipe, 0, 2).await;
                sent.inspect_err(|_| node.mark_suspect())?
            }
            Self::Shared => node.pipeline(&pipe, ConnectionKind::Shared).await?,
        };
        Ok(replies.into_iter().nth(1).unwrap_or(Value::Nil))
    }
}

async fn dedicated(
    open: &mut Vec<(Arc<Node>, MultiplexedConnection)>,
    node: &Arc<Node>,
) -> RedisResult<MultiplexedConnection> {
    if let Some((_, connection)) = open.iter().find(|(other, _)| Arc::ptr_eq(other, node)) {
        return Ok(connection.clone());
    }
    let connection = node.dedicated().await?;
    open.push((Arc::clone(node), connection.clone()));
    Ok(connection)
}
