//! Redis 8 and Valkey, from a release of Debian that has both: unpacked into a folder of the cache
//! with the libraries that they need, and not installed, so that the machine keeps its own Redis.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::progress::{output_of, step};
use crate::workspace::{Workspace, empty_folder};

/// The release of Debian; the folder in the cache has its name.
const RELEASE: &str = "trixie";
/// The keys that sign Debian's releases.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A server that takes Redis' place in the tests.
#[derive(Clone, Copy)]
pub(crate) struct Substitute {
    /// The name and version for people.
    pub(crate) name: &'static str,
    /// The package of Debian, which is also the name of the program.
    package: &'static str,
}

/// The servers that the suite `servers` tests, beside the machine's own Redis.
pub(crate) const SUBSTITUTES: [Substitute; 2] = [
    Substitute { name: "Redis 8.0", package: "redis-server" },
    Substitute { name: "Valkey 8.1", package: "valkey-server" },
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
    pub(crate) fn search_path(&self, workspace: &Workspace) -> PathBuf {
        folder(workspace).join(self.package)
    }
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.cache().join(format!("servers-{RELEASE}"))
}

/// Whether all of them are unpacked.
pub(super) fn are_installed(workspace: &Workspace) -> bool {
    folder(workspace).exists()
}

/// Downloads the packages and what they need, and unpacks them.
pub(super) fn install(workspace: &Workspace) -> Result<()> {
    step(&format!("Redis and Valkey of Debian {RELEASE}: unpacking them"), || {
        workspace.cached(&folder(workspace), |partial| {
            for package in download(workspace)? {
                let mut unpack = workspace.command("dpkg-deb");
                output_of(unpack.arg("--extract").arg(package).arg(partial.join("root")))?;
            }
            for server in SUBSTITUTES {
                let folder = partial.join(server.package);
                fs::create_dir(&folder)?;
                let file = folder.join("redis-server");
                fs::write(&file, START.replace("PROGRAM", server.package))?;
                fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
            }
            Ok(())
        })
    })
}

/// Downloads the packages of both servers with all that they depend on; returns the files. Packages
/// and lists are in a folder of ours, so this needs no rights and changes nothing on the machine.
fn download(workspace: &Workspace) -> Result<Vec<PathBuf>> {
    let folder = empty_folder(workspace.target.join("servers"))?;
    for name in ["state/lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(folder.join(name))?;
    }
    // Nothing is installed from its point of view, so that it downloads the libraries too.
    fs::write(folder.join("state/status"), "")?;
    let source = archive(workspace)?;
    fs::write(
        folder.join("sources.list"),
        format!("deb [signed-by={KEYS}] {source} {RELEASE} main\n"),
    )?;
    let path = |name: &str| folder.join(name).display().to_string();
    let configuration = [
        ("Dir::Etc::SourceList", path("sources.list")),
        ("Dir::Etc::SourceParts", "/dev/null".to_owned()),
        ("Dir::State", path("state")),
        ("Dir::State::status", path("state/status")),
        ("Dir::Cache", path("cache")),
        ("Debug::NoLocking", "true".to_owned()),
        ("APT::Install-Recommends", "false".to_owned()),
        // The download needs no other user, which could not write to this folder.
        ("APT::Sandbox::User", String::new()),
        ("Acquire::Languages", "none".to_owned()),
    ];
    let lines = configuration.map(|(name, value)| format!("{name} \"{value}\";\n"));
    fs::write(folder.join("apt.conf"), lines.concat())?;
    let apt = |arguments: &[&str]| {
        let mut command = workspace.command("apt-get");
        command.env("APT_CONFIG", path("apt.conf")).args(arguments);
        output_of(&mut command)
    };
    apt(&["update", "-q"])?;
    let install = ["install", "-q", "-y", "--download-only"];
    apt(&[install.as_slice(), &SUBSTITUTES.map(|server| server.package)].concat())?;
    let files = fs::read_dir(folder.join("cache/archives"))?;
    let paths = files.map(|file| Ok(file?.path())).collect::<Result<Vec<_>>>()?;
    Ok(paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "deb")).collect())
}

/// Returns the address from which this machine has the packages of Debian.
fn archive(workspace: &Workspace) -> Result<String> {
    let mut command = workspace.command("apt-get");
    let format = "$(REPO_URI) $(RELEASE) $(COMPONENT)";
    let targets =
        output_of(command.args(["indextargets", "--format", format, "Created-By: Packages"]))?;
    let release = fs::read_to_string("/etc/os-release").context("cannot read /etc/os-release")?;
    find_archive(&targets, &release).with_context(|| {
        format!(
            "apt-get has no source of a release of Debian, from whose archive the servers of \
             Debian {RELEASE} could be downloaded"
        )
    })
}

/// Finds the archive of the machine's own release among apt's sources, if it is Debian.
fn find_archive(targets: &str, os_release: &str) -> Option<String> {
    let value = |key: &str| {
        let mut lines = os_release.lines();
        lines.find_map(|line| Some(line.strip_prefix(key)?.trim_matches('"')))
    };
    let release = (value("ID=")? == "debian").then(|| value("VERSION_CODENAME="))??;
    targets.lines().find_map(|line| {
        let (uri, rest) = line.split_once(' ')?;
        (rest == format!("{release} main")).then(|| uri.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGETS: &str = "http://one.example/security bookworm-security main\n\
                           http://two.example/debian bookworm main\n";

    #[test]
    fn the_archive_is_that_of_the_machine_s_own_release() {
        let debian = "NAME=\"Debian GNU/Linux\"\nVERSION_CODENAME=bookworm\nID=debian\n";
        let archive = find_archive(TARGETS, debian);
        assert_eq!(archive.as_deref(), Some("http://two.example/debian"));
        let derivative = "ID=ubuntu\nVERSION_CODENAME=bookworm\n";
        assert_eq!(find_archive(TARGETS, derivative), None);
        assert_eq!(find_archive("", debian), None);
    }
}
