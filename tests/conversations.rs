//! Conversations with the sans-I/O state machines in virtual time: without a gateway, an event loop
//! or sleeps.
//!
//! `conversations/language/conversation.rs` defines the language of the tests. Each file is named
//! after a machine or object, and an aspect of it. A comment such as `S21.` above a test names the
//! scenario of `docs/reliability.md` that the test shows.

#![cfg(not(target_arch = "wasm32"))]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends at the first surprise"
)]

#[path = "conversations/acquire.rs"]
mod acquire;
#[path = "conversations/acquire_cancelled.rs"]
mod acquire_cancelled;
#[path = "conversations/acquire_properties.rs"]
mod acquire_properties;
#[path = "conversations/acquire_refused.rs"]
mod acquire_refused;
#[path = "conversations/acquire_unconfirmed.rs"]
mod acquire_unconfirmed;
#[path = "conversations/backoff.rs"]
mod backoff;
#[path = "conversations/clock_drift.rs"]
mod clock_drift;
#[path = "conversations/contention.rs"]
mod contention;
#[path = "conversations/fair_lock.rs"]
mod fair_lock;
#[path = "conversations/fair_read_write_lock.rs"]
mod fair_read_write_lock;
#[path = "conversations/held_at_most.rs"]
mod held_at_most;
#[path = "conversations/idempotent_calls.rs"]
mod idempotent_calls;
#[path = "conversations/language/mod.rs"]
mod language;
#[path = "conversations/language_checks.rs"]
mod language_checks;
#[path = "conversations/latch_wait.rs"]
mod latch_wait;
#[path = "conversations/multi_lock.rs"]
mod multi_lock;
#[path = "conversations/multi_lock_attempts.rs"]
mod multi_lock_attempts;
#[path = "conversations/multi_lock_extension.rs"]
mod multi_lock_extension;
#[path = "conversations/multi_lock_fair.rs"]
mod multi_lock_fair;
#[path = "conversations/multi_lock_notifications.rs"]
mod multi_lock_notifications;
#[path = "conversations/multi_lock_properties.rs"]
mod multi_lock_properties;
#[path = "conversations/multi_lock_release.rs"]
mod multi_lock_release;
#[path = "conversations/notifications.rs"]
mod notifications;
#[path = "conversations/properties.rs"]
mod properties;
#[path = "conversations/queries.rs"]
mod queries;
#[path = "conversations/quorum_lease.rs"]
mod quorum_lease;
#[path = "conversations/red_lock.rs"]
mod red_lock;
#[path = "conversations/red_lock_clock_skew.rs"]
mod red_lock_clock_skew;
#[path = "conversations/red_lock_failures.rs"]
mod red_lock_failures;
#[path = "conversations/release.rs"]
mod release;
#[path = "conversations/renewal.rs"]
mod renewal;
#[path = "conversations/renewal_loss.rs"]
mod renewal_loss;
#[path = "conversations/replication.rs"]
mod replication;
#[path = "conversations/retry_after.rs"]
mod retry_after;
#[path = "conversations/token_regression.rs"]
mod token_regression;
