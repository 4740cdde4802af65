//! What no compiler checks: which room may know which, which words a room uses, and how long things are.

#![cfg(not(target_arch = "wasm32"))]
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod tidy {
    mod files;
    mod papers;
    mod rooms;
    mod sizes;
    mod words;
}
