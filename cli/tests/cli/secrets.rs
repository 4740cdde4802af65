//! The token: where it may come from, and where it must not appear.

use std::fs;

use test_support::redis::TOKEN;

use crate::support::{Env, Process, program};

#[tokio::test]
async fn the_token_can_come_from_a_file() {
    let env = Env::start().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    fs::write(&path, format!("{TOKEN}\n")).unwrap();
    let (url, path) = (env.0.proxy.url(), path.to_str().unwrap());
    let flags = ["--url", &url, "--token-file", path, "status", "job"];
    Process::of(program(&flags)).end().await.assert(0, "");
    let mut by_variable = program(&["--url", &url, "status", "job"]);
    by_variable.env("EDGELATCH_TOKEN_FILE", path);
    Process::of(by_variable).end().await.assert(0, "");
    let missing = ["--url", &url, "--token-file", "/no/such/file", "status", "job"];
    Process::of(program(&missing)).end().await.assert(64, "/no/such/file");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_token_is_in_no_list_of_processes() {
    let env = Env::start().await;
    let script = "echo $PPID; echo $$; read line";
    let mut process = env.spawn(&["run", "job", "--", "sh", "-c", script]);
    for _ in 0..2 {
        let id = process.next_line().await.unwrap();
        let words = fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap();
        assert!(words.contains("job") || words.contains("read line"), "{words}");
        assert!(!words.contains(TOKEN), "{words}");
    }
    process.end().await.assert(1, "");
}

#[tokio::test]
async fn the_log_has_a_line_for_each_step_and_no_secret() {
    let env = Env::start().await;
    for (level, steps) in
        [("debug", &["acquire", "acquired", "release", "released", "end of"][..]), ("warn", &[])]
    {
        let mut command = env.command(&["run", "job", "--", "true"]);
        command.env("EDGELATCH_LOG", level);
        let end = Process::of(command).end().await;
        assert_eq!(end.code, Some(0), "{end:?}");
        let lines: Vec<&str> = end.log.lines().collect();
        assert_eq!(lines.len(), steps.len(), "{}", end.log);
        for (line, step) in lines.iter().zip(steps) {
            let message = format!(" DEBUG edgelatch: {step} lock \"job\" at 127.0.0.1:");
            assert!(line.contains(&message), "{line}");
        }
        let owners =
            env.0.proxy.calls().into_iter().flat_map(|call| call.words.into_iter().skip(4));
        let ids = owners.filter(|word| word.len() >= 16 && word.contains(':'));
        for secret in ids.chain([TOKEN.to_owned()]) {
            assert!(!end.log.contains(&secret), "{secret}: {}", end.log);
        }
    }
    let mut command = env.command(&["run", "job", "--", "true"]);
    command.env("EDGELATCH_LOG", "loud");
    Process::of(command).end().await.assert(64, "`EDGELATCH_LOG` is not acceptable");
}

#[tokio::test]
async fn no_message_contains_the_token() {
    let env = Env::start().await;
    env.0.redis.query::<String>(&["SET", "text", "value"]).await;
    let wrong = "wrong-token-0123456789";
    for args in [
        &["run", "-v", "job", "--", "true"][..],
        &["run", "text", "--", "true"],
        &["--url", "http://127.0.0.1:1", "status", "job"],
        &["--token", wrong, "status", "job"],
        &["--token", wrong, "--token-file", "x", "status", "job"],
        &["--help"],
        &["run", "--help"],
    ] {
        let end = env.run(args).await;
        for text in [end.out, end.log] {
            assert!(!text.contains(TOKEN) && !text.contains(wrong), "{args:?}: {text}");
        }
    }
}
