//! Redis 8 and Valkey, from a release of Debian that has both: unpacked into a folder of the cache
//! with the libraries that they need, and not installed, so that the machine keeps its own Redis.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use anyhow::Result;

use super::debian;
use crate::fingerprint::Fingerprint;
use crate::progress::run;
use crate::workspace::{Workspace, which};

/// The release of Debian.
const RELEASE: &str = "trixie";
/// The program that downloads a release's packages with all that they depend on and unpacks them,
/// for any user, and the keys that sign Debian's releases. Derivatives of Debian have both.
const UNPACKER: &str = "mmdebstrap";
const PACKAGES: [&str; 2] = [UNPACKER, "debian-archive-keyring"];

/// A server that takes Redis' place in the tests.
#[derive(Clone, Copy)]
pub(crate) struct Substitute {
    /// The name and version for people.
    pub(crate) name: &'static str,
    /// The beginning of the output of `redis-server --version`.
    pub(crate) version: &'static str,
    /// The package of Debian, which is also the name of the program.
    package: &'static str,
}

/// The servers that the suite `servers` tests, beside the machine's own Redis.
pub(crate) const SUBSTITUTES: [Substitute; 2] = [
    Substitute { name: "Redis 8.0", version: "Redis server v=8.0.", package: "redis-server" },
    Substitute { name: "Valkey 8.1", version: "Valkey server v=8.1.", package: "valkey-server" },
];

/// Starts a program with the libraries of its own release, since those of the machine may be older.
/// The folder of this script is in the search path, so that `$0` is absolute.
const START: &str = r#"#!/bin/sh
root=${0%/*}/../root
for loader in "$root"/usr/lib/*/ld-linux-*.so.*; do
  exec "$loader" --library-path "${loader%/*}" "$root/usr/bin/PROGRAM" "$@"
done
"#;

impl Substitute {
    /// Returns the folder whose `redis-server` is this server.
    pub(crate) fn folder(&self, workspace: &Workspace) -> PathBuf {
        folder(workspace).join(self.package)
    }
}

/// The folder of the cache; its name changes with this file, which determines the content.
fn folder(workspace: &Workspace) -> PathBuf {
    let fingerprint = Fingerprint::new().bytes(include_bytes!("servers.rs"));
    workspace.cache.join(format!("servers-{}", fingerprint.text()))
}

/// Whether all of them are unpacked.
pub(super) fn are_installed(workspace: &Workspace) -> bool {
    folder(workspace).exists()
}

/// Downloads the packages and what they need, and unpacks them.
pub(super) fn install(workspace: &Workspace) -> Result<()> {
    if which(UNPACKER).is_none() {
        debian::install(workspace, &PACKAGES)?;
    }
    workspace.cached(&folder(workspace), |partial| {
        // This variant runs no script of a package, so that it needs no root of its own.
        let mut unpack = workspace.command("mmdebstrap --variant=extract --mode=chrootless");
        unpack
            .arg(format!("--include={}", SUBSTITUTES.map(|server| server.package).join(",")))
            .arg(RELEASE)
            .arg(partial.join("root"));
        let what = format!("Redis and Valkey of Debian {RELEASE}: unpacking them");
        run(workspace, &what, &mut unpack)?;
        for server in SUBSTITUTES {
            let folder = partial.join(server.package);
            fs::create_dir(&folder)?;
            let file = folder.join("redis-server");
            fs::write(&file, START.replace("PROGRAM", server.package))?;
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
        }
        Ok(())
    })
}
