//! `cargo xtask sim`: schedules in virtual time, played by `tests/simulation`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::place::Place;

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
}

impl Schedules {
    fn flags(&self) -> Vec<String> {
        let text = |value: Option<String>, name: &str| value.map(|value| [name.into(), value]);
        [
            text(self.seed.map(|seed| seed.to_string()), "--seed"),
            text(self.schedules.map(|schedules| schedules.to_string()), "--schedules"),
            text(self.minutes.map(|minutes| minutes.to_string()), "--minutes"),
            text(self.clients.map(|clients| clients.to_string()), "--clients"),
            text(self.rounds.map(|rounds| rounds.to_string()), "--rounds"),
            text(self.kind.clone(), "--kind"),
            text(self.faults.clone(), "--faults"),
            text(self.without.clone(), "--without"),
        ]
        .into_iter()
        .flatten()
        .flatten()
        .chain(self.blind.then(|| "--blind".into()))
        .collect()
    }
}

/// `cargo xtask sim`.
pub(crate) fn run(place: &Place, schedules: &Schedules) -> Result<ExitCode> {
    let mut command = place.command("cargo");
    command.args([
        "test",
        "--release",
        "--quiet",
        "--package",
        "edgelatch-tests",
        "--test",
        "simulation",
        "--",
    ]);
    let status = command.args(schedules.flags()).status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
