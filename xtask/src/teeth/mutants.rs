//! cargo-mutants: every operator and result of the machines and the protocol, changed one at a time.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::place::Place;
use crate::process::Group;

/// Which of how many parts, as in `0/40`.
pub(super) fn part(text: &str) -> Result<(usize, usize)> {
    let numbers = text.split_once('/').map(|(part, parts)| (part.parse().ok(), parts.parse().ok()));
    match numbers {
        Some((Some(part), Some(parts))) if part < parts => Ok((part, parts)),
        _ => anyhow::bail!("no part: {text}; the first of forty is 0/40"),
    }
}

/// Runs it over what `.cargo/mutants.toml` names. It works in a copy of the checkout and lists what nothing has found.
pub(super) fn run(place: &Place, shard: Option<&str>) -> Result<ExitCode> {
    let output = place.folder("teeth")?;
    let mut command = place.command("cargo");
    command
        .args(["mutants", "--no-shuffle", "--jobs", "1", "--output"])
        .arg(output)
        // Its builds are its own; what they leave is not worth keeping.
        .env_remove("CARGO_TARGET_DIR")
        .env("CARGO_INCREMENTAL", "1")
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
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
