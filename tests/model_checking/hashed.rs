//! Parts of a state that many states share, with their hashes.

use std::hash::{BuildHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::quality::FixedState;

/// A shared value that remembers its hash. A search hashes every state that it generates, and most
/// parts of a state are those of the state before.
#[derive(Clone, Debug)]
pub(crate) struct Hashed<T>(Arc<Inner<T>>);

#[derive(Debug)]
struct Inner<T> {
    value: T,
    /// The hash of the value; 0 until a state with it is first hashed.
    hash: AtomicU64,
}

impl<T> Hashed<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Arc::new(Inner { value, hash: AtomicU64::new(0) }))
    }
}

impl<T: Clone> Hashed<T> {
    /// Returns the value for a change, and forgets its hash. Copies a value that other states
    /// share, as [`Arc::make_mut`] does.
    pub(crate) fn make_mut(this: &mut Self) -> &mut T {
        let inner = Arc::make_mut(&mut this.0);
        inner.hash = AtomicU64::new(0);
        &mut inner.value
    }
}

impl<T: Clone> Clone for Inner<T> {
    fn clone(&self) -> Self {
        Self { value: self.value.clone(), hash: AtomicU64::new(0) }
    }
}

impl<T> Deref for Hashed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.value
    }
}

impl<T: Default> Default for Hashed<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: PartialEq> PartialEq for Hashed<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}

impl<T: Eq> Eq for Hashed<T> {}

impl<T: Hash> Hash for Hashed<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Threads that compute it at the same time store the same hash.
        let mut hash = self.0.hash.load(Ordering::Relaxed);
        if hash == 0 {
            hash = FixedState::default().hash_one(&**self).max(1);
            self.0.hash.store(hash, Ordering::Relaxed);
        }
        state.write_u64(hash);
    }
}
