//! The keys of what an engine contains.

use super::table::Key;

/// Identifies an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpId(pub(super) Key);

/// Identifies a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HoldId(pub(super) Key);

/// Identifies an owner, whose acquisitions are re-entrant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnerHandle(pub(super) Key);

/// Identifies a request under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TransmitId(pub(super) Key);

/// Identifies a stream that is open or being opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId {
    pub(super) subscription: Key,
    /// The number of streams that the subscription has opened before.
    pub(super) number: u32,
}

/// The index of a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndpointId(pub u32);

/// Identifies the operations that may share I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScopeId(pub(super) u32);

impl ScopeId {
    /// The scope of a whole program.
    pub const GLOBAL: Self = Self(0);

    /// The number of the scope.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The scope with this number.
    pub const fn from_number(number: u32) -> Self {
        Self(number)
    }
}

impl HoldId {
    /// The number of the hold, below 2^53.
    pub const fn number(self) -> u64 {
        self.0.number()
    }

    /// The hold with this number; `None` if no hold has it.
    pub fn from_number(number: u64) -> Option<Self> {
        Key::from_number(number).map(Self)
    }
}

impl TransmitId {
    /// The number of the request, below 2^53.
    pub const fn number(self) -> u64 {
        self.0.number()
    }

    /// The request with this number; `None` if no request has it.
    pub fn from_number(number: u64) -> Option<Self> {
        Key::from_number(number).map(Self)
    }
}

impl StreamId {
    /// The numbers of the subscription, below 2^53, and of the stream within it.
    pub const fn numbers(self) -> (u64, u32) {
        (self.subscription.number(), self.number)
    }

    /// The stream with these numbers; `None` if no stream has them.
    pub fn from_numbers(subscription: u64, number: u32) -> Option<Self> {
        Key::from_number(subscription).map(|subscription| Self { subscription, number })
    }
}
