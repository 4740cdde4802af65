//! Conversations with the machines in virtual time: no gateway, no event loop, no sleep.

#![cfg(not(target_arch = "wasm32"))]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends at the first surprise"
)]

#[path = "machine/acquire.rs"]
mod acquire;
#[path = "machine/budget.rs"]
mod budget;
#[path = "machine/cancel.rs"]
mod cancel;
#[path = "machine/contract.rs"]
mod contract;
#[path = "machine/conversation.rs"]
mod conversation;
#[path = "machine/every_machine.rs"]
mod every_machine;
#[path = "machine/force_release.rs"]
mod force_release;
#[path = "machine/given.rs"]
mod given;
#[path = "machine/late_news.rs"]
mod late_news;
#[path = "machine/question.rs"]
mod question;
#[path = "machine/release.rs"]
mod release;
#[path = "machine/renewal.rs"]
mod renewal;
#[path = "support/virtual_time.rs"]
mod virtual_time;
