//! `cargo xtask size`: prints the size of each published file, and its change.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::build;
use crate::costs;
use crate::place::Place;
use crate::progress::output_of;
use crate::setup::{self, Purpose};

/// The recorded sizes, from the root of the checkout.
pub(crate) const RECORDED: &str = "xtask/size.json";
/// The file that npm downloads.
pub(crate) const TARBALL: &str = "tarball";
/// The sum over the files of the package, each once.
const TOTAL: &str = "all files";
/// The prefix of an entry's name in the table; its size is that of all files that a runtime loads
/// of the entry.
const ENTRY: &str = "entry ";

/// The bytes of a file by encoding; 0 if the file is not served in that encoding.
#[derive(Clone, Copy, Default)]
pub(crate) struct Weight {
    pub(crate) raw: i64,
    pub(crate) gzip: i64,
    pub(crate) brotli: i64,
}

/// The recorded sizes.
pub(crate) struct Recorded {
    /// Whether the standard library of the module was built for size, as in a release.
    pub(crate) is_small: bool,
    pub(crate) weights: BTreeMap<String, Weight>,
}

/// Prints the table; records the sizes on request.
pub(crate) fn run(place: &Place, record: bool) -> Result<()> {
    setup::ensure(place, Purpose::Build.needs())?;
    let folder = build::consumer(place, "consumer")?.join("node_modules/edgelatch");
    let script = place.root.join("xtask/scripts/weigh.mjs");
    let measured = output_of(place.node().arg(script).arg(folder).arg(build::tarball(place)?))?;
    let measured: Value = serde_json::from_str(&measured).context("sizes are no JSON")?;
    let now = weights(&measured)?;
    let file = place.root.join(RECORDED);
    let then = fs::read_to_string(&file).ok().map(|text| recorded(&text)).transpose()?;
    let then = then.map(|then| then.weights).unwrap_or_default();

    println!("{:<24} {:>9} {:>9} {:>9}   change of gzip", "file", "raw", "gzip -9", "brotli");
    let is_sum = |name: &str| name.starts_with(ENTRY) || [TOTAL, TARBALL].contains(&name);
    let (sums, files): (Vec<_>, Vec<_>) = now.iter().partition(|(name, _)| is_sum(name));
    for (name, weight) in files.into_iter().chain(sums) {
        print(name, *weight, then.get(name));
    }
    if record {
        let text = json!({ "standardLibraryForSize": build::builds_std(), "sizes": measured });
        fs::write(&file, format!("{text:#}\n"))
            .with_context(|| format!("cannot write {}", file.display()))?;
        costs::write(place)?;
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

/// Reads the sizes that `--record` has written.
pub(crate) fn recorded(text: &str) -> Result<Recorded> {
    let value: Value = serde_json::from_str(text).context("the recorded sizes are no JSON")?;
    let is_small = value.get("standardLibraryForSize").and_then(Value::as_bool);
    let sizes = value.get("sizes").context("nothing was recorded")?;
    Ok(Recorded { is_small: is_small.unwrap_or_default(), weights: weights(sizes)? })
}

fn weights(sizes: &Value) -> Result<BTreeMap<String, Weight>> {
    let files = sizes.as_object().context("sizes are no object")?;
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
