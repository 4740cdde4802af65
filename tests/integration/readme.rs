//! The Rust program of README.md, verbatim.

use std::path::Path;

use test_support::redis::TOKEN;
use test_support::test_env::TestEnv;
use tokio::process::Command;

#[test]
fn the_program_is_that_of_the_readme() {
    let text = |path: &str| {
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
    };
    let readme = text("../README.md");
    let (_, block) = readme.split_once("```rust\n// src/main.rs\n").unwrap();
    let (program, _) = block.split_once("```").unwrap();
    let main = text("readme/main.rs");
    let (_, without_documentation) = main.split_once('\n').unwrap();
    assert_eq!(without_documentation, program);
}

#[tokio::test]
async fn the_program_takes_the_lock_and_prints_its_token() {
    let env = TestEnv::new().await;
    let mut program = Command::new(env!("CARGO_BIN_EXE_readme"));
    program.env("UPSTASH_REDIS_REST_URL", env.proxy.url()).env("UPSTASH_REDIS_REST_TOKEN", TOKEN);
    let output = program.output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let token = printed.trim().strip_prefix("token ").unwrap();
    assert!(token.parse::<u64>().is_ok_and(|token| token > 1_700_000_000_000_000), "{printed}");
    env.assert_nothing_is_held("nightly-report").await;
}
