//! Calls in real time: they are repeated with longer times until the machine is fast enough for
//! them.

use std::iter;
use std::time::Duration;

use edgelatch_proto::error::{AcquireError, FailureKind};

/// The longest time for one call. No machine is so slow that it needs more.
const AT_MOST: Duration = Duration::from_secs(60);

/// Whether a call failed only because a response came later than its times allow.
pub fn is_too_slow(error: &AcquireError) -> bool {
    matches!(
        error,
        AcquireError::TooSlow
            | AcquireError::Unreachable(FailureKind::TimedOut)
            | AcquireError::Unknown { cause: FailureKind::TimedOut, .. }
    )
}

/// `time`, then twice as much each time.
pub fn longer_and_longer(time: Duration) -> impl Iterator<Item = Duration> {
    iter::successors(Some(time), |time| Some(*time * 2)).take_while(|time| *time <= AT_MOST)
}

/// The outcome of `call` with the first time (a wait, or a lease) that suffices for this machine.
pub async fn in_time<T>(
    time: Duration,
    mut call: impl AsyncFnMut(Duration) -> Result<T, AcquireError>,
) -> Result<T, AcquireError> {
    for time in longer_and_longer(time) {
        match call(time).await {
            Err(error) if is_too_slow(&error) => {}
            outcome => return outcome,
        }
    }
    panic!("the machine is too slow for {AT_MOST:?}")
}
