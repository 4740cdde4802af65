//! The scripts on a real Redis: their replies, and the keys that they store.

#![cfg(not(target_arch = "wasm32"))]
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends at the first surprise"
)]

/// The system's allocator would take a sixth of the time of the random calls.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod scripts {
    mod access;
    mod bounds;
    mod cost;
    mod cost_bounds;
    mod differential;
    mod eval;
    mod fair;
    mod fair_read_write;
    mod fencing;
    mod full_memory;
    mod group;
    mod guard;
    mod idempotency;
    mod kinds;
    mod limits;
    mod multi_lock;
    mod pinned;
    mod publishing;
    mod read_write;
    mod red_lock_tokens;
    mod semaphores_and_latch;
    mod vector_commands;
    mod vectors;
    mod wrong_type;
}
