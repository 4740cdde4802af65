//! cargo-mutants: every operator and result of the machines and the protocol, changed one at a time.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use super::tree::Tree;
use crate::place::Place;
use crate::process::Group;

/// For how long the tests may run when it is not looked at first how long they take: whatever takes longer hangs.
const SECONDS_MAX: &str = "400";

/// Which of how many parts, as in `0/40`.
pub(super) fn part(text: &str) -> Result<(usize, usize)> {
    let numbers = text.split_once('/').map(|(part, parts)| (part.parse().ok(), parts.parse().ok()));
    match numbers {
        Some((Some(part), Some(parts))) if part < parts => Ok((part, parts)),
        _ => bail!("no part: {text}; the first of forty is 0/40"),
    }
}

/// Runs it in the copy over what `.cargo/mutants.toml` names; it lists what nothing has found.
pub(super) fn run(place: &Place, shard: Option<&str>, sound: bool) -> Result<ExitCode> {
    let tree = Tree::of(place)?;
    let mut command = tree.cargo();
    // In the copy, where all is built already that the faults have needed. A part is a sample from everywhere.
    command
        .args(["mutants", "--in-place", "--sharding", "round-robin", "--output"])
        .arg(place.folder("teeth")?);
    if sound {
        command.args(["--baseline", "skip", "--timeout", SECONDS_MAX]);
    }
    if let Some(shard) = shard {
        part(shard)?;
        command.args(["--shard", shard]);
    }
    let mut group = Group::spawn("cargo mutants", &mut command)?;
    let status = group.wait(|| Ok(())).context("cargo mutants")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_one_of_so_many() {
        assert_eq!(part("0/40").unwrap(), (0, 40));
        assert!(["40/40", "1", "a/b", "-1/2"].iter().all(|text| part(text).is_err()));
    }
}
