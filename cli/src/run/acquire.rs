//! The wait for the lock, which a signal ends.

use edgelatch::error::AcquireError;
use tokio::sync::oneshot;
use tokio::{pin, select};

use super::plan::Plan;
use crate::clock;
use crate::exit::{Exit, Failure};
use crate::signals::{Signal, Signals};
use crate::target::{Held, Lease};
use crate::wait::{Progress, Wait};

/// Acquires the lock. The first signal cancels the wait and undoes the acquisition; the second one
/// ends the program at once.
pub(super) async fn acquire(
    lock: &Held,
    plan: &Plan,
    signals: &mut Signals,
) -> Result<Lease, Failure> {
    let _progress = Progress::show(plan.wait, &plan.subject());
    let (cancel, cancelled) = oneshot::channel::<()>();
    let acquiring = async {
        if plan.wait == Wait::Once {
            return lock.try_acquire_with(plan.options()).await;
        }
        // It completes when `cancel` is dropped.
        let cancelled = async { drop(cancelled.await) };
        lock.acquire_cancellable(plan.options(), cancelled).await.map(Some)
    };
    pin!(acquiring);
    let signal = select! {
        acquired = &mut acquiring => return acquired.map_or_else(
            |error| match error.kind {
                AcquireError::Busy { .. } => Err(busy(plan, error.to_string())),
                AcquireError::NotSetUp => Err(Failure::new(Exit::NotSetUp, plan.no_semaphore())),
                _ => Err(error.into()),
            },
            |lease| lease.ok_or_else(|| busy(plan, plan.obstacle())),
        ),
        signal = signals.end() => signal,
    };
    drop(cancel);
    select! {
        acquired = &mut acquiring => undone(acquired.ok().flatten(), signal, plan).await,
        second = signals.end() => Err(Failure::signalled(second, left(plan))),
    }
}

/// Handles the end of an acquisition that `signal` has cancelled.
async fn undone(lease: Option<Lease>, signal: Signal, plan: &Plan) -> Result<Lease, Failure> {
    let is_free = match lease {
        None => true,
        Some(lease) => lease.release().await.is_ok(),
    };
    let message = if is_free { "the wait was cancelled".to_owned() } else { left(plan) };
    Err(Failure::signalled(signal, message))
}

fn left(plan: &Plan) -> String {
    let ends = clock::short(plan.lease);
    format!("the wait was interrupted; if {} was granted, it is free in {ends}", plan.subject())
}

fn busy(plan: &Plan, message: String) -> Failure {
    Failure { code: plan.busy_code, message }
}
