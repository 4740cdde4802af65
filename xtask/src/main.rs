//! `cargo xtask NAME`: the tasks of this repository, the same on a user's machine and in CI.
//!
//! Each task first installs the programs that it needs, so none has to be prepared by hand; a
//! second run finds them installed.

mod bench;
mod build;
mod costs;
mod demo;
mod fuzz;
mod inline;
mod interop;
mod once;
mod place;
mod process;
mod progress;
mod sbom;
mod seeded_faults;
mod services;
mod setup;
mod sim;
mod size;
mod soak;

mod stamp;

mod test;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use place::Place;

/// The tasks of this repository.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install missing programs: servers, the wasm target, tools from crates.io and npm
    Setup {
        /// Only the programs for this task
        #[arg(value_enum, default_value_t)]
        purpose: setup::Purpose,
    },
    /// Build the gateway and the npm package's WebAssembly
    Build,
    /// Build, and pack the npm package into target/npm
    Pack,
    /// Serve the demo: Redis, the gateway, the Worker and a page that shows the lock
    Demo {
        /// Use the lock once and run a round of each kind, check the results and end
        #[arg(long)]
        once: bool,
        /// The page's port; any free one if it is taken
        #[arg(long, default_value_t = 8787)]
        port: u16,
    },
    /// Run the tests that a change has to pass, in minutes; `--full` runs everything
    Test(test::Selection),
    /// Play schedules in virtual time, with faults drawn by a seed; a failure prints the smallest
    /// schedule that shows it
    Sim(sim::Schedules),
    /// Acquire and release for a long time with the npm package, in Node and in workerd, and check
    /// that it leaks nothing
    Soak {
        /// The time in minutes; at least 100,000 cycles in each
        #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=10_080))]
        minutes: u32,
    },
    /// Apply faults to a copy of the product, one at a time: the tests have to find each fault
    SeededFaults(seeded_faults::Faults),
    /// Fuzz every border that data crosses, guided by coverage
    Fuzz {
        /// Names of targets; without a name all targets run
        targets: Vec<String>,
        /// The time for each target in seconds; two targets run side by side
        #[arg(long, default_value_t = fuzz::SECONDS, value_parser = clap::value_parser!(u32).range(1..))]
        seconds: u32,
        /// The seed of the inputs; by default each run has different inputs
        #[arg(long)]
        seed: Option<u32>,
        /// Run the named target on this input only, and show its output
        #[arg(long)]
        input: Option<PathBuf>,
    },
    /// Measure the packages and the gateway beside other libraries, in one run, and write the
    /// results
    Bench {
        /// Every table from few figures, in under a minute; the published results stay as they are
        #[arg(long)]
        quick: bool,
        /// Measure nothing; draw charts and write pages from bench/results.json
        #[arg(long, conflicts_with = "quick")]
        draw: bool,
    },
    /// Write the bills of materials of the crates and the npm package, as CycloneDX, into
    /// target/sbom
    Sbom,
    /// Print the size of each published file: raw, gzip and brotli
    Size {
        /// Record the sizes, for later comparisons
        #[arg(long)]
        record: bool,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(code) => code,
        Err(error) if error.is::<process::Interrupted>() => ExitCode::from(130),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> anyhow::Result<ExitCode> {
    process::watch_signals()?;
    let place = Place::find()?;
    match task {
        Task::Setup { purpose } => setup::ensure(&place, purpose.needs())?,
        Task::Build => {
            setup::ensure(&place, setup::Purpose::Build.needs())?;
            build::gateway(&place)?;
            build::package(&place)?;
        }
        Task::Pack => {
            setup::ensure(&place, setup::Purpose::Build.needs())?;
            println!("{}", build::tarball(&place)?.display());
        }
        Task::Demo { once: true, .. } => return once::run(&place),
        Task::Demo { once: false, port } => demo::run(&place, port)?,
        Task::Test(selection) => return test::run(&place, &selection),
        Task::Sim(schedules) => return sim::run(&place, &schedules),
        Task::SeededFaults(faults) => return seeded_faults::run(&place, &faults),
        Task::Soak { minutes } => return soak::run(&place, minutes),
        Task::Fuzz { targets, seconds, seed, input } => {
            return fuzz::run(&place, &targets, seconds, seed, input.as_deref());
        }
        Task::Bench { draw: true, .. } => bench::draw(&place)?,
        Task::Bench { quick, draw: false } => bench::run(&place, quick)?,
        Task::Sbom => sbom::run(&place)?,
        Task::Size { record } => size::run(&place, record)?,
    }
    Ok(ExitCode::SUCCESS)
}
