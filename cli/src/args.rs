//! The command line.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum, value_parser};
use clap_complete::Shell;
use edgelatch::timing::{LeaseTime, LifeTime};

use crate::connection::{self, Attempt};
use crate::run::Receiver;
use crate::wait::WaitArgs;

/// Runs commands under distributed locks, and shows and changes locks, semaphores and latches.
///
/// The locks are Redisson's, in a Redis behind a REST gateway: Upstash, Vercel KV or
/// edgelatch-gateway. The URL and the token are read from UPSTASH_REDIS_REST_URL and
/// UPSTASH_REDIS_REST_TOKEN, else from KV_REST_API_URL and KV_REST_API_TOKEN.
#[derive(Parser)]
#[command(name = "edgelatch", version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The gateway.
#[derive(clap::Args)]
#[command(next_help_heading = "Gateway")]
pub(crate) struct ConnectionArgs {
    /// The URL of the gateway, in place of the variable.
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) url: Option<String>,

    /// A file with the token, in place of the variable.
    #[arg(long, global = true, value_name = "PATH", env = "EDGELATCH_TOKEN_FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// The token. Other users of this machine can see it in the list of processes: prefer the
    /// variable or a file.
    #[arg(long, global = true, value_name = "TOKEN", conflicts_with = "token_file")]
    pub(crate) token: Option<String>,

    /// How long one attempt of a request may take.
    #[arg(long, global = true, value_name = "TIME", default_value = "5s",
          value_parser = connection::attempt)]
    pub(crate) request_timeout: Attempt,
}

/// The commands.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Waits for a lock, runs a command while holding it, and exits with the command's status.
    Run(RunArgs),
    /// Prints the state of locks, semaphores or latches.
    Status(StatusArgs),
    /// Shows the state of a lock live; without a terminal, prints a line for each change.
    Watch(WatchArgs),
    /// Ends the hold of a lock, or returns the held permits of a semaphore, of any program.
    Release(ReleaseArgs),
    /// Waits for a count-down latch, and changes its count.
    #[command(subcommand)]
    Latch(LatchCommand),
    /// Creates a semaphore, and changes its permits.
    #[command(subcommand)]
    Semaphore(SemaphoreCommand),
    /// Prints a script that completes this command line in a shell.
    Completion {
        /// The shell.
        shell: Shell,
    },
}

/// The options of `run`.
#[derive(clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) wait: WaitArgs,

    /// The lease, which is renewed while the command runs: if this machine dies, the lock is free
    /// after this time. From 100ms to 24h.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = lease)]
    pub(crate) lease: Duration,

    /// The kind of object to hold.
    #[arg(long, value_enum, default_value = "lock")]
    pub(crate) kind: HeldKind,

    /// The number of permits to hold of a semaphore.
    #[arg(long, value_name = "NUMBER", value_parser = value_parser!(u32).range(1..=2_147_483_647))]
    pub(crate) permits: Option<u32>,

    /// How long the command may take to end after SIGTERM, when the lease is lost, before SIGKILL.
    #[arg(long, value_name = "TIME", default_value = "5s",
          value_parser = humantime::parse_duration)]
    pub(crate) grace: Duration,

    /// The exit code when another client holds the lock for the whole wait.
    #[arg(short = 'E', long, value_name = "CODE", default_value = "75")]
    pub(crate) conflict_exit_code: u8,

    /// Reports on stderr when the lock is acquired and released.
    #[arg(short, long)]
    pub(crate) verbose: bool,

    /// The name of the lock.
    pub(crate) name: String,

    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

fn lease(text: &str) -> Result<Duration, String> {
    connection::checked(text, "100ms to 24h", |time| LeaseTime::new(time).ok().map(|_| time))
}

fn life(text: &str) -> Result<Duration, String> {
    connection::checked(text, "1ms to 10years", |time| LifeTime::new(time).ok().map(|_| time))
}

/// The kinds of objects that a command can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HeldKind {
    /// One holder at a time.
    Lock,
    /// One holder at a time, first come, first served.
    Fair,
    /// As many holders as there are permits.
    Semaphore,
}

/// The kinds of objects that have a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// A lock of any kind but fair.
    Lock,
    /// A fair lock.
    Fair,
    /// A semaphore.
    Semaphore,
    /// A count-down latch.
    Latch,
}

/// The options of `status`.
#[derive(clap::Args)]
pub(crate) struct StatusArgs {
    /// The kind of the objects.
    #[arg(long, value_enum, default_value = "lock")]
    pub(crate) kind: Kind,

    /// Prints an array of JSON objects.
    #[arg(long)]
    pub(crate) json: bool,

    /// The names.
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
}

/// The options of `watch`.
#[derive(clap::Args)]
pub(crate) struct WatchArgs {
    /// The kind of the object.
    #[arg(long, value_enum, default_value = "lock")]
    pub(crate) kind: Kind,

    /// The time between two queries.
    #[arg(long, value_name = "TIME", default_value = "1s",
          value_parser = humantime::parse_duration)]
    pub(crate) interval: Duration,

    /// Prints a JSON object for each change, also on a terminal.
    #[arg(long)]
    pub(crate) json: bool,

    /// The name.
    pub(crate) name: String,
}

/// The options of `release`.
#[derive(clap::Args)]
pub(crate) struct ReleaseArgs {
    /// Confirms that the hold of another program is to end. That program loses its lease; it learns
    /// of it at its next renewal.
    #[arg(long, required = true)]
    pub(crate) force: bool,

    /// The kind of the object.
    #[arg(long, value_enum, default_value = "lock")]
    pub(crate) kind: HeldKind,

    /// The name.
    pub(crate) name: String,
}

/// The commands about a latch.
#[derive(Subcommand)]
pub(crate) enum LatchCommand {
    /// Waits until the latch is open. A latch that was never set is open.
    Wait {
        #[command(flatten)]
        wait: WaitArgs,
        /// The name of the latch.
        name: String,
    },
    /// Decrements the count by one, and prints the new count: 0 opens the latch.
    CountDown {
        /// The name of the latch.
        name: String,
    },
    /// Closes an open latch.
    Set {
        /// The name of the latch.
        name: String,
        /// The number of times that the latch is to be counted down.
        #[arg(value_parser = value_parser!(u64).range(1..))]
        count: u64,
    },
    /// Prints the count.
    Show {
        /// The name of the latch.
        name: String,
    },
}

/// The commands about a semaphore.
#[derive(Subcommand)]
pub(crate) enum SemaphoreCommand {
    /// Creates the semaphore.
    Set {
        /// The name of the semaphore.
        name: String,
        /// The number of permits.
        #[arg(value_parser = value_parser!(u32).range(..=2_147_483_647))]
        permits: u32,
        /// Deletes the semaphore after this time.
        #[arg(long, value_name = "TIME", value_parser = life)]
        life: Option<Duration>,
    },
    /// Adds permits, and prints the number of available ones. Creates the semaphore if there is
    /// none.
    Add {
        /// The name of the semaphore.
        name: String,
        /// The number of permits; a negative number removes permits.
        #[arg(allow_negative_numbers = true)]
        permits: i32,
    },
    /// Prints the numbers of available and of held permits.
    Show {
        /// Prints a JSON object.
        #[arg(long)]
        json: bool,
        /// The name of the semaphore.
        name: String,
    },
}

/// The command line of the process that becomes the command of `run`.
#[derive(Parser)]
pub(crate) struct LaunchArgs {
    /// [`LaunchArgs::WORD`].
    word: String,

    /// The process id of `edgelatch run`.
    pub(crate) parent: i32,

    /// The command and its arguments.
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

impl LaunchArgs {
    /// The first argument of that process. Not a command of [`Args`], so no help and no completion
    /// shows it.
    pub(crate) const WORD: &str = "__launch";

    /// Parses the arguments of this process, if it is one that becomes the command of `run`.
    pub(crate) fn of_process() -> Option<Self> {
        (env::args_os().nth(1)? == Self::WORD).then(Self::parse)
    }
}

/// The command line of the guard of a command.
#[derive(Parser)]
pub(crate) struct GuardArgs {
    /// [`GuardArgs::WORD`].
    word: String,

    /// The remaining time of the lease in milliseconds.
    pub(crate) remaining_ms: u64,

    /// The grace time in milliseconds.
    pub(crate) grace_ms: u64,

    /// The processes of the command.
    pub(crate) receiver: Receiver,
}

impl GuardArgs {
    /// The first argument of that process, as [`LaunchArgs::WORD`].
    pub(crate) const WORD: &str = "__guard";

    /// Parses the arguments of this process, if it is a guard.
    pub(crate) fn of_process() -> Option<Self> {
        (env::args_os().nth(1)? == Self::WORD).then(Self::parse)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn run(words: &[&str]) -> Result<RunArgs, clap::Error> {
        let args = Args::try_parse_from(["edgelatch", "run"].iter().chain(words))?;
        let Command::Run(args) = args.command else { panic!("another command") };
        Ok(args)
    }

    #[test]
    fn the_definition_of_the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn everything_behind_two_dashes_is_the_command() {
        let args = run(&["--lease", "1m", "job", "--", "cmd", "--wait", "--", "x"]).unwrap();
        assert_eq!((args.name.as_str(), args.lease), ("job", Duration::from_secs(60)));
        assert_eq!(args.command, ["cmd", "--wait", "--", "x"]);
        assert!(run(&["job", "cmd"]).is_err() && run(&["job", "--"]).is_err());
    }

    #[test]
    fn waits_exclude_each_other() {
        assert!(run(&["--wait", "1s", "--no-wait", "job", "--", "x"]).is_err());
        assert!(run(&["--forever", "--no-wait", "job", "--", "x"]).is_err());
    }

    #[test]
    fn durations_out_of_range_are_rejected_with_the_range() {
        let error = run(&["--lease", "1ms", "job", "--", "x"]).err().unwrap().to_string();
        assert!(error.contains("100ms to 24h"), "{error}");
        assert!(run(&["--wait", "2days", "job", "--", "x"]).is_err());
        assert!(run(&["--lease", "soon", "job", "--", "x"]).is_err());
    }

    #[test]
    fn a_forced_release_must_be_confirmed() {
        assert!(Args::try_parse_from(["edgelatch", "release", "job"]).is_err());
        assert!(Args::try_parse_from(["edgelatch", "release", "--force", "job"]).is_ok());
    }

    #[test]
    fn permits_can_be_removed() {
        let args = Args::try_parse_from(["edgelatch", "semaphore", "add", "pool", "-3"]).unwrap();
        let Command::Semaphore(SemaphoreCommand::Add { permits, .. }) = args.command else {
            panic!("another command")
        };
        assert_eq!(permits, -3);
    }
}
