//! Rules that no compiler checks: dependencies between modules, lengths, wording, and whether the
//! documents match the tests.

#![cfg(not(target_arch = "wasm32"))]
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod tidy {
    mod coverage;
    mod errors;
    mod examples;
    mod files;
    mod inputs;
    mod links;
    mod map;
    mod module_boundaries;
    mod pages;
    mod phrases;
    mod prose;
    mod rules;
    mod scenarios;
    mod shipped;
    mod sizes;
}
