//! What no compiler checks: which room may know which, which words a room uses, how long things are, and what a paper says of the tests.

#![cfg(not(target_arch = "wasm32"))]
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod tidy {
    mod coverage;
    mod errors;
    mod files;
    mod map;
    mod papers;
    mod phrases;
    mod rooms;
    mod rules;
    mod scenarios;
    mod shipped;
    mod sizes;
    mod words;
}
