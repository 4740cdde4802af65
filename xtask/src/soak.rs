//! `cargo xtask soak`: the npm package takes and gives back for as long as one likes, and nothing may be collected.

use std::process::ExitCode;

use anyhow::Result;

use crate::place::Place;
use crate::setup::{self, Purpose};
use crate::suite::{Runner, soak_for};

pub(crate) fn run(place: &Place, minutes: u32) -> Result<ExitCode> {
    setup::ensure(place, Purpose::Demo.needs())?;
    let tally = soak_for(&Runner::new(place, "soak"), minutes)?;
    println!("{tally}");
    Ok(if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
