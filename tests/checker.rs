//! Tests of the history checker in `support/history`: histories that it must reject, each with a
//! given reason, and similar histories that it must accept. A reason begins with the violated
//! promise of `docs/reliability.md`, such as I1; the numbers after it are those of acquisitions,
//! counted from 0.

#![cfg(not(target_arch = "wasm32"))]
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod checker {
    mod count_down_latch;
    mod exclusive_locks;
    mod history_builder;
    mod refusals;
    mod shared_holds;
}
