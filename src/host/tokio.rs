//! The host for programs on tokio.

use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

use super::{Host, NoEntropy};
use crate::time::{Instant, millis};

/// The longest sleep at once: timers do not run while the machine sleeps, and after it has woken a
/// lease that has run out is noticed within this time.
const SLEEP_MAX: Duration = Duration::from_secs(5);

/// Time and sleep from tokio, entropy from the operating system.
///
/// Its monotonic clock is tokio's, so a paused one (`tokio::time::pause`) is obeyed. Its instants
/// are of use to itself and its copies only, since they count from when it was made.
#[derive(Clone, Copy, Debug)]
pub struct TokioHost {
    epoch: ::tokio::time::Instant,
}

impl TokioHost {
    /// A host whose monotonic clock starts now.
    pub fn new() -> Self {
        Self { epoch: ::tokio::time::Instant::now() }
    }
}

impl Default for TokioHost {
    fn default() -> Self {
        Self::new()
    }
}

impl Host for TokioHost {
    fn now(&self) -> Instant {
        #[expect(clippy::disallowed_methods, reason = "a host is what reads the clocks")]
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Instant::from_millis(millis(self.epoch.elapsed()), millis(wall))
    }

    async fn sleep_until(&self, deadline: Instant) {
        ::tokio::time::sleep(self.now().until(deadline).min(SLEEP_MAX)).await;
    }

    fn entropy(&self) -> Result<[u8; 32], NoEntropy> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|_| NoEntropy)?;
        Ok(bytes)
    }
}
