//! A transport that counts its requests in flight, so that virtual time advances only while there
//! are none.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use edgelatch::error::FailureKind;
use edgelatch::transport::{
    Request, Reqwest, ReqwestStream, Response, StreamHead, StreamLimits, Transport,
};

/// The usual transport, with a count of its requests in flight. Clones share the count.
#[derive(Clone, Debug, Default)]
pub(crate) struct CountedTransport {
    transport: Reqwest,
    under_way: Arc<AtomicUsize>,
}

/// A request in flight, until its response is read or the request is dropped.
pub(crate) struct CountedRequest {
    sending: <Reqwest as Transport>::Sending,
    under_way: Arc<AtomicUsize>,
}

impl CountedTransport {
    /// Whether no request is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.under_way.load(Ordering::SeqCst) == 0
    }
}

impl Transport for CountedTransport {
    type Sending = CountedRequest;
    type Stream = ReqwestStream;

    fn send(&self, request: Request) -> CountedRequest {
        self.under_way.fetch_add(1, Ordering::SeqCst);
        let under_way = Arc::clone(&self.under_way);
        CountedRequest { sending: self.transport.send(request), under_way }
    }

    async fn open(&self, request: Request) -> Result<(StreamHead, ReqwestStream), FailureKind> {
        self.transport.open(request).await
    }

    fn streams(&self) -> StreamLimits {
        self.transport.streams()
    }
}

impl Future for CountedRequest {
    type Output = Result<Response, FailureKind>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.sending).poll(cx)
    }
}

impl Drop for CountedRequest {
    fn drop(&mut self) {
        self.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}
