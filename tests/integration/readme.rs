//! The Rust programs of README.md and docs/errors.md, verbatim.

use std::path::Path;
use std::process::Output;

use test_support::redis::TOKEN;
use test_support::test_env::TestEnv;
use tokio::process::Command;

#[test]
fn the_programs_are_those_of_the_pages() {
    let text = |path: &str| {
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
    };
    for (page, name, file) in [
        ("../README.md", "src/main.rs", "readme/main.rs"),
        ("../docs/errors.md", "errors.rs", "readme/errors.rs"),
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

async fn run(program: &str, env: &TestEnv) -> Output {
    let mut program = Command::new(program);
    program.env("UPSTASH_REDIS_REST_URL", env.proxy.url()).env("UPSTASH_REDIS_REST_TOKEN", TOKEN);
    program.output().await.unwrap()
}

#[tokio::test]
async fn the_program_acquires_the_lock_and_prints_its_token() {
    let env = TestEnv::new().await;
    let output = run(env!("CARGO_BIN_EXE_readme"), &env).await;
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let token = printed.trim().strip_prefix("token ").unwrap();
    assert!(token.parse::<u64>().is_ok_and(|token| token > 1_700_000_000_000_000), "{printed}");
    env.assert_nothing_is_held("nightly-report").await;
}

#[tokio::test]
async fn without_its_variables_the_program_prints_which_to_set() {
    for (url, token, message) in [
        ("", "t", "`UPSTASH_REDIS_REST_URL` is not set: expected the provider's REST URL"),
        ("rediss://a.example:6379", "t", "`UPSTASH_REDIS_REST_URL` is not acceptable"),
        ("rediss://a.example:6379", "t", "run edgelatch-gateway in front of Redis"),
        ("https://a.example", "", "`UPSTASH_REDIS_REST_TOKEN` is not set"),
    ] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_readme"));
        let variables = [("UPSTASH_REDIS_REST_URL", url), ("KV_REST_API_TOKEN", token)];
        program.env_clear().envs(variables.into_iter().filter(|(_, value)| !value.is_empty()));
        let output = program.output().await.unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && printed.contains(message), "{printed}");
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
