//! `run`: signals to the program.

use rustix::process::Signal;
use tokio::process::Command;

use crate::support::{Env, PROGRAM, Process};

/// A command that reports signals, beside a process of its group that does so too. `wait` ends when
/// a trap has run. The other one starts only short processes: a shell that has just forked can lose
/// a signal, and the test waits for all processes.
const REPORTS: &str = "
    trap 'echo command INT' INT; trap 'echo command TERM; exit 7' TERM; trap 'echo command USR1' USR1
    sh -c 'trap \"echo descendant TERM; exit\" TERM; trap \"\" INT USR1
           echo ready; while :; do sleep 0.1; done' &
    while :; do wait; done";

#[tokio::test]
async fn signals_reach_all_processes_of_the_command() {
    let env = Env::start().await;
    let mut process = env.spawn(&["run", "job", "--", "sh", "-c", REPORTS]);
    process.until_line("ready").await;
    process.signal(Signal::USR1);
    process.until_line("command USR1").await;
    // The command decides what Ctrl-C does, also for the second time.
    for _ in 0..2 {
        process.signal(Signal::INT);
        process.until_line("command INT").await;
    }
    process.signal(Signal::TERM);
    let end = process.end().await;
    end.assert(7, "");
    for line in ["command TERM", "descendant TERM"] {
        assert!(end.out.contains(line), "{end:?}");
    }
    assert!(!env.exists("job").await);
}

#[tokio::test]
async fn a_command_that_a_signal_ends_has_the_exit_code_of_shells() {
    let env = Env::start().await;
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let script = "echo ready; exec sleep 1000";
        let mut process = env.spawn(&["run", "job", "--", "sh", "-c", script]);
        process.until_line("ready").await;
        process.signal(signal);
        process.end().await.assert(code, "");
    }
    assert!(!env.exists("job").await);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_signal_that_the_starter_ignores_is_ignored_by_the_command_too() {
    let env = Env::start().await;
    // As by nohup. The descendant shows that the command ignores the signal as well.
    let script = format!("trap '' HUP; exec {PROGRAM} run job -- sh -c 'echo ready; read line'");
    let mut shell = Command::new("sh");
    let program = env.command(&[]);
    for (name, value) in program.as_std().get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    shell.args(["-c", &script]).process_group(0).kill_on_drop(true);
    shell.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    shell.stderr(std::process::Stdio::piped());
    let mut process = Process::of(shell);
    process.until_line("ready").await;
    process.signal(Signal::HUP);
    // A signal that is not ignored would end the command with 129.
    process.end().await.assert(1, "");
}
