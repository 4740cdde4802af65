//! A proxy in front of a Redis that can hold back replication while other connections work.

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::select;
use tokio::sync::watch::{Receiver, Sender, channel};
use tokio::task::{AbortHandle, JoinSet};

/// The command with which a replica starts replication.
const REPLICATES: &[u8] = b"PSYNC";

/// How the proxy treats replication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Runs,
    /// Forwards nothing, and keeps the connections open.
    Stalls,
    /// Closes the connections, and drops the bytes not yet forwarded.
    Ends,
}

/// A proxy that forwards both directions, and ends when this is dropped.
pub(crate) struct ReplicationProxy {
    flow: Sender<Flow>,
    listening: AbortHandle,
}

impl ReplicationProxy {
    /// Starts a proxy in front of this port of loopback; returns the proxy and its port.
    pub(crate) fn start(port: u16) -> (Self, u16) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        let own = listener.local_addr().unwrap().port();
        let flow = Sender::new(Flow::Runs);
        let listening = tokio::spawn(listen(listener, port, flow.clone())).abort_handle();
        (Self { flow, listening }, own)
    }

    /// Holds replication back from now on.
    pub(crate) fn stall(&self) {
        self.flow.send_replace(Flow::Stalls);
    }

    /// Closes the replication connections for good.
    pub(crate) fn cut(&self) {
        self.flow.send_replace(Flow::Ends);
    }
}

impl Drop for ReplicationProxy {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn listen(listener: TcpListener, port: u16, flow: Sender<Flow>) {
    // Ends with this future, so no connection outlives the proxy.
    let mut connections = JoinSet::new();
    loop {
        let (here, _) = listener.accept().await.unwrap();
        let flow = flow.subscribe();
        connections.spawn(async move {
            // If nothing listens there, the connection ends, as it would without the proxy.
            if let Ok(there) = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).await {
                forward_both(here, there, flow).await;
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

/// Forwards both directions until one side ends.
async fn forward_both(here: TcpStream, there: TcpStream, flow: Receiver<Flow>) {
    let ((from_client, to_client), (from_redis, to_redis)) =
        (here.into_split(), there.into_split());
    let (replication_seen, replicates) = channel(false);
    select! {
        () = forward(from_client, to_redis, &flow, &replicates, Some(replication_seen)) => {}
        () = forward(from_redis, to_client, &flow, &replicates, None) => {}
    }
}

async fn forward(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    flow: &Receiver<Flow>,
    replicates: &Receiver<bool>,
    replication_seen: Option<Sender<bool>>,
) {
    let mut bytes = vec![0; 1 << 16];
    let mut flow = flow.clone();
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if let Some(replication_seen) = &replication_seen
            && bytes[..count].windows(REPLICATES.len()).any(|word| word == REPLICATES)
        {
            replication_seen.send_replace(true);
        }
        if *replicates.borrow() {
            let Ok(flow) = flow.wait_for(|flow| *flow != Flow::Stalls).await else { return };
            if *flow == Flow::Ends {
                return;
            }
        }
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
