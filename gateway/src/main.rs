//! `edgelatch-gateway`: Upstash's REST protocol in front of any Redis.

mod args;
mod open_files;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use edgelatch_gateway::{Config, Gateway, RedisSource};
use tokio::select;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{error, info};
use tracing_subscriber::EnvFilter;

use crate::args::{Args, ArgsError, Command, Serve};
use crate::open_files::OpenFiles;

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let filter = EnvFilter::try_from_env("EDGELATCH_LOG").unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).init();
    let done = match args.command {
        Some(Command::Token(token)) => print(token.sign()),
        None => run(args.serve).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn print(token: Result<String, ArgsError>) -> Result<(), Box<dyn std::error::Error>> {
    writeln!(io::stdout(), "{}", token?)?;
    Ok(())
}

async fn run(args: Serve) -> Result<(), Box<dyn std::error::Error>> {
    // The library that the root crate uses as well; a process can have only one default.
    #[cfg(feature = "tls")]
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    // Before anything is started, so that a signal never leaves a private Redis running.
    let mut signals = Signals::new()?;
    let (config, fresh_token) = args.into_config()?;
    let mut open_files = OpenFiles::raise_limit();
    let mut gateway = select! {
        gateway = Gateway::start(config.clone()) => gateway?,
        () = signals.next() => return Ok(()),
    };
    let nodes = gateway.redis_nodes();
    open_files.check(&config, nodes());
    announce(&gateway, &config, fresh_token.as_deref())?;
    let outcome = select! {
        () = signals.next() => Ok(()),
        () = open_files.watch(&config, nodes) => Ok(()),
        () = gateway.redis_ended() => Err("the private Redis has ended"),
    };
    info!("ending");
    gateway.shutdown().await;
    Ok(outcome?)
}

/// Prints the lines that a caller may wait for. The address is the last, when the gateway is ready.
fn announce(gateway: &Gateway, config: &Config, fresh_token: Option<&str>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if let (RedisSource::Private, Some(socket)) = (&config.redis, gateway.redis_socket()) {
        writeln!(out, "redis unix:{}", socket.display())?;
    }
    if let Some(token) = fresh_token {
        writeln!(out, "token {token}")?;
    }
    if let Some(address) = gateway.metrics_address() {
        writeln!(out, "metrics http://{address}/metrics")?;
    }
    writeln!(out, "listening on http://{}", gateway.address())?;
    out.flush()
}

/// The two signals with which a supervisor or a terminal ends a program.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        select! {
            _ = self.interrupt.recv() => (),
            _ = self.terminate.recv() => (),
        }
    }
}
