//! `cargo xtask sim`: schedules in virtual time, played by `tests/simulation`.

use std::path::absolute;
use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::Args;

use crate::process::forward;
use crate::workspace::Workspace;

/// The arguments of the simulation, which reads them itself.
#[derive(Args)]
pub(crate) struct Schedules {
    /// The schedules to play. The seed decides each option that is not given
    ///
    /// --seed S          the seed of the first schedule; the next ones follow it
    /// --schedules N     the number of schedules, of all kinds together
    /// --minutes N       the time of the run
    /// --clients N       the number of hosts, each with a client
    /// --rounds N        the number of acquisitions of each client
    /// --kind KIND       one kind of object only
    /// --faults A,B      these classes of faults, or `none`
    /// --without RULE    omit a rule, to check that the simulation finds this
    /// --blind           judge only the observations of clients
    /// --export FILE     write the histories to this file as lines of JSON, of schedules in which
    ///                   Redis loses nothing
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, verbatim_doc_comment)]
    options: Vec<String>,
}

/// `cargo xtask sim`.
pub(crate) fn run(workspace: &Workspace, Schedules { options }: Schedules) -> Result<ExitCode> {
    let mut cargo = command(workspace);
    let mut is_file = false;
    for option in options {
        // cargo runs the program in another folder.
        if is_file {
            cargo.arg(absolute(&option)?)
        } else {
            cargo.arg(&option)
        };
        is_file = option == "--export";
    }
    forward("the simulation", &mut cargo)
}

/// Returns the command that runs the simulation, without its flags.
pub(crate) fn command(workspace: &Workspace) -> Command {
    workspace.command("cargo test --release --quiet --package edgelatch-tests --test simulation --")
}
