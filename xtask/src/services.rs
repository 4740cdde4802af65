//! The services of a demo or a test: a gateway with a private Redis, and the Worker.

use std::fs::{self, File};
use std::io::Read as _;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::process::{ProcessGroup, check_stop, tick};
use crate::progress::{Stopwatch, read, tail};
use crate::workspace::{Log, Workspace, copy_folder, empty_folder};

/// The longest time until a server is ready.
const START_TIME: Duration = Duration::from_secs(60);

/// The project's gateway. Dropping it ends it, and a Redis of its own.
pub(crate) struct Gateway {
    pub(crate) server: Server,
    url: String,
    token: String,
    /// The gateway's key for scoped tokens.
    scope_key: String,
}

impl Gateway {
    /// Starts the program on a free port of loopback, and waits until it serves. The arguments name
    /// a Redis, or give it one of its own.
    pub(crate) fn start(workspace: &Workspace, program: &Path, arguments: &[&str]) -> Result<Self> {
        let (token, scope_key) = (random_token()?, random_token()?);
        let mut command = workspace.program(program);
        command.args(["--listen", "127.0.0.1:0"]).args(arguments);
        // Not as an argument: every user of the machine can read arguments.
        command.env("EDGELATCH_TOKENS", &token).env("EDGELATCH_SCOPE_KEYS", &scope_key);
        let mut server = Server::start(workspace, "gateway", &mut command)?;
        let url = server.wait_for("listening on ")?;
        Ok(Self { server, url, token, scope_key })
    }

    /// Sets the address and the credentials in the environment of a program.
    pub(crate) fn describe(&self, command: &mut Command) {
        command
            .env("EDGELATCH_TEST_URL", &self.url)
            .env("EDGELATCH_TEST_TOKEN", &self.token)
            .env("EDGELATCH_TEST_SCOPE_KEY", &self.scope_key);
    }
}

/// A redis-server that the demo's page can kill. Dropping it ends the server.
pub(crate) struct MortalRedis {
    pub(crate) server: Server,
    /// The name of the server for the gateway.
    pub(crate) url: String,
    /// The address at which a request kills it, and the key of such a request.
    control: String,
    key: String,
}

impl MortalRedis {
    /// Starts the server, and waits until it serves.
    pub(crate) fn start(workspace: &Workspace) -> Result<Self> {
        let key = random_token()?;
        let mut command = workspace.command("node xtask/scripts/demo-redis.mjs");
        command.env("EDGELATCH_CONTROL_KEY", &key);
        let mut server = Server::start(workspace, "redis", &mut command)?;
        let control = server.wait_for("control ")?;
        let url = server.wait_for("redis ")?;
        Ok(Self { server, url, control, key })
    }
}

/// The demo's Worker in workerd. Dropping it ends the Worker.
pub(crate) struct Worker {
    pub(crate) server: Server,
    pub(crate) url: String,
}

impl Worker {
    /// Puts the Worker and the documentation site into a folder with the packed npm package
    /// installed, and serves them with wrangler.
    pub(crate) fn start(
        workspace: &Workspace,
        folder: &Path,
        site: &Path,
        redis: &MortalRedis,
        gateway: &Gateway,
        port: u16,
    ) -> Result<Self> {
        stage(workspace, folder, redis, gateway)?;
        let wrangler = workspace.node_modules.join("wrangler/wrangler-dist/cli.js");
        let mut command = workspace.command("node");
        command
            .current_dir(folder)
            .arg(workspace.root.join("xtask/scripts/serve.mjs"))
            .arg(wrangler)
            .arg(port.to_string())
            // The build command of wrangler.toml copies the site.
            .env("EDGELATCH_SITE", site)
            // Wrangler writes only below target, and sends no telemetry.
            .env("XDG_CONFIG_HOME", folder.join(".config"))
            .env("XDG_CACHE_HOME", folder.join(".cache"))
            .env("WRANGLER_REGISTRY_PATH", folder.join(".registry"))
            .env("WRANGLER_LOG_PATH", folder.join(".log"))
            .env("WRANGLER_SEND_METRICS", "false")
            .env("WRANGLER_SEND_ERROR_REPORTS", "false")
            .env("WRANGLER_HIDE_BANNER", "true")
            .env("CLOUDFLARE_CF_FETCH_ENABLED", "false")
            .env("NO_COLOR", "1")
            .env("FORCE_COLOR", "0");
        let mut server = Server::start(workspace, "worker", &mut command)?;
        let url = server.wait_for("Ready on ")?;
        Ok(Self { server, url })
    }

    /// Fails if the Worker does not respond.
    pub(crate) fn call(&self) -> Result<()> {
        let address = self.url.trim_start_matches("http://").trim_end_matches('/');
        TcpStream::connect(address).map(drop).context("the Worker's runtime has ended by itself")
    }
}

/// A program that prints a line when it serves.
pub(crate) struct Server {
    name: &'static str,
    group: ProcessGroup,
    log: Log,
}

impl Server {
    /// Starts the program, whose output is written to a log.
    pub(crate) fn start(
        workspace: &Workspace,
        name: &'static str,
        command: &mut Command,
    ) -> Result<Self> {
        let log = workspace.log(name)?;
        let file = File::create(&*log)?;
        command.stdout(file.try_clone()?).stderr(file);
        Ok(Self { name, group: ProcessGroup::spawn(name, command)?, log })
    }

    /// Waits for the line that contains `announcement`, and returns the word after it.
    pub(crate) fn wait_for(&mut self, announcement: &str) -> Result<String> {
        let watch = Stopwatch::start();
        while watch.elapsed() < START_TIME {
            check_stop()?;
            let output = read(&self.log);
            let line = output.split_once(announcement).and_then(|(_, rest)| rest.split_once('\n'));
            if let Some((line, _)) = line {
                return Ok(line.split_whitespace().next().unwrap_or_default().to_owned());
            }
            self.check()?;
            tick();
        }
        eprintln!("{}", tail(&self.log));
        bail!("the {} did not start to serve within {} s", self.name, START_TIME.as_secs())
    }

    /// Fails if the program has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        let Some(status) = self.group.ended()? else { return Ok(()) };
        eprintln!("{}", tail(&self.log));
        bail!("the {} ended by itself with {status}; its log: {}", self.name, self.log.display())
    }
}

/// Makes the folder a user's project: the Worker, its configuration and its secrets, beside the
/// package.
fn stage(
    workspace: &Workspace,
    folder: &Path,
    redis: &MortalRedis,
    gateway: &Gateway,
) -> Result<()> {
    copy_folder(&workspace.root.join("www"), &empty_folder(folder.join("www"))?)?;
    fs::copy(workspace.root.join("wrangler.toml"), folder.join("wrangler.toml"))
        .context("cannot copy wrangler.toml")?;
    let secrets = format!(
        "UPSTASH_REDIS_REST_URL=\"{}\"\nUPSTASH_REDIS_REST_TOKEN=\"{}\"\nSCOPE_KEY=\"{}\"\n\
         REDIS_CONTROL_URL=\"{}\"\nREDIS_CONTROL_KEY=\"{}\"\n",
        gateway.url, gateway.token, gateway.scope_key, redis.control, redis.key
    );
    fs::write(folder.join(".dev.vars"), secrets).context("cannot write the Worker's secrets")
}

fn random_token() -> Result<String> {
    let mut bytes = [0_u8; 24];
    File::open("/dev/urandom")?.read_exact(&mut bytes).context("no random bytes")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
