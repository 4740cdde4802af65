//! Installs packages of Debian and its derivatives, without starting their daemons.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use nix::unistd::geteuid;

use crate::progress::{logged, number_after, output_of, step, tail};
use crate::workspace::{Workspace, which};

/// Installs the packages that follow the first argument, without starting a service; disables the
/// services that the first argument names, so that the next boot does not start them. Debian runs
/// the policy to decide whether a service may be started; 101 means no. Another policy is left
/// alone.
const INSTALL: &str = r#"
policy=/usr/sbin/policy-rc.d
services=$1
shift
if ! [ -e $policy ] || grep -q "cargo xtask" $policy; then
  trap 'rm -f $policy' EXIT
  trap 'exit 130' HUP INT TERM
  printf '#!/bin/sh\n# While cargo xtask installs packages.\nexit 101\n' > $policy
  chmod 755 $policy
fi
apt-get update -q
apt-get install -q -y --no-install-recommends "$@"
if [ "$services" ] && [ -d /run/systemd/system ]; then
  systemctl disable --now --quiet $services
fi
"#;
/// Packages must not ask questions.
const UNATTENDED: (&str, &str) = ("DEBIAN_FRONTEND", "noninteractive");

/// The oldest Java version that compiles the peer.
const OLDEST_JAVA: u64 = 17;
/// The oldest minor version of Go 1 that compiles the checker of histories.
const OLDEST_GO: u64 = 19;

/// Returns whether a compiler for Java is installed that is new enough.
pub(super) fn has_java() -> bool {
    let version = output_of(Command::new("javac").arg("-version"));
    version.is_ok_and(|text| number_after(&text, "javac ") >= Some(OLDEST_JAVA))
}

/// Returns whether a compiler for Go is installed that is new enough.
pub(super) fn has_go() -> bool {
    let version =
        output_of(Command::new("go").args(["env", "GOVERSION"]).env("GOTOOLCHAIN", "local"));
    version.is_ok_and(|text| number_after(&text, "go1.") >= Some(OLDEST_GO))
}

/// Installs packages, without starting or enabling a service.
pub(super) fn install(workspace: &Workspace, packages: &[&str]) -> Result<()> {
    if packages.is_empty() {
        return Ok(());
    }
    let list = packages.join(" ");
    ensure!(
        which("apt-get").is_some(),
        "this machine has no apt-get; install by its own means what these packages contain: {list}"
    );
    let services: Vec<&str> = packages.iter().copied().filter_map(service).collect();
    let services = services.join(" ");
    let arguments = [&["-e", "-c", INSTALL, "sh", &services], packages].concat();
    step(&format!("Debian packages: {list}"), || {
        let status = if geteuid().is_root() {
            let log = workspace.log("apt-get")?;
            let mut shell = workspace.command("sh");
            let status = logged(shell.args(arguments).envs([UNATTENDED]), &log)?;
            if !status.success() {
                eprintln!("{}", tail(&log));
            }
            status
        } else {
            ensure!(which("sudo").is_some(), "apt-get needs the rights of root, without sudo");
            // In the foreground, so that sudo can read the password.
            let mut sudo = Command::new("sudo");
            sudo.args(["--preserve-env=DEBIAN_FRONTEND", "sh"]).args(arguments);
            sudo.envs([UNATTENDED]).status().context("cannot start sudo")?
        };
        ensure!(status.success(), "apt-get install {list} ended with {status}");
        Ok(())
    })
}

/// Returns the service of a package, if it has one.
fn service(package: &str) -> Option<&str> {
    match package {
        "nginx-light" => Some("nginx"),
        "caddy" | "postgresql" | "redis-server" | "webdis" => Some(package),
        _ => None,
    }
}
