//! Re-entrance of explicit owners, counted in the client: Redis sees one hold with a count of 1.

use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::future::poll_fn;
use core::pin::Pin;
use core::task::Poll;
use std::sync::{Mutex, PoisonError};

use super::hold::Hold;
use super::lock::Lock;
use super::notice::{First, Notice, first};
use super::options::Terms;
use crate::error::AcquireError;
use crate::host::Host;
use crate::transport::Transport;
use edgelatch_proto::machine::wait_over;
use edgelatch_proto::name::LockName;
use edgelatch_proto::time::Instant;

/// Identifies a hold of an owner. Kinds of locks that exclude each other under one name have the
/// same key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// The gateway id and the lock name of each part.
    pub(super) names: Vec<(String, LockName)>,
    pub(super) side: Side,
}

/// The part of a name that a lock takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The whole name.
    Whole,
    /// The read side.
    Read,
    /// The write side.
    Write,
    /// Some values of a group, as their fields in Redis.
    Values(Vec<String>),
}

impl Key {
    /// The key of the other side of a read-write lock; `None` for other kinds.
    fn other_side(&self) -> Option<Self> {
        let side = match self.side {
            Side::Read => Side::Write,
            Side::Write => Side::Read,
            Side::Whole | Side::Values(_) => return None,
        };
        Some(Self { names: self.names.clone(), side })
    }
}

/// The holds of one owner.
#[derive(Default)]
pub(super) struct Holds {
    /// Searched linearly with each acquisition: an owner has few holds.
    by_key: Mutex<Vec<(Key, Entry)>>,
    notice: Notice,
}

enum Entry {
    /// An acquisition is in progress; other acquisitions of this owner wait for its result.
    Acquiring,
    /// A hold, which may have ended.
    Held(Weak<Hold>),
}

impl Holds {
    /// Returns the owner's existing hold with its count raised by one, or acquires a new one. While
    /// another acquisition of the owner is in progress, waits for its result.
    pub(super) async fn acquire<T: Transport, H: Host>(
        &self,
        lock: &Lock<T, H>,
        terms: Terms,
        mut cancel: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Arc<Hold>, AcquireError> {
        if poll_fn(|cx| Poll::Ready(cancel.as_mut().poll(cx).is_ready())).await {
            return Err(AcquireError::Cancelled { held_at_most: None });
        }
        let host = lock.host();
        let key = &lock.inner().key;
        let wait_over = wait_over(terms.patience, host.now());
        loop {
            match self.enter(key, lock.inner().reenters, host.now()) {
                Entered::Shared(hold) => return Ok(hold),
                Entered::Never(error) => return Err(error),
                Entered::Free(turn) => {
                    let terms = terms.with_wait(wait_over.map(|over| host.now().until(over)));
                    let hold = lock.take(terms, turn.writer.as_deref(), cancel).await?;
                    turn.won(&hold);
                    return Ok(hold);
                }
                Entered::Busy => {}
            }
            let settled = self.notice.until(|| (!self.is_acquiring(key)).then_some(()));
            let over = async {
                match wait_over {
                    Some(over) => host.sleep_until(over).await,
                    None => core::future::pending().await,
                }
            };
            match first(cancel.as_mut(), first(settled, over)).await {
                First::A(()) => return Err(AcquireError::Cancelled { held_at_most: None }),
                First::B(_) if wait_over.is_some_and(|over| host.now().has_reached(over)) => {
                    return Err(AcquireError::Busy { remaining: None });
                }
                First::B(_) => {}
            }
        }
    }
}

enum Entered<'a> {
    /// The owner already has a hold; its count was raised by one.
    Shared(Arc<Hold>),
    /// This acquisition has the turn to acquire the lock.
    Free(Turn<'a>),
    /// Another acquisition of the same owner is in progress.
    Busy,
    /// The acquisition cannot succeed while the owner's present hold lasts.
    Never(AcquireError),
}

impl Holds {
    fn by_key<R>(&self, access: impl FnOnce(&mut Vec<(Key, Entry)>) -> R) -> R {
        access(&mut self.by_key.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_acquiring(&self, key: &Key) -> bool {
        self.by_key(|holds| matches!(find(holds, key), Some(Entry::Acquiring)))
    }

    fn enter(&self, key: &Key, reenters: bool, now: Instant) -> Entered<'_> {
        self.by_key(|holds| {
            // Removes the entries of holds that have been dropped.
            holds.retain(
                |(_, entry)| !matches!(entry, Entry::Held(hold) if hold.strong_count() == 0),
            );
            match find(holds, key) {
                Some(Entry::Acquiring) => return Entered::Busy,
                Some(Entry::Held(hold)) => {
                    let hold = hold.upgrade().filter(|hold| hold.stands());
                    match hold {
                        Some(_) if !reenters => return Entered::Never(AcquireError::HeldAlready),
                        Some(hold) if hold.enter(now) => return Entered::Shared(hold),
                        _ => {}
                    }
                }
                None => {}
            }
            let beside = key.other_side().and_then(|other| standing(holds, &other));
            if key.side == Side::Write && beside.is_some() {
                return Entered::Never(AcquireError::SelfDeadlock);
            }
            put(holds, key, Some(Entry::Acquiring));
            Entered::Free(Turn { holds: self, key: key.clone(), writer: beside })
        })
    }
}

/// The hold under `key`, if it has not ended.
fn standing(holds: &[(Key, Entry)], key: &Key) -> Option<Arc<Hold>> {
    match find(holds, key)? {
        Entry::Held(hold) => hold.upgrade().filter(|hold| hold.stands()),
        Entry::Acquiring => None,
    }
}

fn find<'a>(holds: &'a [(Key, Entry)], key: &Key) -> Option<&'a Entry> {
    holds.iter().find(|(other, _)| other == key).map(|(_, entry)| entry)
}

fn put(holds: &mut Vec<(Key, Entry)>, key: &Key, entry: Option<Entry>) {
    holds.retain(|(other, _)| other != key);
    holds.extend(entry.map(|entry| (key.clone(), entry)));
}

/// The turn of one acquisition to acquire a lock for its owner. Dropping it, because the
/// acquisition failed or was dropped, lets the next acquisition of this owner proceed.
struct Turn<'a> {
    holds: &'a Holds,
    key: Key,
    /// The owner's hold of the write side, if this acquisition is for the read side.
    writer: Option<Arc<Hold>>,
}

impl Turn<'_> {
    fn won(self, hold: &Arc<Hold>) {
        if let Some(writer) = &self.writer {
            writer.took_inside(hold);
        }
        let held = Entry::Held(Arc::downgrade(hold));
        self.holds.by_key(|holds| put(holds, &self.key, Some(held)));
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.holds.by_key(|holds| {
            if matches!(find(holds, &self.key), Some(Entry::Acquiring)) {
                put(holds, &self.key, None);
            }
        });
        self.holds.notice.notify();
    }
}
