//! A client that acquires one object again and again.

use std::sync::Arc;
use std::time::Duration;

use edgelatch::error::{AcquireError, LossReason, RequestError};
use edgelatch::host::TokioHost;
use edgelatch::transport::Reqwest;
use edgelatch::{AcquireOptions, Lease, Lock};
use fastrand::Rng;
use tokio::time::sleep;

use super::recorder::Recorder;
use test_support::history::Mode;

/// The range of leases, in milliseconds: some are shorter than the injected hangs, some longer.
const LEASES: std::ops::RangeInclusive<u64> = 1_200..=4_500;
/// The longest wait of an acquisition, which is longer than any lease.
const WAIT: Duration = Duration::from_secs(8);
/// The longest pause of a holder, in milliseconds.
const PAUSE: u64 = 20;
/// One lease in this many is dropped without a release, as if its holder had died.
const DROPPED: u32 = 200;

pub(crate) struct LoadClient {
    pub(crate) number: usize,
    pub(crate) recorder: Arc<Recorder>,
    /// Every way to acquire the object.
    pub(crate) ways: Vec<(Mode, Lock<Reqwest, TokioHost>)>,
    pub(crate) rng: Rng,
}

impl LoadClient {
    /// Tries to acquire the object, uses the lease if granted, and releases it.
    pub(crate) async fn run_once(&mut self) {
        let recorder = &self.recorder;
        let (share, lock) = &self.ways[self.rng.usize(..self.ways.len())];
        let lease = Duration::from_millis(self.rng.u64(LEASES));
        let options = AcquireOptions::new().lease(lease).wait(WAIT);
        let acquisition = recorder.record_call(*share, lease);
        let taken = match self.rng.bool() {
            true => lock.acquire_with(options).await,
            false => {
                let tried = lock.try_acquire_with(options).await;
                tried.and_then(|lease| lease.ok_or(AcquireError::Busy { remaining: None }))
            }
        };
        match taken {
            Ok(lease) => {
                recorder.record_grant(self.number, acquisition, &lease);
                self.holds(acquisition, lease).await;
            }
            Err(error) => recorder.record_refusal(acquisition, &error),
        }
    }

    async fn holds(&mut self, acquisition: usize, lease: Lease<Reqwest, TokioHost>) {
        self.append_entry(acquisition, &lease).await;
        for _ in 0..self.rng.u8(..3) {
            sleep(Duration::from_millis(self.rng.u64(..PAUSE))).await;
            let asked = self.recorder.now();
            let answer = match self.rng.bool() {
                true => lease.renew(None).await,
                false => lease.is_held().await.and_then(there),
            };
            self.recorder.record_result(acquisition, &lease, asked, answer.map_err(Into::into));
        }
        self.append_entry(acquisition, &lease).await;
        if self.rng.u32(..DROPPED) > 0 {
            self.recorder.record_release_call(acquisition, &lease);
            self.recorder.record_release_result(acquisition, &lease.release().await);
        }
    }

    /// Appends an entry for its hold in Redis.
    async fn append_entry(&self, acquisition: usize, lease: &Lease<Reqwest, TokioHost>) {
        let asked = self.recorder.now();
        let answer = self.recorder.holder_log.add(acquisition, lease).await;
        self.recorder.record_result(acquisition, lease, asked, answer);
    }
}

fn there(is_held: bool) -> Result<(), RequestError> {
    if is_held { Ok(()) } else { Err(RequestError::Lost(LossReason::Gone)) }
}
