//! Packages of Debian and its kin, without the daemons that they would start.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use nix::unistd::geteuid;

use crate::place::{Place, which};
use crate::progress::step;

/// Debian asks this program whether a service may be started; 101 is «no».
const SERVICE_POLICY: &str = "/usr/sbin/policy-rc.d";

/// Installs packages. None of them starts or enables a service by it.
pub(crate) fn install(place: &Place, packages: &[&str]) -> Result<()> {
    if packages.is_empty() {
        return Ok(());
    }
    let list = packages.join(" ");
    if which("apt-get").is_none() {
        bail!(
            "this machine has no apt-get; install by its own means: {list} \
             (needed are the programs redis-server, webdis, chromium and chromedriver)"
        );
    }
    step(&format!("Debian packages: {list}"), || {
        let policy = ServicePolicy::deny(place)?;
        let result = apt(&["update", "-q"]).and_then(|()| {
            let mut arguments = vec!["install", "-q", "-y", "--no-install-recommends"];
            arguments.extend(packages);
            apt(&arguments)
        });
        let withdrawn = policy.withdraw();
        result.and(withdrawn)?;
        disable_services(packages)
    })
}

/// A command with the rights of root: as it is for root, through sudo for others.
pub(crate) fn as_root(program: &str) -> Result<Command> {
    if geteuid().is_root() {
        return Ok(Command::new(program));
    }
    ensure!(which("sudo").is_some(), "needs the rights of root, and there is no sudo: {program}");
    let mut command = Command::new("sudo");
    command.args(["--preserve-env=DEBIAN_FRONTEND", program]);
    Ok(command)
}

/// Runs a command as root in the foreground, where sudo can ask for the password.
pub(crate) fn run_as_root(program: &str, arguments: &[&str]) -> Result<()> {
    let status = as_root(program)?
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .status()
        .with_context(|| format!("cannot start {program}"))?;
    ensure!(status.success(), "{program} {} ended with {status}", arguments.join(" "));
    Ok(())
}

fn apt(arguments: &[&str]) -> Result<()> {
    run_as_root("apt-get", arguments)
}

/// Our answer to Debian's question, for as long as the installation takes; a policy that is there already is left alone.
struct ServicePolicy {
    is_ours: bool,
}

impl ServicePolicy {
    fn deny(place: &Place) -> Result<Self> {
        let is_ours = !Path::new(SERVICE_POLICY).exists();
        if is_ours {
            let file = place.folder("tools")?.join("policy-rc.d");
            std::fs::write(&file, "#!/bin/sh\nexit 101\n")?;
            let file = file.to_string_lossy();
            run_as_root("install", &["-m", "755", file.as_ref(), SERVICE_POLICY])?;
        }
        Ok(Self { is_ours })
    }

    fn withdraw(self) -> Result<()> {
        if self.is_ours { run_as_root("rm", &["-f", SERVICE_POLICY]) } else { Ok(()) }
    }
}

/// Keeps what we have just installed from being started at the next boot.
fn disable_services(packages: &[&str]) -> Result<()> {
    let services: Vec<&str> =
        packages.iter().copied().filter(|name| ["redis-server", "webdis"].contains(name)).collect();
    if services.is_empty() || !Path::new("/run/systemd/system").exists() {
        return Ok(());
    }
    run_as_root("systemctl", &[&["disable", "--now", "--quiet"], services.as_slice()].concat())
}
