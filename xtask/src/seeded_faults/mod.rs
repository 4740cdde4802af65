//! `cargo xtask seeded-faults`: puts faults into a copy of the product, one at a time. The layers
//! of the tests have to find each of them.

mod fault;
mod layer;
mod tree;

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;

use crate::process::{exit_code, forward};
use crate::progress::Stopwatch;
use crate::setup::{self, Tool};
use crate::workspace::Workspace;
use fault::{Fault, MIN_LAYERS};
use layer::{LAYERS, Layer};
use tree::Tree;

/// How long the tests of one mutant may run when no baseline has measured their time. A mutant
/// whose tests take longer counts as hung.
const MAX_MUTANT_SECONDS: &str = "400";

/// The faults of a run, and the layers that look for them.
#[derive(Args)]
pub(crate) struct Options {
    /// Names of faults in `tests/seeded_faults`; all faults unless some are named
    names: Vec<String>,
    /// Run every layer on each fault, not only those that have to find it
    #[arg(long, conflicts_with = "mutants")]
    every_layer: bool,
    /// Do not check first that the layers pass without a fault
    #[arg(long)]
    skip_baseline: bool,
    /// Change single operators and results of the core instead, with cargo-mutants
    #[arg(long, conflicts_with = "names")]
    mutants: bool,
    /// Only this part of the faults or mutants, as in 0/40
    #[arg(long, value_name = "K/N", value_parser = shard)]
    shard: Option<(usize, usize)>,
}

/// Reads a part and the number of parts, as in `0/40`.
fn shard(text: &str) -> Result<(usize, usize)> {
    let (part, parts) = text.split_once('/').context("write it as in 0/40")?;
    let (part, parts) = (part.parse()?, parts.parse()?);
    ensure!(part < parts, "the first of {parts} is 0/{parts}");
    Ok((part, parts))
}

/// `cargo xtask seeded-faults`.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<ExitCode> {
    if options.mutants {
        return run_mutants(workspace, options);
    }
    setup::ensure(workspace, &[Tool::Redis, Tool::Webdis, Tool::Nextest])?;
    let selected = selected(Fault::all(&workspace.root)?, options)?;
    let tree = Tree::new(workspace)?;
    if !options.skip_baseline {
        check_baseline(&tree, &selected, options.every_layer)?;
    }
    let mut survivors = Vec::new();
    let count = selected.len();
    for (number, fault) in selected.iter().enumerate() {
        println!("→ {}/{count} {} ({}): {}", number + 1, fault.name, fault.shows, fault.effect);
        let missed = tree.with(fault, || run_layers(&tree, fault, options.every_layer))?;
        if !missed.is_empty() {
            survivors.push(format!("{}: not found by {}", fault.name, missed.join(", ")));
        }
    }
    let found = count - survivors.len();
    println!("{found} of {count} faults were found by all layers that have to find them");
    survivors.iter().for_each(|survivor| println!("  {survivor}"));
    Ok(exit_code(survivors.is_empty()))
}

/// Runs cargo-mutants on the files that `.cargo/mutants.toml` names. It lists the mutants that no
/// test has found.
fn run_mutants(workspace: &Workspace, options: &Options) -> Result<ExitCode> {
    setup::ensure(workspace, &[Tool::Redis, Tool::Webdis, Tool::CargoMutants])?;
    // Without `--workspace` only the package of the root would be changed. Round-robin makes a part
    // a sample of all files.
    let mut cargo = workspace.command("cargo mutants --workspace --sharding round-robin --output");
    cargo.arg(workspace.folder("seeded-faults")?);
    if options.skip_baseline {
        cargo.args(["--baseline", "skip", "--timeout", MAX_MUTANT_SECONDS]);
    }
    if let Some((part, parts)) = options.shard {
        cargo.args(["--shard", &format!("{part}/{parts}")]);
    }
    forward("cargo mutants", &mut cargo)
}

/// Returns the faults of this run: those that are named, or a part of all.
fn selected(all: Vec<Fault>, options: &Options) -> Result<Vec<Fault>> {
    if let Some(name) =
        options.names.iter().find(|name| all.iter().all(|fault| fault.name != **name))
    {
        bail!("no such fault: {name}");
    }
    let is_named = |fault: &Fault| options.names.is_empty() || options.names.contains(&fault.name);
    let (part, parts) = options.shard.unwrap_or((0, 1));
    Ok(all.into_iter().filter(is_named).skip(part).step_by(parts).collect())
}

/// Fails unless every layer that this run needs passes without a fault: a layer that fails anyway
/// finds any fault.
fn check_baseline(tree: &Tree<'_>, selected: &[Fault], every_layer: bool) -> Result<()> {
    let is_needed =
        |layer: &&Layer| every_layer || selected.iter().any(|fault| fault.found_by.contains(layer));
    for layer in LAYERS.iter().filter(is_needed) {
        println!("→ {} without a fault", layer.name);
        let watch = Stopwatch::start();
        let finding = tree.run(layer, "baseline")?;
        ensure!(finding.is_none(), "{} fails without a fault: {finding:?}", layer.name);
        println!("  passed in {}", watch.text());
    }
    Ok(())
}

/// Runs layers on a fault that is in the tree; returns the layers that missed it and must not.
/// Where fewer than [`MIN_LAYERS`] layers find the fault, the remaining layers run until enough of
/// them do.
fn run_layers(tree: &Tree<'_>, fault: &Fault, every_layer: bool) -> Result<Vec<&'static str>> {
    let (mut missed, mut found) = (Vec::new(), 0);
    let is_other = |layer: &&Layer| !fault.found_by.contains(layer) && fault.can_be_found_by(layer);
    for layer in fault.found_by.iter().copied().chain(LAYERS.iter().filter(is_other)) {
        let must_find = fault.found_by.contains(&layer);
        if found >= MIN_LAYERS && !every_layer && !must_find {
            break;
        }
        let watch = Stopwatch::start();
        let finding = tree.run(layer, &fault.name)?;
        let result = finding.as_deref().unwrap_or("found nothing");
        println!("  {}: {result} ({})", layer.name, watch.text());
        match finding {
            Some(_) => found += 1,
            None if must_find => missed.push(layer.name),
            None => {}
        }
    }
    if found < MIN_LAYERS {
        println!("  SURVIVOR: found by {found}");
    }
    Ok(missed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_below_the_number_of_parts() {
        assert_eq!(shard("0/40").unwrap(), (0, 40));
        assert!(["40/40", "1", "a/b", "-1/2"].iter().all(|text| shard(text).is_err()));
    }
}
