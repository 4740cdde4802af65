//! The metrics of one gateway.

use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use tokio::time::Instant;

use super::labels::{
    CODES, CodeLabel, FailureKind, KindLabel, Operation, OperationLabel, ReasonLabel,
    RequestLabels, Route, RouteLabel, RuleLabel, StreamEnd,
};
use crate::config::Config;
use crate::scoped::ScopeViolation;

/// The upper bounds of the buckets of durations, in seconds: from a command on a Redis nearby to
/// the longest request time that is the default.
const BUCKETS: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

type Durations<L> = Family<L, Histogram, fn() -> Histogram>;

/// Counts what the gateway does. The counters are created with the gateway, so that a rate over
/// their first increase is right.
pub(crate) struct Metrics {
    registry: Registry,
    pub(super) requests: Family<RequestLabels, Counter>,
    pub(super) request_duration: Durations<RouteLabel>,
    pub(super) requests_in_flight: Gauge,
    errors: Family<KindLabel, Counter>,
    scope_refusals: Family<RuleLabel, Counter>,
    commands: Counter,
    error_replies: Family<CodeLabel, Counter>,
    redis_duration: Durations<OperationLabel>,
    redis_up: Gauge,
    streams: Gauge,
    stream_ends: Family<ReasonLabel, Counter>,
    connections: Gauge,
    connections_accepted: Counter,
    connections_refused: Counter,
    log_lines_dropped: Counter,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    pub(crate) fn new(config: &Config) -> Self {
        let durations = || Histogram::new(BUCKETS);
        let mut metrics = Self {
            registry: Registry::with_prefix("edgelatch_gateway"),
            requests: Family::default(),
            request_duration: Family::new_with_constructor(durations),
            requests_in_flight: Gauge::default(),
            errors: Family::default(),
            scope_refusals: Family::default(),
            commands: Counter::default(),
            error_replies: Family::default(),
            redis_duration: Family::new_with_constructor(durations),
            redis_up: Gauge::default(),
            streams: Gauge::default(),
            stream_ends: Family::default(),
            connections: Gauge::default(),
            connections_accepted: Counter::default(),
            connections_refused: Counter::default(),
            log_lines_dropped: Counter::default(),
        };
        metrics.create_series();
        metrics.register_requests();
        metrics.register_redis();
        metrics.register_connections(config);
        metrics
    }

    /// Creates every series whose labels are known in advance, so that it begins at 0.
    fn create_series(&self) {
        for Route(route) in Route::ALL {
            drop(self.request_duration.get_or_create(&RouteLabel { route }));
        }
        for FailureKind(kind) in FailureKind::ALL {
            drop(self.errors.get_or_create(&KindLabel { kind }));
        }
        for rule in ScopeViolation::RULES {
            drop(self.scope_refusals.get_or_create(&RuleLabel { rule }));
        }
        for code in CODES.into_iter().chain(["other"]) {
            drop(self.error_replies.get_or_create(&CodeLabel { code }));
        }
        for operation in Operation::ALL.map(Operation::name) {
            drop(self.redis_duration.get_or_create(&OperationLabel { operation }));
        }
        for reason in StreamEnd::ALL.map(StreamEnd::name) {
            drop(self.stream_ends.get_or_create(&ReasonLabel { reason }));
        }
    }

    fn register_requests(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "requests",
            "Requests by route and status; 499: the client left before the response",
            self.requests.clone(),
        );
        registry.register_with_unit(
            "request_duration",
            "Time from the head of a request to that of its response",
            Unit::Seconds,
            self.request_duration.clone(),
        );
        registry.register(
            "requests_in_flight",
            "Requests without a response yet",
            self.requests_in_flight.clone(),
        );
        registry.register(
            "errors",
            "Requests, and commands of pipelines, that got no reply of Redis",
            self.errors.clone(),
        );
        registry.register(
            "scope_refusals",
            "Requests, and commands of pipelines, that a scoped token does not allow",
            self.scope_refusals.clone(),
        );
    }

    fn register_redis(&mut self) {
        let registry = &mut self.registry;
        registry.register("commands", "Commands sent to Redis", self.commands.clone());
        registry.register(
            "error_replies",
            "Errors that Redis replied, by their code",
            self.error_replies.clone(),
        );
        registry.register_with_unit(
            "redis_duration",
            "Time from the sending of commands to the reply of Redis",
            Unit::Seconds,
            self.redis_duration.clone(),
        );
        registry.register(
            "redis_up",
            "Whether Redis replied to the last check, one a second: 1 or 0",
            self.redis_up.clone(),
        );
    }

    fn register_connections(&mut self, config: &Config) {
        let registry = &mut self.registry;
        let limit = |number: usize| {
            let gauge: Gauge = Gauge::default();
            gauge.set(i64::try_from(number).unwrap_or(i64::MAX));
            gauge
        };
        registry.register("streams", "Open streams", self.streams.clone());
        registry.register("stream_limit", "The most streams at once", limit(config.stream_limit));
        registry.register("stream_ends", "Streams that have ended", self.stream_ends.clone());
        registry.register("connections", "Open connections", self.connections.clone());
        registry.register(
            "connection_limit",
            "The most connections at once",
            limit(config.connection_limit),
        );
        registry.register(
            "connections_accepted",
            "Connections within the limits",
            self.connections_accepted.clone(),
        );
        registry.register(
            "connections_refused",
            "Connections beyond the limits",
            self.connections_refused.clone(),
        );
        registry.register(
            "log_lines_dropped",
            "Lines of the access log that were not written, since its reader was too slow",
            self.log_lines_dropped.clone(),
        );
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The version of the gateway", version);
    }

    /// Returns all metrics in OpenMetrics' text format; `None` if they cannot be encoded.
    pub(super) fn encode(&self) -> Option<String> {
        let mut text = String::new();
        encode(&mut text, &self.registry).ok()?;
        Some(text)
    }

    /// Counts a request, or a command of a pipeline, that gets no reply of Redis.
    pub(crate) fn count_failure(&self, FailureKind(kind): FailureKind) {
        self.errors.get_or_create(&KindLabel { kind }).inc();
    }

    /// Counts a request, or a command of a pipeline, that its scoped token does not allow.
    pub(crate) fn count_violation(&self, violation: ScopeViolation) {
        self.scope_refusals.get_or_create(&RuleLabel { rule: violation.rule() }).inc();
    }

    /// Counts commands that are sent to Redis.
    pub(crate) fn count_commands(&self, number: usize) {
        self.commands.inc_by(u64::try_from(number).unwrap_or(u64::MAX));
    }

    /// Counts an error that Redis replied. Scripts can reply with any code, so unknown codes count
    /// together.
    pub(crate) fn count_error_reply(&self, code: &str) {
        let code = CODES.into_iter().find(|known| *known == code).unwrap_or("other");
        self.error_replies.get_or_create(&CodeLabel { code }).inc();
    }

    pub(super) fn count_dropped_line(&self) {
        self.log_lines_dropped.inc();
    }

    /// Runs `sending`, and records how long it took, even if it is dropped before its end.
    pub(crate) fn time_redis<F: Future>(
        &self,
        operation: Operation,
        sending: F,
    ) -> impl Future<Output = F::Output> + use<F> {
        let label = OperationLabel { operation: operation.name() };
        let histogram = self.redis_duration.get_or_create(&label).clone();
        async move {
            let _timer = Timer { histogram, begin: Instant::now() };
            sending.await
        }
    }

    pub(crate) fn redis_up(&self) -> UpGauge {
        UpGauge(self.redis_up.clone())
    }

    /// Counts a stream, until [`OpenStream::end`] or its drop.
    pub(crate) fn open_stream(self: &Arc<Self>) -> OpenStream {
        self.streams.inc();
        OpenStream(Arc::clone(self))
    }

    /// Counts a connection within the limits, until the result is dropped.
    pub(crate) fn open_connection(&self) -> Level {
        self.connections_accepted.inc();
        Level::new(&self.connections)
    }

    /// Counts a connection beyond the limits.
    pub(crate) fn count_refused_connection(&self) {
        self.connections_refused.inc();
    }
}

/// Records a duration when it is dropped.
struct Timer {
    histogram: Histogram,
    begin: Instant,
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.histogram.observe(self.begin.elapsed().as_secs_f64());
    }
}

/// One unit in a gauge, until it is dropped.
pub(crate) struct Level(Gauge);

impl Level {
    pub(super) fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Whether Redis replies.
pub(crate) struct UpGauge(Gauge);

impl UpGauge {
    pub(crate) fn set(&self, is_up: bool) {
        self.0.set(i64::from(is_up));
    }
}

/// An open stream in the metrics.
pub(crate) struct OpenStream(Arc<Metrics>);

impl OpenStream {
    pub(crate) fn end(self, reason: StreamEnd) {
        self.0.stream_ends.get_or_create(&ReasonLabel { reason: reason.name() }).inc();
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.streams.dec();
    }
}
