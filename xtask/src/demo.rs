//! `cargo xtask demo`: serves the page that shows the lock, until Ctrl-C; or uses it once.

use std::net::TcpListener;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};

use crate::build;
use crate::docs;
use crate::process::{Interrupted, check_stop, forward, tick};
use crate::progress::step;
use crate::services::{Gateway, MortalRedis, Worker};
use crate::setup;
use crate::workspace::{Claim, Workspace};

/// The number of checks of the programs for each call of the Worker.
const TICKS_BETWEEN_CALLS: u64 = 100;

/// Redis, the gateway and the Worker, started in the order of their dependencies.
pub(crate) struct DemoServices {
    // Dropped in this order: clients before servers.
    worker: Worker,
    gateway: Gateway,
    redis: MortalRedis,
    /// The name of the Worker's folder.
    _claim: Claim,
}

impl DemoServices {
    /// Sets up, builds and starts all services; port 0 means any free port.
    pub(crate) fn start(workspace: &Workspace, port: u16) -> Result<Self> {
        setup::ensure(workspace, setup::DEMO)?;
        let program = build::gateway(workspace)?;
        let claim = workspace.claim("demo")?;
        let project = build::consumer(workspace, &claim.name)?;
        let site = docs::build(workspace)?;
        let port = if port == 0 { free_port()? } else { port };
        let redis = step("starting a private redis-server", || MortalRedis::start(workspace))?;
        let gateway = step("starting the gateway", || {
            // The page also sends requests to the gateway, with the origin of the Worker's port and
            // any name of this machine.
            let origin = format!("http://127.0.0.1:{port}");
            let also = format!("http://localhost:{port}");
            let pages = ["--allow-origin", &origin, "--allow-origin", &also];
            Gateway::start(workspace, &program, &[&["--redis", &redis.url], &pages[..]].concat())
        })?;
        let worker = step("starting the Worker in workerd", || {
            Worker::start(workspace, &project, &site, &redis, &gateway, port)
        })?;
        Ok(Self { worker, gateway, redis, _claim: claim })
    }

    /// Sets the addresses and the credentials in the environment of a program.
    pub(crate) fn describe(&self, command: &mut Command) {
        self.gateway.describe(command);
        command.env("EDGELATCH_DEMO_URL", &self.worker.url);
    }

    /// Fails if a service has ended.
    fn check(&mut self) -> Result<()> {
        self.worker.server.check()?;
        self.gateway.server.check()?;
        self.redis.server.check()
    }
}

/// Returns a port on which no program listens now.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("no free port")?;
    Ok(listener.local_addr()?.port())
}

/// Uses the demo once by a script, and ends the demo.
pub(crate) fn use_once(workspace: &Workspace, name: &str, script: &str) -> Result<ExitCode> {
    let services = DemoServices::start(workspace, 0)?;
    let mut node = workspace.command("node");
    services.describe(node.arg(script));
    let code = forward(name, &mut node)?;
    drop(services);
    println!("Nothing is left running.");
    Ok(code)
}

/// Shows the demo until the user ends it.
pub(crate) fn run(workspace: &Workspace, port: u16) -> Result<()> {
    let is_free = TcpListener::bind(("127.0.0.1", port)).is_ok();
    let mut services = DemoServices::start(workspace, if is_free { port } else { 0 })?;
    println!("\nThe demo is at  {}\n\nCtrl-C ends it.", services.worker.url);
    for ticks in 0_u64.. {
        services.check()?;
        // Wrangler stays when its workerd has ended, so the Worker is called.
        if ticks % TICKS_BETWEEN_CALLS == 0 {
            services.worker.call()?;
        }
        match check_stop() {
            Err(error) if error.is::<Interrupted>() => break,
            other => other?,
        }
        tick();
    }
    println!("\nEnding the Worker, the gateway and its redis-server.");
    drop(services);
    println!("Nothing is left running.");
    Ok(())
}
