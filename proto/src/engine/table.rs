//! A table whose keys are never reused.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::num::NonZeroU32;

/// The key of an entry: its index, and how often that index was used before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    index: u32,
    generation: NonZeroU32,
}

/// The number of times that an index is used. With it, the number of a key is below 2^53, so that
/// JavaScript represents it exactly.
const GENERATIONS: u32 = 1 << 21;

impl Key {
    pub(super) const fn number(self) -> u64 {
        (self.generation.get() as u64) << 32 | self.index as u64
    }

    pub(super) fn from_number(number: u64) -> Option<Self> {
        let generation = NonZeroU32::new(u32::try_from(number >> 32).ok()?)?;
        let index = u32::try_from(number & u64::from(u32::MAX)).ok()?;
        Some(Self { index, generation })
    }
}

/// Entries by key. A key of a removed entry finds nothing.
#[derive(Clone, Debug)]
pub(super) struct Table<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Slot<T> {
    generation: NonZeroU32,
    /// In a box, so that a table which has been large keeps little memory.
    entry: Option<Box<T>>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Table<T> {
    pub(super) fn insert(&mut self, entry: T) -> Key {
        let entry = Some(Box::new(entry));
        if let Some(index) = self.free.pop()
            && let Some(slot) = self.slots.get_mut(index as usize)
        {
            slot.entry = entry;
            return Key { index, generation: slot.generation };
        }
        let index = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        self.slots.push(Slot { generation: NonZeroU32::MIN, entry });
        Key { index, generation: NonZeroU32::MIN }
    }

    pub(super) fn get(&self, key: Key) -> Option<&T> {
        let slot = self.slots.get(key.index as usize)?;
        slot.entry.as_deref().filter(|_| slot.generation == key.generation)
    }

    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.slots.get_mut(key.index as usize)?;
        slot.entry.as_deref_mut().filter(|_| slot.generation == key.generation)
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<T> {
        let slot = self.slots.get_mut(key.index as usize)?;
        if slot.generation != key.generation {
            return None;
        }
        let entry = slot.entry.take()?;
        // An index whose generations are used up is not used again.
        if let Some(next) = slot.generation.checked_add(1).filter(|next| next.get() < GENERATIONS) {
            slot.generation = next;
            self.free.push(key.index);
        }
        Some(*entry)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| {
            let key = Key { index: u32::try_from(index).ok()?, generation: slot.generation };
            Some((key, slot.entry.as_deref()?))
        })
    }

    /// The keys of the entries that match.
    pub(super) fn keys(&self, matches: impl Fn(&T) -> bool) -> Vec<Key> {
        self.iter().filter(|(_, entry)| matches(entry)).map(|(key, _)| key).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_removed_entry_finds_nothing_in_its_place() {
        let mut table = Table::default();
        let first = table.insert("first");
        assert_eq!(table.remove(first), Some("first"));
        let second = table.insert("second");
        assert_eq!(table.get(first), None);
        assert_eq!(table.remove(first), None);
        assert_eq!(table.get(second), Some(&"second"));
        assert_eq!(table.keys(|_| true), [second]);
    }

    #[test]
    fn the_number_of_a_key_identifies_it_and_is_exact_in_javascript() {
        let mut table = Table::default();
        let keys = ["first", "second"].map(|entry| table.insert(entry));
        table.remove(keys[1]);
        let third = table.insert("third");
        for key in [keys[0], keys[1], third] {
            assert_eq!(Key::from_number(key.number()), Some(key));
            assert!(key.number() < 1 << 53);
        }
        assert!(keys[0].number() != keys[1].number() && keys[1].number() != third.number());
        assert_eq!(Key::from_number(0), None, "no key has it");
        assert_eq!(Key::from_number(u64::MAX).unwrap().number(), u64::MAX);
    }

    #[test]
    fn an_index_whose_generations_are_used_up_is_not_used_again() {
        let mut table = Table::default();
        let mut key = table.insert(0);
        table.slots[0].generation = NonZeroU32::new(GENERATIONS - 2).unwrap();
        key.generation = table.slots[0].generation;
        table.remove(key);
        let last = table.insert(1);
        assert_eq!((last.index, last.generation.get()), (0, GENERATIONS - 1));
        assert_eq!(table.remove(last), Some(1));
        let next = table.insert(2);
        assert_eq!((next.index, next.generation.get()), (1, 1));
        assert_eq!(table.get(last), None);
    }
}
