//! `cargo xtask bench`: measures edgelatch and other libraries in one run.

mod ask;
mod blocks;
mod chart;
mod cost;
mod effort;
mod figures;
mod gateways;
mod handoff;
mod machine;
mod page;
mod stand;
mod start;
mod subject;
mod table;
mod throughput;
mod traffic;
mod waiting;
mod weight;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::build;
use crate::costs;
use crate::interop;
use crate::place::{Place, emptied};
use crate::progress::{Stopwatch, run as run_step};
use crate::setup::{self, Purpose};
use crate::test::{Report, Session};
use effort::{Effort, QUICK, WHOLE};
pub(crate) use start::start_of_package;
use table::{Results, Table};

/// The folder of the published results, in the checkout.
const PUBLISHED: &str = "bench";
const RESULTS: &str = "results.json";
/// The published results, from the root of the checkout.
pub(crate) const RECORDED: &str = "bench/results.json";

/// The context of a run.
struct Bench<'p> {
    place: &'p Place,
    effort: Effort,
    /// The program of the project's gateway.
    gateway: PathBuf,
    /// The folder with the packed npm package installed.
    consumer: PathBuf,
    /// The folder of the Java side.
    peer: PathBuf,
}

/// Measures everything and prints it. A whole run writes `bench/results.json`, a chart of each
/// table beside it, and the figures in the pages; a quick run changes none of these files and
/// writes below target.
pub(crate) fn run(place: &Place, quick: bool) -> Result<()> {
    setup::ensure(place, Purpose::Bench.needs())?;
    let effort = if quick { QUICK } else { WHOLE };
    let bench = Bench::prepare(place, effort, build::published_gateway(place)?)?;
    let watch = Stopwatch::start();
    let results = bench.measure()?;
    results.tables.iter().for_each(Table::print);
    let folder = if quick { place.folder("bench")? } else { place.root.join(PUBLISHED) };
    keep(&results, &folder)?;
    if !quick {
        page::write(place, &results)?;
        costs::write(place)?;
    }
    println!("\nMeasured in {}; results and charts are in {}.", watch.text(), folder.display());
    Ok(())
}

/// Draws charts and writes pages from the published results.
pub(crate) fn draw(place: &Place) -> Result<()> {
    let folder = place.root.join(PUBLISHED);
    let file = folder.join(RESULTS);
    let text = fs::read_to_string(&file)
        .with_context(|| format!("cannot read {}; measure first", file.display()))?;
    let results = Results::from_json(&text)?;
    draw_charts(&results, &folder)?;
    page::write(place, &results)?;
    costs::write(place)
}

/// The suite of `cargo xtask test`: checks that every table has a figure in every cell. A test
/// cannot check the values, so the gateway is the one that other suites have built.
pub(crate) fn suite(session: &Session<'_>) -> Result<Report> {
    ensure!(
        session.only.is_none(),
        "the tables are measured together; run `bench` without `--only`"
    );
    let gateway = build::fast_gateway(session.place)?;
    let bench = Bench::prepare(session.place, QUICK, gateway)?;
    let results = bench.measure()?;
    keep(&results, &session.place.folder("bench")?)?;
    let mut report = Report::default();
    for table in &results.tables {
        report += session.finding(&table.title, &table.gaps());
    }
    Ok(report.inseparable(|_| true))
}

/// Writes the results and a chart of each table.
fn keep(results: &Results, folder: &Path) -> Result<()> {
    let folder = emptied(folder.to_owned())?;
    fs::write(folder.join(RESULTS), results.to_json())
        .with_context(|| format!("cannot write to {}", folder.display()))?;
    draw_charts(results, &folder)
}

fn draw_charts(results: &Results, folder: &Path) -> Result<()> {
    for table in &results.tables {
        let file = folder.join(format!("{}.svg", table.id));
        fs::write(&file, chart::draw(table))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

impl<'p> Bench<'p> {
    /// Builds the other measured programs.
    fn prepare(place: &'p Place, effort: Effort, gateway: PathBuf) -> Result<Self> {
        let bench = Self {
            place,
            effort,
            gateway,
            consumer: build::consumer(place, "consumer")?,
            peer: interop::build(place)?,
        };
        run_step(place, "crate: cargo bench --no-run", bench.native().arg("--no-run"))?;
        let mut blocks = blocks::command(&bench);
        run_step(place, "blocks: cargo bench --no-run", blocks.arg("--no-run"))?;
        Ok(bench)
    }

    fn measure(&self) -> Result<Results> {
        let machine = machine::describe(self)?;
        let mut tables = vec![traffic::measure(self)?];
        tables.extend(handoff::measure(self)?);
        tables.push(waiting::measure(self)?);
        tables.push(cost::time(self)?);
        tables.push(cost::memory(self)?);
        tables.push(throughput::measure(self)?);
        tables.push(gateways::measure(self)?);
        tables.push(weight::measure(self)?);
        tables.extend(blocks::measure(self)?);
        Ok(Results { machine, tables })
    }

    /// Returns the command of the crate's own measurement.
    fn native(&self) -> Command {
        let mut cargo = self.place.command("cargo");
        cargo.args(["bench", "--quiet", "--package", "edgelatch-tests", "--bench", "native"]);
        cargo
    }

    /// Prints the name of the present measurement.
    fn tell(&self, what: &str) {
        println!("→ measuring: {what}");
    }
}
