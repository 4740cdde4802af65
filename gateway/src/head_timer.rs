//! Bounds the time that the head of a request may take.
//!
//! hyper's own timer runs from the end of the previous response, so it has to allow for idle
//! connections. This one runs from the first byte of a head, or for the first request from the
//! start of the connection.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A connection whose reads fail with [`io::ErrorKind::TimedOut`] when a head takes too long.
pub(crate) struct HeadTimer<S> {
    stream: S,
    head_time: Duration,
    progress: Progress,
    timer: Pin<Box<Sleep>>,
    /// While the timer runs for a head: the number of heads before it.
    runs_for: Option<usize>,
}

/// Counts the heads read and the responses completed on a connection.
#[derive(Clone, Default)]
pub(crate) struct Progress(Arc<Counts>);

#[derive(Default)]
struct Counts {
    heads: AtomicUsize,
    answers: AtomicUsize,
}

/// A request whose head has been read. Its response counts as completed when this is dropped.
pub(crate) struct Serving(Progress);

/// The body of a response. Dropping it completes the response.
pub(crate) struct Answering<B> {
    body: B,
    _serving: Serving,
}

impl<S> HeadTimer<S> {
    pub(crate) fn new(stream: S, head_time: Duration) -> Self {
        let (progress, timer) = (Progress::default(), Box::pin(sleep(head_time)));
        Self { stream, head_time, progress, timer, runs_for: Some(0) }
    }

    /// Returns the counts that the service of this connection updates.
    pub(crate) fn progress(&self) -> Progress {
        self.progress.clone()
    }
}

impl Progress {
    /// Counts a head that has been read.
    pub(crate) fn head(&self) -> Serving {
        self.0.heads.fetch_add(1, Ordering::Relaxed);
        Serving(self.clone())
    }

    /// Returns the number of heads read if all responses are completed. Otherwise returns `None`:
    /// the next bytes are a body, or the next head of a client that pipelines requests.
    fn awaits_head(&self) -> Option<usize> {
        let heads = self.0.heads.load(Ordering::Relaxed);
        (heads == self.0.answers.load(Ordering::Relaxed)).then_some(heads)
    }
}

impl Serving {
    pub(crate) fn with<B>(self, body: B) -> Answering<B> {
        Answering { body, _serving: self }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.0.answers.fetch_add(1, Ordering::Relaxed);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HeadTimer<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        let Some(heads) = this.progress.awaits_head() else {
            this.runs_for = None;
            return read;
        };
        if this.runs_for != Some(heads) {
            if read.is_pending() || buffer.filled().len() == before {
                return read;
            }
            this.timer.as_mut().reset(Instant::now() + this.head_time);
            this.runs_for = Some(heads);
        }
        if read.is_pending() {
            // Polling registers the task with the timer, which wakes it too.
            ready!(this.timer.as_mut().poll(context));
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HeadTimer<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

impl<B: Body + Unpin> Body for Answering<B> {
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio::time::timeout;

    use super::*;

    const HEAD_TIME: Duration = Duration::from_secs(10);
    /// A time just below `HEAD_TIME`, and one far above it.
    const NEARLY: Duration = Duration::from_secs(9);
    const LONG: Duration = Duration::from_secs(1000);

    fn connection() -> (DuplexStream, HeadTimer<DuplexStream>) {
        let (client, server) = duplex(1024);
        (client, HeadTimer::new(server, HEAD_TIME))
    }

    /// Reads one byte; `None` if the timer has ended the connection.
    async fn read(timer: &mut HeadTimer<DuplexStream>) -> Option<u8> {
        match timer.read_u8().await {
            Ok(byte) => Some(byte),
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::TimedOut);
                None
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_head_is_timed_from_the_begin_of_the_connection() {
        let (mut client, mut timer) = connection();
        let begin = Instant::now();
        assert!(timeout(NEARLY, read(&mut timer)).await.is_err());
        client.write_all(b"G").await.unwrap();
        assert_eq!(read(&mut timer).await, Some(b'G'));
        assert_eq!(read(&mut timer).await, None);
        assert_eq!(begin.elapsed(), HEAD_TIME);
    }

    #[tokio::test(start_paused = true)]
    async fn later_heads_are_timed_from_their_first_byte_however_their_bytes_come() {
        let (mut client, mut timer) = connection();
        drop(timer.progress().head());
        assert!(timeout(LONG, read(&mut timer)).await.is_err());
        let begin = Instant::now();
        let sending = async {
            while client.write_all(b"x").await.is_ok() {
                sleep(Duration::from_secs(3)).await;
            }
        };
        let reading = async {
            let mut bytes = 0;
            while read(&mut timer).await.is_some() {
                bytes += 1;
            }
            bytes
        };
        tokio::select! {
            () = sending => unreachable!(),
            bytes = reading => assert_eq!(bytes, 4),
        }
        assert_eq!(begin.elapsed(), HEAD_TIME);
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_and_answers_are_not_timed() {
        let (mut client, mut timer) = connection();
        let serving = timer.progress().head();
        client.write_all(b"b").await.unwrap();
        assert_eq!(read(&mut timer).await, Some(b'b'));
        assert!(timeout(LONG, read(&mut timer)).await.is_err());
        // Even if `b` began the next head, the timer starts at the next byte after the response.
        drop(serving);
        assert!(timeout(LONG, read(&mut timer)).await.is_err());
        client.write_all(b"G").await.unwrap();
        assert_eq!(read(&mut timer).await, Some(b'G'));
        assert_eq!(read(&mut timer).await, None);
    }
}
