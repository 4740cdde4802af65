//! The checker of histories: what it has to refuse, each for its reason, and what it has to accept.

#![cfg(not(target_arch = "wasm32"))]
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod checker {
    mod count_down_latch;
    mod exclusive_locks;
    mod history_builder;
    mod refusals;
    mod shared_holds;
}
