//! The sink of spans and events: the crate `tracing`. docs/observability.md lists the names.

use core::time::Duration;

use tracing::field::Empty;
use tracing::{debug, debug_span, info, trace, warn};

use super::observe::{Address, Ending, Subject, loss};
use crate::error::LossReason;

pub(super) use tracing::Span;

pub(super) const fn none() -> Span {
    Span::none()
}

/// Creates a span with the attributes of all spans and the given ones. A macro, since the fields of
/// a span are static.
macro_rules! span {
    ($name:literal, $subject:expr, { $($fields:tt)* }) => {
        debug_span!(
            target: "edgelatch",
            $name,
            otel.kind = "client",
            db.system.name = "redis",
            server.address = $subject.address.host.as_str(),
            server.port = $subject.address.port,
            edgelatch.object.kind = $subject.kind,
            edgelatch.object.name = $subject.name.as_deref(),
            "error.type" = Empty,
            $($fields)*
        )
    };
}

/// The field of an error's code.
const ERROR: &str = "error.type";

pub(super) fn acquire(subject: &Subject) -> Span {
    let span = span!("edgelatch.acquire", subject, {
        edgelatch.contended = Empty,
        edgelatch.fencing_token = Empty,
    });
    debug!(target: "edgelatch", parent: &span, "acquire {subject}");
    span
}

pub(super) fn acquired(
    span: &Span,
    subject: &Subject,
    ending: &Ending<'_>,
    waited: Duration,
    is_contended: bool,
) {
    span.record("edgelatch.contended", is_contended);
    if let Some(code) = ending.error_type() {
        span.record(ERROR, code);
    }
    let ms = waited.as_millis();
    match ending {
        Ending::Granted(token) => {
            let token = token.unwrap_or_default();
            span.record("edgelatch.fencing_token", token);
            debug!(target: "edgelatch", parent: span, "acquired {subject} after {ms} ms, token {token}");
        }
        Ending::Failed(error) => {
            let message = error.message();
            debug!(target: "edgelatch", parent: span, "not acquired {subject} after {ms} ms: {message}");
        }
        Ending::Dropped => {
            debug!(target: "edgelatch", parent: span, "not acquired {subject} after {ms} ms: cancelled");
        }
    }
}

pub(super) fn hold(subject: &Subject, token: Option<u64>) -> Span {
    span!("edgelatch.hold", subject, {
        edgelatch.fencing_token = token,
        edgelatch.outcome = Empty,
        edgelatch.loss.reason = Empty,
    })
}

pub(super) fn renewed(span: &Span, subject: &Subject) {
    debug!(target: "edgelatch", parent: span, "renewed {subject}");
}

pub(super) fn unconfirmed(span: &Span, subject: &Subject) {
    info!(target: "edgelatch", parent: span, "renewal not confirmed of {subject}");
}

pub(super) fn lost(span: &Span, subject: &Subject, reason: LossReason) {
    let reason = loss(reason);
    span.record(ERROR, "lease-lost");
    span.record("edgelatch.loss.reason", reason);
    warn!(target: "edgelatch", parent: span, "lost {subject}: {reason}");
}

pub(super) fn held(span: &Span, subject: &Subject, outcome: &'static str, held: Duration) {
    span.record("edgelatch.outcome", outcome);
    let ms = held.as_millis();
    debug!(target: "edgelatch", parent: span, "end of {subject} after {ms} ms: {outcome}");
}

pub(super) fn release(subject: &Subject) -> Span {
    let span = span!("edgelatch.release", subject, {});
    debug!(target: "edgelatch", parent: &span, "release {subject}");
    span
}

pub(super) fn released(
    span: &Span,
    subject: &Subject,
    error: Option<&'static str>,
    took: Duration,
) {
    let ms = took.as_millis();
    match error {
        None => debug!(target: "edgelatch", parent: span, "released {subject} after {ms} ms"),
        Some(error) => {
            span.record(ERROR, error);
            debug!(target: "edgelatch", parent: span, "not released {subject} after {ms} ms: {error}");
        }
    }
}

pub(super) fn request(address: &Address, error: Option<&str>) {
    let gateway = &address.authority;
    match error {
        None => trace!(target: "edgelatch", "request to {gateway}"),
        // Redis replied an error, as at the first use of a script; the client sends its text then.
        Some("400") => trace!(target: "edgelatch", "request to {gateway} failed: 400"),
        Some(error) => debug!(target: "edgelatch", "request to {gateway} failed: {error}"),
    }
}

pub(super) fn mode_changed(address: &Address, is_polling: bool) {
    let (gateway, mode) = (&address.authority, if is_polling { "polling" } else { "stream" });
    info!(target: "edgelatch", "waiters at {gateway} learn of releases by {mode}");
}

pub(super) fn clock_set_back(address: &Address, by: Duration) {
    let (gateway, ms) = (&address.authority, by.as_millis());
    warn!(target: "edgelatch", "the clock of Redis behind {gateway} was set back by {ms} ms");
}
