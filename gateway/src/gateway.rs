//! Starts the gateway, serves its connections, and shuts it down.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulConnection, GracefulShutdown};
use hyper_util::service::TowerToHyperService;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy, sink};
use tokio::net::{TcpListener, TcpStream};
use tokio::select;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::error::Elapsed;
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{debug, warn};

use crate::address::Peer;
use crate::backend::{Backend, Topology};
use crate::config::{Config, RedisSource};
use crate::limits::ConnectionLimits;
use crate::observe::{self, AccessLog, Metrics};
use crate::private_redis::{PrivateRedis, PrivateRedisError};
use crate::routes::{Context, router};
use crate::timed_stream::TimedStream;

/// The time that requests in flight have to end when the gateway shuts down.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest head of a request, in bytes: many times the longest channel and token.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// The most bytes of a body that are read at once.
const MAX_READ_BYTES: usize = 64 * 1024;
/// The interval between two clean-ups of the records of idle clients.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(10);
/// The most connections to the address of the metrics at once.
const MAX_METRICS_CONNECTIONS: usize = 16;
/// The response on a connection beyond the limits.
const TOO_MANY_CONNECTIONS: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: 41\r\nRetry-After: 1\r\nConnection: close\r\n\r\n{\"error\":\"ERR too many open connections\"}";
/// The most connections beyond the limits that get a response at the same time; the time that each
/// has for it; and the bytes that are read from each.
const MAX_REFUSALS: usize = 64;
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);
const MAX_REFUSAL_BYTES: u64 = 64 * 1024;
/// How long a client may read no byte of a response, or leave sent bytes unacknowledged, before it
/// loses its connection.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// A running gateway. It needs a Tokio runtime. It ends when it is dropped; only
/// [`shutdown`](Self::shutdown) lets requests in flight finish.
#[derive(Debug)]
pub struct Gateway {
    address: SocketAddr,
    stop: DropGuard,
    accepting: JoinHandle<()>,
    metrics: Option<(SocketAddr, JoinHandle<()>)>,
    access_log: Option<AccessLog>,
    backend: Arc<Backend>,
    // The last field, since fields are dropped in this order, and requests need their Redis.
    redis: Option<PrivateRedis>,
}

impl Gateway {
    /// Starts a gateway, and returns when it listens. A private Redis replies by then; a Redis
    /// elsewhere need not.
    ///
    /// # Errors
    ///
    /// If the gateway cannot listen on the address, the URL is not one of Redis, or the private
    /// Redis does not start.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let (topology, redis) = match &config.redis {
            RedisSource::Private => {
                let redis = PrivateRedis::start().await?;
                (Topology::unix(redis.socket().to_owned()), Some(redis))
            }
            RedisSource::Url(url) => (Topology::parse(url), None),
        };
        // The driver's error is dropped, since its text could repeat parts of the URL.
        let topology = topology.ok_or(StartError::Url)?;
        let servers = topology.servers();
        let backend = Backend::new(topology, config.connections);
        let backend = Arc::new(backend.map_err(|_| StartError::Url)?);
        let listener = TcpListener::bind(config.listen).await.map_err(StartError::Listen)?;
        let address = listener.local_addr().map_err(StartError::Listen)?;
        let metrics_listener = match config.metrics {
            Some(address) => Some(bind_metrics(address).await?),
            None => None,
        };
        let stop = CancellationToken::new();
        let context = Arc::new(Context::new(&config, Arc::clone(&backend), stop.clone()));
        let router = router(&config, &context);
        let metrics = Arc::clone(&context.metrics);
        drop(tokio::spawn(stop.clone().run_until_cancelled_owned(remove_idle(context))));
        let monitoring = Arc::clone(&backend).monitor(servers, metrics.redis_up());
        drop(tokio::spawn(stop.clone().run_until_cancelled_owned(monitoring)));
        let server = Server::new(&config, router, Some(Arc::clone(&metrics)));
        let accepting = tokio::spawn(server.listen(listener, stop.clone()));
        let metrics = metrics_listener.map(|(listener, address)| {
            let server = Server::new(&metrics_config(&config), observe::router(metrics), None);
            (address, tokio::spawn(server.listen(listener, stop.clone())))
        });
        let access_log = config.access_log;
        let stop = stop.drop_guard();
        Ok(Self { address, stop, accepting, metrics, access_log, backend, redis })
    }

    /// The address on which the gateway listens, with the port that the system chose if
    /// [`Config::listen`] has port 0.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of `/metrics`, with the port that the system chose if [`Config::metrics`] has
    /// port 0; `None` if the gateway offers no metrics.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(|(address, _)| *address)
    }

    /// Returns a function that returns the number of Redis nodes that the gateway sends commands
    /// to: the masters of a cluster, else 1. Until a cluster has replied, it is the number of nodes
    /// in its URL.
    pub fn redis_nodes(&self) -> impl Fn() -> usize + Send + use<> {
        let backend = Arc::clone(&self.backend);
        move || backend.nodes()
    }

    /// The path of the private Redis' socket; `None` without a private Redis.
    #[must_use]
    pub fn redis_socket(&self) -> Option<&Path> {
        self.redis.as_ref().map(PrivateRedis::socket)
    }

    /// Waits until the private Redis has ended by itself. Never returns without a private Redis.
    pub async fn redis_ended(&mut self) {
        match &mut self.redis {
            Some(redis) => redis.ended().await,
            None => pending().await,
        }
    }

    /// Shuts the gateway down: stops accepting connections, ends streams, waits at most 5 s for
    /// requests in flight, then ends the private Redis.
    pub async fn shutdown(self) {
        let Self { stop, accepting, metrics, access_log, redis, .. } = self;
        stop.disarm().cancel();
        let _ = accepting.await;
        if let Some((_, accepting)) = metrics {
            let _ = accepting.await;
        }
        if let Some(log) = access_log {
            log.flush().await;
        }
        if let Some(redis) = redis {
            redis.end().await;
        }
    }
}

/// The reason why a gateway did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The gateway cannot listen on the address; most likely another program does.
    #[error("cannot listen: {0}")]
    Listen(#[source] io::Error),
    /// The gateway cannot listen on the address of the metrics.
    #[error("cannot listen on the address of the metrics: {0}")]
    ListenMetrics(#[source] io::Error),
    /// The private Redis did not start.
    #[error(transparent)]
    PrivateRedis(#[from] PrivateRedisError),
    /// This build cannot connect to the URL.
    #[error(
        "not a Redis URL: redis://, redis+cluster://, redis+sentinel:// or unix: is expected, \
         or one of rediss with the feature `tls`"
    )]
    Url,
}

/// Listens on the address of the metrics. Returns it with the port that the system chose.
async fn bind_metrics(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let listener = TcpListener::bind(address).await.map_err(StartError::ListenMetrics)?;
    let address = listener.local_addr().map_err(StartError::ListenMetrics)?;
    Ok((listener, address))
}

/// Returns the configuration of the server of the metrics, which few collectors use.
fn metrics_config(config: &Config) -> Config {
    let mut config = config.clone();
    config.connection_limit = MAX_METRICS_CONNECTIONS;
    config.trusted_proxies = 0;
    config
}

/// Drops the records of idle clients and addresses, every [`CLEANUP_INTERVAL`].
async fn remove_idle(context: Arc<Context>) {
    loop {
        sleep(CLEANUP_INTERVAL).await;
        context.limits.remove_idle();
    }
}

/// Accepts connections and serves them.
struct Server {
    http: http1::Builder,
    service: TowerToHyperService<Router>,
    connection_limits: ConnectionLimits,
    /// A permit for each connection beyond the limits that gets a response.
    refusals: Arc<Semaphore>,
    head_time: Duration,
    /// Counts the connections; `None` for those of the metrics themselves.
    metrics: Option<Arc<Metrics>>,
}

impl Server {
    fn new(config: &Config, router: Router, metrics: Option<Arc<Metrics>>) -> Self {
        let mut http = http1::Builder::new();
        // hyper measures this time from the end of a response to the end of the next head.
        http.timer(TokioTimer::new())
            .header_read_timeout(config.idle_time)
            .max_header_size(MAX_HEAD_BYTES)
            .max_buf_size(MAX_READ_BYTES);
        let service = TowerToHyperService::new(router);
        let refusals = Arc::new(Semaphore::new(MAX_REFUSALS));
        let (connection_limits, head_time) = (ConnectionLimits::new(config), config.head_time);
        Self { http, service, connection_limits, refusals, head_time, metrics }
    }

    async fn listen(self, listener: TcpListener, stop: CancellationToken) {
        let graceful = GracefulShutdown::new();
        let mut connections = JoinSet::new();
        loop {
            let accepted = select! {
                // Ended connections are removed first, so that they do not count against the
                // limits.
                biased;
                () = stop.cancelled() => break,
                Some(_) = connections.join_next() => continue,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let Some(permit) = self.connection_limits.connect(peer.ip()) else {
                        if let Some(metrics) = &self.metrics {
                            metrics.count_refused_connection();
                        }
                        // With a response the client can retry, here or elsewhere, without a
                        // timeout.
                        if let Ok(refusal) = Arc::clone(&self.refusals).try_acquire_owned() {
                            connections.spawn(async move {
                                let _: Result<(), Elapsed> =
                                    timeout(REFUSAL_TIMEOUT, refuse(stream)).await;
                                drop(refusal);
                            });
                        }
                        continue;
                    };
                    let counted = self.metrics.as_ref().map(|metrics| metrics.open_connection());
                    let watched = graceful.watch(self.connection(stream, Peer(peer.ip())));
                    connections.spawn(async move {
                        // An error here concerns this client only.
                        let _ = watched.await;
                        drop((permit, counted));
                    });
                }
                Err(error) => {
                    // Most likely no file descriptor is left. Without a pause the loop would use
                    // the processor time that other tasks need to close one.
                    warn!(%error, "cannot accept a connection");
                    sleep(Duration::from_millis(50)).await;
                }
            }
        }
        drop(listener);
        if timeout(SHUTDOWN_TIMEOUT, graceful.shutdown()).await.is_err() {
            warn!(open = connections.len(), "some requests did not end in time");
        }
        connections.shutdown().await;
    }

    /// Serves the requests of one connection.
    fn connection(
        &self,
        stream: TcpStream,
        peer: Peer,
    ) -> impl GracefulConnection<Error = hyper::Error> + Send + use<> {
        set_socket_options(&stream);
        let stream = TimedStream::new(stream, self.head_time, WRITE_TIMEOUT);
        let (service, tracker) = (self.service.clone(), stream.tracker());
        let service = service_fn(move |mut request| {
            let in_flight = tracker.on_head();
            request.extensions_mut().insert(peer);
            let response = service.call(request);
            async { response.await.map(|response| response.map(|body| in_flight.track(body))) }
        });
        self.http.serve_connection(TokioIo::new(stream), service)
    }
}

/// Responds that too many connections are open. Reads what the client has sent before
/// closing: closing with unread bytes resets the connection, and the client may then lose the
/// response.
async fn refuse(mut stream: TcpStream) {
    if stream.write_all(TOO_MANY_CONNECTIONS).await.is_ok() && stream.shutdown().await.is_ok() {
        let _: io::Result<u64> = copy(&mut stream.take(MAX_REFUSAL_BYTES), &mut sink()).await;
    }
}

/// Sets the options of a connection: small responses are sent at once, and a client that has
/// vanished is noticed.
fn set_socket_options(stream: &TcpStream) {
    let keep_alive = TcpKeepalive::new()
        .with_time(Duration::from_secs(30))
        .with_interval(Duration::from_secs(10));
    let socket = SockRef::from(stream);
    let result = stream.set_nodelay(true).and_then(|()| socket.set_tcp_keepalive(&keep_alive));
    #[cfg(target_os = "linux")]
    let result = result.and_then(|()| socket.set_tcp_user_timeout(Some(WRITE_TIMEOUT)));
    if let Err(error) = result {
        debug!(%error, "cannot set the options of a connection");
    }
}
