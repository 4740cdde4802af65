//! Tracks which part of a request or response a connection is at.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use hyper::body::{Body, Frame, SizeHint};

/// Counts the heads read and the responses completed on a connection.
#[derive(Clone, Default)]
pub(crate) struct RequestTracker(Arc<Counts>);

#[derive(Default)]
struct Counts {
    heads: AtomicUsize,
    responses: AtomicUsize,
}

/// A request whose head has been read. Its response counts as completed when this is dropped.
pub(crate) struct InFlight(RequestTracker);

/// The body of a response. Dropping it completes the response.
pub(crate) struct TrackedBody<B> {
    body: B,
    _request: InFlight,
}

impl RequestTracker {
    /// Counts a head that has been read.
    pub(crate) fn on_head(&self) -> InFlight {
        self.0.heads.fetch_add(1, Ordering::Relaxed);
        InFlight(self.clone())
    }

    /// Returns the number of heads read if all responses are completed. Otherwise returns `None`:
    /// the next bytes are a body, or the next head of a client that pipelines requests.
    pub(crate) fn awaited_head(&self) -> Option<usize> {
        let heads = self.0.heads.load(Ordering::Relaxed);
        (heads == self.0.responses.load(Ordering::Relaxed)).then_some(heads)
    }
}

impl InFlight {
    /// Returns the body of the response, which completes the response when it is dropped.
    pub(crate) fn track<B>(self, body: B) -> TrackedBody<B> {
        TrackedBody { body, _request: self }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.0.responses.fetch_add(1, Ordering::Relaxed);
    }
}

impl<B: Body + Unpin> Body for TrackedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
