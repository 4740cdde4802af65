//! What a call touches and needs, for a gateway whose scoped tokens allow calls about some names
//! only.
//!
//! Nothing is guessed. A call is read by the layout of its script, each key is spelt anew from the
//! name that was found and has to be that, and each argument has to be one that this library could
//! have sent. Any other call is refused.

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

/// How far ahead of Redis' clock a fencing token may be that a call brings along. The scripts check
/// it by Redis' clock.
pub const TOKEN_AHEAD_MAX: Duration = Duration::from_secs(60);

/// How far ahead of Redis' clock the not-after of a call can be: the longest wait under one request
/// id, and its horizon.
pub const NOT_AFTER_AHEAD_MAX: Duration = ROUND_MAX.saturating_add(HORIZON);

/// The skew of Redisson's clocks that calls allow for unless the client sets another: 1 s.
pub const PEER_SKEW_DEFAULT: Duration = PeerSkew::DEFAULT.get();

/// The kinds of objects whose keys can be told apart by their names only: Redis has a string under
/// the name of all but the locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ObjectKind {
    /// Locks of all sorts: plain, spin, fair, fenced, read-write, group, and the members of
    /// multi-locks and red locks. Their scripts tell each other's hashes apart.
    Lock,
    /// Semaphores.
    Semaphore,
    /// Permit-expirable semaphores.
    Permits,
    /// Count-down latches.
    Latch,
    /// Keys of the caller's own that a guard watches over.
    Guard,
}

/// What a call needs a right for.
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
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Hold, Self::Count, Self::Manage, Self::Guard, Self::Force, Self::Majority];

    /// The name by which a token has it.
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

    /// Reads a name.
    ///
    /// # Errors
    /// [`InvalidOption`] for a name that no right has.
    pub fn parse(name: &str) -> Result<Self, InvalidOption> {
        let found = Self::ALL.into_iter().find(|right| right.name() == name);
        let accepted = "`hold`, `count`, `manage`, `guard`, `force` or `majority`";
        found.ok_or_else(|| InvalidOption::new("right", accepted))
    }
}

/// What one call touches and needs.
#[derive(Clone, PartialEq, Eq)]
pub struct Touched {
    /// For each object, the names that its keys may belong to: several where the call leaves open
    /// which.
    subjects: Vec<Vec<String>>,
    /// The kind of the objects; `None` for the cancellation of a request, which belongs to no kind.
    pub kind: Option<ObjectKind>,
    /// The right that the call needs; `None` if any will do.
    pub right: Option<Right>,
    /// The lease that the call asks for, if any.
    pub lease: Option<LeaseTime>,
    /// The skew of Redisson's clocks that the call allows for. It lengthens what other clients wait
    /// for.
    pub peer_skew: Option<Duration>,
    /// Whether the settings of a fair lock's queue are others than a client sends by default.
    pub has_own_settings: bool,
    /// The objects that may stay without an end, or for more than a day, after this call.
    pub lasting: Vec<String>,
    /// The size of the value that is written to a guarded key, in bytes.
    pub value_bytes: usize,
    /// The end of the time in which Redis may run the call, by Redis' clock in milliseconds. The
    /// call is remembered until then.
    pub not_after: Option<u64>,
    /// The fencing token that the call stores.
    pub stores: Option<FencingToken>,
}

/// Not the names.
impl core::fmt::Debug for Touched {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Touched").field("lease", &self.lease).finish_non_exhaustive()
    }
}

impl Touched {
    /// The names of locks and other objects, and the guarded keys. Of two that share the keys which
    /// were seen (`a` and `{a}`, when the call does not say the first key) the one without braces.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.subjects.iter().filter_map(|names| names.first()).map(String::as_str)
    }
}

/// The names with a common beginning.
#[derive(Clone, PartialEq, Eq)]
pub struct Prefix(String);

/// Not the text: it is the beginning of names.
impl core::fmt::Debug for Prefix {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Prefix(..)")
    }
}

impl Prefix {
    /// Checks a beginning: 1 to 512 bytes of UTF-8 without control characters, which is not one of
    /// keys that no name has.
    ///
    /// Names begin with it letter by letter, so it should end with a separator: `app:` has not
    /// `apple`.
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

    /// Whether names with one prefix share keys with names that have the other. A brace in front is
    /// not compared: the permits of `app:x` are kept under `{app:x}:timeout`, which begins with
    /// `{app:`.
    pub fn overlaps(&self, other: &Self) -> bool {
        let (a, b) = (self.0.trim_start_matches('{'), other.0.trim_start_matches('{'));
        a.starts_with(b) || b.starts_with(a)
    }

    /// Whether everything that a call touches belongs to names with this beginning.
    pub fn covers(&self, touched: &Touched) -> bool {
        touched.subjects.iter().all(|names| names.iter().any(|name| self.has(name)))
    }

    /// Whether a channel belongs to a name with this beginning.
    pub fn covers_channel(&self, channel: &str) -> bool {
        key::channel_names(channel).iter().any(|name| self.has(name.as_str()))
    }

    /// A name may be spelt like a key of another one: `{a}:timeout` is where the permits of `a` are
    /// kept.
    fn has(&self, name: &str) -> bool {
        let others = key::beside(name);
        name.starts_with(&self.0)
            && (others.is_empty() || others.iter().any(|other| other.as_str().starts_with(&self.0)))
    }
}
