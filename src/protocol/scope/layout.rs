//! How the keys and the arguments of a script are described.

use alloc::string::String;

use crate::name::LockName;

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
    /// A whole number that may be negative, up to Java's `int` in both directions.
    Int,
    /// One of these words.
    Is(&'static [&'static str]),
    /// A fencing token that is stored in a hold.
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
    /// Anything.
    Text,
    /// Empty, or this.
    Maybe(&'static Self),
}

/// What a script takes.
pub(super) struct Layout {
    pub(super) keys: &'static [Key],
    /// What follows once for each name, the name first.
    pub(super) each: &'static [Key],
    /// What follows, or does not.
    pub(super) more: &'static [Key],
    /// From ARGV 5 on.
    pub(super) args: &'static [Arg],
    /// How many of these have to be there.
    pub(super) least: usize,
    /// Whether it ends what others hold.
    pub(super) forces: bool,
}

impl Layout {
    pub(super) const fn new(keys: &'static [Key], args: &'static [Arg]) -> Self {
        Self { keys, each: &[], more: &[], args, least: args.len(), forces: false }
    }

    pub(super) const fn each(self, each: &'static [Key]) -> Self {
        Self { each, ..self }
    }

    pub(super) const fn more(self, more: &'static [Key]) -> Self {
        Self { more, ..self }
    }

    pub(super) const fn least(self, least: usize) -> Self {
        Self { least, ..self }
    }

    pub(super) const fn forcing(self) -> Self {
        Self { forces: true, ..self }
    }
}
