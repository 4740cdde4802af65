//! The driver: does the I/O that the engine requests, and passes on responses. It contains no lock
//! logic.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::future::{pending, poll_fn};
use core::pin::{Pin, pin};
use core::task::{Context, Poll};

use super::observe::Sending;
use super::shared::{Endpoint, Shared, Source};
use crate::error::FailureKind;
use crate::host::Host;
use crate::transport::{ByteStream as _, Request, StreamHead, Transport};
use edgelatch_proto::engine::{EndpointId, ScopeId, StreamId, StreamInput, Transmit, TransmitId};

/// The I/O of a client: requests, streams and one timer. It exists while the client has something
/// to do, and ends by itself.
#[must_use = "nothing is sent unless `run` is awaited"]
pub struct Driver<T: Transport, H: Host> {
    shared: Arc<Shared<T, H>>,
    scope: ScopeId,
    /// Whether it was started for an operation that a task awaits, and not only to undo others.
    is_awaited: bool,
    has_ended: bool,
}

impl<T: Transport, H: Host> fmt::Debug for Driver<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

/// If the driver is dropped, as by a runtime that shuts down, requests under way have no reply. A
/// task that still awaits an operation starts another driver if this was the driver of all
/// operations.
impl<T: Transport, H: Host> Drop for Driver<T, H> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.shared.on_driver_dropped(self.scope);
        }
    }
}

impl<T: Transport, H: Host> Driver<T, H> {
    /// Creates a driver for an operation that a task awaits.
    pub(super) const fn for_operation(shared: Arc<Shared<T, H>>, scope: ScopeId) -> Self {
        Self { shared, scope, is_awaited: true, has_ended: false }
    }

    /// Creates a driver that only finishes operations whose futures were dropped.
    pub(super) const fn for_undoing(shared: Arc<Shared<T, H>>, scope: ScopeId) -> Self {
        Self { shared, scope, is_awaited: false, has_ended: false }
    }

    /// Whether it was started for an operation that a task awaits. Otherwise the driver only undoes
    /// operations whose futures were dropped, and may be dropped itself if nothing can run it.
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
        let open =
            |transport: Arc<T>, request| Box::pin(async move { transport.open(request).await });
        let mut io = Io { requests: Vec::new(), opening: Vec::new(), streams: Vec::new() };
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
                // Removed while this task works, so that its own changes do not wake it again.
                shared.forget_wakers(Source::Scope(scope));
                while shared.has_transmit(scope)
                    || io.poll(&shared, cx)
                    || shared.keep_waker_or_has_transmit(scope, cx)
                {
                    if !has_yielded && shared.has_transmit(scope) {
                        // Yields once, so that other calls of this turn join the request.
                        has_yielded = true;
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    for transmit in shared.transmits(scope) {
                        // The next calls of the shared scope may come in another turn, which the
                        // driver yields to again. No call joins another scope after its first I/O.
                        has_yielded &= scope != ScopeId::GLOBAL;
                        io.transmit(transmit, &shared, open);
                    }
                }
                shared.observe_gateways();
                shared.close_to_new_operations(scope);
                if shared.end_driver_if_idle(scope) {
                    return Poll::Ready(true);
                }
                // Another timeout needs another timer: the loop goes on with it.
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
    fn has_transmit(&self, scope: ScopeId) -> bool {
        self.read(|engine| engine.has_transmit(scope))
    }

    fn transmits(&self, scope: ScopeId) -> Vec<Transmit> {
        self.close_to_new_operations(scope);
        self.change(|engine, _| core::iter::from_fn(|| engine.poll_transmit(scope)).collect())
    }

    /// Stores the waker of this task for the next I/O that the engine requests; returns whether it
    /// has requested some already.
    fn keep_waker_or_has_transmit(&self, scope: ScopeId, cx: &Context<'_>) -> bool {
        // Stored before the engine is read, so that a change in between is not missed.
        self.keep_waker(Source::Scope(scope), cx.waker());
        self.has_transmit(scope)
    }

    fn endpoint(&self, EndpointId(index): EndpointId) -> Option<&Endpoint<T>> {
        self.endpoints.get(index as usize)
    }
}

/// The I/O under way. `F` is the future that opens a stream.
struct Io<T: Transport, F> {
    requests: Vec<(TransmitId, Sending<T::Sending>)>,
    opening: Vec<(StreamId, Pin<Box<F>>)>,
    streams: Vec<(StreamId, T::Stream)>,
}

impl<T: Transport, F> Io<T, F>
where
    F: Future<Output = Result<(StreamHead, T::Stream), FailureKind>>,
{
    /// Does what the engine requests.
    fn transmit<H: Host>(
        &mut self,
        transmit: Transmit,
        shared: &Shared<T, H>,
        open: impl Fn(Arc<T>, Request) -> Pin<Box<F>>,
    ) {
        match transmit {
            Transmit::Send { id, to, request } => {
                let sending = shared
                    .endpoint(to)
                    .map(|endpoint| endpoint.observed.sending(endpoint.transport.send(request)));
                self.requests.extend(sending.map(|sending| (id, sending)));
            }
            Transmit::Abort { id } => self.requests.retain(|(other, _)| *other != id),
            Transmit::Open { id, to, request } => {
                let opening = shared
                    .endpoint(to)
                    .map(|endpoint| open(Arc::clone(&endpoint.transport), request));
                self.opening.extend(opening.map(|opening| (id, opening)));
            }
            Transmit::Close { id } => {
                self.opening.retain(|(other, _)| *other != id);
                self.streams.retain(|(other, _)| *other != id);
            }
        }
    }

    /// Passes on what has arrived; returns whether anything has.
    fn poll<H: Host>(&mut self, shared: &Shared<T, H>, cx: &mut Context<'_>) -> bool {
        self.poll_requests(shared, cx)
            | self.poll_opening(shared, cx)
            | self.poll_streams(shared, cx)
    }

    fn poll_requests<H: Host>(&mut self, shared: &Shared<T, H>, cx: &mut Context<'_>) -> bool {
        let responses = ready(&mut self.requests, |sending| Pin::new(sending).poll(cx));
        let has_received = !responses.is_empty();
        for (id, result) in responses {
            shared.change(|engine, context| engine.handle_response(id, result, context));
        }
        has_received
    }

    fn poll_opening<H: Host>(&mut self, shared: &Shared<T, H>, cx: &mut Context<'_>) -> bool {
        let heads = ready(&mut self.opening, |opening| opening.as_mut().poll(cx));
        let has_opened = !heads.is_empty();
        for (id, result) in heads {
            let input = match result {
                Ok((StreamHead { status, retry_after }, stream)) => {
                    self.streams.push((id, stream));
                    StreamInput::Head { status, retry_after }
                }
                Err(_) => StreamInput::End,
            };
            shared.change(|engine, context| engine.handle_stream(id, input, context));
        }
        has_opened
    }

    /// Reads what has arrived on the streams.
    fn poll_streams<H: Host>(&mut self, shared: &Shared<T, H>, cx: &mut Context<'_>) -> bool {
        let mut has_read = false;
        self.streams.retain_mut(|(id, stream)| {
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
}

/// Removes the futures that are ready, and returns their outputs.
fn ready<I: Copy, F, R>(
    futures: &mut Vec<(I, F)>,
    mut poll: impl FnMut(&mut F) -> Poll<R>,
) -> Vec<(I, R)> {
    let mut outputs = Vec::new();
    futures.retain_mut(|(id, future)| match poll(future) {
        Poll::Ready(output) => {
            outputs.push((*id, output));
            false
        }
        Poll::Pending => true,
    });
    outputs
}
