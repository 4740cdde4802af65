//! Observes each request: the middleware in front of all others.

use std::net::IpAddr;

use axum::Extension;
use axum::body::HttpBody as _;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use tokio::time::Instant;

use super::access_log::Line;
use super::labels::{FailureKind, RequestLabels, Route, RouteLabel, Violation};
use super::metrics::Level;
use crate::address::Peer;
use crate::clock::now;
use crate::routes::{Context, Shared};

/// The status of a request whose client left before the response, as in nginx' logs.
const CLIENT_LEFT: u16 = 499;

/// The kind of a valid token; a response has it as an extension if there is an access log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenKind(pub(crate) &'static str);

/// Counts a request and its response, and writes the line of the access log.
///
/// A request ends with the head of its response: the body of one that is no stream is complete
/// then, and a stream has begun.
pub(crate) async fn observe(
    State(shared): State<Shared>,
    Extension(peer): Extension<Peer>,
    request: Request,
    next: Next,
) -> Response {
    let observation = Observation::begin(&shared, peer, &request);
    let response = next.run(request).await;
    observation.end(&response);
    response
}

/// A request in flight.
struct Observation<'a> {
    shared: &'a Context,
    begin: Instant,
    route: Route,
    method: &'static str,
    address: Option<IpAddr>,
    request_bytes: Option<u64>,
    is_done: bool,
    _in_flight: Level,
}

impl<'a> Observation<'a> {
    fn begin(shared: &'a Context, peer: Peer, request: &Request) -> Self {
        let is_logged = shared.access_log.is_some();
        Self {
            shared,
            begin: Instant::now(),
            route: Route::of(request.method(), request.uri().path()),
            method: method(request.method()),
            address: is_logged.then(|| peer.client(request.headers(), shared.trusted_proxies)),
            request_bytes: request.body().size_hint().exact(),
            is_done: false,
            _in_flight: Level::new(&shared.metrics.requests_in_flight),
        }
    }

    fn end(mut self, response: &Response) {
        self.is_done = true;
        let extensions = response.extensions();
        let failure = extensions.get::<FailureKind>().copied();
        let violation = extensions.get::<Violation>().copied();
        if let Some(failure) = failure {
            self.shared.metrics.count_failure(failure);
        }
        if let Some(Violation(violation)) = violation {
            self.shared.metrics.count_violation(violation);
        }
        self.record(response.status().as_u16(), |line| {
            line.token = extensions.get::<TokenKind>().map(|kind| kind.0);
            line.response_bytes = response.body().size_hint().exact();
            line.error = failure.map(|kind| kind.0);
            line.rule = violation.map(|Violation(violation)| violation.rule());
        });
    }

    fn record(&self, status: u16, complete: impl FnOnce(&mut Line)) {
        let (metrics, route) = (&self.shared.metrics, self.route.0);
        let duration = self.begin.elapsed();
        metrics.requests.get_or_create(&RequestLabels { route, status }).inc();
        let durations = metrics.request_duration.get_or_create(&RouteLabel { route });
        durations.observe(duration.as_secs_f64());
        let (Some(log), Some(address)) = (&self.shared.access_log, self.address) else { return };
        let mut line = Line {
            time: now(),
            route,
            method: self.method,
            status,
            duration,
            address,
            token: None,
            request_bytes: self.request_bytes,
            response_bytes: None,
            error: None,
            rule: None,
        };
        complete(&mut line);
        if !log.write(&line) {
            metrics.count_dropped_line();
        }
    }
}

/// Records a request whose future is dropped: its client has left.
impl Drop for Observation<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.record(CLIENT_LEFT, |_| ());
        }
    }
}

/// Returns the name of a method. A client can make up others.
fn method(method: &Method) -> &'static str {
    let known = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"];
    known.into_iter().find(|known| *known == method.as_str()).unwrap_or("other")
}
