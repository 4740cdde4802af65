//! Bounds the time that the head of a request may take, and the time that a client may leave a
//! response unread.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use crate::request_tracker::RequestTracker;

/// A connection whose reads and writes fail with [`io::ErrorKind::TimedOut`] when a head takes too
/// long, and when the client reads no byte for too long.
pub(crate) struct TimedStream<S> {
    stream: S,
    tracker: RequestTracker,
    head: HeadTimer,
    write: WriteTimer,
}

/// Limits the time of a head.
///
/// hyper's own timer runs from the end of the previous response, so it has to allow for idle
/// connections. This one runs from the first byte of a head, or for the first request from the
/// start of the connection.
struct HeadTimer {
    time: Duration,
    timer: Pin<Box<Sleep>>,
    /// While the timer runs for a head: the number of heads before it.
    runs_for: Option<usize>,
}

/// Limits the time of a write that has to wait for the client to read.
struct WriteTimer {
    time: Duration,
    timer: Pin<Box<Sleep>>,
    is_running: bool,
}

impl<S> TimedStream<S> {
    /// Wraps a new connection. A head may take `head_time`; the client may read no byte of a
    /// response for `write_time`.
    pub(crate) fn new(stream: S, head_time: Duration, write_time: Duration) -> Self {
        let head =
            HeadTimer { time: head_time, timer: Box::pin(sleep(head_time)), runs_for: Some(0) };
        let write =
            WriteTimer { time: write_time, timer: Box::pin(sleep(write_time)), is_running: false };
        Self { stream, tracker: RequestTracker::default(), head, write }
    }

    /// Returns the tracker that the service of this connection updates.
    pub(crate) fn tracker(&self) -> RequestTracker {
        self.tracker.clone()
    }
}

impl HeadTimer {
    /// Starts the timer at the first byte of a head, and returns an error when it fires before the
    /// head is complete. `awaited` is the number of earlier heads if the connection awaits a head;
    /// `has_bytes` says whether the read returned any.
    fn on_read(
        &mut self,
        context: &mut Context<'_>,
        awaited: Option<usize>,
        has_bytes: bool,
        read: Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        let Some(heads) = awaited else {
            self.runs_for = None;
            return read;
        };
        if self.runs_for != Some(heads) {
            if read.is_pending() || !has_bytes {
                return read;
            }
            self.timer.as_mut().reset(Instant::now() + self.time);
            self.runs_for = Some(heads);
        }
        if read.is_pending() {
            // Polling registers the task with the timer, which wakes it too.
            ready!(self.timer.as_mut().poll(context));
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl WriteTimer {
    /// Starts the timer at a write that has to wait, and stops it at the next one that succeeds.
    fn on_write(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.is_running = false;
            return written;
        }
        if !self.is_running {
            self.timer.as_mut().reset(Instant::now() + self.time);
            self.is_running = true;
        }
        ready!(self.timer.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        let has_bytes = buffer.filled().len() > before;
        this.head.on_read(context, this.tracker.awaited_head(), has_bytes, read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.write.on_write(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.write.on_write(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Not timed, since flushing a socket never waits.
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio::time::timeout;

    use super::*;

    const HEAD_TIME: Duration = Duration::from_secs(10);
    const WRITE_TIME: Duration = Duration::from_secs(30);
    /// A time just below `HEAD_TIME`, and one far above it.
    const NEARLY: Duration = Duration::from_secs(9);
    const LONG: Duration = Duration::from_secs(1000);

    fn connection() -> (DuplexStream, TimedStream<DuplexStream>) {
        let (client, server) = duplex(1024);
        (client, TimedStream::new(server, HEAD_TIME, WRITE_TIME))
    }

    /// Reads one byte; `None` if the timer has ended the connection.
    async fn read(stream: &mut TimedStream<DuplexStream>) -> Option<u8> {
        match stream.read_u8().await {
            Ok(byte) => Some(byte),
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::TimedOut);
                None
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_head_is_timed_from_the_start_of_the_connection() {
        let (mut client, mut stream) = connection();
        let begin = Instant::now();
        assert!(timeout(NEARLY, read(&mut stream)).await.is_err());
        client.write_all(b"G").await.unwrap();
        assert_eq!(read(&mut stream).await, Some(b'G'));
        assert_eq!(read(&mut stream).await, None);
        assert_eq!(begin.elapsed(), HEAD_TIME);
    }

    #[tokio::test(start_paused = true)]
    async fn later_heads_are_timed_from_their_first_byte_however_their_bytes_arrive() {
        let (mut client, mut stream) = connection();
        drop(stream.tracker().on_head());
        assert!(timeout(LONG, read(&mut stream)).await.is_err());
        let begin = Instant::now();
        let sending = async {
            while client.write_all(b"x").await.is_ok() {
                sleep(Duration::from_secs(3)).await;
            }
        };
        let reading = async {
            let mut bytes = 0;
            while read(&mut stream).await.is_some() {
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
    async fn bodies_and_responses_are_not_timed() {
        let (mut client, mut stream) = connection();
        let request = stream.tracker().on_head();
        client.write_all(b"b").await.unwrap();
        assert_eq!(read(&mut stream).await, Some(b'b'));
        assert!(timeout(LONG, read(&mut stream)).await.is_err());
        // Even if `b` began the next head, the timer starts at the next byte after the response.
        drop(request);
        assert!(timeout(LONG, read(&mut stream)).await.is_err());
        client.write_all(b"G").await.unwrap();
        assert_eq!(read(&mut stream).await, Some(b'G'));
        assert_eq!(read(&mut stream).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_loses_its_connection() {
        let (_client, server) = duplex(4);
        let mut stream = TimedStream::new(server, HEAD_TIME, WRITE_TIME);
        let begin = Instant::now();
        let error = stream.write_all(b"more than there is room for").await.unwrap_err();
        assert_eq!((error.kind(), begin.elapsed()), (io::ErrorKind::TimedOut, WRITE_TIME));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_slowly_keeps_its_connection() {
        let (mut client, server) = duplex(4);
        let mut stream = TimedStream::new(server, HEAD_TIME, WRITE_TIME);
        let reading = async {
            for _ in 0..5 {
                sleep(WRITE_TIME - Duration::from_secs(1)).await;
                client.read_exact(&mut [0; 4]).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(stream.write_all(&[0; 20]), reading);
        assert!(written.is_ok());
        // Each wait has the whole time, however long the earlier ones were.
        sleep(WRITE_TIME).await;
        let (written, ()) = tokio::join!(stream.write_all(&[0; 5]), async {
            sleep(WRITE_TIME / 2).await;
            client.read_exact(&mut [0; 4]).await.unwrap();
        });
        assert!(written.is_ok());
    }
}
