//! The sink of metrics without the feature `metrics`: nothing.

use alloc::string::String;
use core::time::Duration;

use super::observe::{Address, Ending, Subject};
use crate::error::LossReason;

pub(super) const fn describe() {}

pub(super) const fn acquired(_: &Subject, _: &Ending<'_>, _: Duration, _: bool) {}

pub(super) const fn renewed(_: &Subject) {}

pub(super) const fn lost(_: &Subject, _: LossReason) {}

pub(super) const fn held(_: &Subject, _: &'static str, _: Duration) {}

pub(super) fn request(_: &Address, _: Option<String>) {}

pub(super) const fn polling(_: &Address) {}
