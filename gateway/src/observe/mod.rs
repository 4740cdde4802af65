//! Shows an operator what the gateway does: metrics for Prometheus, and an access log.
//!
//! Labels have few values, which this crate defines. No metric and no line of the log contains a
//! token, a key, a channel, a path or an argument.

mod access_log;
mod labels;
mod metrics;
mod middleware;
mod server;

pub use self::access_log::AccessLog;
pub(crate) use self::labels::{FailureKind, Operation, StreamEnd, Violation};
pub(crate) use self::metrics::{Metrics, UpGauge};
pub(crate) use self::middleware::{TokenKind, observe};
pub(crate) use self::server::router;
