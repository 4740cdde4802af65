//! `cargo xtask teeth`: faults are put into the product on purpose, and the storeys of the tests have to find each of them.

mod fault;
mod mutants;
mod storey;
mod tree;

use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::Args;

use crate::place::Place;
use crate::progress::Stopwatch;
use crate::setup::{self, Purpose};
use fault::{CATCHERS, Fault};
use storey::{STOREYS, Storey};
use tree::{Finding, Tree};

/// What is put in.
#[derive(Args)]
pub(crate) struct Faults {
    /// Names of faults in tests/teeth; all of them unless some are named
    names: Vec<String>,
    /// Ask the other storeys too, those that need not find it
    #[arg(long)]
    every_storey: bool,
    /// Do not look first whether the storeys pass without a fault: they have, a moment ago
    #[arg(long)]
    sound: bool,
    /// Change single operators and results of machine/ and protocol/ instead, with cargo-mutants
    #[arg(long)]
    mutants: bool,
    /// Only this part of them, as in 0/40
    #[arg(long, value_name = "K/N")]
    shard: Option<String>,
}

/// `cargo xtask teeth`.
pub(crate) fn run(place: &Place, faults: &Faults) -> Result<ExitCode> {
    if faults.mutants {
        ensure!(faults.names.is_empty(), "mutants have no names");
        setup::ensure(place, Purpose::Mutants.needs())?;
        return mutants::run(place, faults.shard.as_deref(), faults.sound);
    }
    setup::ensure(place, Purpose::Teeth.needs())?;
    let chosen = chosen(place, faults)?;
    let tree = Tree::of(place)?;
    if !faults.sound {
        check_sound(&tree, &chosen, faults.every_storey)?;
    }
    let mut survivors = Vec::new();
    let count = chosen.len();
    for (number, fault) in chosen.iter().enumerate() {
        let shows = fault.shows.join(" ");
        println!("→ {}/{count} {} ({shows}): {}", number + 1, fault.name, fault.title);
        let missed = tree.with(fault, || bitten(&tree, fault, faults.every_storey))?;
        if !missed.is_empty() {
            survivors.push(format!("{}: not found by {}", fault.name, missed.join(", ")));
        }
    }
    println!(
        "{} of {count} faults were found by all that have to find them",
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

/// The storeys that are asked about a fault: those that have to find it, then the others.
fn asked(fault: &Fault) -> impl Iterator<Item = &'static Storey> {
    let sees = |storey: &&Storey| storey.runs_scripts || !fault.file.ends_with(".lua");
    let others = STOREYS.iter().filter(|storey| !fault.caught_by.contains(storey)).filter(sees);
    fault.caught_by.iter().copied().chain(others)
}

/// What fails without a fault finds any of them.
fn check_sound(tree: &Tree<'_>, chosen: &[Fault], every: bool) -> Result<()> {
    for storey in STOREYS {
        if !every && !chosen.iter().any(|fault| fault.caught_by.contains(&storey)) {
            continue;
        }
        println!("→ {} without a fault", storey.name);
        let watch = Stopwatch::start();
        let finding = tree.run(storey, "none")?;
        ensure!(
            matches!(finding, Finding::Passed),
            "{} fails without a fault: {finding}",
            storey.name
        );
        println!("  passed in {}", watch.text());
    }
    Ok(())
}

/// Asks the storeys about a fault that is in the tree; answers who should have found it and has not. Where too few have, the others are
/// asked until there are enough.
fn bitten(tree: &Tree<'_>, fault: &Fault, every: bool) -> Result<Vec<&'static str>> {
    let (mut missed, mut caught) = (Vec::new(), 0);
    for storey in asked(fault) {
        let named = fault.caught_by.contains(&storey);
        if caught >= CATCHERS && !every && !named {
            break;
        }
        let watch = Stopwatch::start();
        let finding = tree.run(storey, &fault.name)?;
        println!("  {}: {finding} ({})", storey.name, watch.text());
        match finding {
            Finding::Passed if named => missed.push(storey.name),
            Finding::Passed => {}
            Finding::Failed(_) | Finding::Hung => caught += 1,
        }
    }
    if caught < CATCHERS {
        println!("  SURVIVOR: found by {caught}");
    }
    Ok(missed)
}
