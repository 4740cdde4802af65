//! The scripts on a real Redis: what they answer, and what they leave there.

#![cfg(not(target_arch = "wasm32"))]
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends at the first surprise"
)]

#[expect(dead_code, reason = "each test binary uses its part")]
mod support;

/// A sixth of the time of the random calls would go into the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod scripts {
    mod access;
    mod counted;
    mod coverage;
    mod eval;
    mod fair;
    mod fencing;
    mod group;
    mod guard;
    mod life;
    mod memory;
    mod pair;
    mod pinned;
    mod publishing;
    mod raise;
    mod raise_random;
    mod random;
    mod read_write;
    mod several;
    mod steps;
    mod twice;
    mod vectors;
    mod words;
    mod wrong_type;
}
