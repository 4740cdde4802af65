//! The gateway in front of a real Redis, seen from its clients.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod access;
mod commands;
mod limits;
mod outage;
mod pipelines;
mod program;
mod shutdown;
mod streams;
mod support;
