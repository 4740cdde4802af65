//! The sink of spans and events without the feature `tracing`: nothing.

use core::time::Duration;

use super::observe::{Address, Ending, Subject};
use crate::error::LossReason;

pub(super) struct Span;

pub(super) const fn none() -> Span {
    Span
}

pub(super) const fn acquire(_: &Subject) -> Span {
    Span
}

pub(super) const fn acquired(_: &Span, _: &Subject, _: &Ending<'_>, _: Duration, _: bool) {}

pub(super) const fn hold(_: &Subject, _: Option<u64>) -> Span {
    Span
}

pub(super) const fn renewed(_: &Span, _: &Subject) {}

pub(super) const fn unconfirmed(_: &Span, _: &Subject) {}

pub(super) const fn lost(_: &Span, _: &Subject, _: LossReason) {}

pub(super) const fn held(_: &Span, _: &Subject, _: &'static str, _: Duration) {}

pub(super) const fn release(_: &Subject) -> Span {
    Span
}

pub(super) const fn released(_: &Span, _: &Subject, _: Option<&'static str>, _: Duration) {}

pub(super) const fn request(_: &Address, _: Option<&str>) {}

pub(super) const fn mode_changed(_: &Address, _: bool) {}

pub(super) const fn clock_set_back(_: &Address, _: Duration) {}
