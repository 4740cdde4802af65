//! The responses to requests that get no reply of Redis.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Response, StatusCode};
use axum::response::IntoResponse;
use redis::RedisError;
use serde::Serialize;
use tracing::debug;

use crate::command::MalformedCommand;
use crate::limits::Exceeded;
use crate::observe::{FailureKind, Violation};
use crate::scoped::{Rejection, ScopeViolation};

/// The reason why a request gets no reply of Redis.
///
/// A text that begins with a code in capitals says that Redis did not execute anything. Other texts
/// must not begin so, since a client takes such a code for an error of Redis.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command was executed, but its reply cannot be encoded.
    BadReply,
    /// The scoped token does not allow the request. Nothing was sent.
    Forbidden(ScopeViolation),
    /// A page on another origin sent the request, in a form for which browsers send no preflight.
    /// Nothing was sent.
    CrossOrigin,
    /// The client, or all clients together, have reached a limit. Nothing was sent.
    Exceeded(Exceeded),
    /// The transfer encoding is not `chunked` alone, so that a proxy could parse the request
    /// differently. Nothing was sent.
    Framing,
    /// Redis refused the request, or the gateway did before it sent anything.
    Refused(String),
    /// The body did not arrive in time. Nothing was sent.
    SlowBody,
    /// Redis did not reply in time. The command may have been executed.
    TimedOut,
    /// The body is larger than the limit. Nothing was sent.
    TooLarge,
    /// The pipeline is longer than the limit. Nothing was sent.
    TooMany,
    /// The request has no token, or an invalid one. Nothing was sent.
    Unauthorized(Rejection),
    /// The connection to Redis broke. The command may have been executed.
    Unreachable,
    /// The path does not accept this method. Nothing was sent.
    WrongMethod,
}

impl Failure {
    fn status(&self) -> StatusCode {
        match self {
            Self::BadReply | Self::Unreachable => StatusCode::BAD_GATEWAY,
            Self::Exceeded(Exceeded::Client(_)) => StatusCode::TOO_MANY_REQUESTS,
            Self::Exceeded(Exceeded::Gateway(_)) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Forbidden(_) | Self::CrossOrigin => StatusCode::FORBIDDEN,
            Self::Framing | Self::Refused(_) => StatusCode::BAD_REQUEST,
            Self::SlowBody => StatusCode::REQUEST_TIMEOUT,
            Self::TimedOut => StatusCode::GATEWAY_TIMEOUT,
            Self::TooLarge | Self::TooMany => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Unauthorized(_) => StatusCode::UNAUTHORIZED,
            Self::WrongMethod => StatusCode::METHOD_NOT_ALLOWED,
        }
    }

    /// Returns the kind, for metrics and the access log.
    pub(crate) fn kind(&self) -> FailureKind {
        FailureKind(match self {
            Self::BadReply => "bad-reply",
            Self::Forbidden(_) => "scope",
            Self::CrossOrigin => "cross-origin",
            Self::Exceeded(Exceeded::Client(_)) => "client-limit",
            Self::Exceeded(Exceeded::Gateway(_)) => "gateway-limit",
            Self::Framing => "framing",
            Self::Refused(_) => "refused",
            Self::SlowBody => "slow-body",
            Self::TimedOut => "redis-timeout",
            Self::TooLarge => "body-limit",
            Self::TooMany => "pipeline-limit",
            Self::Unauthorized(rejection) => rejection.kind(),
            Self::Unreachable => "redis-unreachable",
            Self::WrongMethod => "method",
        })
    }

    pub(crate) fn text(&self) -> &str {
        match self {
            Self::BadReply => "the gateway cannot pass on what Redis replied",
            Self::Exceeded(Exceeded::Client(_)) => {
                "this client has reached its limit; see Retry-After"
            }
            Self::Exceeded(Exceeded::Gateway(_)) => {
                "the gateway has no room for this request at present; see Retry-After"
            }
            Self::CrossOrigin => {
                "NOPERM a page on an origin that --allow-origin does not name may not send this"
            }
            Self::Forbidden(violation) => violation.text(),
            Self::Framing => "ERR the only transfer encoding is chunked, once",
            Self::Refused(text) => text,
            Self::SlowBody => "ERR the request body did not arrive in time",
            Self::TimedOut => "no reply from Redis in time; the command may have been executed",
            Self::TooLarge => "ERR max request size exceeded",
            Self::TooMany => "ERR more commands than one request may hold",
            Self::Unauthorized(rejection) => rejection.text(),
            Self::Unreachable => "no reply from Redis; the command may have been executed",
            Self::WrongMethod => "ERR the gateway does not know this method here",
        }
    }
}

impl From<MalformedCommand> for Failure {
    fn from(malformed: MalformedCommand) -> Self {
        Self::Refused(malformed.text().to_owned())
    }
}

impl From<Exceeded> for Failure {
    fn from(exceeded: Exceeded) -> Self {
        Self::Exceeded(exceeded)
    }
}

impl From<RedisError> for Failure {
    /// Logs only the kind of the error, since its text can contain an address.
    fn from(error: RedisError) -> Self {
        debug!(kind = ?error.kind(), "no reply from Redis");
        if error.is_timeout() { Self::TimedOut } else { Self::Unreachable }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response<Body> {
        let status = self.status();
        let mut response = json(status, &ErrorBody { error: self.text() });
        response.extensions_mut().insert(self.kind());
        if let Self::Forbidden(violation) = self {
            response.extensions_mut().insert(Violation(violation));
        }
        if let Self::Exceeded(Exceeded::Client(after) | Exceeded::Gateway(after)) = self {
            // Whole seconds, rounded up, so that the client does not retry too early.
            let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
            response.headers_mut().insert(RETRY_AFTER, seconds.max(1).into());
        }
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// The JSON body of every failure.
#[derive(Serialize)]
pub(crate) struct ErrorBody<'a> {
    pub(crate) error: &'a str,
}

/// Returns a response in JSON, or [`Failure::BadReply`] if `body` cannot be encoded.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response<Body> {
    let Ok(bytes) = serde_json::to_vec(body) else {
        return Failure::BadReply.into_response();
    };
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
