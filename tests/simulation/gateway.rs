//! A gateway that speaks Upstash's dialect, as bytes.

use std::collections::HashMap;
use std::sync::LazyLock;

use edgelatch::transport::Request;
use edgelatch_proto::protocol::reply::RespValue;
use edgelatch_proto::protocol::script::{Script, scripts};

use super::coverage::CoverPoint;
use super::engine::Sim;
use super::transport::SentRequest;

/// The token that the gateway requires.
pub(crate) const TOKEN: &str = "token";

/// The words of one command.
pub(crate) type Command = Vec<String>;

/// A command that runs a script.
pub(crate) struct Run<'a> {
    pub(crate) script: KnownScript,
    pub(crate) keys: &'a [String],
    pub(crate) args: &'a [String],
    /// Whether a copy of its request runs it, which the network has made.
    pub(crate) is_copy: bool,
}

/// A script, by its index in `scripts::ALL`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct KnownScript(pub(crate) usize);

/// The source of each script as clients of this gateway send it: without the key-locking line.
static SOURCES: LazyLock<Vec<String>> =
    LazyLock::new(|| scripts::ALL.iter().map(|script| script.source(false)).collect());
/// The index of each script by its hash.
static HASHES: LazyLock<HashMap<&'static str, usize>> = LazyLock::new(|| {
    scripts::ALL.iter().enumerate().map(|(place, script)| (script.sha1(false), place)).collect()
});

impl KnownScript {
    fn by_hash(hash: &str) -> Option<Self> {
        HASHES.get(hash).copied().map(Self)
    }

    fn by_text(text: &str) -> Option<Self> {
        // A caller's own script precedes the source of `eval`, and clients send it whole each time.
        let eval = || scripts::ALL.iter().position(|script| script.name == "eval");
        let own = text.contains("local own=(function(").then(eval).flatten();
        own.or_else(|| SOURCES.iter().position(|source| source == text)).map(Self)
    }

    pub(crate) fn script(self) -> &'static Script {
        scripts::ALL[self.0]
    }
}

/// The commands of a request: one, or a list of them.
pub(crate) fn commands(request: &Request) -> Option<Vec<Command>> {
    if request.url.ends_with("/pipeline") {
        serde_json::from_str(&request.body).ok()
    } else {
        Some(vec![serde_json::from_str(&request.body).ok()?])
    }
}

/// Formats a command for the trace.
pub(crate) fn summary(command: &Command) -> String {
    match run_of(command) {
        Ok(run) => {
            let (latch, args) = (run.keys.first(), run.args.get(4..).unwrap_or_default());
            let bound = run.args.get(1).map_or("", String::as_str);
            let verb = &command[0];
            format!(
                "{verb} {} [{}] ({}) until {bound}",
                run.script.script().name,
                latch.map_or("", String::as_str),
                args.join(" ")
            )
        }
        Err(error) => error.into(),
    }
}

/// Parses a command that runs a script.
fn run_of(command: &Command) -> Result<Run<'_>, &'static str> {
    let [verb, text, count, rest @ ..] = command.as_slice() else {
        return Err("ERR wrong number of arguments");
    };
    let script = match verb.as_str() {
        "EVALSHA" => KnownScript::by_hash(text),
        "EVAL" => KnownScript::by_text(text),
        _ => return Err("ERR unknown command"),
    };
    let script = script.ok_or("NOSCRIPT No matching script. Please use EVAL.")?;
    let count = count.parse().ok().filter(|count| *count <= rest.len());
    let (keys, args) = rest.split_at(count.ok_or("ERR Number of keys")?);
    Ok(Run { script, keys, args, is_copy: false })
}

impl Sim {
    /// Executes the commands of a request, or of a copy of it; returns a status and a body.
    pub(crate) fn execute(&self, sent: &SentRequest, is_copy: bool) -> (u16, Vec<u8>) {
        let request = &sent.request;
        let is_ours = request.authorization.as_deref().and_then(|it| it.strip_prefix("Bearer "));
        if is_ours != Some(TOKEN) {
            return (401, br#"{"error":"Unauthorized"}"#.into());
        }
        let Some(commands) = commands(request) else {
            return (400, br#"{"error":"ERR syntax error"}"#.into());
        };
        let several = request.url.ends_with("/pipeline");
        self.coverage.count(CoverPoint::Pipelines, u64::from(several));
        let mut body = Vec::with_capacity(128 * commands.len());
        let mut status = 200;
        for (number, command) in commands.iter().enumerate() {
            match number {
                0 if several => body.push(b'['),
                0 => {}
                _ => body.push(b','),
            }
            let answer = match run_of(command) {
                Ok(run) => self.run_command(sent, &Run { is_copy, ..run }, command[0] == "EVAL"),
                Err(error) => Err(error),
            };
            match answer {
                Ok(cells) => write_cells(&mut body, &cells),
                Err(error) => {
                    status = if several { 200 } else { 400 };
                    body.extend(br#"{"error":""#);
                    body.extend(error.as_bytes());
                    body.extend(br#""}"#);
                }
            }
        }
        if several {
            body.push(b']');
        }
        (status, body)
    }
}

fn write_cells(body: &mut Vec<u8>, cells: &[RespValue]) {
    body.extend(br#"{"result":["#);
    for (place, cell) in cells.iter().enumerate() {
        if place > 0 {
            body.push(b',');
        }
        match cell {
            RespValue::Int(number) => body.extend(number.to_string().as_bytes()),
            RespValue::Text(text) => {
                body.push(b'"');
                body.extend(text.as_bytes());
                body.push(b'"');
            }
        }
    }
    body.extend(b"]}");
}
