//! Checks requests against the rules of a scoped token.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use edgelatch_proto::protocol::scope::{
    NOT_AFTER_AHEAD_MAX, ObjectKind, Prefix, Right, TOKEN_AHEAD_MAX, Touched, touched,
};
use edgelatch_proto::timing::LeaseTime;

use crate::limits::ClientKey;
use crate::scripts::script;

/// The tolerated clock skew between the gateway and Redis.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);
/// The largest value of a guarded key, in bytes.
const MAX_VALUE_BYTES: usize = 64 * 1024;
/// The most replicas that the library waits for after an acquisition, and the longest wait in
/// milliseconds.
const MAX_REPLICAS: u64 = 8;
const MAX_REPLICAS_WAIT_MS: u64 = 1000;

/// The names and rights of one scoped token.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    /// The prefix for each kind of object that it may be used for. No name begins with two of them.
    pub(super) prefixes: Vec<(ObjectKind, Prefix)>,
    pub(super) rights: BTreeSet<Right>,
    /// The names of objects that it may create without an end.
    pub(super) lasting: BTreeSet<String>,
    pub(super) max_lease: LeaseTime,
    pub(super) peer_skew: Duration,
    pub(super) expires_at: SystemTime,
    pub(super) client: ClientKey,
}

/// The rule that a request broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScopeViolation {
    Ahead,
    Call,
    Command,
    Lasting,
    Lease,
    Name,
    Path,
    Right(Right),
    Settings,
    Size,
    Skew,
}

impl ScopeViolation {
    /// The names of all rules.
    pub(crate) const RULES: [&str; 11] = [
        "ahead", "call", "command", "lasting", "lease", "name", "path", "right", "settings",
        "size", "skew",
    ];

    /// Returns the name of the rule, for metrics.
    pub(crate) fn rule(self) -> &'static str {
        match self {
            Self::Ahead => "ahead",
            Self::Call => "call",
            Self::Command => "command",
            Self::Lasting => "lasting",
            Self::Lease => "lease",
            Self::Name => "name",
            Self::Path => "path",
            Self::Right(_) => "right",
            Self::Settings => "settings",
            Self::Size => "size",
            Self::Skew => "skew",
        }
    }

    /// Returns the text for the client. It contains nothing of the request.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Ahead => "NOPERM the request reaches too far into the future for a scoped token",
            Self::Call => "NOPERM a scoped token makes only such calls as edgelatch makes",
            Self::Command => "NOPERM a scoped token runs nothing but edgelatch's own scripts",
            Self::Lasting => {
                "NOPERM an object without an end has to be named in this scoped token's `lasting`"
            }
            Self::Lease => "NOPERM the lease is longer than this scoped token allows",
            Self::Name => {
                "NOPERM the name does not begin with this scoped token's prefix for such objects"
            }
            Self::Path => "NOPERM a scoped token has no use for this path",
            Self::Right(Right::Hold) => "NOPERM this scoped token lacks the right `hold`",
            Self::Right(Right::Count) => "NOPERM this scoped token lacks the right `count`",
            Self::Right(Right::Manage) => "NOPERM this scoped token lacks the right `manage`",
            Self::Right(Right::Guard) => "NOPERM this scoped token lacks the right `guard`",
            Self::Right(Right::Force) => "NOPERM this scoped token lacks the right `force`",
            Self::Right(Right::Majority) => "NOPERM this scoped token lacks the right `majority`",
            Self::Right(_) => "NOPERM this scoped token lacks a right",
            Self::Settings => {
                "NOPERM a scoped token uses the default settings of a fair lock's queue"
            }
            Self::Size => "NOPERM a value of more than 65536 bytes is too large for a scoped token",
            Self::Skew => "NOPERM the clock skew is not that of this scoped token's `peerSkewMs`",
        }
    }
}

impl Scope {
    /// Returns when the token's rights end: its `exp` and the leeway.
    pub(crate) fn expires_at(&self) -> SystemTime {
        self.expires_at
    }

    /// Returns the client whose limits apply.
    pub(crate) fn client(&self) -> &ClientKey {
        &self.client
    }

    /// Checks a command, whose words are exactly those that Redis would receive. Returns the names
    /// that it uses.
    pub(crate) fn check_command(
        &self,
        words: &[&str],
        now: SystemTime,
    ) -> Result<Vec<String>, ScopeViolation> {
        let [verb, text, count, rest @ ..] = words else { return Err(ScopeViolation::Command) };
        let script = script(verb, text).ok_or(ScopeViolation::Command)?;
        let count = number(count).and_then(|count| usize::try_from(count).ok());
        let (keys, args) =
            count.and_then(|count| rest.split_at_checked(count)).ok_or(ScopeViolation::Call)?;
        let touched = touched(script, keys, args).ok_or(ScopeViolation::Call)?;
        self.check_objects(&touched)?;
        self.check_amounts(&touched, now)?;
        Ok(touched.names().map(str::to_owned).collect())
    }

    /// Checks that the objects of a call have allowed names, and that the token has the rights for
    /// it.
    fn check_objects(&self, touched: &Touched) -> Result<(), ScopeViolation> {
        let is_kind = |kind: ObjectKind| touched.kind.is_none_or(|wanted| wanted == kind);
        let mut prefixes = self.prefixes.iter().filter(|(kind, _)| is_kind(*kind));
        if !prefixes.any(|(_, prefix)| prefix.covers(touched)) {
            return Err(ScopeViolation::Name);
        }
        if let Some(right) = touched.right.filter(|right| !self.rights.contains(right)) {
            return Err(ScopeViolation::Right(right));
        }
        let is_listed = |name: &String| self.lasting.contains(name);
        if touched.lasting.iter().all(is_listed) { Ok(()) } else { Err(ScopeViolation::Lasting) }
    }

    /// Checks how long a call may exclude other clients, and what it leaves in Redis.
    fn check_amounts(&self, touched: &Touched, now: SystemTime) -> Result<(), ScopeViolation> {
        if touched.lease.is_some_and(|lease| lease > self.max_lease) {
            return Err(ScopeViolation::Lease);
        }
        if touched.peer_skew.is_some_and(|skew| skew != self.peer_skew) {
            return Err(ScopeViolation::Skew);
        }
        if touched.has_own_settings {
            return Err(ScopeViolation::Settings);
        }
        if touched.value_bytes > MAX_VALUE_BYTES {
            return Err(ScopeViolation::Size);
        }
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default() + CLOCK_TOLERANCE;
        let not_after = touched.not_after.map(Duration::from_millis);
        let is_late = not_after.is_some_and(|time| time > now + NOT_AFTER_AHEAD_MAX);
        // A fencing token is a time in microseconds. If Redis stored one far in the future, it
        // would refuse every later one.
        let token = touched.stores.map(|token| Duration::from_micros(token.as_u64()));
        let is_high = token.is_some_and(|time| time > now + TOKEN_AHEAD_MAX);
        if is_late || is_high { Err(ScopeViolation::Ahead) } else { Ok(()) }
    }

    /// Checks a command that follows an allowed one in a pipeline, where a `WAIT` is allowed too.
    /// Returns the names that it uses.
    pub(crate) fn check_following(
        &self,
        words: &[&str],
        now: SystemTime,
    ) -> Result<Vec<String>, ScopeViolation> {
        let within = |text: &str, max| number(text).is_some_and(|n| (1..=max).contains(&n));
        match words {
            [verb, replicas, ms]
                if verb.eq_ignore_ascii_case("WAIT")
                    && within(replicas, MAX_REPLICAS)
                    && within(ms, MAX_REPLICAS_WAIT_MS) =>
            {
                Ok(Vec::new())
            }
            words => self.check_command(words, now),
        }
    }

    /// Checks a channel that a client subscribes to.
    pub(crate) fn check_channel(&self, channel: &str) -> Result<(), ScopeViolation> {
        let covers = |(_, prefix): &(ObjectKind, Prefix)| prefix.covers_channel(channel);
        if self.prefixes.iter().any(covers) { Ok(()) } else { Err(ScopeViolation::Name) }
    }
}

/// Parses a whole number without leading zeros or a sign.
fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number: &u64| number.to_string() == text)
}
