//! Runs Redisson in a JVM, beside which the crate and the npm package are tested on the same Redis.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::Result;

use crate::fingerprint::Fingerprint;
use crate::progress::{logged, run as run_step};
use crate::services::Server;
use crate::workspace::Workspace;

/// A version of Redisson.
#[derive(Clone, Copy)]
pub(crate) struct Redisson {
    /// The beginning of the name of its folder in the cache.
    folder: &'static str,
    /// The properties of the Java side's `pom.xml` that choose it.
    properties: &'static [&'static str],
}

/// The version that `pom.xml` names.
pub(crate) const NEWEST: Redisson = Redisson { folder: "redisson", properties: &[] };
/// The last version 3, without the benchmark, which does not compile with its Netty.
pub(crate) const LAST_3: Redisson = Redisson {
    folder: "redisson-3.52.0",
    properties: &["-Dredisson.version=3.52.0", "-Dpeer.excludes=**/Bench.java"],
};

/// The JVM lives for minutes, so a quick start is worth more than fast code.
const JVM: &str = "java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC";

/// A JVM that serves every connected test process. Dropping it ends the JVM.
pub(crate) struct Peer {
    _server: Server,
    /// The loopback port on which it listens.
    pub(crate) port: String,
}

impl Peer {
    /// Builds the Java side if necessary, starts it and waits until it serves.
    pub(crate) fn start(workspace: &Workspace, redisson: Redisson) -> Result<Self> {
        let folder = build(workspace, redisson)?.display().to_string();
        let mut command = workspace.command(JVM);
        command.args(["-cp", &format!("{folder}/classes:{folder}/lib/*")]);
        // The JVM ends with its input, which ends with this program in any case.
        command.args(["edgelatch.peer.Peer", "--listen"]).stdin(Stdio::piped());
        let mut server = Server::start(workspace, "peer", &mut command)?;
        let port = server.wait_for("listening on ")?;
        Ok(Self { _server: server, port })
    }
}

/// Builds the Java side; returns the folder with its classes and libraries.
pub(crate) fn build(workspace: &Workspace, redisson: Redisson) -> Result<PathBuf> {
    let source = workspace.root.join("tests/interop/java");
    let fingerprint = Fingerprint::new().path(&source)?;
    let folder = workspace.cache.join(format!("{}-{}", redisson.folder, fingerprint.text()));
    workspace.cached(&folder, |partial| {
        let maven = || {
            let mut maven =
                workspace.command("mvn --batch-mode --quiet -Dstyle.color=never process-classes");
            maven
                .arg("--file")
                .arg(source.join("pom.xml"))
                .args(redisson.properties)
                .arg(format!("-Dpeer.target={}", partial.display()));
            maven
        };
        // First with the files that were downloaded before, which needs no network.
        let offline = logged(maven().arg("--offline"), &workspace.log("mvn-offline")?)?;
        if !offline.success() {
            run_step(workspace, "Java side: mvn, with Redisson from its registry", &mut maven())?;
        }
        Ok(())
    })?;
    Ok(folder)
}
