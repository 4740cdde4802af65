//! Streams the messages of a subscription as server-sent events.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::SystemTime;

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::HeaderValue;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt as _, stream};
use redis::Msg;
use tokio::select;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Sender, channel};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::auth::Access;
use crate::backend::{MessageStream, Topic};
use crate::clock::now;
use crate::failure::Failure;
use crate::limits::Admitted;
use crate::observe::{Operation, StreamEnd};
use crate::reply::ErrorText;
use crate::routes::{Context, Shared};
use crate::scoped::ScopeViolation;

/// The most events queued for a client that reads slowly. The stream of a client that falls further
/// behind ends, which bounds the gateway's memory; every client must handle a lost stream anyway.
const MAX_QUEUED_EVENTS: usize = 256;

/// Handles `/subscribe/<channel>`. Sends `subscribe,<channel>,1`, then
/// `message,<channel>,<payload>` for each message.
pub(crate) async fn subscribe(
    State(shared): State<Shared>,
    Extension(access): Extension<Access>,
    Extension(admitted): Extension<Arc<Admitted>>,
    channel: Result<Path<String>, PathRejection>,
) -> Result<Response, Failure> {
    open(&shared, &access, &admitted, Topic::Channel(name(channel)?)).await
}

/// Handles `/psubscribe/<pattern>`. Sends `psubscribe,<pattern>,1`, then
/// `pmessage,<pattern>,<channel>,<payload>` for each message.
pub(crate) async fn psubscribe(
    State(shared): State<Shared>,
    Extension(access): Extension<Access>,
    Extension(admitted): Extension<Arc<Admitted>>,
    pattern: Result<Path<String>, PathRejection>,
) -> Result<Response, Failure> {
    open(&shared, &access, &admitted, Topic::Pattern(name(pattern)?)).await
}

/// Handles `/ssubscribe/<channel>`. Sends `ssubscribe,<channel>,1`, then
/// `smessage,<channel>,<payload>` for each message that `SPUBLISH` publishes.
pub(crate) async fn ssubscribe(
    State(shared): State<Shared>,
    Extension(access): Extension<Access>,
    Extension(admitted): Extension<Arc<Admitted>>,
    channel: Result<Path<String>, PathRejection>,
) -> Result<Response, Failure> {
    open(&shared, &access, &admitted, Topic::Shard(name(channel)?)).await
}

fn acknowledgement(topic: &Topic) -> Event {
    match topic {
        Topic::Channel(channel) => event(format!("subscribe,{channel},1")),
        Topic::Pattern(pattern) => event(format!("psubscribe,{pattern},1")),
        Topic::Shard(channel) => event(format!("ssubscribe,{channel},1")),
    }
}

fn message(topic: &Topic, message: &Msg) -> Event {
    let payload = String::from_utf8_lossy(message.get_payload_bytes());
    match topic {
        Topic::Channel(channel) => event(format!("message,{channel},{payload}")),
        Topic::Pattern(pattern) => {
            let channel = message.get_channel_name();
            event(format!("pmessage,{pattern},{channel},{payload}"))
        }
        Topic::Shard(channel) => event(format!("smessage,{channel},{payload}")),
    }
}

/// Creates an event. CR LF becomes LF, since an event stream has one line break there, and `data`
/// would write two.
fn event(data: String) -> Event {
    if data.contains('\r') {
        return Event::default().data(data.replace("\r\n", "\n"));
    }
    Event::default().data(data)
}

fn name(path: Result<Path<String>, PathRejection>) -> Result<String, Failure> {
    match path {
        // A line break would end the line of the event.
        Ok(Path(name)) if !name.contains(['\r', '\n', '\0']) => Ok(name),
        _ => Err(Failure::Refused(
            "ERR a channel must be text in UTF-8 without line breaks".to_owned(),
        )),
    }
}

/// Returns when the stream's token expires, `None` for a full token, or why the token does not
/// allow the stream.
fn expiry(access: &Access, topic: &Topic) -> Result<Option<SystemTime>, Failure> {
    let Access::Scoped(scope) = access else { return Ok(None) };
    let checked = match topic {
        Topic::Channel(channel) | Topic::Shard(channel) => scope.check_channel(channel),
        // Redis counts a subscriber of a pattern as a listener of every matching channel, also of
        // other names.
        Topic::Pattern(_) => Err(ScopeViolation::Path),
    };
    checked.map(|()| Some(scope.expires_at())).map_err(Failure::Forbidden)
}

/// Waits until that time; never returns for `None`.
async fn expired(expires_at: Option<SystemTime>) {
    match expires_at {
        Some(expires_at) => sleep(expires_at.duration_since(now()).unwrap_or_default()).await,
        None => pending().await,
    }
}

/// Subscribes, and responds after Redis has confirmed it, so a client that receives the status is
/// subscribed.
async fn open(
    shared: &Context,
    access: &Access,
    admitted: &Admitted,
    topic: Topic,
) -> Result<Response, Failure> {
    let expiry = expiry(access, &topic)?;
    let permit = shared.limits.reserve_stream(admitted)?;
    let subscribing = shared.backend.subscribe(&topic);
    let subscribing = shared.metrics.time_redis(Operation::Subscribe, subscribing);
    let messages = timeout(shared.request_time, subscribing)
        .await
        .map_err(|_| Failure::TimedOut)??
        .map_err(|error| Failure::Refused(ErrorText(&error).to_string()))?;
    let (sender, receiver) = channel(MAX_QUEUED_EVENTS);
    let first = stream::iter([acknowledgement(&topic)]);
    let stop = shared.stop.clone();
    let opened = shared.metrics.open_stream();
    tokio::spawn(async move {
        let end = select! {
            end = forward(&topic, messages, &sender, &stop) => end,
            () = expired(expiry) => StreamEnd::Expired,
        };
        opened.end(end);
        // The stream counts until its connection to Redis is closed.
        drop(permit);
    });
    let rest = stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|event| (event, receiver))
    });
    let keep_alive = KeepAlive::new().interval(shared.keep_alive).text("keep-alive");
    let events = first.chain(rest).map(Ok::<_, Infallible>);
    let mut response = Sse::new(events).keep_alive(keep_alive).into_response();
    // Without this header nginx buffers the response.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// Forwards messages until the client leaves, the connection to Redis ends, the gateway shuts down,
/// or the backlog is full. Returns which of them happened.
async fn forward(
    topic: &Topic,
    mut messages: MessageStream,
    events: &Sender<Event>,
    stop: &CancellationToken,
) -> StreamEnd {
    loop {
        let next = select! {
            () = stop.cancelled() => return StreamEnd::Shutdown,
            () = events.closed() => return StreamEnd::Client,
            next = messages.next() => next,
        };
        let Some(next) = next else { return StreamEnd::Redis };
        match events.try_send(message(topic, &next)) {
            Ok(()) => {}
            Err(TrySendError::Closed(_)) => return StreamEnd::Client,
            Err(TrySendError::Full(_)) => return StreamEnd::Slow,
        }
    }
}
