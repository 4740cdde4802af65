//! Chooses the connection on which a command goes to its node.

use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, Pipeline, RedisResult, Value};

use crate::link::node::Node;
use crate::policy::Lane;

/// The connections that a request uses.
pub(super) enum Way {
    /// Connections of the request's own, at most one to each node, reused for its later commands.
    Own(Vec<(Arc<Node>, MultiplexedConnection)>),
    /// The connections that all requests share.
    Shared,
}

impl Way {
    pub(super) async fn send(&mut self, node: &Arc<Node>, command: &Cmd) -> RedisResult<Value> {
        match self {
            Self::Own(open) => {
                let sent = own(open, node).await?.send_packed_command(command).await;
                sent.inspect_err(|_| node.doubt())
            }
            Self::Shared => node.command(command, Lane::Shared).await,
        }
    }

    /// Sends a command to a node that its slot is still being moved to, in one write with the
    /// `ASKING` that makes the node accept it.
    pub(super) async fn ask(&mut self, node: &Arc<Node>, command: &Cmd) -> RedisResult<Value> {
        let mut pipe = Pipeline::with_capacity(2);
        pipe.cmd("ASKING").add_command(command.clone());
        let replies = match self {
            Self::Own(open) => {
                let sent = own(open, node).await?.send_packed_commands(&pipe, 0, 2).await;
                sent.inspect_err(|_| node.doubt())?
            }
            Self::Shared => node.pipeline(&pipe, Lane::Shared).await?,
        };
        Ok(replies.into_iter().nth(1).unwrap_or(Value::Nil))
    }
}

async fn own(
    open: &mut Vec<(Arc<Node>, MultiplexedConnection)>,
    node: &Arc<Node>,
) -> RedisResult<MultiplexedConnection> {
    if let Some((_, connection)) = open.iter().find(|(other, _)| Arc::ptr_eq(other, node)) {
        return Ok(connection.clone());
    }
    let connection = node.own().await?;
    open.push((Arc::clone(node), connection.clone()));
    Ok(connection)
}
