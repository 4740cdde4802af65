//! Decides which commands the gateway allows, and on which connection they run.
//!
//! One connection to Redis serves many requests at once, so a command that blocks it or changes its
//! state would affect the requests of other clients. The gateway is for applications, so it also
//! refuses commands that administer the server.

use std::str::FromStr;
use std::time::Duration;

use redis::Cmd;

use crate::command::words;

/// The kind of connection that an allowed command runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionKind {
    /// A connection of its own, since the command makes its connection wait.
    Dedicated,
    /// A connection that all requests share.
    Shared,
}

/// The reason why the gateway refuses a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The command would block the shared connection, change its state, or administer Redis.
    Command(&'static str),
    /// `SCRIPT DEBUG` turns the connection into a debugger.
    ScriptDebug,
    /// A `WAIT` without a time limit, or with one longer than the request time.
    UnboundedWait,
}

impl Refusal {
    /// Returns the text for the client. It contains none of the command's arguments.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Command(name) => format!("ERR the gateway does not allow {name}"),
            Self::ScriptDebug => "ERR the gateway does not allow SCRIPT DEBUG".to_owned(),
            Self::UnboundedWait => {
                "ERR the gateway allows a wait only with a time from 1 ms to its request time"
                    .to_owned()
            }
        }
    }
}

/// A command that is refused unless the operator allows it: it deletes the data of all clients, or
/// stops what other clients run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllowedCommand(&'static str);

impl FromStr for AllowedCommand {
    type Err = AllowedCommandError;

    fn from_str(text: &str) -> Result<Self, AllowedCommandError> {
        let known = RESTRICTED.iter().find(|known| known.eq_ignore_ascii_case(text.trim()));
        known.copied().map(Self).ok_or(AllowedCommandError)
    }
}

/// The error for a text that is not a command that can be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "only FLUSHALL, FLUSHDB, FUNCTION DELETE, FUNCTION FLUSH, FUNCTION KILL, FUNCTION RESTORE, \
     SCRIPT FLUSH and SCRIPT KILL can be allowed"
)]
#[non_exhaustive]
pub struct AllowedCommandError;

/// The rules for which commands the gateway allows.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    request_time: Duration,
    /// The commands of [`RESTRICTED`] that the operator has not allowed.
    restricted: Vec<&'static str>,
}

impl Policy {
    pub(crate) fn new(request_time: Duration, allowed: &[AllowedCommand]) -> Self {
        let is_allowed = |name: &&str| allowed.iter().any(|AllowedCommand(known)| known == name);
        let restricted = RESTRICTED.iter().copied().filter(|name| !is_allowed(name)).collect();
        Self { request_time, restricted }
    }

    /// Returns the kind of connection for a command, or why it is refused. Decides by its name and,
    /// for a few commands, by its options.
    pub(crate) fn connection(&self, command: &Cmd) -> Result<ConnectionKind, Refusal> {
        let mut rest = words(command);
        let Some(name) = rest.next() else { return Ok(ConnectionKind::Shared) };
        let first = rest.clone().next();
        // Redis itself spells a subcommand `CONFIG|GET`: the name is the part before `|`.
        let name = name.split(|byte| *byte == b'|').next().unwrap_or_default();
        let is_named = |command: &str| is_word(name, command);
        if let Some(refused) = REFUSED.iter().find(|refused| is_named(refused)) {
            return Err(Refusal::Command(refused));
        }
        let is_restricted_call = |called: &&&str| {
            let (command, part) = called.split_once(' ').unwrap_or((called, ""));
            is_named(command) && (part.is_empty() || first.is_some_and(|word| is_word(word, part)))
        };
        if let Some(restricted) = self.restricted.iter().find(is_restricted_call) {
            return Err(Refusal::Command(restricted));
        }
        if is_named("SCRIPT") && first.is_some_and(|word| is_word(word, "DEBUG")) {
            return Err(Refusal::ScriptDebug);
        }
        if is_named("XREAD") && is_blocking(rest.clone()) {
            return Err(Refusal::Command("XREAD BLOCK"));
        }
        // The first three arguments, `GROUP`, group and consumer, are no options, and may be any
        // text.
        if is_named("XREADGROUP") && is_blocking(rest.clone().skip(3)) {
            return Err(Refusal::Command("XREADGROUP BLOCK"));
        }
        let bound = if is_named("WAIT") {
            rest.nth(1)
        } else if is_named("WAITAOF") {
            rest.nth(2)
        } else {
            return Ok(ConnectionKind::Shared);
        };
        // Redis itself refuses a `WAIT` with too few arguments.
        match bound {
            Some(bound) if !is_bounded(bound, self.request_time) => Err(Refusal::UnboundedWait),
            _ => Ok(ConnectionKind::Dedicated),
        }
    }
}

/// Whether Redis can take an argument for this word. It compares options as C strings, which end
/// at a zero byte, and so it does with names of commands that have the same hash.
fn is_word(argument: &[u8], word: &str) -> bool {
    let text = argument.split(|byte| *byte == 0).next().unwrap_or_default();
    text.eq_ignore_ascii_case(word.as_bytes())
}

/// Whether `BLOCK` is one of the options, which end at `STREAMS`.
fn is_blocking<'a>(options: impl Iterator<Item = &'a [u8]>) -> bool {
    options.take_while(|option| !is_word(option, "STREAMS")).any(|option| is_word(option, "BLOCK"))
}

fn is_bounded(milliseconds: &[u8], request_time: Duration) -> bool {
    str::from_utf8(milliseconds)
        .ok()
        .and_then(|text| text.parse().ok())
        .is_some_and(|bound: u64| bound > 0 && Duration::from_millis(bound) <= request_time)
}

/// Commands that the gateway never allows, in alphabetical order within each kind.
const REFUSED: &[&str] = &[
    // Commands that block their connection until an event.
    "BLMOVE",
    "BLMPOP",
    "BLPOP",
    "BRPOP",
    "BRPOPLPUSH",
    "BZMPOP",
    "BZPOPMAX",
    "BZPOPMIN",
    // Commands that change the state of their connection, or how its later commands run.
    "ASKING",
    "AUTH",
    "CLIENT",
    "DISCARD",
    "EXEC",
    "HELLO",
    "MONITOR",
    "MULTI",
    "PSUBSCRIBE",
    "PSYNC",
    "PUNSUBSCRIBE",
    "QUIT",
    "READONLY",
    "READWRITE",
    "REPLCONF",
    "RESET",
    "SELECT",
    "SSUBSCRIBE",
    "SUBSCRIBE",
    "SUNSUBSCRIBE",
    "SYNC",
    "UNSUBSCRIBE",
    "UNWATCH",
    "WATCH",
    // Commands that administer the server, or make it connect to other servers.
    "ACL",
    "BGREWRITEAOF",
    "BGSAVE",
    "CLUSTER",
    "CONFIG",
    "DEBUG",
    "FAILOVER",
    "LATENCY",
    "MIGRATE",
    "MODULE",
    "PFDEBUG",
    "PFSELFTEST",
    "REPLICAOF",
    "RESTORE-ASKING",
    "ROLE",
    "SAVE",
    "SENTINEL",
    "SHUTDOWN",
    "SLAVEOF",
    "SLOWLOG",
    "SWAPDB",
];

/// Commands that the operator may allow, each as its name, or as the names of command and
/// subcommand.
const RESTRICTED: &[&str] = &[
    "FLUSHALL",
    "FLUSHDB",
    "FUNCTION DELETE",
    "FUNCTION FLUSH",
    "FUNCTION KILL",
    "FUNCTION RESTORE",
    "SCRIPT FLUSH",
    "SCRIPT KILL",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::from_words;

    fn connection_of(words: &[&'static str]) -> Result<ConnectionKind, Refusal> {
        connection_with(&[], words)
    }

    fn connection_with(
        allowed: &[&str],
        words: &[&'static str],
    ) -> Result<ConnectionKind, Refusal> {
        let allowed: Vec<_> = allowed.iter().map(|name| name.parse().unwrap()).collect();
        Policy::new(Duration::from_secs(10), &allowed).connection(&from_words(words).unwrap())
    }

    #[test]
    fn a_restricted_command_is_refused_until_it_is_allowed() {
        assert_eq!(connection_of(&["flushall", "ASYNC"]), Err(Refusal::Command("FLUSHALL")));
        assert_eq!(connection_of(&["Script", "Flush"]), Err(Refusal::Command("SCRIPT FLUSH")));
        assert_eq!(connection_of(&["FUNCTION", "kill"]), Err(Refusal::Command("FUNCTION KILL")));
        assert_eq!(connection_of(&["FUNCTION", "LIST"]), Ok(ConnectionKind::Shared));
        assert_eq!(connection_with(&["flushall"], &["FLUSHALL"]), Ok(ConnectionKind::Shared));
        assert!(connection_with(&["flushall"], &["FLUSHDB"]).is_err());
        assert_eq!(
            connection_with(&["script flush"], &["SCRIPT", "FLUSH"]),
            Ok(ConnectionKind::Shared)
        );
        assert!(connection_with(&["script flush"], &["SCRIPT", "DEBUG"]).is_err());
        for never in ["", "CONFIG", "BLPOP", "SCRIPT", "SCRIPT DEBUG", "SHUTDOWN"] {
            assert_eq!(never.parse::<AllowedCommand>(), Err(AllowedCommandError), "{never}");
        }
    }

    #[test]
    fn a_command_that_blocks_or_changes_its_connection_is_refused_in_any_spelling() {
        assert_eq!(connection_of(&["blpop", "k", "0"]), Err(Refusal::Command("BLPOP")));
        assert_eq!(connection_of(&["Config|Get", "*"]), Err(Refusal::Command("CONFIG")));
        assert_eq!(connection_of(&["script", "debug", "yes"]), Err(Refusal::ScriptDebug));
        assert_eq!(connection_of(&["script", "load", "return 1"]), Ok(ConnectionKind::Shared));
        assert_eq!(connection_of(&["SET", "BLPOP", "SUBSCRIBE"]), Ok(ConnectionKind::Shared));
    }

    #[test]
    fn a_zero_byte_and_what_follows_it_are_no_part_of_a_word() {
        assert_eq!(connection_of(&["CONFIG\0x", "GET", "*"]), Err(Refusal::Command("CONFIG")));
        let flush = connection_of(&["FUNCTION", "flush\0x"]);
        assert_eq!(flush, Err(Refusal::Command("FUNCTION FLUSH")));
        assert_eq!(connection_of(&["SCRIPT", "DEBUG\0", "yes"]), Err(Refusal::ScriptDebug));
        assert_eq!(connection_of(&["WAIT\0", "1", "0"]), Err(Refusal::UnboundedWait));
        let blocking = ["XREAD", "BLOCK\0", "0", "STREAMS", "s", "$"];
        assert_eq!(connection_of(&blocking), Err(Refusal::Command("XREAD BLOCK")));
        let reading = ["XREAD", "STREAMS\0", "BLOCK", "0"];
        assert_eq!(connection_of(&reading), Ok(ConnectionKind::Shared));
    }

    #[test]
    fn a_blocking_read_of_a_stream_is_refused() {
        let read = ["XREAD", "COUNT", "1", "STREAMS", "BLOCK", "0"];
        assert_eq!(connection_of(&read), Ok(ConnectionKind::Shared));
        let group = ["XREADGROUP", "GROUP", "BLOCK", "BLOCK", "STREAMS", "s", ">"];
        assert_eq!(connection_of(&group), Ok(ConnectionKind::Shared));
        let blocking = ["XREAD", "COUNT", "1", "block", "5", "STREAMS", "s", "0"];
        assert_eq!(connection_of(&blocking), Err(Refusal::Command("XREAD BLOCK")));
        let blocking = ["XREADGROUP", "GROUP", "g", "c", "BLOCK", "5", "STREAMS", "s", ">"];
        assert_eq!(connection_of(&blocking), Err(Refusal::Command("XREADGROUP BLOCK")));
    }

    #[test]
    fn a_wait_needs_a_bound_and_gets_a_dedicated_connection() {
        assert_eq!(connection_of(&["WAIT", "1", "10000"]), Ok(ConnectionKind::Dedicated));
        assert_eq!(connection_of(&["waitaof", "1", "0", "1"]), Ok(ConnectionKind::Dedicated));
        assert_eq!(connection_of(&["WAIT", "1"]), Ok(ConnectionKind::Dedicated));
        for endless in ["0", "10001", "-1", "x"] {
            assert_eq!(connection_of(&["WAIT", "1", endless]), Err(Refusal::UnboundedWait));
        }
    }
}
