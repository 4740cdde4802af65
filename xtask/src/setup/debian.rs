//! Installs packages of Debian and its derivatives, without starting their daemons.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use nix::unistd::geteuid;

use crate::place::{Place, which};
use crate::progress::{logged, step, tail};

/// Debian runs this program to decide whether a service may be started; exit code 101 means no.
const SERVICE_POLICY: &str = "/usr/sbin/policy-rc.d";
/// Packages must not ask questions.
const UNATTENDED: [(&str, &str); 1] = [("DEBIAN_FRONTEND", "noninteractive")];

/// Installs packages, without starting or enabling a service.
pub(crate) fn install(place: &Place, packages: &[&str]) -> Result<()> {
    if packages.is_empty() {
        return Ok(());
    }
    let list = packages.join(" ");
    if which("apt-get").is_none() {
        bail!(
            "this machine has no apt-get; install by its own means: {list} \
             (needed are the programs redis-server, webdis, wrk, nginx, caddy, chromium, chromedriver, javac and mvn)"
        );
    }
    step(&format!("Debian packages: {list}"), || {
        let policy = ServicePolicy::deny(place)?;
        let result = run_as_root(place, "apt-get", &["update", "-q"]).and_then(|()| {
            let mut arguments = vec!["install", "-q", "-y", "--no-install-recommends"];
            arguments.extend(packages);
            run_as_root(place, "apt-get", &arguments)
        });
        let withdrawn = policy.withdraw(place);
        result.and(withdrawn)?;
        disable_services(place, packages)
    })
}

/// Runs a command as root: directly for root, through sudo for other users.
pub(crate) fn run_as_root(place: &Place, program: &str, arguments: &[&str]) -> Result<()> {
    let status = if geteuid().is_root() {
        let log = place.log(program)?;
        let mut command = place.command(program);
        let status = logged(command.args(arguments).envs(UNATTENDED), &log)?;
        if !status.success() {
            eprintln!("{}", tail(&log));
        }
        status
    } else {
        ensure!(
            which("sudo").is_some(),
            "{program} needs the rights of root, and there is no sudo"
        );
        // In the foreground, so that sudo can read the password.
        Command::new("sudo")
            .args(["--preserve-env=DEBIAN_FRONTEND", program])
            .args(arguments)
            .envs(UNATTENDED)
            .status()
            .with_context(|| format!("cannot start sudo {program}"))?
    };
    ensure!(status.success(), "{program} {} ended with {status}", arguments.join(" "));
    Ok(())
}

/// The policy that forbids starting services, for the time of the installation; an existing policy
/// is left alone.
struct ServicePolicy {
    is_ours: bool,
}

impl ServicePolicy {
    fn deny(place: &Place) -> Result<Self> {
        let is_ours = !Path::new(SERVICE_POLICY).exists();
        if is_ours {
            let file = place.folder("tools")?.join("policy-rc.d");
            fs::write(&file, "#!/bin/sh\nexit 101\n")?;
            let file = file.to_string_lossy();
            run_as_root(place, "install", &["-m", "755", file.as_ref(), SERVICE_POLICY])?;
        }
        Ok(Self { is_ours })
    }

    fn withdraw(self, place: &Place) -> Result<()> {
        if !self.is_ours {
            Ok(())
        } else if geteuid().is_root() {
            // Removed without another program, which would not be awaited once the user has
            // interrupted this one.
            fs::remove_file(SERVICE_POLICY).context("cannot remove our service policy")
        } else {
            run_as_root(place, "rm", &["-f", SERVICE_POLICY])
        }
    }
}

/// Disables the services of the packages that were just installed, so that the next boot does not
/// start them.
fn disable_services(place: &Place, packages: &[&str]) -> Result<()> {
    let services: Vec<&str> = packages.iter().copied().filter_map(service).collect();
    if services.is_empty() || !Path::new("/run/systemd/system").exists() {
        return Ok(());
    }
    run_as_root(
        place,
        "systemctl",
        &[&["disable", "--now", "--quiet"], services.as_slice()].concat(),
    )
}

/// Returns the service of a package, if it has one.
fn service(package: &str) -> Option<&str> {
    match package {
        "nginx-light" => Some("nginx"),
        "caddy" | "redis-server" | "webdis" => Some(package),
        _ => None,
    }
}
