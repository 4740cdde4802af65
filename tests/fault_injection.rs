//! Faulty gateways: each faulty response by itself, and the matrix of every object, operation and
//! fault. The numbers above tests, such as S4, are those of the scenarios in `docs/reliability.md`.

#![cfg(not(target_arch = "wasm32"))]
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends at the first surprise"
)]

mod fault_injection {
    mod bad_gateway;
    mod matrix;
}
