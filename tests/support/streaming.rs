//! What a gateway does with a request for a stream.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// What is done with a request for a stream.
#[derive(Clone, Debug, Default)]
pub(crate) enum Streaming {
    /// It is passed on, both ways.
    #[default]
    Passed,
    /// It is passed on until the subscription stands, and ended then.
    Acknowledged,
    /// It is answered with a stream that ends at once.
    Ended,
    /// It is answered with this status.
    Refused(u16),
    /// Nothing is ever heard of it.
    Silent,
}

impl Streaming {
    /// Does so with a request whose bytes are `raw`. `open`: how many streams there are for as long as both sides have them or
    /// until they are `cut`.
    pub(super) async fn answer(
        self,
        mut client: TcpStream,
        raw: &[u8],
        target: SocketAddr,
        open: &AtomicUsize,
        cut: &Notify,
    ) {
        let answer = match self {
            Self::Passed => {
                let mut gateway = asked(target, raw).await;
                open.fetch_add(1, Ordering::SeqCst);
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut client, &mut gateway) => {}
                    () = cut.notified() => {}
                }
                open.fetch_sub(1, Ordering::SeqCst);
                return;
            }
            Self::Acknowledged => acknowledgement(asked(target, raw).await).await,
            Self::Ended => "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\n\r\n".into(),
            Self::Refused(status) => {
                format!("HTTP/1.1 {status} No\r\ncontent-length: 2\r\n\r\n{{}}").into()
            }
            Self::Silent => {
                let _ = client.read(&mut [0]).await;
                return;
            }
        };
        // The client may be gone by now; that is its right.
        let _ = client.write_all(&answer).await;
    }
}

/// The real gateway, which has the request.
async fn asked(target: SocketAddr, raw: &[u8]) -> TcpStream {
    let mut gateway = TcpStream::connect(target).await.unwrap();
    gateway.write_all(raw).await.unwrap();
    gateway
}

/// What it says until the subscription stands.
async fn acknowledgement(mut gateway: TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    while !answer.windows(2).any(|two| two == b"\n\n") {
        assert_ne!(gateway.read_buf(&mut answer).await.unwrap(), 0);
    }
    answer
}
