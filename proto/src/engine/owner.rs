//! Re-entrance of explicit owners, counted in the client: Redis sees one hold with a count of 1.

use alloc::string::String;
use alloc::vec::Vec;

use super::hold::Hold;
use super::table::Table;
use super::{Engine, HoldId, OpId, OwnerHandle};
use crate::error::AcquireError;
use crate::name::LockName;
use crate::time::Instant;

/// Identifies a hold of an owner. Kinds of locks that exclude each other under one name have the
/// same key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnerKey {
    /// The gateway id and the lock name of each part.
    pub(super) names: Vec<(String, LockName)>,
    pub(super) side: Side,
}

/// The part of a name that a lock locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Side {
    /// The whole name.
    Whole,
    /// The read side.
    Read,
    /// The write side.
    Write,
    /// The shared mode of a fair read-write lock.
    Shared,
    /// Its exclusive mode.
    Exclusive,
    /// Some values of a group, as their fields in Redis.
    Values(Vec<String>),
}

impl OwnerKey {
    /// The key of the other side or mode of a read-write lock; `None` for other kinds.
    fn other_side(&self) -> Option<Self> {
        let side = match self.side {
            Side::Read => Side::Write,
            Side::Write => Side::Read,
            Side::Shared => Side::Exclusive,
            Side::Exclusive => Side::Shared,
            Side::Whole | Side::Values(_) => return None,
        };
        Some(Self { names: self.names.clone(), side })
    }
}

/// The holds of one owner.
#[derive(Clone, Debug, Default)]
pub(super) struct Owner {
    /// Searched linearly with each acquisition: an owner has few holds.
    by_key: Vec<(OwnerKey, Entry)>,
    /// The acquisitions that wait for another acquisition of this owner.
    pub(super) waiting: Vec<OpId>,
}

#[derive(Clone, Copy, Debug)]
enum Entry {
    /// An acquisition is in progress; other acquisitions of this owner wait for its result.
    Acquiring,
    /// A hold, which may have ended.
    Held(HoldId),
}

/// The way in which an owner deals with a new acquisition.
pub(super) enum Registration {
    /// The owner already has a hold; its count was raised by one.
    Shared(HoldId),
    /// The acquisition is registered and runs. With it, the owner's hold of the write side, if the
    /// acquisition is for the read side.
    Proceed(Option<HoldId>),
    /// Another acquisition of the same lock by the owner is in progress.
    InProgress,
    /// The acquisition cannot succeed while the owner's present hold lasts.
    Rejected(AcquireError),
}

impl Owner {
    /// Registers an acquisition of `key`, unless the owner holds it or acquires it already.
    pub(super) fn register(
        &mut self,
        key: &OwnerKey,
        reenters: bool,
        holds: &mut Table<Hold>,
        now: Instant,
    ) -> Registration {
        // Removes the entries of holds that have been dropped.
        self.by_key.retain(
            |(_, entry)| !matches!(entry, Entry::Held(hold) if holds.get(hold.0).is_none()),
        );
        match self.find(key) {
            Some(Entry::Acquiring) => return Registration::InProgress,
            Some(Entry::Held(id)) => {
                if let Some(hold) = holds.get_mut(id.0).filter(|hold| hold.is_usable()) {
                    if !reenters {
                        return Registration::Rejected(AcquireError::HeldAlready);
                    }
                    if hold.add_lease(now) {
                        return Registration::Shared(id);
                    }
                }
            }
            None => {}
        }
        let other_side = key.other_side().and_then(|other| self.usable_hold(&other, holds));
        if other_side.is_some() {
            match key.side {
                Side::Write | Side::Exclusive => {
                    return Registration::Rejected(AcquireError::SelfDeadlock);
                }
                // A fair read-write lock has no reads inside a write.
                Side::Shared => return Registration::Rejected(AcquireError::HeldAlready),
                Side::Whole | Side::Read | Side::Values(_) => {}
            }
        }
        self.put(key, Some(Entry::Acquiring));
        Registration::Proceed(other_side)
    }

    /// Ends the registered acquisition of this key, which has led to this hold or to none.
    pub(super) fn unregister(&mut self, key: &OwnerKey, hold: Option<HoldId>) {
        self.put(key, hold.map(Entry::Held));
    }

    /// The hold under `key`, if it has not ended.
    fn usable_hold(&self, key: &OwnerKey, holds: &Table<Hold>) -> Option<HoldId> {
        match self.find(key)? {
            Entry::Held(id) => holds.get(id.0).filter(|hold| hold.is_usable()).map(|_| id),
            Entry::Acquiring => None,
        }
    }

    fn find(&self, key: &OwnerKey) -> Option<Entry> {
        self.by_key.iter().find(|(other, _)| other == key).map(|(_, entry)| *entry)
    }

    fn put(&mut self, key: &OwnerKey, entry: Option<Entry>) {
        self.by_key.retain(|(other, _)| other != key);
        self.by_key.extend(entry.map(|entry| (key.clone(), entry)));
    }
}

impl Engine {
    /// Creates an owner without holds.
    pub fn new_owner(&mut self) -> OwnerHandle {
        OwnerHandle(self.owners.insert(Owner::default()))
    }

    /// Forgets an owner: its acquisitions are re-entrant no more.
    pub fn forget_owner(&mut self, owner: OwnerHandle) {
        self.owners.remove(owner.0);
    }
}
