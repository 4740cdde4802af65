//! A client that acquires one object again and again.

use std::sync::Arc;
use std::time::Duration;

use edgelatch::Error;
use edgelatch::error::{AcquireError, LossReason, RequestError};
use edgelatch::host::TokioHost;
use edgelatch::transport::Reqwest;
use edgelatch::{AcquireOptions, Lease, Lock};
use fastrand::Rng;
use tokio::time::sleep;

use super::watch::Watch;
use test_support::history::Share;

/// The range of leases, in milliseconds: some are shorter than the injected hangs, some longer.
const LEASES: std::ops::RangeInclusive<u64> = 1_200..=4_500;
/// The longest wait of an acquisition, which is longer than any lease.
const WAIT: Duration = Duration::from_secs(8);
/// The longest pause of a holder, in milliseconds.
const PAUSE: u64 = 20;
/// One lease in this many is dropped without a release, as if its holder had died.
const DROPPED: u32 = 200;

pub(crate) struct Visitor {
    pub(crate) number: usize,
    pub(crate) watch: Arc<Watch>,
    /// Every way to acquire the object.
    pub(crate) ways: Vec<(Share, Lock<Reqwest, TokioHost>)>,
    pub(crate) rng: Rng,
}

impl Visitor {
    /// Tries to acquire the object, uses the lease if granted, and releases it.
    pub(crate) async fn visits(&mut self) {
        let watch = &self.watch;
        let (share, lock) = &self.ways[self.rng.usize(..self.ways.len())];
        let lease = Duration::from_millis(self.rng.u64(LEASES));
        let options = AcquireOptions::new().lease(lease).wait(WAIT);
        let take = watch.invokes(*share, lease);
        let taken = match self.rng.bool() {
            true => lock.acquire_with(options).await.map_err(Error::into_kind),
            false => {
                let tried = lock.try_acquire_with(options).await.map_err(Error::into_kind);
                tried.and_then(|lease| lease.ok_or(AcquireError::Busy { remaining: None }))
            }
        };
        match taken {
            Ok(lease) => {
                watch.is_told_held(self.number, take, &lease);
                self.holds(take, lease).await;
            }
            Err(error) => watch.is_told_no(take, &error),
        }
    }

    async fn holds(&mut self, take: usize, lease: Lease<Reqwest, TokioHost>) {
        self.proves(take, &lease).await;
        for _ in 0..self.rng.u8(..3) {
            sleep(Duration::from_millis(self.rng.u64(..PAUSE))).await;
            let asked = self.watch.now();
            let answer = match self.rng.bool() {
                true => lease.renew(None).await.map_err(Error::into_kind),
                false => lease.is_held().await.map_err(Error::into_kind).and_then(there),
            };
            self.watch.is_told(take, &lease, asked, answer.map_err(Into::into));
        }
        self.proves(take, &lease).await;
        if self.rng.u32(..DROPPED) > 0 {
            self.watch.asks_to_release(take, &lease);
            let answer = lease.release().await.map_err(Error::into_kind);
            self.watch.is_told_of_release(take, &answer);
        }
    }

    /// Appends an entry for its hold in Redis.
    async fn proves(&self, take: usize, lease: &Lease<Reqwest, TokioHost>) {
        let asked = self.watch.now();
        let answer = self.watch.proofs.add(take, lease).await;
        self.watch.is_told(take, lease, asked, answer);
    }
}

fn there(is_held: bool) -> Result<(), RequestError> {
    if is_held { Ok(()) } else { Err(RequestError::Lost(LossReason::Gone)) }
}
