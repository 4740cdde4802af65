//! A way to a Redis on which replicas can be made to hear nothing, while everybody else goes on.

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::select;
use tokio::sync::watch::{Receiver, Sender, channel};
use tokio::task::{AbortHandle, JoinSet};

/// What a replica says before it is told what its master writes.
const REPLICATES: &[u8] = b"PSYNC";

/// What becomes of replication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Runs,
    /// Nothing is passed on, and no connection ends.
    Stalls,
    /// The connections end, and what was on its way is gone.
    Ends,
}

/// Passes on what goes to a Redis and comes from it; ends with the value.
pub(crate) struct Link {
    flow: Sender<Flow>,
    listening: AbortHandle,
}

impl Link {
    /// To what listens at this port of loopback; answers the port of the way.
    pub(crate) fn start(port: u16) -> (Self, u16) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        let own = listener.local_addr().unwrap().port();
        let flow = Sender::new(Flow::Runs);
        let listening = tokio::spawn(listen(listener, port, flow.clone())).abort_handle();
        (Self { flow, listening }, own)
    }

    /// From now on replicas hear nothing more.
    pub(crate) fn stall(&self) {
        self.flow.send_replace(Flow::Stalls);
    }

    /// And never will.
    pub(crate) fn cut(&self) {
        self.flow.send_replace(Flow::Ends);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn listen(listener: TcpListener, port: u16, flow: Sender<Flow>) {
    // Ends with this future, so nothing outlives the way.
    let mut connections = JoinSet::new();
    loop {
        let (here, _) = listener.accept().await.unwrap();
        let flow = flow.subscribe();
        connections.spawn(async move {
            // Nobody there: the connection ends, as it would without a way.
            if let Ok(there) = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).await {
                carry(here, there, flow).await;
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

/// Passes on in both directions until one side ends.
async fn carry(here: TcpStream, there: TcpStream, flow: Receiver<Flow>) {
    let ((from_client, to_client), (from_redis, to_redis)) =
        (here.into_split(), there.into_split());
    let (told, replicates) = channel(false);
    select! {
        () = pump(from_client, to_redis, &flow, &replicates, Some(told)) => {}
        () = pump(from_redis, to_client, &flow, &replicates, None) => {}
    }
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    flow: &Receiver<Flow>,
    replicates: &Receiver<bool>,
    told: Option<Sender<bool>>,
) {
    let mut bytes = vec![0; 1 << 16];
    let mut flow = flow.clone();
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if let Some(told) = &told
            && bytes[..count].windows(REPLICATES.len()).any(|word| word == REPLICATES)
        {
            told.send_replace(true);
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
