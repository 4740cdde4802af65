//! Re-entry, asked for expressly and counted here: Redis sees one hold of count one.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::fmt;
use core::future::poll_fn;
use core::pin::Pin;
use core::task::Poll;
use std::sync::{Mutex, PoisonError};

use super::Client;
use super::hold::Hold;
use super::lock::Lock;
use super::notice::{First, Notice, first};
use super::options::Terms;
use crate::error::{AcquireError, InvalidOption};
use crate::host::Host;
use crate::name::LockName;
use crate::time::Instant;
use crate::timing::Patience;
use crate::transport::Transport;

/// Somebody who may hold a lock several times at once.
///
/// Acquisitions of one lock through one owner (or its clones) share one hold: the first takes it, further ones ask nobody
/// and have its token and its lease, and the last release ends it. Redisson's owner is a thread; there are no threads where
/// this crate runs, so an owner is asked for. Make one for each task (in a Worker, for each request): it is not for sharing.
pub struct Owner<T, H> {
    client: Client<T, H>,
    holds: Arc<Holds>,
}

#[derive(Default)]
struct Holds {
    /// An owner has a few, and looks through all of them whenever it takes another.
    by_name: Mutex<Vec<(LockName, Entry)>>,
    notice: Notice,
}

enum Entry {
    /// One acquisition is under way; the others wait for what becomes of it.
    Acquiring,
    /// There is a hold, or was one.
    Held(Weak<Hold>),
}

impl<T, H> Owner<T, H> {
    pub(super) fn new(client: Client<T, H>) -> Self {
        Self { client, holds: Arc::default() }
    }
}

impl<T: Transport, H: Host> Owner<T, H> {
    /// The lock of this name, for this owner.
    ///
    /// # Errors
    /// [`InvalidOption`] when it is no name for a lock.
    pub fn lock(&self, name: &str) -> Result<Lock<T, H>, InvalidOption> {
        Ok(Lock::new(self.client.clone(), LockName::parse(name)?, Some(self.clone())))
    }

    pub(super) async fn acquire(
        &self,
        lock: &Lock<T, H>,
        terms: Terms,
        mut cancel: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Arc<Hold>, AcquireError> {
        if poll_fn(|cx| Poll::Ready(cancel.as_mut().poll(cx).is_ready())).await {
            return Err(AcquireError::Cancelled { held_at_most: None });
        }
        let host = &self.client.inner.host;
        let name = lock.name();
        let wait_over = match terms.patience {
            Patience::Once => Some(host.now()),
            Patience::UpTo(wait) => Some(host.now() + wait.get()),
            Patience::UntilCancelled => None,
        };
        loop {
            match self.holds.enter(name, host.now()) {
                Entered::Shared(hold) => return Ok(hold),
                Entered::Free(turn) => {
                    let terms = terms.with_wait(wait_over.map(|over| host.now().until(over)));
                    let hold = lock.take(terms, cancel).await?;
                    turn.won(&hold);
                    return Ok(hold);
                }
                Entered::Busy => {}
            }
            let settled =
                self.holds.notice.until(|| (!self.holds.is_acquiring(name)).then_some(()));
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
}

impl Holds {
    fn by_name<R>(&self, access: impl FnOnce(&mut Vec<(LockName, Entry)>) -> R) -> R {
        access(&mut self.by_name.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_acquiring(&self, name: &LockName) -> bool {
        self.by_name(|holds| matches!(find(holds, name), Some(Entry::Acquiring)))
    }

    fn enter(&self, name: &LockName, now: Instant) -> Entered<'_> {
        self.by_name(|holds| {
            // Holds that are over leave nothing behind.
            holds.retain(
                |(_, entry)| !matches!(entry, Entry::Held(hold) if hold.strong_count() == 0),
            );
            match find(holds, name) {
                Some(Entry::Acquiring) => return Entered::Busy,
                Some(Entry::Held(hold)) => {
                    if let Some(hold) = hold.upgrade().filter(|hold| hold.enter(now)) {
                        return Entered::Shared(hold);
                    }
                }
                None => {}
            }
            put(holds, name, Some(Entry::Acquiring));
            Entered::Free(Turn { holds: self, name: name.clone() })
        })
    }
}

fn find<'a>(holds: &'a [(LockName, Entry)], name: &LockName) -> Option<&'a Entry> {
    holds.iter().find(|(other, _)| other == name).map(|(_, entry)| entry)
}

fn put(holds: &mut Vec<(LockName, Entry)>, name: &LockName, entry: Option<Entry>) {
    holds.retain(|(other, _)| other != name);
    holds.extend(entry.map(|entry| (name.clone(), entry)));
}

/// The turn to take a lock. Given back when the acquisition fails or is dropped.
struct Turn<'a> {
    holds: &'a Holds,
    name: LockName,
}

impl Turn<'_> {
    fn won(self, hold: &Arc<Hold>) {
        let held = Entry::Held(Arc::downgrade(hold));
        self.holds.by_name(|holds| put(holds, &self.name, Some(held)));
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.holds.by_name(|holds| {
            if matches!(find(holds, &self.name), Some(Entry::Acquiring)) {
                put(holds, &self.name, None);
            }
        });
        self.holds.notice.notify();
    }
}

impl<T, H> Clone for Owner<T, H> {
    fn clone(&self) -> Self {
        Self { client: self.client.clone(), holds: Arc::clone(&self.holds) }
    }
}

impl<T, H> fmt::Debug for Owner<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Owner(..)")
    }
}
