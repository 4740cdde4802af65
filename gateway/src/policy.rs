//! Which commands a shared connection may carry.
//!
//! One connection to Redis serves many requests at once, so a command that blocks it or changes
//! its state would reach into the requests of others. And the gateway is a door for applications:
//! what administers the server stays behind it.

use std::borrow::Cow;
use std::str::FromStr;
use std::time::Duration;

use crate::command::{Word, bytes};

/// How an allowed command travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// On a connection of its own, because it makes its connection wait.
    Own,
    /// On the connection that all requests share.
    Shared,
}

/// Why a command does not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It would wait on the shared connection, or change its state, or administer Redis.
    Command(&'static str),
    /// `SCRIPT DEBUG` turns the connection into a debugger.
    ScriptDebug,
    /// A wait without a bound, or with one beyond the time of a request.
    UnboundedWait,
}

impl Refusal {
    /// The text for the client: of its own arguments it holds nothing.
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

/// A command that is refused unless the operator allows it: it deletes what belongs to everybody,
/// or stops what others run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllowedCommand(&'static str);

impl FromStr for AllowedCommand {
    type Err = AllowedCommandError;

    fn from_str(text: &str) -> Result<Self, AllowedCommandError> {
        let known = DANGEROUS.iter().find(|known| known.eq_ignore_ascii_case(text.trim()));
        known.copied().map(Self).ok_or(AllowedCommandError)
    }
}

/// The text is not a command that can be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "only FLUSHALL, FLUSHDB, FUNCTION DELETE, FUNCTION FLUSH, FUNCTION KILL, FUNCTION RESTORE, \
     SCRIPT FLUSH and SCRIPT KILL can be allowed"
)]
#[non_exhaustive]
pub struct AllowedCommandError;

/// Which commands pass, and how.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    request_time: Duration,
    /// What of [`DANGEROUS`] is not allowed.
    dangerous: Vec<&'static str>,
}

impl Policy {
    pub(crate) fn new(request_time: Duration, allowed: &[AllowedCommand]) -> Self {
        let is_allowed = |name: &&str| allowed.iter().any(|AllowedCommand(known)| known == name);
        let dangerous = DANGEROUS.iter().copied().filter(|name| !is_allowed(name)).collect();
        Self { request_time, dangerous }
    }

    /// Decides by the command's name and, for a few, by its options. `args` begins with the name.
    pub(crate) fn lane<T: Word + ?Sized>(&self, args: &[Cow<'_, T>]) -> Result<Lane, Refusal> {
        let Some((name, rest)) = args.split_first() else { return Ok(Lane::Shared) };
        // `CONFIG|GET` is how Redis itself spells a subcommand: what counts is what stands before.
        let name = bytes::<T>(name).split(|byte| *byte == b'|').next().unwrap_or_default();
        let is_named = |command: &str| name.eq_ignore_ascii_case(command.as_bytes());
        if let Some(refused) = REFUSED.iter().find(|refused| is_named(refused)) {
            return Err(Refusal::Command(refused));
        }
        let is_called = |called: &&&str| {
            let (command, part) = called.split_once(' ').unwrap_or((called, ""));
            is_named(command)
                && (part.is_empty() || rest.first().is_some_and(|word| is::<T>(word, part)))
        };
        if let Some(dangerous) = self.dangerous.iter().find(is_called) {
            return Err(Refusal::Command(dangerous));
        }
        if is_named("SCRIPT") && rest.first().is_some_and(|word| is::<T>(word, "DEBUG")) {
            return Err(Refusal::ScriptDebug);
        }
        if is_named("XREAD") && blocks(rest) {
            return Err(Refusal::Command("XREAD BLOCK"));
        }
        // `GROUP`, its name and the consumer stand before the options and may be any text.
        if is_named("XREADGROUP") && blocks(rest.get(3..).unwrap_or_default()) {
            return Err(Refusal::Command("XREADGROUP BLOCK"));
        }
        let bound = if is_named("WAIT") {
            rest.get(1)
        } else if is_named("WAITAOF") {
            rest.get(2)
        } else {
            return Ok(Lane::Shared);
        };
        // A wait with too few arguments is Redis' to refuse.
        match bound {
            Some(bound) if !is_bounded(bytes::<T>(bound), self.request_time) => {
                Err(Refusal::UnboundedWait)
            }
            _ => Ok(Lane::Own),
        }
    }
}

fn is<T: Word + ?Sized>(argument: &T, word: &str) -> bool {
    bytes(argument).eq_ignore_ascii_case(word.as_bytes())
}

/// Whether `BLOCK` stands among the options, which end at `STREAMS`.
fn blocks<T: Word + ?Sized>(options: &[Cow<'_, T>]) -> bool {
    options
        .iter()
        .take_while(|option| !is::<T>(option, "STREAMS"))
        .any(|option| is::<T>(option, "BLOCK"))
}

fn is_bounded(milliseconds: &[u8], request_time: Duration) -> bool {
    str::from_utf8(milliseconds)
        .ok()
        .and_then(|text| text.parse().ok())
        .is_some_and(|bound: u64| bound > 0 && Duration::from_millis(bound) <= request_time)
}

/// In the order of the alphabet within each kind.
const REFUSED: &[&str] = &[
    // They block their connection until something happens.
    "BLMOVE",
    "BLMPOP",
    "BLPOP",
    "BRPOP",
    "BRPOPLPUSH",
    "BZMPOP",
    "BZPOPMAX",
    "BZPOPMIN",
    // They change what their connection is, or what comes next on it.
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
    // They administer the server, or let it reach out to others.
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

/// What may be allowed, each by its name or by those of command and subcommand.
const DANGEROUS: &[&str] = &[
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

    fn decide(words: &[&'static str]) -> Result<Lane, Refusal> {
        decide_with(&[], words)
    }

    fn decide_with(allowed: &[&str], words: &[&'static str]) -> Result<Lane, Refusal> {
        let allowed: Vec<_> = allowed.iter().map(|name| name.parse().unwrap()).collect();
        let args: Vec<_> = words.iter().copied().map(Cow::Borrowed).collect();
        Policy::new(Duration::from_secs(10), &allowed).lane(&args)
    }

    #[test]
    fn what_is_dangerous_is_refused_until_it_is_allowed() {
        assert_eq!(decide(&["flushall", "ASYNC"]), Err(Refusal::Command("FLUSHALL")));
        assert_eq!(decide(&["Script", "Flush"]), Err(Refusal::Command("SCRIPT FLUSH")));
        assert_eq!(decide(&["FUNCTION", "kill"]), Err(Refusal::Command("FUNCTION KILL")));
        assert_eq!(decide(&["FUNCTION", "LIST"]), Ok(Lane::Shared));
        assert_eq!(decide_with(&["flushall"], &["FLUSHALL"]), Ok(Lane::Shared));
        assert!(decide_with(&["flushall"], &["FLUSHDB"]).is_err());
        assert_eq!(decide_with(&["script flush"], &["SCRIPT", "FLUSH"]), Ok(Lane::Shared));
        assert!(decide_with(&["script flush"], &["SCRIPT", "DEBUG"]).is_err());
        for never in ["", "CONFIG", "BLPOP", "SCRIPT", "SCRIPT DEBUG", "SHUTDOWN"] {
            assert_eq!(never.parse::<AllowedCommand>(), Err(AllowedCommandError), "{never}");
        }
    }

    #[test]
    fn what_blocks_or_changes_the_connection_is_refused_in_any_spelling() {
        assert_eq!(decide(&["blpop", "k", "0"]), Err(Refusal::Command("BLPOP")));
        assert_eq!(decide(&["Config|Get", "*"]), Err(Refusal::Command("CONFIG")));
        assert_eq!(decide(&["script", "debug", "yes"]), Err(Refusal::ScriptDebug));
        assert_eq!(decide(&["script", "load", "return 1"]), Ok(Lane::Shared));
        assert_eq!(decide(&["SET", "BLPOP", "SUBSCRIBE"]), Ok(Lane::Shared));
    }

    #[test]
    fn a_stream_is_read_without_blocking_only() {
        let read = ["XREAD", "COUNT", "1", "STREAMS", "BLOCK", "0"];
        assert_eq!(decide(&read), Ok(Lane::Shared));
        let group = ["XREADGROUP", "GROUP", "BLOCK", "BLOCK", "STREAMS", "s", ">"];
        assert_eq!(decide(&group), Ok(Lane::Shared));
        let blocking = ["XREAD", "COUNT", "1", "block", "5", "STREAMS", "s", "0"];
        assert_eq!(decide(&blocking), Err(Refusal::Command("XREAD BLOCK")));
        let blocking = ["XREADGROUP", "GROUP", "g", "c", "BLOCK", "5", "STREAMS", "s", ">"];
        assert_eq!(decide(&blocking), Err(Refusal::Command("XREADGROUP BLOCK")));
    }

    #[test]
    fn a_wait_needs_a_bound_and_goes_its_own_way() {
        assert_eq!(decide(&["WAIT", "1", "10000"]), Ok(Lane::Own));
        assert_eq!(decide(&["waitaof", "1", "0", "1"]), Ok(Lane::Own));
        assert_eq!(decide(&["WAIT", "1"]), Ok(Lane::Own));
        for endless in ["0", "10001", "-1", "x"] {
            assert_eq!(decide(&["WAIT", "1", endless]), Err(Refusal::UnboundedWait));
        }
    }
}
