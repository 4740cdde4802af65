//! The transport to a gateway in memory.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};

use ::tokio::time::sleep;

use super::TestGateway;
use crate::error::FailureKind;
use crate::transport::{ByteStream, Request, Response, StreamHead, StreamLimits, Transport};
use edgelatch_testing::StreamId;

/// The largest number of streams of a client, as in production.
const STREAMS: usize = 256;

/// Passes the requests of clients to a [`TestGateway`].
#[derive(Clone, Debug)]
pub struct TestTransport {
    gateway: TestGateway,
}

impl TestTransport {
    pub(super) const fn new(gateway: TestGateway) -> Self {
        Self { gateway }
    }
}

impl Transport for TestTransport {
    type Sending = TestSending;

    fn send(&self, request: Request) -> TestSending {
        let gateway = self.gateway.clone();
        TestSending(Box::pin(async move {
            let send = |memory: &mut edgelatch_testing::MemoryGateway, now| {
                (memory.send(&request, now), memory.reply_delay())
            };
            let (result, delay) = gateway.change(send);
            if !delay.is_zero() {
                sleep(delay).await;
            }
            result
        }))
    }

    type Stream = TestStream;

    async fn open(&self, request: Request) -> Result<(StreamHead, TestStream), FailureKind> {
        let (status, id) = self.gateway.change(|memory, _| memory.open(&request))?;
        let stream = TestStream { gateway: self.gateway.clone(), id };
        Ok((StreamHead { status, retry_after: None }, stream))
    }

    fn streams(&self) -> StreamLimits {
        StreamLimits { max: STREAMS, shared: true }
    }
}

/// A request in flight.
pub struct TestSending(Pin<Box<dyn Future<Output = Result<Response, FailureKind>> + Send>>);

impl fmt::Debug for TestSending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestSending").finish_non_exhaustive()
    }
}

impl Future for TestSending {
    type Output = Result<Response, FailureKind>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

/// A stream of messages. Dropping it closes it.
#[derive(Debug)]
pub struct TestStream {
    gateway: TestGateway,
    id: StreamId,
}

impl ByteStream for TestStream {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, FailureKind>>> {
        let mut state = self.gateway.state();
        let next = state.gateway.read(self.id);
        if next.is_pending() && !state.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            state.wakers.push(cx.waker().clone());
        }
        next.map(|bytes| bytes.map(String::into_bytes).map(Ok))
    }
}

impl Drop for TestStream {
    fn drop(&mut self) {
        self.gateway.state().gateway.close(self.id);
    }
}
