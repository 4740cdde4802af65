//! The judge of histories: the histories that it must reject, each for its reason, and those that
//! it must accept.

#![cfg(not(target_arch = "wasm32"))]
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod checker {
    mod count_down_latch;
    mod exclusive_locks;
    mod history_builder;
    mod refusals;
    mod shared_holds;
}
