//! The guard: a process beside `edgelatch run` that ends the command if `run` is killed, or is
//! stopped for longer than the lease.
//!
//! Its stdin is a pipe. `run` writes the remaining time of the lease again and again, and the
//! system closes the pipe when `run` has ended. After a loss that `run` itself has noticed, the
//! guard acts only if `run` is killed.

use std::future::pending;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::Notify;
use tokio::{pin, select, time};

use super::hold;
use super::receiver::Receiver;
use crate::args::GuardArgs;
use crate::target::Lease;
use crate::{platform, say};

/// How often the remaining time is written within a lease.
const REPORTS: u32 = 6;
/// How long the guard waits after the end of the lease, so that a `run` that is not stopped acts
/// first.
const MARGIN: Duration = Duration::from_millis(250);

/// The guard of a command, seen from `run`. `None` if it could not be started.
pub(super) struct Guard(Option<Child>);

impl Guard {
    /// Starts the guard of a command. Without one the command goes on.
    pub(super) fn start(receiver: Receiver, remaining: Duration, grace: Duration) -> Self {
        let started = Self::spawn(receiver, [remaining, grace]);
        let failed = |error: &io::Error| say(&format!("the guard cannot be started: {error}"));
        Self(started.inspect_err(failed).ok())
    }

    fn spawn(receiver: Receiver, times: [Duration; 2]) -> io::Result<Child> {
        let mut command = Command::new(platform::own_program()?);
        command.arg0("edgelatch").arg(GuardArgs::WORD);
        command.args(times.map(|time| time.as_millis().to_string()));
        command.arg("--").arg(receiver.to_string());
        // A group of its own: the keys of a terminal, and a signal to the group of `run`, must not
        // end it.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
        command.kill_on_drop(true).spawn()
    }

    /// Reports the remaining time of the lease to the guard until `lost` is notified. Never ends.
    pub(super) async fn feed(&mut self, lease: &Lease, length: Duration, lost: &Notify) {
        let Some(pipe) = self.0.as_mut().and_then(|child| child.stdin.as_mut()) else {
            return pending().await;
        };
        // A report fails only if the guard was killed.
        while report(pipe, lease.remaining().as_millis()).await.is_ok() {
            select! {
                () = time::sleep(length / REPORTS) => {}
                () = lost.notified() => {
                    let _ = report(pipe, u64::MAX.into()).await;
                    break;
                }
            }
        }
        pending().await
    }

    /// Ends the guard.
    pub(super) async fn end(self) {
        if let Some(mut child) = self.0 {
            // It fails only if the guard has ended.
            let _ = child.kill().await;
        }
    }
}

/// Writes the remaining time.
async fn report(pipe: &mut ChildStdin, millis: u128) -> io::Result<()> {
    pipe.write_all(format!("{millis}\n").as_bytes()).await
}

/// Runs the guard itself: ends the command when no time is left.
pub(crate) async fn guard(args: &GuardArgs) {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let reason = watch(&mut lines, remaining(args.remaining_ms)).await;
    if !args.receiver.exists() {
        return;
    }
    args.receiver.terminate();
    let grace = time::sleep(Duration::from_millis(args.grace_ms));
    pin!(grace);
    while args.receiver.exists() {
        select! {
            () = &mut grace => {
                args.receiver.send(Signal::KILL);
                break;
            }
            () = hold::pause() => {}
        }
    }
    // At the end: a terminal may stop a process in the background that writes to it.
    say(&format!("{reason}, so its command was ended"));
}

/// Returns how long the guard waits for the next report.
const fn remaining(millis: u64) -> Duration {
    Duration::from_millis(millis).saturating_add(MARGIN)
}

/// Waits until the lease has no time left, or until `run` has ended. Returns the reason.
async fn watch<R: AsyncBufRead + Unpin>(
    lines: &mut Lines<R>,
    mut patience: Duration,
) -> &'static str {
    const ENDED: &str = "`edgelatch run` was killed";
    loop {
        let line = time::timeout(patience, lines.next_line());
        match line.await {
            Ok(Ok(Some(text))) => {
                // The writer is this program. A line that was cut off precedes the end.
                let Ok(millis) = text.parse() else { return ENDED };
                patience = remaining(millis);
            }
            Ok(Ok(None) | Err(_)) => return ENDED,
            Err(_) => return "`edgelatch run` was stopped for longer than its lease",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn reason(text: &[u8]) -> &'static str {
        watch(&mut BufReader::new(text).lines(), remaining(60_000)).await
    }

    #[tokio::test]
    async fn the_end_of_the_pipe_is_the_end_of_run() {
        assert!(reason(b"60000\n60000\n").await.contains("killed"));
        assert!(reason(b"").await.contains("killed"));
        assert!(reason(b"60000\n-").await.contains("killed"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_report_extends_the_time_and_none_ends_it() {
        let (mut writer, reader) = tokio::io::duplex(64);
        let mut lines = BufReader::new(reader).lines();
        let reports = async {
            for _ in 0..3 {
                writer.write_all(b"1000\n").await.unwrap();
                time::sleep(Duration::from_millis(900)).await;
            }
            time::Instant::now()
        };
        let began = time::Instant::now();
        let watching = async { (watch(&mut lines, MARGIN).await, time::Instant::now()) };
        let (reported, (reason, ended)) = tokio::join!(reports, watching);
        assert!(reason.contains("stopped"));
        assert_eq!(ended - reported, Duration::from_millis(100) + MARGIN);
        assert_eq!(reported - began, Duration::from_millis(2_700));
    }
}
