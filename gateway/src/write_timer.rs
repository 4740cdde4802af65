//! Bounds the time that a client may leave a response unread.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A connection whose writes fail with [`io::ErrorKind::TimedOut`] when the client reads no byte
/// for `write_time`.
pub(crate) struct WriteTimer<S> {
    stream: S,
    write_time: Duration,
    timer: Pin<Box<Sleep>>,
    is_running: bool,
}

impl<S> WriteTimer<S> {
    pub(crate) fn new(stream: S, write_time: Duration) -> Self {
        Self { stream, write_time, timer: Box::pin(sleep(write_time)), is_running: false }
    }

    /// Starts the timer at a write that has to wait, and stops it at the next one that succeeds.
    fn watch<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.is_running = false;
            return written;
        }
        if !self.is_running {
            self.timer.as_mut().reset(Instant::now() + self.write_time);
            self.is_running = true;
        }
        ready!(self.timer.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimer<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimer<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Not timed, since flushing a socket never waits.
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
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    const WRITE_TIME: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_is_given_up() {
        let (_client, server) = duplex(4);
        let mut timer = WriteTimer::new(server, WRITE_TIME);
        let begin = Instant::now();
        let error = timer.write_all(b"more than there is room for").await.unwrap_err();
        assert_eq!((error.kind(), begin.elapsed()), (io::ErrorKind::TimedOut, WRITE_TIME));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_reads_slowly_is_waited_for() {
        let (mut client, server) = duplex(4);
        let mut timer = WriteTimer::new(server, WRITE_TIME);
        let reading = async {
            for _ in 0..5 {
                sleep(WRITE_TIME - Duration::from_secs(1)).await;
                client.read_exact(&mut [0; 4]).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(timer.write_all(&[0; 20]), reading);
        assert!(written.is_ok());
        // Each wait has the whole time, however long the earlier ones were.
        sleep(WRITE_TIME).await;
        let (written, ()) = tokio::join!(timer.write_all(&[0; 5]), async {
            sleep(WRITE_TIME / 2).await;
            client.read_exact(&mut [0; 4]).await.unwrap();
        });
        assert!(written.is_ok());
    }
}
