//! Subscriptions to the channels of Redis.

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use redis::{
    AsyncConnectionConfig, Client, Msg, ProtocolVersion, PushKind, RedisError, RedisResult,
    ServerError, Value,
};
use tokio::select;
use tokio::sync::mpsc::unbounded_channel;
use tokio_util::sync::CancellationToken;

/// A channel or pattern to subscribe to.
pub(crate) enum Topic {
    Channel(String),
    Pattern(String),
    /// A channel whose messages stay on the node of its slot.
    Shard(String),
}

/// The messages of one topic, on a connection of their own.
pub(crate) struct MessageStream {
    stream: BoxStream<'static, Msg>,
    /// Cancelled when the node of this connection is no longer the right one.
    retired: CancellationToken,
}

impl MessageStream {
    /// Returns the next message. Returns `None` when the connection ends, and when another node has
    /// replaced this one: a node that is cut off from its cluster would be silent for ever.
    pub(crate) async fn next(&mut self) -> Option<Msg> {
        select! {
            () = self.retired.cancelled() => None,
            message = self.stream.next() => message,
        }
    }

    pub(super) async fn open(
        client: &Client,
        topic: &Topic,
        retired: CancellationToken,
    ) -> RedisResult<Result<Self, ServerError>> {
        let opened = match topic {
            Topic::Shard(channel) => shard(client, channel).await?,
            Topic::Channel(_) | Topic::Pattern(_) => plain(client, topic).await?,
        };
        Ok(opened.map(|stream| Self { stream, retired }))
    }
}

type Opened = Result<BoxStream<'static, Msg>, ServerError>;

async fn plain(client: &Client, topic: &Topic) -> RedisResult<Opened> {
    let mut subscriber = client.get_async_pubsub().await?;
    let subscribed = match topic {
        Topic::Channel(name) | Topic::Shard(name) => subscriber.subscribe(name).await,
        Topic::Pattern(pattern) => subscriber.psubscribe(pattern).await,
    };
    match subscribed {
        Ok(()) => Ok(Ok(subscriber.into_on_message().boxed())),
        Err(error) => refusal(error).map(Err),
    }
}

/// Subscribes to a sharded channel by RESP3, since the driver reads sharded messages from RESP3
/// only.
async fn shard(client: &Client, channel: &str) -> RedisResult<Opened> {
    let info = client.get_connection_info().clone();
    let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    let (sender, receiver) = unbounded_channel();
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_push_sender(sender);
    let mut connection = Client::open(info.set_redis_settings(settings))?
        .get_multiplexed_async_connection_with_config(&config)
        .await?;
    let mut subscribe = redis::cmd("SSUBSCRIBE");
    if let Value::ServerError(error) =
        connection.send_packed_command(subscribe.arg(channel)).await?
    {
        return Ok(Err(error));
    }
    let messages = stream::unfold((connection, receiver), |(connection, mut receiver)| async {
        loop {
            let push = receiver.recv().await?;
            match push.kind {
                // The slot has moved to another node, or the connection is gone.
                PushKind::SUnsubscribe | PushKind::Disconnection => return None,
                _ => {}
            }
            if let Some(message) = Msg::from_push_info(push) {
                return Some((message, (connection, receiver)));
            }
        }
    });
    Ok(Ok(messages.boxed()))
}

fn refusal(error: RedisError) -> RedisResult<ServerError> {
    let refused = error.clone().into_server_errors();
    let first = refused.as_deref().and_then(|errors| errors.first());
    first.map(|(_, refusal)| refusal.clone()).ok_or(error)
}
