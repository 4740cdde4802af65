//! The driver: sends what the engine requests, and tells it what has arrived. It contains no rule of
//! a lock.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::future::{pending, poll_fn};
use core::pin::{Pin, pin};
use core::task::{Context, Poll};

use super::shared::{Shared, Wait};
use crate::error::FailureKind;
use crate::host::Host;
use crate::transport::{ByteStream as _, Response, StreamHead, Transport};
use edgelatch_proto::engine::{EndpointId, ScopeId, StreamId, StreamInput, Transmit, TransmitId};

/// The I/O of a client: requests, streams and one timer. It exists while the client has something
/// to do, and ends by itself.
#[must_use = "nothing is sent unless `run` is awaited"]
pub struct Driver<T: Transport, H: Host> {
    shared: Arc<Shared<T, H>>,
    scope: ScopeId,
    /// Whether a task awaits an operation of the client, and not only what is undone.
    is_awaited: bool,
    has_ended: bool,
}

impl<T: Transport, H: Host> fmt::Debug for Driver<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

/// If the driver is dropped, as by a runtime that shuts down, requests under way have no reply. An
/// operation that is still awaited starts another driver.
impl<T: Transport, H: Host> Drop for Driver<T, H> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.shared.driver_dropped(self.scope);
        }
    }
}

impl<T: Transport, H: Host> Driver<T, H> {
    pub(super) const fn new(shared: Arc<Shared<T, H>>, scope: ScopeId, is_awaited: bool) -> Self {
        Self { shared, scope, is_awaited, has_ended: false }
    }

    /// Whether a task awaits an operation of the client. Otherwise the driver only undoes what was
    /// dropped, and may be dropped if nothing can run it.
    pub const fn is_awaited(&self) -> bool {
        self.is_awaited
    }

    /// The host of the client, which may be needed to run the driver.
    pub fn host(&self) -> &H {
        &self.shared.host
    }

    /// Drives the client's I/O until there is nothing to do.
    pub async fn run(mut self) {
        let (shared, scope) = (Arc::clone(&self.shared), self.scope);
        let mut requests: Vec<(TransmitId, T::Sending)> = Vec::new();
        let mut opening: Vec<(StreamId, Pin<Box<_>>)> = Vec::new();
        let mut streams: Vec<(StreamId, T::Stream)> = Vec::new();
        let mut has_yielded = shared.spawn.is_none();
        loop {
            let until = shared.read(|engine| engine.poll_timeout(scope));
            let mut sleep = pin!(async {
                match until {
                    Some(until) => shared.host.sleep_until(until).await,
                    None => pending().await,
                }
            });
            let is_idle = poll_fn(|cx| {
                // A change that this task causes itself wakes it not.
                shared.forget_wakers(Wait::Scope(scope));
                loop {
                    if !has_yielded && shared.read(|engine| engine.has_transmit(scope)) {
                        // Other calls of this turn of the event loop join the request.
                        has_yielded = true;
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    shared.close_to_others(scope);
                    let transmits = shared.transmits(scope);
                    let has_sent = !transmits.is_empty();
                    for transmit in transmits {
                        match transmit {
                            Transmit::Send { id, to, request } => {
                                if let Some(transport) = shared.transport(to) {
                                    requests.push((id, transport.send(request)));
                                }
                            }
                            Transmit::Abort { id } => requests.retain(|(other, _)| *other != id),
                            Transmit::Open { id, to, request } => {
                                if let Some(transport) = shared.transport(to) {
                                    let transport = Arc::clone(transport);
                                    opening.push((
                                        id,
                                        Box::pin(async move { transport.open(request).await }),
                                    ));
                                }
                            }
                            Transmit::Close { id } => {
                                opening.retain(|(other, _)| *other != id);
                                streams.retain(|(other, _)| *other != id);
                            }
                        }
                    }
                    has_yielded &= !has_sent || scope != ScopeId::SHARED;
                    let has_received = receive(&shared, &mut requests, cx)
                        | opened(&shared, &mut opening, &mut streams, cx)
                        | read(&shared, &mut streams, cx);
                    if has_sent || has_received {
                        continue;
                    }
                    // Stored before the engine is read, so that a change in between is not missed.
                    shared.keep_waker(Wait::Scope(scope), cx.waker());
                    if !shared.read(|engine| engine.has_transmit(scope)) {
                        break;
                    }
                }
                if shared.ends_driver(scope) {
                    return Poll::Ready(true);
                }
                if shared.read(|engine| engine.poll_timeout(scope)) != until {
                    return Poll::Ready(false);
                }
                sleep.as_mut().poll(cx).map(|()| {
                    shared.change(|engine, context| engine.handle_timeout(scope, context));
                    false
                })
            })
            .await;
            if is_idle {
                self.has_ended = true;
                return;
            }
        }
    }
}

impl<T: Transport, H: Host> Shared<T, H> {
    fn transmits(&self, scope: ScopeId) -> Vec<Transmit> {
        self.change(|engine, _| core::iter::from_fn(|| engine.poll_transmit(scope)).collect())
    }

    fn transport(&self, EndpointId(index): EndpointId) -> Option<&Arc<T>> {
        self.endpoints.get(index as usize).map(|endpoint| &endpoint.transport)
    }
}

/// Takes the responses that have arrived; returns whether there was one.
fn receive<T: Transport, H: Host>(
    shared: &Shared<T, H>,
    requests: &mut Vec<(TransmitId, T::Sending)>,
    cx: &mut Context<'_>,
) -> bool {
    let mut responses: Vec<(TransmitId, Result<Response, FailureKind>)> = Vec::new();
    requests.retain_mut(|(id, sending)| match Pin::new(sending).poll(cx) {
        Poll::Ready(result) => {
            responses.push((*id, result));
            false
        }
        Poll::Pending => true,
    });
    let has_received = !responses.is_empty();
    for (id, result) in responses {
        shared.change(|engine, context| engine.handle_response(id, result, context));
    }
    has_received
}

/// Takes the streams whose response has begun; returns whether there was one.
fn opened<T: Transport, H: Host, F>(
    shared: &Shared<T, H>,
    opening: &mut Vec<(StreamId, Pin<Box<F>>)>,
    streams: &mut Vec<(StreamId, T::Stream)>,
    cx: &mut Context<'_>,
) -> bool
where
    F: Future<Output = Result<(StreamHead, T::Stream), FailureKind>>,
{
    let mut heads = Vec::new();
    opening.retain_mut(|(id, opening)| match opening.as_mut().poll(cx) {
        Poll::Ready(result) => {
            heads.push((*id, result));
            false
        }
        Poll::Pending => true,
    });
    let has_opened = !heads.is_empty();
    for (id, result) in heads {
        let input = match result {
            Ok((StreamHead { status, retry_after }, stream)) => {
                streams.push((id, stream));
                StreamInput::Head { status, retry_after }
            }
            Err(_) => StreamInput::End,
        };
        shared.change(|engine, context| engine.handle_stream(id, input, context));
    }
    has_opened
}

/// Takes the bytes that have arrived on streams; returns whether there were any.
fn read<T: Transport, H: Host>(
    shared: &Shared<T, H>,
    streams: &mut Vec<(StreamId, T::Stream)>,
    cx: &mut Context<'_>,
) -> bool {
    let mut has_read = false;
    streams.retain_mut(|(id, stream)| {
        let Poll::Ready(chunk) = stream.poll_next(cx) else { return true };
        has_read = true;
        let (bytes, is_open) = match chunk {
            Some(Ok(bytes)) => (bytes, true),
            Some(Err(_)) | None => (Vec::new(), false),
        };
        let input = if is_open { StreamInput::Bytes(&bytes) } else { StreamInput::End };
        shared.change(|engine, context| engine.handle_stream(*id, input, context));
        is_open
    });
    has_read
}
