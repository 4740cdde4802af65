//! How the keys and the arguments of a script are described.

use alloc::string::String;

use super::{ObjectKind, Right};
use crate::name::LockName;

/// The most names of one call: as many as a multi-lock has members.
pub(super) const NAMES_MAX: usize = 100;

/// How a key or a channel of a name is spelt.
pub(super) type Spell = fn(&LockName) -> String;

/// What stands in one place of KEYS.
#[derive(Clone, Copy)]
pub(super) enum Key {
    /// The name itself.
    Name,
    /// The latch of the owner.
    Latch,
    /// The latch of another owner: a previous one, or the same one's on the other side.
    OtherLatch,
    /// The record of the request.
    Record,
    /// What the owner's read hold lives for.
    ReadTimeout,
    /// What another's does.
    OtherReadTimeout,
    /// Of the name alone.
    Of(Spell),
}

/// What stands in one place of ARGV.
#[derive(Clone, Copy)]
pub(super) enum Arg {
    /// The owner, in one of these forms: with nothing behind it, or what marks a writer.
    Owner(&'static [&'static str]),
    /// Another owner.
    Other(&'static str),
    /// A lease; and how a hold without an end is written, where there is such.
    Lease(Option<&'static str>),
    /// A whole number up to this one.
    UpTo(u64),
    /// A whole number from 1 up to this one.
    Positive(u64),
    /// The constant that the library sends.
    Exactly(u64),
    /// A setting of a fair lock's queue, up to `max`. Only a caller with a full token may go
    /// outside of `scoped`.
    Setting { max: u64, scoped: (u64, u64) },
    /// The allowance for the clock skew of Redisson's clients, which lengthens a hold.
    PeerSkew,
    /// How long something is kept in milliseconds: from `min` up to ten years. 0 means without an
    /// end, and so does empty where that is accepted.
    Life { min: u64, or_empty: bool },
    /// A whole number that may be negative, up to Java's `int` in both directions.
    Int,
    /// One of these words.
    Is(&'static [&'static str]),
    /// A fencing token that is stored in a hold or in a fence.
    Stored,
    /// `f` or `x` for each name.
    Kinds,
    /// What a name spells.
    Of(Spell),
    /// The channel of each name.
    Channels,
    /// All that follow are ids of permits.
    Ids,
    /// All that follow are fields of values.
    Fields,
    /// The value of a guarded key: any text.
    Value,
    /// Empty, or this.
    Maybe(&'static Self),
}

/// The KEYS and ARGV of a script, and what its caller must be allowed to do.
pub(super) struct Layout {
    /// `None`: a record that belongs to objects of every kind.
    pub(super) kind: Option<ObjectKind>,
    /// `None`: any right will do.
    pub(super) right: Option<Right>,
    pub(super) keys: &'static [Key],
    /// Keys that are repeated for each name, the name first.
    pub(super) each: &'static [Key],
    /// Optional keys after all others.
    pub(super) more: &'static [Key],
    /// From ARGV 5 on.
    pub(super) args: &'static [Arg],
    /// How many of `args` are required.
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

    /// Whether a call may have this number of keys. Checked before any key is looked at, so that
    /// the work for a call is linear in its size.
    pub(super) fn allows_keys(&self, count: usize) -> bool {
        let Some(rest) = count.checked_sub(self.keys.len()) else { return false };
        if self.each.is_empty() {
            return rest == 0 || rest == self.more.len();
        }
        rest % self.each.len() == 0 && (1..=NAMES_MAX).contains(&(rest / self.each.len()))
    }
}
