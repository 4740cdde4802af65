//! `cargo xtask sbom`: writes the bills of materials of the crates and the npm package, as
//! CycloneDX, and the checksums of the published files.

use std::fs;

use anyhow::{Context as _, Result};

use crate::build;
use crate::place::{Place, emptied};
use crate::progress::{output_of, run as run_step};
use crate::setup::{self, Need, Purpose};

/// The published crates, and the folder of each.
const CRATES: [(&str, &str); 3] =
    [("edgelatch", "."), ("edgelatch-gateway", "gateway"), ("edgelatch-proto", "proto")];

pub(crate) fn run(place: &Place) -> Result<()> {
    setup::ensure(place, Purpose::Build.needs())?;
    setup::ensure(place, &[Need::CycloneDx])?;
    let folder = emptied(place.folder("sbom")?)?;
    let mut list = place.command("cargo");
    list.args(["cyclonedx", "--format", "json", "--override-filename", "sbom.cdx"]);
    run_step(place, "crates: cargo cyclonedx", &mut list)?;
    for (name, at) in CRATES {
        let file = folder.join(format!("{name}.cdx.json"));
        fs::rename(place.root.join(at).join("sbom.cdx.json"), &file)
            .with_context(|| format!("there is no list of {name}"))?;
        println!("{}", file.display());
    }
    // It writes one for each member of the workspace; those of unpublished members are removed.
    for at in ["xtask", "tests", "tests/fuzz"] {
        fs::remove_file(place.root.join(at).join("sbom.cdx.json"))?;
    }

    let tarball = build::tarball(place)?;
    let mut list = place.command("npm");
    list.current_dir(place.root.join("pkg")).args(["sbom", "--sbom-format", "cyclonedx"]);
    let file = folder.join("npm.cdx.json");
    fs::write(&file, output_of(&mut list)?)?;
    println!("{}", file.display());

    let mut sums = place.node();
    sums.arg("xtask/scripts/checksums.mjs").arg(&folder).arg(&tarball);
    run_step(place, "checksums: of the npm package and of each of its files", &mut sums)
}
