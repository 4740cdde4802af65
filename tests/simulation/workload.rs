//! A client program: acquires, works, renews and releases through the public API, and checks the
//! results that it receives.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use edgelatch::Error;
use edgelatch::client::LeaseEnd;
use edgelatch::error::{AcquireError, LossReason, RefusalKind, ReleaseError, RequestError};
use edgelatch::host::Host as _;
use edgelatch::{AcquireOptions, Client, Lease, Lock};
use fastrand::Rng;

use super::coverage::CoverPoint;
use super::engine::Sim;
use super::faults::Faults;
use super::host::HostHandle;
use super::lease_checker::{LATE_MAX, TrustedLease};
use super::plan::Kind;
use super::transport::SimTransport;
use test_support::history::Claim;

/// One task of a host.
pub(crate) struct Workload {
    pub(crate) sim: Rc<Sim>,
    pub(crate) host: usize,
    pub(crate) handle: HostHandle,
    /// One client for each Redis.
    pub(crate) clients: Rc<Vec<Client<SimTransport, HostHandle>>>,
    pub(crate) rng: RefCell<Rng>,
}

/// The next hold to acquire.
pub(crate) struct PlannedAcquire {
    pub(crate) lock: Lock<SimTransport, HostHandle>,
    pub(crate) claims: Vec<Claim>,
    /// The number of Redis servers that must grant it.
    pub(crate) parts: usize,
}

/// The longest wait for a lock after all faults have ended.
const WAIT_AFTER_FAULTS: Duration = Duration::from_secs(600);

impl Workload {
    pub(crate) async fn run(self, is_clone: bool) {
        let (rounds, kind) = (self.sim.plan.rounds, self.sim.plan.kind);
        self.pause(self.sim.plan.lease / 4).await;
        if !is_clone {
            self.set_up_permits().await;
        }
        for _ in 0..rounds {
            match kind {
                Kind::Latch => self.use_latch().await,
                _ => self.acquire_and_release(false).await,
            }
            self.pause(self.sim.plan.lease / 8).await;
        }
        if self.sim.plan.ends_faults && !is_clone && kind != Kind::Latch {
            while !self.sim.faults_ended.get() {
                self.sleep(Duration::from_secs(1)).await;
            }
            self.acquire_and_release(true).await;
        }
    }

    pub(crate) fn draw(&self, most: u64) -> u64 {
        self.rng.borrow_mut().u64(0..=most)
    }

    pub(crate) fn one_in(&self, many: u64) -> bool {
        self.draw(many - 1) == 0
    }

    pub(crate) async fn sleep(&self, time: Duration) {
        let until = self.handle.now() + time;
        while !self.handle.now().has_reached(until) {
            self.handle.sleep_until(until).await;
        }
    }

    /// Sleeps for up to `most` milliseconds, mostly for a short time.
    async fn pause(&self, most: u64) {
        let time = self.draw(most) >> self.draw(6);
        self.sleep(Duration::from_millis(time)).await;
    }

    pub(crate) fn begin_operation(&self) -> u32 {
        self.sim.checker.borrow_mut().begin_operation(self.sim.polled.get())
    }

    /// Acquires a hold, works, and releases it. With `must`, the acquisition must succeed.
    async fn acquire_and_release(&self, must: bool) {
        let operation = self.begin_operation();
        let planned = self.draw_acquire();
        let sim = &self.sim;
        sim.trace(|| {
            format!("host {} wants {:?} (operation {operation})", self.host, planned.claims)
        });
        let (mut options, mut time) = self.draw_options();
        if must {
            self.set_up_permits().await;
            time = Duration::from_millis(sim.plan.lease.max(4_000));
        }
        let acquisition = sim.record_call(self.host, &planned.claims, time);
        let result = match self.draw(4) {
            _ if must => {
                options = options.lease(time).wait(WAIT_AFTER_FAULTS).max_requests(10_000);
                planned.lock.acquire_with(options).await.map_err(Error::into_kind)
            }
            0 => {
                let busy = AcquireError::Busy { remaining: None };
                let tried = planned.lock.try_acquire_with(options).await.map_err(Error::into_kind);
                tried.and_then(|lease| lease.ok_or(busy))
            }
            1 => {
                let time = Duration::from_millis(self.draw(self.sim.plan.lease));
                let cancel = self.sleep(time);
                let waits = options.wait_until_cancelled();
                planned.lock.acquire_cancellable(waits, cancel).await.map_err(Error::into_kind)
            }
            2 => {
                let waits = options.wait_until_cancelled();
                match self.drop_early(planned.lock.acquire_with(waits)).await {
                    Some(result) => result.map_err(Error::into_kind),
                    None => return self.check_undone(operation).await,
                }
            }
            _ => {
                let wait = Duration::from_millis(1 + self.draw(self.sim.plan.lease * 2));
                planned.lock.acquire_with(options.wait(wait)).await.map_err(Error::into_kind)
            }
        };
        match result {
            Ok(lease) => {
                sim.trace(|| format!("host {} holds it, token {}", self.host, lease.token()));
                sim.record_grant(acquisition, &lease);
                // A read hold gets a long lease in steps, and an acquisition of an owner may join a
                // hold whose lease began earlier.
                let (left, least) = (lease.remaining(), time.min(Duration::from_secs(30)) / 2);
                if left < least && sim.plan.kind != Kind::Owner {
                    sim.fail(|| {
                        format!("I8 host {} is granted a lease with {left:?} left", self.host)
                    });
                }
                if must {
                    sim.coverage.count(CoverPoint::Served, 1);
                }
                self.use_hold(Rc::new(lease), planned, operation, acquisition).await;
            }
            Err(error) => {
                sim.trace(|| format!("host {} has not acquired it: {error}", self.host));
                if must && !self.is_due_to_clocks(&error) {
                    sim.fail(|| format!("I7 host {} was not served: {error}", self.host));
                }
                sim.record_refusal(acquisition, &error);
                self.count_failure(operation, &error);
            }
        }
    }

    /// Whether an acquisition failed because a clock of Redis was set.
    fn is_due_to_clocks(&self, error: &AcquireError) -> bool {
        match error {
            AcquireError::TokenRegressed { .. } => true,
            // Nodes whose clocks differ by a minute cannot agree on a token.
            AcquireError::Refused(refusal) => {
                refusal.kind() == RefusalKind::TokenRange && self.sim.plan.kind == Kind::Red
            }
            _ => false,
        }
    }

    /// Awaits a future, but drops it at a random time: often within the first round trips.
    async fn drop_early<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let time = self.draw(self.sim.plan.lease) >> self.draw(12);
        let (mut future, mut end) = (pin!(future), pin!(self.sleep(Duration::from_millis(time))));
        poll_fn(|cx| match future.as_mut().poll(cx) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending => end.as_mut().poll(cx).map(|()| None),
        })
        .await
    }

    /// An acquisition was dropped, and the client undoes it without being asked to. Where nothing
    /// disturbs that, nothing of it is held two attempts later.
    async fn check_undone(&self, operation: u32) {
        let (sim, plan) = (&self.sim, &self.sim.plan);
        sim.coverage.count(CoverPoint::AcquisitionDropped, 1);
        // An undisturbed attempt of two round trips, in microseconds.
        let is_undisturbed =
            plan.faults == Faults::NONE && plan.attempt * 1000 > 4 * plan.max_latency;
        // Another acquisition of the same owner may have joined the hold.
        if is_undisturbed && plan.kind != Kind::Owner {
            self.sleep(Duration::from_millis(2 * plan.attempt)).await;
            sim.check_not_held(operation, self.host, None);
        }
    }

    /// Draws the options of an acquisition, and its lease.
    fn draw_options(&self) -> (AcquireOptions, Duration) {
        let options = AcquireOptions::new();
        match self.draw(2) {
            0 if self.sim.plan.lease == 30_000 => (options.renewed(), Duration::from_secs(30)),
            _ => {
                let lease = Duration::from_millis(100 + self.draw(self.sim.plan.lease));
                (options.lease(lease), lease)
            }
        }
    }

    /// Records the result of a failed acquisition: nothing is held, or nothing after
    /// `held_at_most`.
    fn count_failure(&self, operation: u32, error: &AcquireError) {
        let (point, held_at_most) = match error {
            // After a Redis has lost its data, the semaphore does not exist until a client sets it
            // up again.
            AcquireError::Busy { .. } | AcquireError::NotSetUp => (CoverPoint::Busy, None),
            AcquireError::Cancelled { held_at_most } => (CoverPoint::Cancelled, *held_at_most),
            AcquireError::TooSlow => (CoverPoint::TooSlow, None),
            AcquireError::Unreachable(_) => (CoverPoint::Unreachable, None),
            AcquireError::Refused(_) => (CoverPoint::Refused, None),
            AcquireError::Unknown { held_at_most, .. } => {
                (CoverPoint::Unknown, Some(*held_at_most))
            }
            AcquireError::TokenRegressed { .. } if self.sim.tokens_may_fall() => {
                (CoverPoint::TokenRegressed, None)
            }
            other => return self.sim.fail(|| format!("I10 an acquisition ends with {other}")),
        };
        self.sim.coverage.count(point, 1);
        self.sim.check_not_held(operation, self.host, held_at_most);
    }

    /// Uses a hold from its grant to its end.
    async fn use_hold(
        &self,
        lease: Rc<Lease<SimTransport, HostHandle>>,
        planned: PlannedAcquire,
        operation: u32,
        acquisition: usize,
    ) {
        let sim = &self.sim;
        sim.coverage.count(CoverPoint::Held, 1);
        sim.check_grant(operation, self.host, planned.parts, lease.token().as_u64());
        let kept = !self.one_in(8);
        sim.checker.borrow_mut().trusted_leases.push(TrustedLease {
            host: self.host,
            operation,
            lease: Rc::clone(&lease),
            claims: planned.claims,
            parts: planned.parts,
            kept,
            valid: true,
            ended_at: None,
            late_max: LATE_MAX,
        });
        sim.check_leases();
        self.work(&lease, kept, acquisition).await;
        if self.one_in(16) {
            sim.coverage.count(CoverPoint::Dropped, 1);
            return self.stop_trusting(operation);
        }
        self.stop_trusting(operation);
        sim.record_lease(acquisition, &lease);
        sim.record_release_call(acquisition);
        let result = lease.release().await.map_err(Error::into_kind);
        sim.record_release_result(acquisition, &result);
        sim.trace(|| format!("host {} has released: {result:?}", self.host));
        match &result {
            Ok(released) => {
                sim.check_release(operation, planned.parts, *released);
                sim.check_not_held(operation, self.host, None);
            }
            Err(ReleaseError::Unknown { held_at_most, .. }) => {
                sim.coverage.count(CoverPoint::ReleaseUnknown, 1);
                sim.check_not_held(operation, self.host, Some(*held_at_most));
            }
            Err(_) => {}
        }
        let again = lease.release().await.map_err(Error::into_kind);
        sim.record_release_result(acquisition, &again);
        if result.is_ok() && again != result {
            sim.fail(|| format!("I4 released twice: {result:?}, then {again:?}"));
        }
    }

    /// The client does not rely on the operation's hold any more.
    fn stop_trusting(&self, operation: u32) {
        let mut checker = self.sim.checker.borrow_mut();
        let index =
            checker.trusted_leases.iter().position(|trusted| trusted.operation == operation);
        let trusted = index.map(|index| checker.trusted_leases.swap_remove(index));
        drop(checker);
        drop(trusted);
    }

    /// Works for a while under a lease. With `kept` the client renews the lease meanwhile.
    async fn work(
        &self,
        lease: &Rc<Lease<SimTransport, HostHandle>>,
        kept: bool,
        acquisition: usize,
    ) {
        let mut work = pin!(async {
            for _ in 0..=self.draw(2) {
                let time = self.draw(self.sim.plan.lease * 3 / 2) >> self.draw(5);
                self.sleep(Duration::from_millis(time)).await;
                self.sim.record_lease(acquisition, lease);
                let sent_at = self.sim.now();
                match self.draw(7) {
                    0 => match lease.renew(None).await {
                        Ok(()) => self.sim.record_held(acquisition, sent_at),
                        Err(Error { kind: RequestError::Lost(LossReason::Gone), .. }) => {
                            self.sim.record_gone(acquisition)
                        }
                        Err(_) => {}
                    },
                    1 => match lease.is_held().await {
                        Ok(true) => self.sim.record_held(acquisition, sent_at),
                        Ok(false) => self.sim.record_gone(acquisition),
                        Err(_) => {}
                    },
                    2 => self.write_guarded(lease).await,
                    3 if self.sim.plan.has_single_locks() => self.run_script(lease).await,
                    _ => {}
                }
            }
        });
        if !kept {
            return work.await;
        }
        let mut keep = pin!(lease.keep());
        let mut lost = None;
        poll_fn(|cx| {
            if lost.is_none()
                && let Poll::Ready(end) = keep.as_mut().poll(cx)
            {
                self.on_lease_end(lease, end, acquisition);
                lost = Some(end);
            }
            Pin::new(&mut work).poll(cx)
        })
        .await;
    }

    /// The client was notified that its hold has ended.
    fn on_lease_end(
        &self,
        lease: &Rc<Lease<SimTransport, HostHandle>>,
        end: LeaseEnd,
        acquisition: usize,
    ) {
        let sim = &self.sim;
        sim.trace(|| format!("host {} has lost it: {end:?}", self.host));
        match end {
            LeaseEnd::Lost(LossReason::Expired) => sim.coverage.count(CoverPoint::Expired, 1),
            // No client of the simulation steals.
            LeaseEnd::Lost(LossReason::Gone | LossReason::Stolen) => {
                sim.record_gone(acquisition);
                sim.coverage.count(CoverPoint::Gone, 1)
            }
            LeaseEnd::Released => {
                return sim.fail(|| {
                    format!("I10 host {} is notified of a release that it has not made", self.host)
                });
            }
        };
        if !lease.remaining().is_zero() {
            sim.fail(|| {
                format!("I8 host {} has time left on a lease that was reported as lost", self.host)
            });
        }
        // The client was notified.
        for trusted in &mut sim.checker.borrow_mut().trusted_leases {
            trusted.kept &= !Rc::ptr_eq(&trusted.lease, lease);
        }
    }
}
