//! What a scoped token may do.

use std::borrow::Cow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use edgelatch::protocol::scope::{Prefix, touched};
use edgelatch::timing::LeaseTime;

use super::scripts::script;

/// How far ahead of this machine's clock anything may reach that Redis is to remember: far beyond what the library asks for, and
/// what clocks may be off.
const AHEAD: Duration = Duration::from_secs(3600);
/// What the library waits for behind an acquisition: so many replicas, for so many milliseconds.
const REPLICAS_MAX: u64 = 8;
const REPLICAS_WAIT_MAX: u64 = 1000;

/// What one scoped token allows.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    pub(super) prefix: Prefix,
    pub(super) max_lease: LeaseTime,
    pub(super) force: bool,
    pub(super) ends: SystemTime,
}

/// Which rule a request broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breach {
    Ahead,
    Call,
    Command,
    Force,
    Lease,
    Name,
    Path,
}

impl Breach {
    /// The text for the client: it holds nothing of the request.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Ahead => "NOPERM the request reaches too far into the future for a scoped token",
            Self::Call => "NOPERM a scoped token makes only such calls as edgelatch makes",
            Self::Command => "NOPERM a scoped token runs nothing but edgelatch's own scripts",
            Self::Force => "NOPERM this scoped token may not release what others hold",
            Self::Lease => "NOPERM the lease is longer than this scoped token allows",
            Self::Name => "NOPERM a name does not begin with this scoped token's prefix",
            Self::Path => "NOPERM a scoped token has no use for this path",
        }
    }
}

impl Scope {
    /// When it ends.
    pub(crate) fn ends(&self) -> SystemTime {
        self.ends
    }

    /// Looks at a command, letter by letter what Redis would be sent.
    pub(crate) fn command(&self, words: &[Cow<'_, str>], now: SystemTime) -> Result<(), Breach> {
        let [verb, text, count, rest @ ..] = words else { return Err(Breach::Command) };
        let script = script(verb, text).ok_or(Breach::Command)?;
        let rest: Vec<&str> = rest.iter().map(Cow::as_ref).collect();
        let count = number(count).and_then(|count| usize::try_from(count).ok());
        let (keys, args) =
            count.and_then(|count| rest.split_at_checked(count)).ok_or(Breach::Call)?;
        let touched = touched(script, keys, args).ok_or(Breach::Call)?;
        if !self.prefix.covers(&touched) {
            return Err(Breach::Name);
        }
        if touched.lease.is_some_and(|lease| lease > self.max_lease) {
            return Err(Breach::Lease);
        }
        if touched.forces && !self.force {
            return Err(Breach::Force);
        }
        let latest = now.duration_since(UNIX_EPOCH).unwrap_or_default() + AHEAD;
        let late = touched.not_after.is_some_and(|ms| Duration::from_millis(ms) > latest);
        // A token is a time: one of the future would lock everybody out.
        let high = touched.stores.is_some_and(|us| Duration::from_micros(us) > latest);
        if late || high { Err(Breach::Ahead) } else { Ok(()) }
    }

    /// Looks at a command that follows an allowed one in a pipeline.
    pub(crate) fn next(&self, words: &[Cow<'_, str>], now: SystemTime) -> Result<(), Breach> {
        let within = |text: &str, most| number(text).is_some_and(|n| (1..=most).contains(&n));
        match words {
            [verb, replicas, ms]
                if verb.eq_ignore_ascii_case("WAIT")
                    && within(replicas, REPLICAS_MAX)
                    && within(ms, REPLICAS_WAIT_MAX) =>
            {
                Ok(())
            }
            words => self.command(words, now),
        }
    }

    /// Looks at a channel that is to be listened to.
    pub(crate) fn channel(&self, channel: &str) -> Result<(), Breach> {
        if self.prefix.covers_channel(channel) { Ok(()) } else { Err(Breach::Name) }
    }
}

/// A whole number in its one spelling.
fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number: &u64| number.to_string() == text)
}
