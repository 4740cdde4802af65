//! The recipes of `docs/command-line.md`, run by a shell as they stand there.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

use tempfile::TempDir;
use test_support::test_env::until;

use crate::support::{End, Env, PROGRAM, Process};

/// The programs that the recipes start. Each prints its name and its arguments.
const STARTED: [&str; 8] =
    ["CMD", "deploy.sh", "importer", "merge.sh", "psql", "report.sh", "sleep", "transcode.sh"];

/// The page's blocks of code, without their fences.
fn blocks(page: &str) -> impl Iterator<Item = &str> {
    page.split("\n```").skip(1).step_by(2).map(|block| block.split_once('\n').unwrap().1)
}

fn page() -> String {
    fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/command-line.md")).unwrap()
}

/// A folder with `STARTED`, and with the program `edgelatch`.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, script: &str| {
        let path = folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    for name in STARTED {
        // A failed `sleep` ends the loop of a recipe, since the shell has the option `-e`.
        let code = u8::from(name == "sleep");
        write(name, &format!("echo {name} \"$@\"\nexit {code}"));
    }
    // As in the other tests, an attempt is long enough for a busy machine.
    write("edgelatch", &format!("exec {PROGRAM} --request-timeout 25s \"$@\""));
    folder
}

/// Starts a shell with a script in the folder.
fn shell(env: &Env, folder: &Path, script: &str) -> Process {
    let mut command = tokio::process::Command::new("/bin/sh");
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", folder.display())).current_dir(folder);
    for (name, value) in env.command(&[]).as_std().get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.args(["-ec", script]).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Process::of(command)
}

#[track_caller]
fn assert_ended(end: &End, code: i32, out: &str) {
    assert_eq!((end.code, end.out.as_str()), (Some(code), out), "{end:?}");
}

#[tokio::test]
async fn every_recipe_of_the_page_runs() {
    let (env, folder, page) = (Env::start().await, folder(), page());
    let blocks: Vec<&str> = blocks(&page).collect();
    let [cron, service, deployment, write, semaphore, latch] = blocks.as_slice() else {
        panic!("{blocks:#?}")
    };
    let run = |script: &str| shell(&env, folder.path(), script).end();

    let job = cron.strip_prefix("0 3 * * * ").unwrap();
    assert_ended(&run(job).await, 0, "report.sh\nsleep 60\n");
    assert_ended(&run(service).await, 1, "importer\nsleep 1\n");
    assert_ended(&run(deployment).await, 0, "deploy.sh\n");
    let end = run(write).await;
    let token = end.out.strip_prefix("psql -v token=").unwrap();
    assert!(token.split_once(' ').unwrap().0.parse::<u64>().unwrap() > 0, "{end:?}");
    assert_eq!(end.code, Some(0), "{end:?}");
    let end = run(semaphore).await;
    assert!(end.code == Some(0) && end.out.ends_with("transcode.sh video.mp4\n"), "{end:?}");

    let waiting = shell(&env, folder.path(), latch);
    until(async || env.exists("import:2026-11-26").await).await;
    for _part in 2..=4 {
        env.run(&["latch", "count-down", "import:2026-11-26"]).await.assert(0, "");
    }
    let end = waiting.end().await;
    assert!(end.code == Some(0) && end.out.ends_with("merge.sh\n"), "{end:?}");
}

#[tokio::test]
async fn every_command_in_place_of_another_program_s_runs() {
    let (env, folder, page) = (Env::start().await, folder(), page());
    let (_, table) = page.split_once("\n|---|---|\n").unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 5, "{rows:#?}");
    for (number, row) in rows.into_iter().enumerate() {
        let cell = row.split('|').nth(2).unwrap();
        let commands: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        // "A, after B": B comes first. Each row has names of its own.
        let script = commands.into_iter().rev().collect::<Vec<_>>().join("\n");
        let end = shell(&env, folder.path(), &script.replace("NAME", &format!("row-{number}")));
        let end = end.end().await;
        assert!(end.code == Some(0) && end.out.ends_with("CMD\n"), "{row}: {end:?}");
    }
}
