//! Finds the names that a call touches and the right that it needs, for a gateway whose scoped
//! tokens allow calls about some names only.
//!
//! Nothing is guessed. A call is parsed by the layout of its script; each key must equal the one
//! that its name determines; and each argument must be one that this library could have sent. Any
//! other call is refused.

mod layout;
mod read;
mod tables;

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::key;
use crate::error::InvalidOption;
use crate::name::{FencingToken, LockName};
use crate::timing::{HORIZON, LeaseTime, PeerSkew, ROUND_MAX};

pub use read::touched;

/// The furthest that a fencing token of a call may be ahead of Redis' clock. The scripts check it
/// by Redis' clock.
pub const TOKEN_AHEAD_MAX: Duration = Duration::from_secs(60);

/// The furthest that the not-after of a call may be ahead of Redis' clock: the longest wait under
/// one request id, and its horizon.
pub const NOT_AFTER_AHEAD_MAX: Duration = ROUND_MAX.saturating_add(HORIZON);

/// The default skew of Redisson's clocks that calls allow for: 1 s.
pub const PEER_SKEW_DEFAULT: Duration = PeerSkew::DEFAULT.get();

/// The kinds of objects whose keys only their names distinguish: all kinds but locks store a string
/// under the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ObjectKind {
    /// Locks of all sorts: plain, spin, fair, fenced, read-write, group, and the members of
    /// multi-locks and red locks. Their scripts distinguish each other's hashes.
    Lock,
    /// Semaphores.
    Semaphore,
    /// Permit-expirable semaphores.
    Permits,
    /// Count-down latches.
    Latch,
    /// Guarded keys of the caller's own.
    Guard,
}

/// The rights that calls may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Right {
    /// Acquire, renew, release, wait and inspect.
    Hold,
    /// Count a count-down latch down.
    Count,
    /// Set, add and drain permits; set and delete count-down latches.
    Manage,
    /// Write to guarded keys, and read their newest token.
    Guard,
    /// End holds of other owners.
    Force,
    /// Store a fencing token in a hold, as the nodes of a red lock do.
    Majority,
}

impl Right {
    /// All rights.
    pub const ALL: [Self; 6] =
        [Self::Hold, Self::Count, Self::Manage, Self::Guard, Self::Force, Self::Majority];

    /// The right's name in a token.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Count => "count",
            Self::Manage => "manage",
            Self::Guard => "guard",
            Self::Force => "force",
            Self::Majority => "majority",
        }
    }

    /// Parses the name of a right.
    ///
    /// # Errors
    /// [`InvalidOption`] for a name that no right has.
    pub fn parse(name: &str) -> Result<Self, InvalidOption> {
        let found = Self::ALL.into_iter().find(|right| right.name() == name);
        let accepted = "`hold`, `count`, `manage`, `guard`, `force` or `majority`";
        found.ok_or_else(|| InvalidOption::new("right", accepted))
    }
}

/// The names that one call touches, and the rights and amounts that it needs.
#[derive(Clone, PartialEq, Eq)]
pub struct Touched {
    /// For each object, the names that its keys may belong to: several if the call does not
    /// determine one.
    subjects: Vec<Vec<String>>,
    /// The kind of the objects; `None` for the cancellation of a request, which belongs to no kind.
    pub kind: Option<ObjectKind>,
    /// The right that the call needs; `None` if any will do.
    pub right: Option<Right>,
    /// The requested lease, if any.
    pub lease: Option<LeaseTime>,
    /// The skew of Redisson's clocks that the call allows for. It lengthens the waits of other
    /// clients.
    pub peer_skew: Option<Duration>,
    /// Whether a setting of a queue is beyond a client's defaults.
    pub has_own_settings: bool,
    /// The objects that may stay without an end, or for more than a day, after this call.
    pub lasting: Vec<String>,
    /// The size of the value for a guarded key, in bytes.
    pub value_bytes: usize,
    /// The not-after of the call, by Redis' clock in milliseconds. Redis remembers the call until
    /// then.
    pub not_after: Option<u64>,
    /// The fencing token that the call stores, if any.
    pub stores: Option<FencingToken>,
}

/// Omits the names.
impl core::fmt::Debug for Touched {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Touched").field("lease", &self.lease).finish_non_exhaustive()
    }
}

impl Touched {
    /// The names of locks and other objects, and the guarded keys. If two names share the keys of
    /// the call (`a` and `{a}`, when the call does not contain the first key), returns the one
    /// without braces.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.subjects.iter().filter_map(|names| names.first()).map(String::as_str)
    }
}

/// A common beginning of names.
#[derive(Clone, PartialEq, Eq)]
pub struct Prefix(String);

/// Omits the text: it is the beginning of names.
impl core::fmt::Debug for Prefix {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Prefix(..)")
    }
}

impl Prefix {
    /// Checks a prefix: 1 to 512 bytes of UTF-8 without control characters, and no beginning of the
    /// library's or Redisson's own keys.
    ///
    /// Names are compared byte by byte, so a prefix should end with a separator: `app:` does not
    /// cover `apple`.
    ///
    /// # Errors
    /// [`InvalidOption`] for any other text.
    pub fn new(text: &str) -> Result<Self, InvalidOption> {
        let fits = (1..=LockName::BYTES_MAX).contains(&text.len());
        let taken = text.starts_with("redisson_") || text.starts_with("el:");
        if !fits || taken || text.chars().any(char::is_control) {
            return Err(InvalidOption::new(
                "prefix",
                "1 to 512 bytes of UTF-8 without control characters, not beginning with `redisson_` or `el:`",
            ));
        }
        Ok(Self(text.into()))
    }

    /// Whether names with one prefix share keys with names that have the other. Leading braces are
    /// ignored: the permits of `app:x` are kept under `{app:x}:timeout`, which begins with `{app:`.
    pub fn overlaps(&self, other: &Self) -> bool {
        let (a, b) = (self.0.trim_start_matches('{'), other.0.trim_start_matches('{'));
        a.starts_with(b) || b.starts_with(a)
    }

    /// Whether all objects that a call touches have names with this prefix.
    pub fn covers(&self, touched: &Touched) -> bool {
        touched.subjects.iter().all(|names| names.iter().any(|name| self.has(name)))
    }

    /// Whether a channel belongs to a name with this prefix.
    pub fn covers_channel(&self, channel: &str) -> bool {
        key::channel_names(channel).iter().any(|name| self.has(name.as_str()))
    }

    /// Whether a name has this prefix. A name may equal a key of another one, which must have the
    /// prefix as well: the permits of `a` are kept under `{a}:timeout`.
    fn has(&self, name: &str) -> bool {
        let others = key::beside(name);
        name.starts_with(&self.0)
            && (others.is_empty() || others.iter().any(|other| other.as_str().starts_with(&self.0)))
    }
}
