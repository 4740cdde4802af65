//! Coverage-guided fuzzing: of every border that data crosses, with libFuzzer; and of the functions
//! behind the npm package's WebAssembly, in Node.
//!
//! `libfuzzer-sys` links libFuzzer, and passes of LLVM, which every rustc has, add the coverage
//! counters. There is no unsafe code, so no sanitizer and no nightly compiler is needed;
//! `cargo-fuzz` would only pass on the flags below, one target at a time.

mod regressions;
mod session;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::build;
use crate::process::exit_code;
use crate::progress::{logged, output_of, run as run_step, tail};
use crate::setup::{self, Tool};
use crate::test::{Report, Session};
use crate::workspace::{Workspace, empty_folder};
use session::TargetRun;

/// The target for JavaScript, and the number of its executions that take half a minute.
const FFI: &str = "ffi_bytes";
const FFI_EXECUTIONS: &str = "25000";
/// Flags that count the edges that were taken, and record comparisons. The names are those of
/// LLVM's passes.
const FLAGS: [&str; 5] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// The targets of a run, and their inputs.
#[derive(Args)]
pub(crate) struct Options {
    /// Names of targets; without a name all targets run
    targets: Vec<String>,
    /// The time for each target in seconds; two targets run side by side
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// The seed of the inputs; by default each run has different inputs
    #[arg(long)]
    seed: Option<u32>,
    /// Run the named target on this input only, and show its output
    #[arg(long)]
    input: Option<PathBuf>,
}

/// The inputs and the length of a run.
#[derive(Clone, Copy)]
struct Budget {
    /// The time for each target, starting from the findings of earlier runs in this checkout.
    /// Without it: a fixed number of executions, about half a minute, from the inputs in the
    /// repository. With a seed that is the same on every machine, so a run before a merge and one
    /// after it test the same inputs.
    seconds: Option<u32>,
    seed: Option<u32>,
}

impl Budget {
    /// Returns the argument that ends a run, from a flag for the time and one for the executions.
    fn end(self, time: &str, number: &str, executions: &str) -> String {
        match self.seconds {
            Some(seconds) => format!("{time}={seconds}"),
            None => format!("{number}={executions}"),
        }
    }
}

/// `cargo xtask fuzz`: runs the named targets, or all; or shows the result of one target for one
/// input.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<ExitCode> {
    let Options { targets: names, seconds, seed, input } = options;
    let only_rust = !names.is_empty() && names.iter().all(|name| name != FFI);
    setup::ensure(workspace, if only_rust { &[Tool::Cxx] } else { setup::FUZZ })?;
    let runs = runs(workspace, names, Budget { seconds: Some(*seconds), seed: *seed })?;
    if let Some(input) = input {
        let mut runs = runs.into_iter();
        let (Some(session), None) = (runs.next(), runs.next()) else {
            bail!("name the target that the input is for")
        };
        return replay(workspace, session, input);
    }
    let report = session::side_by_side(workspace, runs)?;
    for (case, reason) in report.failures() {
        println!("FAILED {}\n{reason}", case.title());
    }
    println!("{}", report.counts());
    Ok(exit_code(report.counts().failed == 0))
}

/// The suite of `cargo xtask test`: all targets, or the named one.
pub(crate) fn suite(session: &Session<'_>) -> Result<Report> {
    let names = Vec::from_iter(session.only.map(str::to_owned));
    let workspace = session.workspace;
    let budget = Budget { seconds: None, seed: Some(1) };
    session::side_by_side(workspace, runs(workspace, &names, budget)?)
}

/// Returns the runs for these names, or for all targets.
fn runs(workspace: &Workspace, names: &[String], budget: Budget) -> Result<Vec<TargetRun>> {
    let is_wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    let mut runs = Vec::new();
    if names.is_empty() || names.iter().any(|name| name != FFI) {
        let program = program(workspace)?;
        let listed = output_of(&mut workspace.program(&program))?;
        let listed = listed.lines().filter_map(|line| line.split_once(' '));
        for (name, executions) in listed.filter(|(name, _)| is_wanted(name)) {
            runs.push(rust(workspace, &program, name, executions, budget)?);
        }
    }
    if is_wanted(FFI) {
        runs.push(ffi(workspace, budget)?);
    }
    match names.iter().find(|name| runs.iter().all(|session| session.name != **name)) {
        Some(unknown) => bail!("there is no target `{unknown}`; without a name all of them run"),
        None => Ok(runs),
    }
}

/// Builds the program that contains all Rust targets.
fn program(workspace: &Workspace) -> Result<PathBuf> {
    let version = output_of(&mut workspace.command("rustc -vV"))?;
    let triple = version.lines().find_map(|line| line.strip_prefix("host: "));
    // The target is named so that neither build scripts nor macros are built with the flags.
    let triple = triple.context("rustc does not say what it runs on")?;
    let mut cargo = workspace.command("cargo build --profile fuzz --package edgelatch-fuzz");
    cargo
        .args(["--bin", "fuzz", "--features", "libfuzzer", "--target", triple])
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f"));
    run_step(workspace, "fuzz targets: cargo build, with coverage", &mut cargo)?;
    Ok(workspace.target.join(triple).join("fuzz/fuzz"))
}

fn rust(
    workspace: &Workspace,
    program: &Path,
    name: &str,
    executions: &str,
    budget: Budget,
) -> Result<TargetRun> {
    let folder = workspace.folder("fuzzing")?;
    let seeds = empty_folder(folder.join("seeds").join(name))?;
    let corpus = match budget.seconds {
        Some(_) => workspace.folder(&format!("fuzzing/corpus/{name}"))?,
        None => empty_folder(folder.join("suite").join(name))?,
    };
    let found = empty_folder(folder.join("found").join(name))?;
    let mut command = workspace.program(program);
    command.env("EDGELATCH_FUZZ_TARGET", name).env("EDGELATCH_FUZZ_SEEDS", &seeds);
    // The location of the assertion is enough.
    command.env("RUST_BACKTRACE", "0");
    // An input that takes ten minutes is a finding; a machine may pause for less.
    command.args(["-print_final_stats=1", "-timeout=600"]);
    command.arg(format!("-artifact_prefix={}/", found.display()));
    command.args(budget.seed.map(|seed| format!("-seed={seed}")));
    let (name, end) = (name.to_owned(), budget.end("-max_total_time", "-runs", executions));
    // New inputs are written to the first folder, and stay there for later runs.
    Ok(TargetRun { name, command, end, inputs: vec![corpus, seeds] })
}

fn ffi(workspace: &Workspace, budget: Budget) -> Result<TargetRun> {
    build::package(workspace)?;
    let found = empty_folder(workspace.folder("fuzzing")?.join("found").join(FFI))?;
    let mut command = workspace.command("node tests/fuzz/ffi_bytes/run.mjs");
    command.env("EDGELATCH_FUZZ_FOUND", found);
    command.envs(budget.seed.map(|seed| ("EDGELATCH_FUZZ_SEED", seed.to_string())));
    let end = budget.end("--seconds", "--executions", FFI_EXECUTIONS);
    Ok(TargetRun { name: FFI.to_owned(), command, end, inputs: Vec::new() })
}

/// Runs a target on one input and shows its output.
fn replay(workspace: &Workspace, mut session: TargetRun, input: &Path) -> Result<ExitCode> {
    let bytes = workspace.folder("fuzzing")?.join("input");
    regressions::unpack(input, &bytes)?;
    let log = workspace.log(&format!("fuzz-{}", session.name))?;
    let succeeded = logged(session.command.arg(&bytes), &log)?.success();
    println!("{}  {}: {}", tail(&log), if succeeded { "ok" } else { "FAILED" }, session.name);
    Ok(exit_code(succeeded))
}
