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
    /// How many schedules, of all kinds together
    #[arg(long)]
    schedules: Option<u64>,
    /// Goes on for so long
    #[arg(long)]
    minutes: Option<f64>,
    /// How many hosts with a client each
    #[arg(long)]
    clients: Option<usize>,
    /// How often each client takes something
    #[arg(long)]
    rounds: Option<u32>,
    /// One kind of object only
    #[arg(long)]
    kind: Option<String>,
    /// These classes of faults, with commas between them, or `none`
    #[arg(long)]
    faults: Option<String>,
    /// A rule that is left out, to see that this is found
    #[arg(long)]
    without: Option<String>,
    /// Only what clients saw is judged
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
