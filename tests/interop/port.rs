//! A TCP port in front of a Redis that listens on a socket file, which Redisson cannot use.

use std::path::PathBuf;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::{AbortHandle, JoinSet};

/// Listens on loopback until it is dropped.
pub(crate) struct Port {
    number: u16,
    listening: AbortHandle,
}

impl Port {
    /// Opens a port that leads to the socket.
    pub(crate) async fn open(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let number = listener.local_addr().unwrap().port();
        Self { number, listening: tokio::spawn(listen(listener, socket)).abort_handle() }
    }

    /// The address in Redisson's format.
    pub(crate) fn address(&self) -> String {
        format!("redis://127.0.0.1:{}", self.number)
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn listen(listener: TcpListener, socket: PathBuf) {
    // Dropped with this future, so no connection outlives the port.
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        connections.spawn(pass_on(stream, socket.clone()));
        while connections.try_join_next().is_some() {}
    }
}

async fn pass_on(mut stream: TcpStream, socket: PathBuf) {
    stream.set_nodelay(true).unwrap();
    // Either side may have closed its connection.
    if let Ok(mut redis) = UnixStream::connect(socket).await {
        let _ = copy_bidirectional(&mut stream, &mut redis).await;
    }
}
