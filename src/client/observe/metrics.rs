//! The sink of metrics: the facade `metrics`. docs/observability.md lists the names.

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::time::Duration;

use metrics::{Label, Unit, counter, describe_counter, describe_histogram, histogram};

use super::observe::{Address, Ending, Subject, loss};
use crate::error::LossReason;

const WAIT: &str = "edgelatch.wait.duration";
const HOLD: &str = "edgelatch.hold.duration";
const CONTENDED: &str = "edgelatch.contended";
const RENEWALS: &str = "edgelatch.renewals";
const LOSSES: &str = "edgelatch.losses";
const REQUESTS: &str = "edgelatch.requests";
const FALLBACKS: &str = "edgelatch.polling.fallbacks";

/// Describes the metrics to the recorder, if the program has installed one.
pub(super) fn describe() {
    describe_histogram!(WAIT, Unit::Seconds, "Time from the call to the end of an acquisition");
    describe_histogram!(HOLD, Unit::Seconds, "Time from a grant to the end of its lease");
    describe_counter!(CONTENDED, "Acquisitions that waited, or ended because the lock was held");
    describe_counter!(RENEWALS, "Confirmed renewals");
    describe_counter!(LOSSES, "Leases that were lost before their release");
    describe_counter!(REQUESTS, "Requests to the gateway, without streams");
    describe_counter!(FALLBACKS, "Changes from streams to polling, and waits that began to poll");
}

fn labels_of(address: &Address) -> Vec<Label> {
    let mut labels = Vec::new();
    labels.push(Label::from_static_parts("db.system.name", "redis"));
    labels.push(Label::new("server.address", address.host.clone()));
    if let Some(port) = address.port {
        labels.push(Label::new("server.port", port.to_string()));
    }
    labels
}

fn labels(subject: &Subject) -> Vec<Label> {
    let mut labels = labels_of(&subject.address);
    labels.push(Label::from_static_parts("edgelatch.object.kind", subject.kind));
    labels
}

pub(super) fn acquired(
    subject: &Subject,
    ending: &Ending<'_>,
    waited: Duration,
    is_contended: bool,
) {
    let labels = labels(subject);
    if is_contended {
        counter!(CONTENDED, labels.clone()).increment(1);
    }
    let error = ending.error_type().map(|code| Label::from_static_parts("error.type", code));
    let labels: Vec<Label> = labels.into_iter().chain(error).collect();
    histogram!(WAIT, labels).record(waited.as_secs_f64());
}

pub(super) fn renewed(subject: &Subject) {
    counter!(RENEWALS, labels(subject)).increment(1);
}

pub(super) fn lost(subject: &Subject, reason: LossReason) {
    let mut labels = labels(subject);
    labels.push(Label::from_static_parts("edgelatch.loss.reason", loss(reason)));
    counter!(LOSSES, labels).increment(1);
}

pub(super) fn held(subject: &Subject, outcome: &'static str, held: Duration) {
    let mut labels = labels(subject);
    labels.push(Label::from_static_parts("edgelatch.outcome", outcome));
    histogram!(HOLD, labels).record(held.as_secs_f64());
}

pub(super) fn request(address: &Address, error: Option<String>) {
    let mut labels = labels_of(address);
    labels.extend(error.map(|error| Label::new("error.type", error)));
    counter!(REQUESTS, labels).increment(1);
}

pub(super) fn polling(address: &Address) {
    counter!(FALLBACKS, labels_of(address)).increment(1);
}
