//! `cargo xtask sbom`: writes the bills of materials of the crates and the npm package, as
//! CycloneDX, and the checksums of the published files.

use std::fs;

use anyhow::{Context as _, Result};

use crate::build::{self, PUBLISHED};
use crate::progress::{output_of, run as run_step};
use crate::setup::{self, Tool};
use crate::workspace::{Workspace, empty_folder};

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    setup::ensure(workspace, setup::BUILD)?;
    setup::ensure(workspace, &[Tool::CycloneDx])?;
    let folder = empty_folder(workspace.folder("sbom")?)?;
    let mut list = workspace.command("cargo cyclonedx --format json --override-filename sbom.cdx");
    run_step(workspace, "crates: cargo cyclonedx", &mut list)?;
    for (name, at) in PUBLISHED {
        let file = folder.join(format!("{name}.cdx.json"));
        fs::rename(workspace.root.join(at).join("sbom.cdx.json"), &file)
            .with_context(|| format!("there is no list of {name}"))?;
        println!("{}", file.display());
    }
    // It writes one for each member of the workspace; those of unpublished members are removed.
    for at in ["xtask", "tests", "tests/fuzz"] {
        fs::remove_file(workspace.root.join(at).join("sbom.cdx.json"))?;
    }

    let tarball = build::tarball(workspace)?;
    let mut list = workspace.command("npm sbom --sbom-format cyclonedx");
    let file = folder.join("npm.cdx.json");
    fs::write(&file, output_of(list.current_dir(workspace.root.join("pkg")))?)?;
    println!("{}", file.display());

    let mut sums = workspace.command("node xtask/scripts/checksums.mjs");
    sums.arg(&folder).arg(&tarball);
    run_step(workspace, "checksums: of the npm package and of each of its files", &mut sums)
}
