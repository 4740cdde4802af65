//! Conversations with the machines, in virtual time: no gateway, no event loop, no sleep.

#[path = "conversations/acquire.rs"]
mod acquire;
#[path = "conversations/budget.rs"]
mod budget;
#[path = "conversations/cancel.rs"]
mod cancel;
#[path = "conversations/contract.rs"]
mod contract;
#[path = "conversations/conversation.rs"]
mod conversation;
#[path = "conversations/force_release.rs"]
mod force_release;
#[path = "conversations/question.rs"]
mod question;
#[path = "conversations/release.rs"]
mod release;
#[path = "conversations/renewal.rs"]
mod renewal;
