//! The contention at channels, as far as this client has received messages. It outlives a stream by
//! some seconds, since a client that has just released a lock may acquire it again.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use edgelatch_proto::machine::ContentionEstimator;
use edgelatch_proto::time::Instant;

/// Time without a message after which the contention at a channel is forgotten.
const REMEMBERED: Duration = Duration::from_secs(10);
/// Largest number of channels that are remembered.
const CHANNELS_MAX: usize = 16;

/// The contention at one channel, by waiters of this and of other clients.
#[derive(Debug, Default)]
pub(super) struct Shared(Mutex<ContentionEstimator>);

impl Shared {
    /// Reads or changes the estimate.
    pub(super) fn with<R>(&self, access: impl FnOnce(&mut ContentionEstimator) -> R) -> R {
        access(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_over(&self, now: Instant) -> bool {
        let heard_at = self.with(|crowd| crowd.heard_at());
        heard_at.is_none_or(|at| now.max_elapsed(at) >= REMEMBERED)
    }
}

/// The contention at several channels.
#[derive(Debug, Default)]
pub(super) struct Crowds(Vec<(String, Arc<Shared>)>);

impl Crowds {
    /// Returns the contention at this channel; forgets the oldest channel if there are too many.
    pub(super) fn at(&mut self, channel: &str, now: Instant) -> Arc<Shared> {
        self.forget(now);
        if let Some((_, crowd)) = self.0.iter().find(|(known, _)| known == channel) {
            return Arc::clone(crowd);
        }
        if self.0.len() >= CHANNELS_MAX {
            drop(self.0.remove(0));
        }
        let crowd = Arc::new(Shared::default());
        self.0.push((channel.to_string(), Arc::clone(&crowd)));
        crowd
    }

    /// Whether this client has a waiter at one of these channels, or has received a message there a
    /// moment ago. `channels` is called only if some channel is remembered.
    pub(super) fn is_at(&mut self, channels: impl FnOnce() -> Vec<String>, now: Instant) -> bool {
        self.forget(now);
        let is_known = |channel: &String| self.0.iter().any(|(known, _)| known == channel);
        !self.0.is_empty() && channels().iter().any(is_known)
    }

    fn forget(&mut self, now: Instant) {
        self.0.retain(|(_, crowd)| Arc::strong_count(crowd) > 1 || !crowd.is_over(now));
    }
}
