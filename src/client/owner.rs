//! Re-entry, asked for expressly and counted here: Redis sees one hold of count one.

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
use crate::machine::wait_over;
use crate::name::LockName;
use crate::time::Instant;
use crate::transport::Transport;

/// What an owner may hold once: kinds that exclude each other under one name are one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// Of each part: its gateway and its name.
    pub(super) names: Vec<(String, LockName)>,
    pub(super) side: Side,
}

/// Which side of a name is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// All of it.
    Whole,
    /// A reader's.
    Read,
    /// A writer's.
    Write,
    /// Some values of a group, as their fields.
    Values(Vec<String>),
}

impl Key {
    /// The other side of a read-write lock.
    fn other_side(&self) -> Option<Self> {
        let side = match self.side {
            Side::Read => Side::Write,
            Side::Write => Side::Read,
            Side::Whole | Side::Values(_) => return None,
        };
        Some(Self { names: self.names.clone(), side })
    }
}

/// What one owner holds.
#[derive(Default)]
pub(super) struct Holds {
    /// An owner has a few, and looks through all of them whenever it takes another.
    by_key: Mutex<Vec<(Key, Entry)>>,
    notice: Notice,
}

enum Entry {
    /// One acquisition is under way; the others wait for what becomes of it.
    Acquiring,
    /// There is a hold, or was one.
    Held(Weak<Hold>),
}

impl Holds {
    /// A share in the hold that there is, or a new one.
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
    /// The owner holds it already.
    Shared(Arc<Hold>),
    /// It is this acquisition's turn to take it.
    Free(Turn<'a>),
    /// Another acquisition of the same owner is at it.
    Busy,
    /// It would wait for itself.
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
            // Holds that are over leave nothing behind.
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

/// The hold under a key, if it stands.
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

/// The turn to take a lock. Given back when the acquisition fails or is dropped.
struct Turn<'a> {
    holds: &'a Holds,
    key: Key,
    /// The hold of the same owner inside which it is taken: a writer's, when a reader asks.
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
