//! `cargo xtask demo`: serves the page that shows the lock, until Ctrl-C.

use std::net::TcpListener;

use anyhow::{Context as _, Result};

use crate::build;
use crate::place::Place;
use crate::process::{Interrupted, check_stop, tick};
use crate::progress::step;
use crate::services::{Gateway, Worker};
use crate::setup::{self, Purpose};

/// The number of checks of the programs for each call of the Worker.
const TICKS_BETWEEN_CALLS: u64 = 100;

/// Redis, the gateway and the Worker, started in the order of their dependencies.
pub(crate) struct Stack {
    // Dropped in this order: clients before servers.
    pub(crate) worker: Worker,
    pub(crate) gateway: Gateway,
}

impl Stack {
    /// Sets up, builds and starts all parts; port 0 means any free port.
    pub(crate) fn start(place: &Place, port: u16) -> Result<Self> {
        setup::ensure(place, Purpose::Demo.needs())?;
        let program = build::gateway(place)?;
        let project = build::consumer(place, "demo")?;
        let port = if port == 0 { free_port()? } else { port };
        let gateway = step("starting a private redis-server and the gateway", || {
            // The page also sends requests to the gateway, with the origin of the Worker's port and
            // any name of this machine.
            let origin = format!("http://127.0.0.1:{port}");
            let also = format!("http://localhost:{port}");
            let pages = ["--allow-origin", &origin, "--allow-origin", &also];
            Gateway::start_with(place, &program, &[&["--dev"], &pages[..]].concat())
        })?;
        let worker = step("starting the Worker in workerd", || {
            Worker::start(place, &project, &gateway, port)
        })?;
        Ok(Self { worker, gateway })
    }

    /// Fails if a part has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        self.worker.check()?;
        self.gateway.check()
    }
}

/// Returns a port on which no program listens now.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("no free port")?;
    Ok(listener.local_addr()?.port())
}

/// Shows the demo until the user ends it.
pub(crate) fn run(place: &Place, port: u16) -> Result<()> {
    let is_free = TcpListener::bind(("127.0.0.1", port)).is_ok();
    let mut stack = Stack::start(place, if is_free { port } else { 0 })?;
    println!("\nThe demo is at  {}\n\nCtrl-C ends it.", stack.worker.url);
    for ticks in 0_u64.. {
        stack.check()?;
        // Wrangler stays when its workerd has ended, so the Worker is called.
        if ticks % TICKS_BETWEEN_CALLS == 0 {
            stack.worker.call()?;
        }
        match check_stop() {
            Err(error) if error.is::<Interrupted>() => break,
            other => other?,
        }
        tick();
    }
    println!("\nEnding the Worker, the gateway and its redis-server.");
    drop(stack);
    println!("Nothing is left running.");
    Ok(())
}
