//! What a call touches: for a gateway that lets somebody call about some names only.
//!
//! Nothing is guessed. A call is read by the layout of its script, each key is spelt anew from the name that was found and has to
//! be that, and each argument has to be one that this library could have sent. So whatever is not understood is touched by nobody.

mod layout;
mod read;
mod tables;

use alloc::string::String;
use alloc::vec::Vec;

use super::key;
use crate::error::InvalidOption;
use crate::name::LockName;
use crate::timing::LeaseTime;

pub use read::touched;

/// What one call is about.
#[derive(Clone, PartialEq, Eq)]
pub struct Touched {
    /// What it touches: each may be read as these names or guarded keys, which share the keys that were seen.
    subjects: Vec<Vec<String>>,
    /// The lease that it asks for, if it asks for one.
    pub lease: Option<LeaseTime>,
    /// Whether it ends what others hold.
    pub forces: bool,
    /// Until when it may be done by Redis' clock, in milliseconds; and so for how long it is remembered.
    pub not_after: Option<u64>,
    /// The fencing token that it stores in a hold, if it does not leave that to the script.
    pub stores: Option<u64>,
}

/// Not the names.
impl core::fmt::Debug for Touched {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Touched").field("lease", &self.lease).finish_non_exhaustive()
    }
}

impl Touched {
    /// The names of locks and other objects, and the guarded keys. Of two that share the keys which were seen (`a` and `{a}`, when
    /// the call does not say the first key) the one without braces.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.subjects.iter().filter_map(|names| names.first()).map(String::as_str)
    }
}

/// The names that begin in one way.
#[derive(Clone, PartialEq, Eq)]
pub struct Prefix(String);

/// Not the text: it is the beginning of names.
impl core::fmt::Debug for Prefix {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Prefix(..)")
    }
}

impl Prefix {
    /// Checks a beginning: 1 to 512 bytes of UTF-8 without control characters, which is not one of keys that no name has.
    ///
    /// Names begin with it letter by letter, so it should end with a separator: `app:` has not `apple`.
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

    /// Whether everything that a call touches belongs to names with this beginning.
    pub fn covers(&self, touched: &Touched) -> bool {
        touched.subjects.iter().all(|names| names.iter().any(|name| self.has(name)))
    }

    /// Whether a channel belongs to a name with this beginning.
    pub fn covers_channel(&self, channel: &str) -> bool {
        key::channel_names(channel).iter().any(|name| self.has(name.as_str()))
    }

    /// A name may be spelt like a key of another one: `{a}:timeout` is where the permits of `a` are kept.
    fn has(&self, name: &str) -> bool {
        let others = key::beside(name);
        name.starts_with(&self.0)
            && (others.is_empty() || others.iter().any(|other| other.as_str().starts_with(&self.0)))
    }
}
