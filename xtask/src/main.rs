//! `cargo xtask NAME`: the tasks of this repository, the same on a user's machine and in CI.
//!
//! Each task first installs the programs that it needs, so none has to be prepared by hand; a
//! second run finds them installed.

mod bench;
mod build;
mod demo;
mod docs;
mod fingerprint;
mod fuzz;
mod interop;
mod process;
mod progress;
mod sbom;
mod seeded_faults;
mod services;
mod setup;
mod sim;
mod test;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use setup::Tool;
use workspace::Workspace;

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
        /// Only these tools
        tools: Vec<Tool>,
    },
    /// Build the gateway and the npm package's WebAssembly
    Build,
    /// Build, and pack the npm package into target/npm, with the package for JSR beside it
    Pack,
    /// Serve the demo: Redis, the gateway, the Worker and a page that shows the lock
    Demo {
        /// Use the lock once and run a round of each kind, check the results and end
        #[arg(long)]
        once: bool,
        /// Play a round of the lock, and write it and its picture, which the README shows, to docs/
        #[arg(long, conflicts_with = "once")]
        picture: bool,
        /// The page's port; any free one if it is taken
        #[arg(long, default_value_t = 8787)]
        port: u16,
    },
    /// Build the documentation site, with search, into target/site/dist
    Docs(docs::Options),
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
    SeededFaults(seeded_faults::Options),
    /// Fuzz every border that data crosses, guided by coverage
    Fuzz(fuzz::Options),
    /// Measure the packages and the gateway beside other libraries, in one run, and write the
    /// results
    Bench(bench::Options),
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
    let workspace = Workspace::find()?;
    match task {
        Task::Setup { tools } if tools.is_empty() => setup::ensure(&workspace, &Tool::all())?,
        Task::Setup { tools } => setup::ensure(&workspace, &tools)?,
        Task::Build => {
            setup::ensure(&workspace, setup::BUILD)?;
            build::gateway(&workspace)?;
            build::package(&workspace)?;
        }
        Task::Pack => {
            setup::ensure(&workspace, setup::BUILD)?;
            println!("{}", build::tarball(&workspace)?.display());
            println!("{}", build::jsr(&workspace)?.display());
        }
        Task::Demo { once: true, .. } => {
            return demo::use_once(&workspace, "the smoke test", "xtask/scripts/smoke.mjs");
        }
        Task::Demo { picture: true, .. } => {
            return demo::use_once(&workspace, "the round", "xtask/scripts/timeline/record.mjs");
        }
        Task::Demo { port, .. } => demo::run(&workspace, port)?,
        Task::Docs(options) => return docs::run(&workspace, &options),
        Task::Test(selection) => return test::run(&workspace, &selection),
        Task::Sim(schedules) => return sim::run(&workspace, schedules),
        Task::SeededFaults(options) => return seeded_faults::run(&workspace, &options),
        Task::Soak { minutes } => return test::soak(&workspace, minutes),
        Task::Fuzz(options) => return fuzz::run(&workspace, &options),
        Task::Bench(options) => return bench::run(&workspace, &options),
        Task::Sbom => sbom::run(&workspace)?,
        Task::Size { record } => return build::print_sizes(&workspace, record),
    }
    Ok(ExitCode::SUCCESS)
}
