//! Tests of the gateway in front of a real Redis, by its clients' requests.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]
#![expect(clippy::panic, reason = "a test ends at the first surprise")]
#![expect(clippy::indexing_slicing, reason = "a test ends at the first surprise")]

mod access;
mod access_log;
mod acl;
mod answers;
mod attacker;
mod attacks;
mod breaches;
mod client_limits;
mod cluster;
mod commands;
mod dashboard;
mod expiry;
mod hostile;
mod http_attacker;
mod limits;
mod lost;
mod metrics;
mod open_files;
mod outage;
mod path_style;
mod peer;
mod pipelines;
mod program;
mod redirections;
mod replicas;
mod scoped_objects;
mod scopes;
mod scripts;
mod sentinel;
mod shutdown;
mod slow;
mod streams;
mod support;
