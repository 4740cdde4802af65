//! Keeps a request counted against its limits until its response has been sent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

use crate::limits::Admitted;

/// The largest part of a response that the connection gets at once, in bytes.
const PART_MAX: usize = 16 * 1024;

/// The body of a response, in parts. hyper takes the next part when the client has read most of the
/// earlier ones, so the request of a client that does not read stays counted.
pub(crate) struct Answering {
    body: Body,
    /// Bytes that the body has produced and hyper has not taken yet.
    rest: Bytes,
    _admitted: Arc<Admitted>,
}

impl Answering {
    pub(crate) fn new(body: Body, admitted: Arc<Admitted>) -> Self {
        Self { body, rest: Bytes::new(), _admitted: admitted }
    }
}

impl HttpBody for Answering {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                other => return Poll::Ready(other),
            };
            match frame.into_data() {
                Ok(data) => self.rest = data,
                Err(other) => return Poll::Ready(Some(Ok(other))),
            }
        }
        let length = self.rest.len().min(PART_MAX);
        let part = self.rest.split_to(length);
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = u64::try_from(self.rest.len()).unwrap_or(u64::MAX);
        let behind = self.body.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(behind.lower().saturating_add(rest));
        if let Some(upper) = behind.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
}
