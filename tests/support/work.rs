//! The work of a script, as numbers that no other load on the machine changes.

use edgelatch_proto::protocol::script::{Script, ScriptCall};
use redis::Value;

use crate::every_call::Known;
use crate::redis::Redis;

/// Precedes a script, and counts its work.
const COUNTING: &str = include_str!("work.lua");

/// The work of one call: the numbers of its commands, of the elements that these read, write or
/// pass, and of the bytes of their arguments and replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    pub commands: u64,
    pub elements: u64,
    pub bytes: u64,
}

impl Work {
    /// The larger of each number.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            commands: self.commands.max(other.commands),
            elements: self.elements.max(other.elements),
            bytes: self.bytes.max(other.bytes),
        }
    }

    /// Whether no number is larger than that of `bound`.
    pub fn is_within(self, bound: Self) -> bool {
        self.max(bound) == bound
    }
}

/// A call of a script as words, which a test may change.
#[derive(Clone)]
pub struct EditableCall {
    pub script: &'static Script,
    pub source: String,
    pub keys: Vec<String>,
    pub args: Vec<String>,
}

impl From<&ScriptCall> for EditableCall {
    fn from(call: &ScriptCall) -> Self {
        Self {
            script: call.script(),
            source: call.source(false),
            keys: call.keys().to_vec(),
            args: call.args().to_vec(),
        }
    }
}

impl From<&Known> for EditableCall {
    fn from(known: &Known) -> Self {
        Self::from(&known.call)
    }
}

impl EditableCall {
    /// Replaces the bound, the second argument of every script.
    #[must_use]
    pub fn not_after(mut self, not_after: u64) -> Self {
        self.args[1] = not_after.to_string();
        self
    }

    /// The command that runs the call.
    pub fn command(&self) -> redis::Cmd {
        self.evaluation(&self.source)
    }

    fn evaluation(&self, source: &str) -> redis::Cmd {
        let mut command = redis::cmd("EVAL");
        command.arg(source).arg(self.keys.len()).arg(&self.keys).arg(&self.args);
        command
    }

    /// Runs the call, and counts its work. Returns also the texts of its reply; an error is one
    /// text that begins with `error: `.
    pub async fn run_counted(&self, redis: &Redis) -> (Work, Vec<String>) {
        let counting = format!(
            "{COUNTING}local function script()\n{}\nend\nreturn work(pcall(script))",
            self.source
        );
        let (commands, elements, bytes, reply): (_, _, _, Value) =
            redis.send(self.evaluation(&counting)).await.unwrap();
        let texts = match reply {
            Value::Array(cells) => {
                cells.into_iter().map(|cell| redis::from_redis_value(cell).unwrap()).collect()
            }
            error => vec![redis::from_redis_value(error).unwrap()],
        };
        (Work { commands, elements, bytes }, texts)
    }
}
