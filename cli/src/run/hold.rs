//! The time of a hold: its renewals, and the grace time after its loss.

use std::time::Duration;

use edgelatch::client::LeaseEnd;
use edgelatch::error::{LossReason, RequestError};
use edgelatch::timing::LeaseTime;
use tokio::{select, time};

use crate::target::Lease;

/// How often a hold is renewed within a lease; the client's own renewals have this interval too.
const RENEWALS: u32 = 3;
/// The interval of the checks whether processes of the command are left.
const PAUSE: Duration = Duration::from_millis(50);

/// Renews the lease until it is lost, and returns the reason.
pub(super) async fn keep(lease: &Lease, time: Duration) -> LossReason {
    let end = if LeaseTime::new(time).is_ok_and(|time| time == LeaseTime::DEFAULT) {
        lease.keep().await
    } else {
        select! {
            end = lease.keep() => end,
            reason = renew(lease, time) => LeaseEnd::Lost(reason),
        }
    };
    match end {
        LeaseEnd::Lost(reason) => reason,
        LeaseEnd::Released => LossReason::Gone,
    }
}

/// Renews a lease of its own length, which the client only watches. Returns when Redis no longer
/// has the hold.
async fn renew(lease: &Lease, length: Duration) -> LossReason {
    loop {
        time::sleep(length / RENEWALS).await;
        // After a failure the next renewal may succeed; the watch of the lease ends the attempts.
        if let Err(error) = lease.renew(None).await
            && let RequestError::Lost(reason) = error.kind
        {
            return reason;
        }
    }
}

/// Waits for the grace time of a command that has to end.
pub(super) async fn grace(time: Duration) {
    time::sleep(time).await;
}

/// Waits for a short time.
pub(super) async fn pause() {
    time::sleep(PAUSE).await;
}
