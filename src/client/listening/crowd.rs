//! Who else waits for the same, as far as this client has heard: it outlives a stream for some
//! seconds, since whoever has just had a lock may want it again.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use crate::machine::ContentionEstimator;
use crate::time::Instant;

/// After so long without a word of it nobody is taken to wait.
const REMEMBERED: Duration = Duration::from_secs(10);
/// So many channels are remembered.
const CHANNELS_MAX: usize = 16;

/// Those who wait at one channel, here and elsewhere.
#[derive(Debug, Default)]
pub(super) struct Shared(Mutex<ContentionEstimator>);

impl Shared {
    /// Looks at what is known, or changes it.
    pub(super) fn with<R>(&self, access: impl FnOnce(&mut ContentionEstimator) -> R) -> R {
        access(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_over(&self, now: Instant) -> bool {
        let heard_at = self.with(|crowd| crowd.heard_at());
        heard_at.is_none_or(|at| now.max_elapsed(at) >= REMEMBERED)
    }
}

/// What is known of several channels.
#[derive(Debug, Default)]
pub(super) struct Crowds(Vec<(String, Arc<Shared>)>);

impl Crowds {
    /// Those who wait at this channel.
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

    /// Whether somebody waits at one of these channels, or has waited a moment ago. They are not
    /// asked for where nobody does anywhere.
    pub(super) fn is_at(&mut self, channels: impl FnOnce() -> Vec<String>, now: Instant) -> bool {
        self.forget(now);
        let is_known = |channel: &String| self.0.iter().any(|(known, _)| known == channel);
        !self.0.is_empty() && channels().iter().any(is_known)
    }

    fn forget(&mut self, now: Instant) {
        self.0.retain(|(_, crowd)| Arc::strong_count(crowd) > 1 || !crowd.is_over(now));
    }
}
