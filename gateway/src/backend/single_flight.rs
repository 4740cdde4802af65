//! Coalesces concurrent calls for the same work into one run.

use tokio::sync::Mutex;
use tokio::time::Instant;

/// Runs work once for all callers that wait for it at the same time. When Redis goes away, every
/// request notices at once and needs to know which node has replaced it: one of them queries the
/// servers, and all share the result.
#[derive(Default)]
pub(super) struct SingleFlight {
    /// When the work last ended.
    done: Mutex<Option<Instant>>,
}

impl SingleFlight {
    /// Returns once `work` has ended, run by this caller or by another one in the meantime.
    pub(super) async fn run(&self, work: impl Future<Output = ()>) {
        let called = Instant::now();
        let mut done = self.done.lock().await;
        if done.is_some_and(|done| done >= called) {
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
    async fn callers_that_wait_share_one_run() {
        let flight = SingleFlight::default();
        let done = AtomicUsize::new(0);
        let call = || {
            flight.run(async {
                yield_now().await;
                done.fetch_add(1, Ordering::Relaxed);
            })
        };
        join_all((0..10).map(|_| call())).await;
        assert_eq!(done.load(Ordering::Relaxed), 1);
        call().await;
        assert_eq!(done.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn a_dropped_caller_leaves_the_work_to_the_next_one() {
        let flight = SingleFlight::default();
        assert_eq!(flight.run(std::future::pending()).now_or_never(), None);
        let mut done = false;
        flight.run(async { done = true }).await;
        assert!(done);
    }
}
