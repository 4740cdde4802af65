//! Keeps a request counted against its limits until its response has been sent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

use crate::limits::Admitted;

/// The largest chunk of a response that hyper gets at once, in bytes.
const MAX_CHUNK_BYTES: usize = 16 * 1024;

/// The body of a response, in chunks. hyper takes the next chunk when the client has read most of
/// the earlier ones, so the request of a client that does not read stays counted.
pub(crate) struct ResponseBody {
    body: Body,
    /// Bytes that the body has produced and hyper has not taken yet.
    buffered: Bytes,
    _admitted: Arc<Admitted>,
}

impl ResponseBody {
    pub(crate) fn new(body: Body, admitted: Arc<Admitted>) -> Self {
        Self { body, buffered: Bytes::new(), _admitted: admitted }
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.buffered.is_empty() {
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                other => return Poll::Ready(other),
            };
            match frame.into_data() {
                Ok(data) => self.buffered = data,
                Err(other) => return Poll::Ready(Some(Ok(other))),
            }
        }
        let length = self.buffered.len().min(MAX_CHUNK_BYTES);
        let chunk = self.buffered.split_to(length);
        Poll::Ready(Some(Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.buffered.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let buffered = u64::try_from(self.buffered.len()).unwrap_or(u64::MAX);
        let remaining = self.body.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(remaining.lower().saturating_add(buffered));
        if let Some(upper) = remaining.upper() {
            hint.set_upper(upper.saturating_add(buffered));
        }
        hint
    }
}
