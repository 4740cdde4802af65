//! `cargo xtask size`: what each published file weighs, and how that has changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::build;
use crate::place::Place;
use crate::progress::output_of;
use crate::setup::{self, Purpose};

/// What is weighed together under this name at the end of the table.
const TOTAL: &str = "all files";

/// Bytes of a file, by how they travel.
#[derive(Clone, Copy, Default)]
struct Weight {
    raw: i64,
    gzip: i64,
    brotli: i64,
}

/// Prints the table; keeps the figures if asked to.
pub(crate) fn run(place: &Place, record: bool) -> Result<()> {
    setup::ensure(place, Purpose::Build.needs())?;
    let folder = build::consumer(place, "consumer")?.join("node_modules/edgelatch");
    let script = place.root.join("xtask/scripts/weigh.mjs");
    let measured = output_of(place.node().arg(script).arg(folder))?;
    let now = weights(&measured)?;
    let file = recorded_file(place);
    let then =
        fs::read_to_string(&file).ok().map(|text| weights(&text)).transpose()?.unwrap_or_default();

    println!("{:<24} {:>9} {:>9} {:>9}   change of gzip", "file", "raw", "gzip -9", "brotli");
    for (name, weight) in &now {
        if name != TOTAL {
            print(name, *weight, then.get(name));
        }
    }
    print(TOTAL, now.get(TOTAL).copied().unwrap_or_default(), then.get(TOTAL));
    println!("\nWhat a runtime loads: one loader, edgelatch.js and wasm/edgelatch_bg.wasm.");
    if record {
        fs::write(&file, measured).with_context(|| format!("cannot write {}", file.display()))?;
        println!("Recorded.");
    }
    Ok(())
}

fn print(name: &str, now: Weight, then: Option<&Weight>) {
    let change = then.map_or_else(
        || "new".to_owned(),
        |then| match now.gzip - then.gzip {
            0 => "=".to_owned(),
            change => format!("{change:+}"),
        },
    );
    println!("{name:<24} {:>9} {:>9} {:>9}   {change}", now.raw, now.gzip, now.brotli);
}

fn weights(text: &str) -> Result<BTreeMap<String, Weight>> {
    let files: BTreeMap<String, Value> = serde_json::from_str(text).context("sizes are no JSON")?;
    let number = |value: &Value, key: &str| {
        value.get(key).and_then(Value::as_i64).with_context(|| format!("a size without {key}"))
    };
    files
        .iter()
        .map(|(name, value)| {
            let (raw, gzip) = (number(value, "raw")?, number(value, "gzip")?);
            Ok((name.clone(), Weight { raw, gzip, brotli: number(value, "brotli")? }))
        })
        .collect()
}

fn recorded_file(place: &Place) -> PathBuf {
    place.root.join("xtask/size.json")
}
