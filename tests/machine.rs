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
#[path = "machine/attempts.rs"]
mod attempts;
#[path = "machine/awaiting.rs"]
mod awaiting;
#[path = "machine/budget.rs"]
mod budget;
#[path = "machine/cancel.rs"]
mod cancel;
#[path = "machine/contract.rs"]
mod contract;
#[path = "machine/conversation.rs"]
mod conversation;
#[path = "machine/crowd.rs"]
mod crowd;
#[path = "machine/drifting.rs"]
mod drifting;
#[path = "machine/every_machine.rs"]
mod every_machine;
#[path = "machine/extending.rs"]
mod extending;
#[path = "machine/gather.rs"]
mod gather;
#[path = "machine/given.rs"]
mod given;
#[path = "machine/held_at_most.rs"]
mod held_at_most;
#[path = "machine/keeping.rs"]
mod keeping;
#[path = "machine/late_news.rs"]
mod late_news;
#[path = "machine/listening.rs"]
mod listening;
#[path = "machine/majority.rs"]
mod majority;
#[path = "machine/once.rs"]
mod once;
#[path = "machine/pacing.rs"]
mod pacing;
#[path = "machine/question.rs"]
mod question;
#[path = "machine/regress.rs"]
mod regress;
#[path = "machine/release.rs"]
mod release;
#[path = "machine/renewal.rs"]
mod renewal;
#[path = "machine/replicas.rs"]
mod replicas;
#[path = "machine/retry_after.rs"]
mod retry_after;
#[path = "machine/several.rs"]
mod several;
#[path = "support/virtual_time.rs"]
mod virtual_time;
