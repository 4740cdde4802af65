//! `cargo xtask seeded-faults`: puts faults into a copy of the product, one at a time. The layers
//! of the tests have to find each of them.

mod fault;
mod layer;
mod mutants;
mod tree;

use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::Args;

use crate::place::Place;
use crate::progress::Stopwatch;
use crate::setup::{self, Purpose};
use fault::{CATCHERS, Fault};
use layer::{LAYERS, Layer};
use tree::{Finding, Tree};

/// The faults of a run, and the layers that look for them.
#[derive(Args)]
pub(crate) struct Faults {
    /// Names of faults in `tests/seeded_faults`; all faults unless some are named
    names: Vec<String>,
    /// Run every layer on each fault, not only those that have to find it
    #[arg(long)]
    every_layer: bool,
    /// Do not check first that the layers pass without a fault
    #[arg(long)]
    skip_baseline: bool,
    /// Change single operators and results of machine/ and protocol/ instead, with cargo-mutants
    #[arg(long)]
    mutants: bool,
    /// Only this part of the faults or mutants, as in 0/40
    #[arg(long, value_name = "K/N")]
    shard: Option<String>,
}

/// `cargo xtask seeded-faults`.
pub(crate) fn run(place: &Place, faults: &Faults) -> Result<ExitCode> {
    if faults.mutants {
        ensure!(faults.names.is_empty(), "mutants have no names");
        setup::ensure(place, Purpose::Mutants.needs())?;
        return mutants::run(place, faults.shard.as_deref(), faults.skip_baseline);
    }
    setup::ensure(place, Purpose::SeededFaults.needs())?;
    let chosen = chosen(place, faults)?;
    let tree = Tree::of(place)?;
    if !faults.skip_baseline {
        check_baseline(&tree, &chosen, faults.every_layer)?;
    }
    let mut survivors = Vec::new();
    let count = chosen.len();
    for (number, fault) in chosen.iter().enumerate() {
        let shows = fault.shows.join(" ");
        println!("→ {}/{count} {} ({shows}): {}", number + 1, fault.name, fault.title);
        let missed = tree.with(fault, || look_for(&tree, fault, faults.every_layer))?;
        if !missed.is_empty() {
            survivors.push(format!("{}: not found by {}", fault.name, missed.join(", ")));
        }
    }
    println!(
        "{} of {count} faults were found by all layers that have to find them",
        count - survivors.len()
    );
    for survivor in &survivors {
        println!("  {survivor}");
    }
    Ok(if survivors.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The faults of this run: those that are named, or a part of all.
fn chosen(place: &Place, faults: &Faults) -> Result<Vec<Fault>> {
    let all = Fault::all(&place.root)?;
    for name in &faults.names {
        ensure!(all.iter().any(|fault| fault.name == *name), "no such fault: {name}");
    }
    let named = |fault: &Fault| faults.names.is_empty() || faults.names.contains(&fault.name);
    let (part, parts) = faults.shard.as_deref().map_or(Ok((0, 1)), mutants::part)?;
    let chosen = all.into_iter().filter(named).enumerate();
    Ok(chosen.filter(|(number, _)| number % parts == part).map(|(_, fault)| fault).collect())
}

/// The layers that can find a fault: those that have to find it, then the others.
fn candidates(fault: &Fault) -> impl Iterator<Item = &'static Layer> {
    let can_find = |layer: &&Layer| layer.runs_scripts || !fault.file.ends_with(".lua");
    let others = LAYERS.iter().filter(|layer| !fault.caught_by.contains(layer)).filter(can_find);
    fault.caught_by.iter().copied().chain(others)
}

/// Fails unless every layer that this run needs passes without a fault: a layer that fails anyway
/// finds any fault.
fn check_baseline(tree: &Tree<'_>, chosen: &[Fault], every_layer: bool) -> Result<()> {
    for layer in LAYERS {
        if !every_layer && !chosen.iter().any(|fault| fault.caught_by.contains(&layer)) {
            continue;
        }
        println!("→ {} without a fault", layer.name);
        let watch = Stopwatch::start();
        let finding = tree.run(layer, "baseline")?;
        ensure!(
            matches!(finding, Finding::Passed),
            "{} fails without a fault: {finding}",
            layer.name
        );
        println!("  passed in {}", watch.text());
    }
    Ok(())
}

/// Runs layers on a fault that is in the tree; returns the layers that missed it and must not.
/// Where fewer than [`CATCHERS`] layers find the fault, the remaining layers run until enough of
/// them do.
fn look_for(tree: &Tree<'_>, fault: &Fault, every_layer: bool) -> Result<Vec<&'static str>> {
    let (mut missed, mut caught) = (Vec::new(), 0);
    for layer in candidates(fault) {
        let must_find = fault.caught_by.contains(&layer);
        if caught >= CATCHERS && !every_layer && !must_find {
            break;
        }
        let watch = Stopwatch::start();
        let finding = tree.run(layer, &fault.name)?;
        println!("  {}: {finding} ({})", layer.name, watch.text());
        match finding {
            Finding::Passed if must_find => missed.push(layer.name),
            Finding::Passed => {}
            Finding::Failed(_) | Finding::TimedOut => caught += 1,
        }
    }
    if caught < CATCHERS {
        println!("  SURVIVOR: found by {caught}");
    }
    Ok(missed)
}
