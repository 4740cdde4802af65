//! The Rust programs of README.md, docs/errors.md, docs/observability.md and the documentation of
//! `edgelatch::blocking`, verbatim.

use std::path::Path;
use std::process::Output;

use test_support::redis::TOKEN;
use test_support::test_env::TestEnv;
use tokio::process::Command;

fn text(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

#[test]
fn the_programs_are_those_of_the_pages() {
    for (page, name, file) in [
        ("../README.md", "src/main.rs", "readme/main.rs"),
        ("../docs/errors.md", "errors.rs", "readme/errors.rs"),
        ("../docs/observability.md", "src/main.rs", "readme/observed.rs"),
    ] {
        let page = text(page);
        let blocks: Vec<&str> = page.split("```rust\n").skip(1).collect();
        let [block] = blocks.as_slice() else { panic!("{name}: {} blocks", blocks.len()) };
        let (program, _) = block.split_once("```").unwrap();
        let main = text(file);
        let (_, without_documentation) = main.split_once('\n').unwrap();
        assert_eq!(program, format!("// {name}\n{without_documentation}"));
    }
}

#[test]
fn the_blocking_program_is_that_of_its_documentation() {
    let (page, file) = (text("../src/blocking/mod.rs"), text("readme/blocking.rs"));
    let lines = page.lines().map_while(|line| line.strip_prefix("//!"));
    let lines = lines.map(|line| line.strip_prefix(' ').unwrap_or(line));
    let block = lines.skip_while(|line| *line != "```no_run").skip(1);
    let block: Vec<&str> = block.take_while(|line| *line != "```").collect();
    let (_, program) = file.split_once('\n').unwrap();
    assert_eq!(block, program.lines().collect::<Vec<_>>());
}

async fn run(program: &str, env: &TestEnv) -> Output {
    let mut program = Command::new(program);
    program.env("UPSTASH_REDIS_REST_URL", env.proxy.url()).env("UPSTASH_REDIS_REST_TOKEN", TOKEN);
    program.output().await.unwrap()
}

#[tokio::test]
async fn each_program_acquires_the_lock_and_prints_its_token() {
    let env = TestEnv::new().await;
    for program in [env!("CARGO_BIN_EXE_readme"), env!("CARGO_BIN_EXE_blocking")] {
        let output = run(program, &env).await;
        assert!(output.status.success(), "{output:?}");
        let printed = String::from_utf8(output.stdout).unwrap();
        let token = printed.trim().strip_prefix("token ").unwrap();
        assert!(token.parse::<u64>().is_ok_and(|token| token > 1_700_000_000_000_000), "{printed}");
        env.assert_nothing_is_held("nightly-report").await;
    }
}

#[tokio::test]
async fn the_observed_program_prints_each_step_without_the_token() {
    let env = TestEnv::new().await;
    let mut program = Command::new(env!("CARGO_BIN_EXE_observed"));
    program.env("UPSTASH_REDIS_REST_URL", env.proxy.url()).env("UPSTASH_REDIS_REST_TOKEN", TOKEN);
    let output = program.env("EDGELATCH_LOG", "edgelatch=debug").output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    let log = String::from_utf8(output.stderr).unwrap();
    for step in ["acquire", "acquired", "release", "released"] {
        assert!(log.contains(&format!("{step} lock \"nightly-report\" at ")), "{step}: {log}");
    }
    assert!(!log.contains(TOKEN), "{log}");
}

#[tokio::test]
async fn without_its_variables_each_program_prints_which_to_set() {
    for (url, token, message) in [
        ("", "t", "`UPSTASH_REDIS_REST_URL` is not set: expected the provider's REST URL"),
        ("rediss://a.example:6379", "t", "`UPSTASH_REDIS_REST_URL` is not acceptable"),
        ("rediss://a.example:6379", "t", "run edgelatch-gateway in front of Redis"),
        ("https://a.example", "", "`UPSTASH_REDIS_REST_TOKEN` is not set"),
    ] {
        for program in [env!("CARGO_BIN_EXE_readme"), env!("CARGO_BIN_EXE_blocking")] {
            let mut program = Command::new(program);
            let variables = [("UPSTASH_REDIS_REST_URL", url), ("KV_REST_API_TOKEN", token)];
            program.env_clear().envs(variables.into_iter().filter(|(_, value)| !value.is_empty()));
            let output = program.output().await.unwrap();
            let printed = String::from_utf8(output.stderr).unwrap();
            assert!(!output.status.success() && printed.contains(message), "{printed}");
        }
    }
}

#[tokio::test]
async fn the_program_with_errors_releases_the_lock_or_prints_why_it_has_none() {
    let env = TestEnv::new().await;
    let output = run(env!("CARGO_BIN_EXE_errors"), &env).await;
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    env.assert_nothing_is_held("nightly-report").await;

    let gateway = env.redis.address();
    let mut program = Command::new(env!("CARGO_BIN_EXE_errors"));
    program.env("UPSTASH_REDIS_REST_URL", format!("http://{gateway}"));
    let output = program.env("UPSTASH_REDIS_REST_TOKEN", "wrong").output().await.unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{stderr}");
    let reason = "the gateway does not accept the token or its rights";
    let subject = format!("nothing is held (lock \"nightly-report\", gateway {gateway})");
    assert!(stderr.contains(reason) && stderr.contains(&subject), "{stderr}");
}
