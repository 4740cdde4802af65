//! How a gateway handles a request for a stream.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// How a request for a stream is handled.
#[derive(Clone, Debug, Default)]
pub enum Streaming {
    /// It is passed on in both directions.
    #[default]
    Passed,
    /// It is passed on until the subscription is confirmed, and ended then.
    Acknowledged,
    /// The response is a stream that ends at once.
    Ended,
    /// The response has this status.
    Refused(u16),
    /// The response has status 429 and this `Retry-After` in seconds.
    Limited(u64),
    /// There is no response.
    Silent,
}

/// The streams of a proxy.
#[derive(Default)]
pub(super) struct Streams {
    streaming: Mutex<Streaming>,
    asked_for: AtomicUsize,
    /// Requests that the real gateway has not responded to yet.
    opening: AtomicUsize,
    open: AtomicUsize,
    cut: Notify,
}

/// Adds one to a counter while it lives.
pub(super) struct Counted<'a>(&'a AtomicUsize);

impl Streams {
    /// Handles further requests in this way.
    pub(super) fn set(&self, streaming: Streaming) {
        *self.streaming.lock().unwrap() = streaming;
    }

    /// Ends all open streams.
    pub(super) fn cut(&self) {
        self.cut.notify_waiters();
    }

    /// The number of requests so far, and of streams that are open on both sides.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.asked_for.load(Ordering::SeqCst), self.open.load(Ordering::SeqCst))
    }

    /// Whether the real gateway has responded to each request that it received.
    pub(super) fn are_answered(&self) -> bool {
        self.opening.load(Ordering::SeqCst) == 0
    }

    /// Handles a request, whose bytes are `raw`.
    pub(super) async fn answer(&self, mut client: TcpStream, raw: &[u8], target: SocketAddr) {
        self.asked_for.fetch_add(1, Ordering::SeqCst);
        let streaming = self.streaming.lock().unwrap().clone();
        let answer = match streaming {
            Streaming::Passed => {
                tokio::select! {
                    () = self.pass_on(client, raw, target) => {}
                    () = self.cut.notified() => {}
                }
                return;
            }
            Streaming::Acknowledged => self.acknowledgement(raw, target).await,
            Streaming::Ended => "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\n\r\n".into(),
            Streaming::Refused(status) => {
                format!("HTTP/1.1 {status} No\r\ncontent-length: 2\r\n\r\n{{}}").into()
            }
            Streaming::Limited(seconds) => format!(
                "HTTP/1.1 429 No\r\nretry-after: {seconds}\r\ncontent-length: 2\r\n\r\n{{}}"
            )
            .into(),
            Streaming::Silent => {
                let _ = client.read(&mut [0]).await;
                return;
            }
        };
        // The client may have closed the connection already.
        let _ = client.write_all(&answer).await;
    }

    /// Copies in both directions until one side ends the stream.
    async fn pass_on(&self, mut client: TcpStream, raw: &[u8], target: SocketAddr) {
        let opening = Counted::new(&self.opening);
        let mut gateway = asked(target, raw).await;
        let _open = Counted::new(&self.open);
        gateway.readable().await.unwrap();
        drop(opening);
        let _ = tokio::io::copy_bidirectional(&mut client, &mut gateway).await;
    }

    /// The real gateway's response up to the confirmation of the subscription.
    async fn acknowledgement(&self, raw: &[u8], target: SocketAddr) -> Vec<u8> {
        let _opening = Counted::new(&self.opening);
        let mut gateway = asked(target, raw).await;
        let mut answer = Vec::new();
        while !answer.windows(2).any(|two| two == b"\n\n") {
            assert_ne!(gateway.read_buf(&mut answer).await.unwrap(), 0);
        }
        answer
    }
}

impl<'a> Counted<'a> {
    pub(super) fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A connection to the real gateway on which the request was sent.
async fn asked(target: SocketAddr, raw: &[u8]) -> TcpStream {
    let mut gateway = TcpStream::connect(target).await.unwrap();
    gateway.write_all(raw).await.unwrap();
    gateway
}
