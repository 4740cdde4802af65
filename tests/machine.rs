//! Conversations with the machines in virtual time: what they ask, for how long they wait and why, and how they end.

#[expect(dead_code, reason = "each machine's conversations use their part")]
#[path = "support/virtual_time.rs"]
mod virtual_time;

mod machine {
    mod abandon;
    mod acquire;
    mod ends;
    mod force_release;
    mod given;
    mod question;
    mod release;
    mod renewal;
    mod waiting;
}
