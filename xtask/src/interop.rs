//! Runs Redisson in a JVM, beside which the crate and the npm package are tested on the same Redis.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result};

use crate::place::{Place, emptied};
use crate::progress::{logged, run as run_step};
use crate::services::Part;
use crate::stamp::Digest;

/// The JVM lives for minutes, so a quick start is worth more than fast code.
const JVM_FLAGS: [&str; 2] = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"];

/// A JVM that serves every connected test process. Dropping it ends the JVM.
pub(crate) struct Peer {
    _part: Part,
    /// The loopback port on which it listens.
    pub(crate) port: String,
}

impl Peer {
    /// Builds the Java side if necessary, starts it and waits until it serves.
    pub(crate) fn start(place: &Place) -> Result<Self> {
        let mut command = place.command("java");
        command.args(JVM_FLAGS).args(["-cp", &class_path(&build(place)?)]);
        // The JVM ends with its input, which ends with this program in any case.
        command.args(["edgelatch.peer.Peer", "--listen"]).stdin(Stdio::piped());
        let mut part = Part::start(place, "peer", &mut command)?;
        let port = part.wait_for("listening on ")?;
        Ok(Self { _part: part, port })
    }
}

/// The class path of the Java side in the folder that [`build`] returns.
pub(crate) fn class_path(folder: &Path) -> String {
    format!("{}:{}/*", folder.join("classes").display(), folder.join("lib").display())
}

/// Builds the Java side; returns the folder with its classes and libraries.
pub(crate) fn build(place: &Place) -> Result<PathBuf> {
    let source = place.root.join("tests/interop/java");
    let digest = Digest::new().path(&source)?;
    let folder = place.cache().join(format!("redisson-{}", digest.text()));
    if folder.join("classes").exists() {
        return Ok(folder);
    }
    let building = emptied(place.folder("interop")?)?;
    let maven = || {
        let mut maven = place.command("mvn");
        maven
            .args(["--batch-mode", "--quiet", "--file"])
            .arg(source.join("pom.xml"))
            .args(["-Dstyle.color=never", "process-classes"])
            .arg(format!("-Dpeer.target={}", building.display()));
        maven
    };
    // First with the files that were downloaded before, which needs no network.
    let offline = logged(maven().arg("--offline"), &place.log("mvn-offline")?)?;
    if !offline.success() {
        run_step(place, "Java side: mvn, with Redisson from its registry", &mut maven())?;
    }
    crate::place::publish(&building, &folder).context("cannot keep the Java side")?;
    Ok(folder)
}
