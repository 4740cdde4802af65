//! `cargo xtask sim`: schedules in virtual time, played by `tests/simulation`.

use std::path::{PathBuf, absolute};
use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::Args;

use crate::process::forward;
use crate::workspace::Workspace;

/// The schedules to play. The seed decides each option that is not given.
#[derive(Args)]
pub(crate) struct Schedules {
    /// The seed of the first schedule; the next ones follow it
    #[arg(long)]
    seed: Option<u64>,
    /// The number of schedules, of all kinds together
    #[arg(long)]
    schedules: Option<u64>,
    /// The time of the run in minutes
    #[arg(long)]
    minutes: Option<f64>,
    /// The number of hosts, each with a client
    #[arg(long)]
    clients: Option<usize>,
    /// The number of acquisitions of each client
    #[arg(long)]
    rounds: Option<u32>,
    /// One kind of object only
    #[arg(long)]
    kind: Option<String>,
    /// These classes of faults, separated by commas, or `none`
    #[arg(long)]
    faults: Option<String>,
    /// A rule that is omitted, to check that the simulation finds this
    #[arg(long)]
    without: Option<String>,
    /// Judge only the observations of clients
    #[arg(long)]
    blind: bool,
    /// Write the histories to this file as lines of JSON, of schedules in which Redis loses nothing
    #[arg(long)]
    export: Option<PathBuf>,
}

/// `cargo xtask sim`.
pub(crate) fn run(workspace: &Workspace, schedules: &Schedules) -> Result<ExitCode> {
    let Schedules {
        seed,
        schedules,
        minutes,
        clients,
        rounds,
        kind,
        faults,
        without,
        blind,
        export,
    } = schedules;
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let options = [
        ("--seed", number(*seed)),
        ("--schedules", number(*schedules)),
        ("--minutes", minutes.map(|minutes| minutes.to_string())),
        ("--clients", clients.map(|clients| clients.to_string())),
        ("--rounds", number(rounds.map(u64::from))),
        ("--kind", kind.clone()),
        ("--faults", faults.clone()),
        ("--without", without.clone()),
    ];
    let mut cargo = command(workspace);
    cargo.args(blind.then_some("--blind"));
    if let Some(file) = export {
        // cargo runs the program in another folder.
        cargo.arg("--export").arg(absolute(file)?);
    }
    for (name, value) in options {
        cargo.args(value.map(|value| [name.to_owned(), value]).into_iter().flatten());
    }
    forward("the simulation", &mut cargo)
}

/// Returns the command that runs the simulation, without its flags.
pub(crate) fn command(workspace: &Workspace) -> Command {
    let mut cargo = workspace.command("cargo");
    cargo.args(["test", "--release", "--quiet", "--package", "edgelatch-tests"]);
    cargo.args(["--test", "simulation", "--"]);
    cargo
}
