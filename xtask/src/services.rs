//! The running parts of a demo or a test: a gateway with a private Redis, and the Worker.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::place::{Place, copy_folder, emptied};
use crate::process::{Group, check_stop, tick};
use crate::progress::{Stopwatch, tail};

/// The longest time until a part serves.
pub(crate) const START_TIME: Duration = Duration::from_secs(60);

/// The project's gateway with its own redis-server. Dropping it ends both.
pub(crate) struct Gateway {
    part: Part,
    pub(crate) url: String,
    pub(crate) token: String,
    /// The gateway's key for scoped tokens.
    pub(crate) scope_key: String,
}

impl Gateway {
    /// Starts the program on a free port of loopback and waits until it serves.
    pub(crate) fn start(place: &Place, program: &Path) -> Result<Self> {
        // All tests connect from one address.
        Self::start_with(place, program, &["--dev", "--address-connections", "4000"])
    }

    /// Starts the program with these arguments, which name its Redis, and waits until it serves.
    pub(crate) fn start_with(place: &Place, program: &Path, arguments: &[&str]) -> Result<Self> {
        let (token, scope_key) = (random_token()?, random_token()?);
        let mut command = place.command(&program.to_string_lossy());
        command.args(["--listen", "127.0.0.1:0"]).args(arguments);
        // Not as an argument: every user of the machine can read arguments.
        command.env("EDGELATCH_TOKENS", &token).env("EDGELATCH_SCOPE_KEYS", &scope_key);
        let mut part = Part::start(place, "gateway", &mut command)?;
        let url = part.wait_for("listening on ")?;
        Ok(Self { part, url, token, scope_key })
    }

    /// Fails if the gateway has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        self.part.check()
    }

    /// Returns the process id.
    pub(crate) fn id(&self) -> u32 {
        self.part.id()
    }
}

/// The demo's Worker in workerd. Dropping it ends the Worker.
pub(crate) struct Worker {
    part: Part,
    pub(crate) url: String,
}

impl Worker {
    /// Puts the Worker into a folder with the packed npm package installed, and serves it with
    /// wrangler.
    pub(crate) fn start(
        place: &Place,
        folder: &Path,
        gateway: &Gateway,
        port: u16,
    ) -> Result<Self> {
        stage(place, folder, gateway)?;
        let wrangler = place.node_modules().join("wrangler/wrangler-dist/cli.js");
        let mut command = place.node();
        command
            .current_dir(folder)
            .arg(place.root.join("xtask/scripts/serve.mjs"))
            .arg(wrangler)
            .arg(port.to_string())
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
        let mut part = Part::start(place, "worker", &mut command)?;
        let url = part.wait_for("Ready on ")?;
        Ok(Self { part, url })
    }

    /// Fails if the Worker's program has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        self.part.check()
    }

    /// Fails if the Worker does not respond.
    pub(crate) fn call(&self) -> Result<()> {
        let address = self.url.trim_start_matches("http://").trim_end_matches('/');
        TcpStream::connect(address).map(drop).context("the Worker's runtime has ended by itself")
    }
}

/// A program that prints a line when it serves.
pub(crate) struct Part {
    name: String,
    group: Group,
    lines: Receiver<String>,
    log: PathBuf,
}

impl Part {
    /// Starts the program; its output is also written to a log.
    pub(crate) fn start(place: &Place, name: &str, command: &mut Command) -> Result<Self> {
        let log = place.log(name)?;
        let mut file = File::create(&log)?;
        command.stdout(Stdio::piped()).stderr(file.try_clone()?);
        let mut group = Group::spawn(name, command)?;
        let output = group.child().stdout.take().context("the output was piped")?;
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // Once the part serves, no receiver is left; the line still goes to the log.
                let _ = std::io::Write::write_all(&mut file, format!("{line}\n").as_bytes());
                let _ = sender.send(line);
            }
        });
        Ok(Self { name: name.to_owned(), group, lines, log })
    }

    /// Returns the process id.
    pub(crate) fn id(&self) -> u32 {
        self.group.id()
    }

    /// Waits for the line that contains `announcement`, and returns the word after it.
    pub(crate) fn wait_for(&mut self, announcement: &str) -> Result<String> {
        let watch = Stopwatch::start();
        while watch.elapsed() < START_TIME {
            check_stop()?;
            while let Ok(line) = self.lines.try_recv() {
                let word = line
                    .split_once(announcement)
                    .and_then(|(_, rest)| rest.split_whitespace().next());
                if let Some(word) = word {
                    return Ok(word.to_owned());
                }
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
fn stage(place: &Place, folder: &Path, gateway: &Gateway) -> Result<()> {
    copy_folder(&place.root.join("www"), &emptied(folder.join("www"))?)?;
    fs::copy(place.root.join("wrangler.toml"), folder.join("wrangler.toml"))
        .context("cannot copy wrangler.toml")?;
    let secrets = format!(
        "UPSTASH_REDIS_REST_URL=\"{}\"\nUPSTASH_REDIS_REST_TOKEN=\"{}\"\nSCOPE_KEY=\"{}\"\n",
        gateway.url, gateway.token, gateway.scope_key
    );
    fs::write(folder.join(".dev.vars"), secrets).context("cannot write the Worker's secrets")
}

fn random_token() -> Result<String> {
    let mut bytes = [0_u8; 24];
    File::open("/dev/urandom")?.read_exact(&mut bytes).context("no random bytes")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
