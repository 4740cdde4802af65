//! Descriptions of the keys and the arguments of a script.

use alloc::string::String;

use super::{ObjectKind, Right};
use crate::name::LockName;

/// The largest number of names in one call: the members of a multi-lock.
pub(super) const NAMES_MAX: usize = 100;

/// A function that builds a key or a channel of a name.
pub(super) type KeyOf = fn(&LockName) -> String;

/// The kind of one key in KEYS.
#[derive(Clone, Copy)]
pub(super) enum Key {
    /// The name itself.
    Name,
    /// The latch of the owner.
    Latch,
    /// The latch of another owner: a previous one, or the same client's on the other side.
    OtherLatch,
    /// The record of the request.
    Record,
    /// The timeout key of the owner's read hold.
    ReadTimeout,
    /// The timeout key of another owner's read hold.
    OtherReadTimeout,
    /// A key that only the name determines.
    Of(KeyOf),
}

/// The kind of one argument in ARGV.
#[derive(Clone, Copy)]
pub(super) enum Arg {
    /// The owner, with one of these suffixes: none, or a writer's.
    Owner(&'static [&'static str]),
    /// Another owner, with this suffix.
    Other(&'static str),
    /// The owner as a member of a fair read-write lock, in one of these modes.
    Member(&'static [char]),
    /// Another owner as such a member, in any mode.
    OtherMember,
    /// A lease, or this text for a hold without an end.
    Lease(Option<&'static str>),
    /// A whole number up to this value.
    UpTo(u64),
    /// A whole number from 1 to this value.
    Positive(u64),
    /// The constant that the library sends.
    Exactly(u64),
    /// A setting of a fair lock's queue, up to `max`. Only a caller with a full token may go
    /// outside of `scoped`.
    Setting { max: u64, scoped: (u64, u64) },
    /// The tolerated clock skew of Redisson's clients, which lengthens a hold.
    PeerSkew,
    /// A life in milliseconds: from `min` to ten years. 0 means without an end, and so does an
    /// empty text if `or_empty`.
    Life { min: u64, or_empty: bool },
    /// A whole number that may be negative, up to Java's `int` in both directions.
    Int,
    /// One of these words.
    Is(&'static [&'static str]),
    /// A fencing token that is stored in a hold or in a fence.
    Stored,
    /// `f` or `x` for each name.
    Kinds,
    /// A text that the name determines.
    Of(KeyOf),
    /// The channel of each name.
    Channels,
    /// Ids of permits, to the end of ARGV.
    Ids,
    /// Fields of values, to the end of ARGV.
    Fields,
    /// The value of a guarded key: any text.
    Value,
    /// This argument, or an empty text.
    Maybe(&'static Self),
}

/// The KEYS and ARGV of a script, and the right that its caller needs.
pub(super) struct Layout {
    /// `None` for records, which belong to objects of every kind.
    pub(super) kind: Option<ObjectKind>,
    /// `None` if any right is enough.
    pub(super) right: Option<Right>,
    pub(super) keys: &'static [Key],
    /// Keys that are repeated for each name, the name first.
    pub(super) each: &'static [Key],
    /// Optional keys after all others.
    pub(super) more: &'static [Key],
    /// The arguments from ARGV 5 on.
    pub(super) args: &'static [Arg],
    /// The number of required `args`.
    pub(super) min_args: usize,
    /// Whether the object may be created without an end.
    pub(super) lasting: bool,
}

impl Layout {
    pub(super) const fn new(keys: &'static [Key], args: &'static [Arg]) -> Self {
        let (kind, right) = (None, Some(Right::Hold));
        let min_args = args.len();
        Self { kind, right, keys, each: &[], more: &[], args, min_args, lasting: false }
    }

    pub(super) const fn of(self, kind: ObjectKind) -> Self {
        Self { kind: Some(kind), ..self }
    }

    pub(super) const fn right(self, right: Option<Right>) -> Self {
        Self { right, ..self }
    }

    pub(super) const fn each(self, each: &'static [Key]) -> Self {
        Self { each, ..self }
    }

    pub(super) const fn more(self, more: &'static [Key]) -> Self {
        Self { more, ..self }
    }

    pub(super) const fn min_args(self, min_args: usize) -> Self {
        Self { min_args, ..self }
    }

    pub(super) const fn lasting(self) -> Self {
        Self { lasting: true, ..self }
    }

    /// Whether a call may have this number of keys. Checked before the keys are read, so that the
    /// work for a call is linear in its size.
    pub(super) fn allows_keys(&self, count: usize) -> bool {
        let Some(rest) = count.checked_sub(self.keys.len()) else { return false };
        if self.each.is_empty() {
            return rest == 0 || rest == self.more.len();
        }
        rest % self.each.len() == 0 && (1..=NAMES_MAX).contains(&(rest / self.each.len()))
    }
}
