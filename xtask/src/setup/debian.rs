//! Installs packages of Debian and its derivatives, without starting their daemons.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use nix::unistd::geteuid;

use crate::progress::{logged, output_of, step, tail};
use crate::workspace::{Workspace, which};

/// Debian runs this program to decide whether a service may be started; exit code 101 means no.
const SERVICE_POLICY: &str = "/usr/sbin/policy-rc.d";
/// Packages must not ask questions.
const UNATTENDED: [(&str, &str); 1] = [("DEBIAN_FRONTEND", "noninteractive")];

/// The oldest Java version that compiles the peer.
const OLDEST_JAVA: u32 = 17;
/// The oldest minor version of Go 1 that compiles the checker of histories.
const OLDEST_GO: u32 = 19;

/// Returns whether a compiler for Java is installed that is new enough.
pub(super) fn has_java() -> bool {
    let version = output_of(Command::new("javac").arg("-version"));
    version.is_ok_and(|text| release(&text).is_some_and(|release| release >= OLDEST_JAVA))
}

/// Returns whether a compiler for Go is installed that is new enough.
pub(super) fn has_go() -> bool {
    let version =
        output_of(Command::new("go").args(["env", "GOVERSION"]).env("GOTOOLCHAIN", "local"));
    version.is_ok_and(|text| go_release(&text).is_some_and(|release| release >= OLDEST_GO))
}

/// Returns the second number of a version such as `go1.19.8`.
fn go_release(version: &str) -> Option<u32> {
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
    digits(version.trim().strip_prefix("go1.")?).parse().ok()
}

/// Returns the release in a version such as `javac 17.0.15`.
fn release(version: &str) -> Option<u32> {
    version.split_whitespace().nth(1)?.split(['.', '-']).next()?.parse().ok()
}

/// Installs packages, without starting or enabling a service.
pub(crate) fn install(workspace: &Workspace, packages: &[&str]) -> Result<()> {
    if packages.is_empty() {
        return Ok(());
    }
    let list = packages.join(" ");
    if which("apt-get").is_none() {
        bail!(
            "this machine has no apt-get; install by its own means: {list} \
             (needed are the programs redis-server, mmdebstrap, webdis, wrk, nginx, caddy, chromium, chromedriver, firefox, WebKitWebDriver, Xvfb, javac, mvn, postgres, go and gofmt)"
        );
    }
    step(&format!("Debian packages: {list}"), || {
        let policy = ServicePolicy::deny(workspace)?;
        let result = run_as_root(workspace, "apt-get", &["update", "-q"]).and_then(|()| {
            let mut arguments = vec!["install", "-q", "-y", "--no-install-recommends"];
            arguments.extend(packages);
            run_as_root(workspace, "apt-get", &arguments)
        });
        let withdrawn = policy.withdraw(workspace);
        result.and(withdrawn)?;
        disable_services(workspace, packages)
    })
}

/// Runs a command as root: directly for root, through sudo for other users.
pub(crate) fn run_as_root(workspace: &Workspace, program: &str, arguments: &[&str]) -> Result<()> {
    let status = if geteuid().is_root() {
        let log = workspace.log(program)?;
        let mut command = workspace.command(program);
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
    fn deny(workspace: &Workspace) -> Result<Self> {
        let is_ours = !Path::new(SERVICE_POLICY).exists();
        if is_ours {
            let file = workspace.folder("tools")?.join("policy-rc.d");
            fs::write(&file, "#!/bin/sh\nexit 101\n")?;
            let file = file.to_string_lossy();
            run_as_root(workspace, "install", &["-m", "755", file.as_ref(), SERVICE_POLICY])?;
        }
        Ok(Self { is_ours })
    }

    fn withdraw(self, workspace: &Workspace) -> Result<()> {
        if !self.is_ours {
            Ok(())
        } else if geteuid().is_root() {
            // Removed without another program, which would not be awaited once the user has
            // interrupted this one.
            fs::remove_file(SERVICE_POLICY).context("cannot remove our service policy")
        } else {
            run_as_root(workspace, "rm", &["-f", SERVICE_POLICY])
        }
    }
}

/// Disables the services of the packages that were just installed, so that the next boot does not
/// start them.
fn disable_services(workspace: &Workspace, packages: &[&str]) -> Result<()> {
    let services: Vec<&str> = packages.iter().copied().filter_map(service).collect();
    if services.is_empty() || !Path::new("/run/systemd/system").exists() {
        return Ok(());
    }
    run_as_root(
        workspace,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_of_java_is_read_from_its_version() {
        assert_eq!(release("javac 17.0.15\n"), Some(17));
        assert_eq!(release("javac 21\n"), Some(21));
        assert_eq!(release("javac 25-ea\n"), Some(25));
        assert_eq!(release("javac 1.8.0_392\n"), Some(1));
        assert_eq!(release("nothing"), None);
    }

    #[test]
    fn the_release_of_go_is_read_from_its_version() {
        assert_eq!(go_release("go1.19.8\n"), Some(19));
        assert_eq!(go_release("go1.26\n"), Some(26));
        assert_eq!(go_release("go1.27rc1\n"), Some(27));
        assert_eq!(go_release("devel +abc\n"), None);
    }
}
