//! Measures the size of a program that contains the package.

use anyhow::{Context as _, Result};

use super::Bench;
use super::ask::{ask, number};
use super::table::Table;

const BUNDLES: [(&str, &str); 5] = [
    ("edgelatch", "edgelatch, for Workers"),
    ("edgelatch-inline", "edgelatch, one file"),
    ("upstash", "@upstash/lock + redis"),
    ("redlock", "redlock + ioredis"),
    ("redis-semaphore", "redis-semaphore + ioredis"),
];

/// Measures the size after esbuild has bundled the program, compressed.
pub(super) fn measure(bench: &Bench<'_>) -> Result<Table> {
    bench.tell("bundles");
    let mut node = bench.place.node();
    node.arg("tests/bench/bundle.mjs")
        .arg(bench.place.folder("bundles")?)
        .env("EDGELATCH_TOOLS", bench.place.node_modules())
        .env("EDGELATCH_CONSUMER", &bench.consumer);
    let found = ask(bench.place, "bundles", &mut node)?;
    let how = "everything that a program ships which imports the library, with its Redis client if it needs one; \
               minified by esbuild, all files together, including WebAssembly";
    let columns = BUNDLES.map(|(_, label)| label);
    let mut table = Table::new("size", "Size in a program", how.to_owned(), &columns);
    for (kind, what) in [("gzip", "gzip -9"), ("brotli", "brotli 11"), ("raw", "raw")] {
        let cells = BUNDLES.iter().map(|(key, _)| {
            let sizes = found.get(*key).with_context(|| format!("{key} was not bundled"))?;
            Ok(number(sizes, kind)? / 1_000.0)
        });
        table.row(what, "kB", cells.collect::<Result<_>>()?);
    }
    Ok(table)
}
