//! `edgelatch`: runs commands under Redisson's distributed locks, and shows and changes the state
//! of locks, semaphores and latches, over HTTP.

mod args;
mod clock;
mod connection;
mod exit;
mod latch;
mod log;
#[cfg(target_os = "linux")]
#[path = "platform/linux.rs"]
mod platform;
#[cfg(not(target_os = "linux"))]
#[path = "platform/other.rs"]
mod platform;
mod release;
mod run;
mod semaphore;
mod signals;
mod status;
mod target;
mod wait;
mod watch;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};
use tokio::runtime::{Builder, Runtime};

use crate::args::{Args, Command, GuardArgs, LaunchArgs};
use crate::exit::{Exit, Failure};
use crate::target::Client;

fn main() -> ExitCode {
    if let Some(args) = LaunchArgs::of_process() {
        return fail(run::launch(&args));
    }
    if let Some(args) = GuardArgs::of_process() {
        let guarded = runtime().map(|runtime| runtime.block_on(run::guard(&args)));
        return guarded.map_or_else(|error| fail(error.into()), |()| ExitCode::SUCCESS);
    }
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Prints an error to stderr, and the help and the version to stdout.
            let printed = error.print();
            let is_error = error.use_stderr() || printed.is_err();
            return if is_error { Exit::Usage.into() } else { ExitCode::SUCCESS };
        }
    };
    match dispatch(args) {
        Ok(code) => code.into(),
        Err(failure) => fail(failure),
    }
}

/// Reports a failure. Returns its exit code.
fn fail(failure: Failure) -> ExitCode {
    if !failure.message.is_empty() {
        say(&failure.message);
    }
    failure.code.into()
}

/// Runs a command. Returns its exit code.
fn dispatch(args: Args) -> Result<u8, Failure> {
    let command = match args.command {
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "edgelatch", &mut script);
            return print(&script).map(|()| 0);
        }
        command => command,
    };
    log::start()?;
    let gateway = connection::gateway(args.connection)?;
    let runtime = runtime()?;
    let code = runtime.block_on(async {
        match command {
            Command::Run(args) => run::run(gateway, args).await,
            Command::Status(args) => status::run(&Client::connect(gateway), args).await,
            Command::Watch(args) => watch::run(gateway, args).await,
            Command::Release(args) => release::run(&Client::connect(gateway), args).await,
            Command::Latch(command) => latch::run(&Client::connect(gateway), command).await,
            Command::Semaphore(command) => semaphore::run(&Client::connect(gateway), command).await,
            Command::Completion { .. } => Ok(0),
        }
    });
    // A connection that is still being set up must not delay the end.
    runtime.shutdown_background();
    code
}

/// Creates a runtime of one thread: the system ends a command with the thread that has started it.
fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Prints to stdout.
fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}

/// Prints a line to stdout.
fn print_line(line: &str) -> Result<(), Failure> {
    print(format!("{line}\n").as_bytes())
}

/// Prints a message to stderr, from which nothing can be done if that fails.
fn say(message: &str) {
    let _ = writeln!(io::stderr().lock(), "edgelatch: {message}");
}
