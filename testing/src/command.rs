//! Parses the commands of a request, and encodes their results as JSON.

use std::fmt::Write as _;

use edgelatch_proto::protocol::reply::RespValue;
use edgelatch_proto::protocol::script::{Script, scripts};

/// The function that precedes the source of a script of the caller.
const CALLERS_SCRIPT: &str = "local own=(function(";
/// The error for a script of the caller. It has the form of an error of Redis' compiler, whose
/// diagnostic clients report.
const NO_LUA: &str = "ERR Error compiling script (new function): user_script:1: a gateway in memory runs no Lua of the caller";

/// A command of a request.
pub(crate) enum Command<'a> {
    /// Runs a script of this library.
    Run { script: &'static Script, keys: &'a [String], args: &'a [String] },
    /// Waits for this number of replicas.
    Wait { replicas: i64 },
}

/// Parses the commands of a body: one, or a list of them. Returns `None` for any other JSON.
pub(crate) fn words_of(body: &str, is_list: bool) -> Option<Vec<Vec<String>>> {
    if is_list {
        serde_json::from_str(body).ok()
    } else {
        Some(vec![serde_json::from_str(body).ok()?])
    }
}

impl<'a> Command<'a> {
    /// Parses a command.
    ///
    /// # Errors
    /// The text of Redis' error.
    pub(crate) fn parse(words: &'a [String]) -> Result<Self, &'static str> {
        let syntax = "ERR wrong number of arguments";
        let (verb, rest) = words.split_first().ok_or(syntax)?;
        match (verb.as_str(), rest) {
            ("WAIT", [replicas, _]) => {
                let replicas = replicas.parse().map_err(|_| "ERR value is not an integer")?;
                Ok(Self::Wait { replicas })
            }
            ("EVAL" | "EVALSHA", [text, count, rest @ ..]) => {
                let script = if verb == "EVAL" { with_source(text) } else { with_hash(text) };
                let count = count.parse().ok().filter(|count| *count <= rest.len());
                let (keys, args) = rest.split_at(count.ok_or("ERR Number of keys")?);
                Ok(Self::Run { script: script?, keys, args })
            }
            _ => Err("ERR unknown command"),
        }
    }
}

fn with_hash(hash: &str) -> Result<&'static Script, &'static str> {
    let has_hash = |script: &&&Script| [false, true].map(|line| script.sha1(line)).contains(&hash);
    let found = scripts::ALL.iter().find(has_hash).copied();
    found.ok_or("NOSCRIPT No matching script. Please use EVAL.")
}

fn with_source(text: &str) -> Result<&'static Script, &'static str> {
    let has_source =
        |script: &&&Script| [false, true].iter().any(|line| script.source(*line) == text);
    let found = scripts::ALL.iter().find(has_source).copied();
    let unknown = if text.contains(CALLERS_SCRIPT) { NO_LUA } else { "ERR unknown script" };
    found.ok_or(unknown)
}

/// The result of a command.
pub(crate) type CommandResult = Result<Vec<RespValue>, String>;

/// Appends the result of a command: `{"result":[…]}` or `{"error":"…"}`.
pub(crate) fn write_result(body: &mut String, result: &CommandResult) {
    match result {
        Ok(values) => {
            body.push_str(r#"{"result":["#);
            for (index, value) in values.iter().enumerate() {
                if index > 0 {
                    body.push(',');
                }
                write_value(body, value);
            }
            body.push_str("]}");
        }
        Err(error) => body.push_str(&error_body(error)),
    }
}

fn write_value(body: &mut String, value: &RespValue) {
    // Writing to a `String` never fails.
    let _ = match value {
        RespValue::Int(number) => write!(body, "{number}"),
        RespValue::Text(text) => write!(body, "{}", json_string(text)),
    };
}

/// The body of an error.
pub(crate) fn error_body(error: &str) -> String {
    [r#"{"error":"#, &json_string(error), "}"].concat()
}

/// Encodes a text as a JSON string.
pub(crate) fn json_string(text: &str) -> String {
    // Encoding a string never fails.
    serde_json::to_string(text).unwrap_or_default()
}
