//! The gateway in memory for unit tests of users: `edgelatch::testing`, and the crate below it.

#![cfg(not(target_arch = "wasm32"))]
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends at the first surprise"
)]

#[path = "testing/client.rs"]
mod client;
#[path = "testing/dropped_driver.rs"]
mod dropped_driver;
#[path = "testing/failures.rs"]
mod failures;
#[path = "testing/held.rs"]
mod held;
#[path = "testing/page.rs"]
mod page;
#[path = "testing/requests.rs"]
mod requests;

#[test]
fn the_tests_are_those_of_the_page() {
    let text = |path: &str| {
        std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path))
            .unwrap()
    };
    let (page, file) = (text("../docs/testing.md"), text("testing/page.rs"));
    let blocks: Vec<&str> = page.split("```rust\n").skip(1).collect();
    let [block] = blocks.as_slice() else { panic!("{} blocks", blocks.len()) };
    let (tests, _) = block.split_once("```").unwrap();
    let (_, without_documentation) = file.split_once("\n\n").unwrap();
    assert_eq!(tests, format!("// tests/invoice.rs\n{without_documentation}"));
}
