//! Coalesces concurrent requests for the same work.

use tokio::sync::Mutex;
use tokio::time::Instant;

/// Runs work once for all callers that wait for it at the same time. When Redis goes away, every
/// request notices at once and needs to know which node has replaced it: one of them asks, and all
/// share the result.
#[derive(Default)]
pub(super) struct Gate {
    /// When the work last ended.
    done: Mutex<Option<Instant>>,
}

impl Gate {
    /// Returns once `work` has ended, run by this caller or by another one in the meantime.
    pub(super) async fn once(&self, work: impl Future<Output = ()>) {
        let asked = Instant::now();
        let mut done = self.done.lock().await;
        if done.is_some_and(|done| done >= asked) {
            return;
        }
        // If this caller is dropped here, the next waiting caller does the work.
        work.await;
        *done = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt as _;
    use futures_util::future::join_all;
    use tokio::task::yield_now;

    use super::*;

    #[tokio::test]
    async fn who_asks_while_it_is_done_takes_part() {
        let gate = Gate::default();
        let done = AtomicUsize::new(0);
        let ask = || {
            gate.once(async {
                yield_now().await;
                done.fetch_add(1, Ordering::Relaxed);
            })
        };
        join_all((0..10).map(|_| ask())).await;
        assert_eq!(done.load(Ordering::Relaxed), 1);
        ask().await;
        assert_eq!(done.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn who_gives_up_leaves_the_work_to_the_next() {
        let gate = Gate::default();
        assert_eq!(gate.once(std::future::pending()).now_or_never(), None);
        let mut done = false;
        gate.once(async { done = true }).await;
        assert!(done);
    }
}
