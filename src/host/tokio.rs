//! The host for programs on Tokio.

use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

use super::{Host, NoEntropy};
use edgelatch_proto::time::{Instant, millis};

/// The longest sleep at once. Timers do not run while the machine is suspended; after it has
/// resumed, an expired lease is detected within this time.
const SLEEP_MAX: Duration = Duration::from_secs(5);

/// Time and sleep from Tokio, entropy from the operating system.
///
/// Its monotonic clock is Tokio's, so a paused one (`tokio::time::pause`) is respected. Its
/// instants are valid only for itself and its copies, since they count from its creation.
#[derive(Clone, Copy, Debug)]
pub struct TokioHost {
    epoch: ::tokio::time::Instant,
}

impl TokioHost {
    /// Creates a host whose monotonic clock starts now.
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
