//! cargo-mutants: changes every operator and result of the machines and the protocol, one at a
//! time.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use super::tree::Tree;
use crate::place::Place;
use crate::process::Group;

/// How long the tests of one mutant may run when no baseline has measured their time. A mutant
/// whose tests take longer counts as hung.
const SECONDS_MAX: &str = "400";

/// Reads a part and the number of parts, as in `0/40`.
pub(super) fn part(text: &str) -> Result<(usize, usize)> {
    let numbers = text.split_once('/').map(|(part, parts)| (part.parse().ok(), parts.parse().ok()));
    match numbers {
        Some((Some(part), Some(parts))) if part < parts => Ok((part, parts)),
        _ => bail!("no part: {text}; the first of forty is 0/40"),
    }
}

/// Runs cargo-mutants in the copy on the files that `.cargo/mutants.toml` names. It lists the
/// mutants that no test has found.
pub(super) fn run(place: &Place, shard: Option<&str>, skip_baseline: bool) -> Result<ExitCode> {
    let tree = Tree::of(place)?;
    let mut command = tree.cargo();
    // In the copy, which the seeded faults have built already. Round-robin makes a part a sample of
    // all files.
    command
        .args(["mutants", "--in-place", "--sharding", "round-robin", "--output"])
        .arg(place.folder("seeded-faults")?);
    if skip_baseline {
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
    fn a_part_is_below_the_number_of_parts() {
        assert_eq!(part("0/40").unwrap(), (0, 40));
        assert!(["40/40", "1", "a/b", "-1/2"].iter().all(|text| part(text).is_err()));
    }
}
