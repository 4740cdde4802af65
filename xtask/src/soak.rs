//! `cargo xtask soak`: the npm package acquires and releases for a long time, and its memory must
//! not grow.

use std::process::ExitCode;

use anyhow::Result;

use crate::place::Place;
use crate::setup::{self, Purpose};
use crate::test::{Extent, Session, soak_for};

pub(crate) fn run(place: &Place, minutes: u32) -> Result<ExitCode> {
    setup::ensure(place, Purpose::Demo.needs())?;
    Ok(soak_for(&Session::new(place, "soak", Extent::Full, None), minutes)?.tell())
}
