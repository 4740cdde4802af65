//! The Rust client on a real gateway and a real Redis.

#[expect(dead_code, reason = "each test binary uses its part")]
mod support;

mod client {
    mod acquiring;
    mod contention;
    mod holding;
    mod losing;
    mod options;
    mod owners;
}
