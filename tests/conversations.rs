//! Conversations with the sans-IO state machines in virtual time: no gateway, no event loop, no sleep.

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
#[path = "conversations/clock_drift.rs"]
mod clock_drift;
#[path = "conversations/contention.rs"]
mod contention;
#[path = "conversations/held_at_most.rs"]
mod held_at_most;
#[path = "conversations/idempotent_calls.rs"]
mod idempotent_calls;
#[path = "conversations/latch_wait.rs"]
mod latch_wait;
#[path = "conversations/late_replies.rs"]
mod late_replies;
#[path = "conversations/multi_lock.rs"]
mod multi_lock;
#[path = "conversations/multi_lock_attempts.rs"]
mod multi_lock_attempts;
#[path = "conversations/multi_lock_extension.rs"]
mod multi_lock_extension;
#[path = "conversations/multi_lock_properties.rs"]
mod multi_lock_properties;
#[path = "conversations/notifications.rs"]
mod notifications;
#[path = "conversations/pacing.rs"]
mod pacing;
#[path = "conversations/properties.rs"]
mod properties;
#[path = "conversations/queries.rs"]
mod queries;
#[path = "conversations/quorum_lease.rs"]
mod quorum_lease;
#[path = "conversations/red_lock.rs"]
mod red_lock;
#[path = "conversations/release.rs"]
mod release;
#[path = "conversations/renewal.rs"]
mod renewal;
#[path = "conversations/replication.rs"]
mod replication;
#[path = "conversations/request_budget.rs"]
mod request_budget;
#[path = "conversations/retry_after.rs"]
mod retry_after;
#[path = "conversations/support/mod.rs"]
mod support;
#[path = "conversations/token_regression.rs"]
mod token_regression;
