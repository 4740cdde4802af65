//! A client program: acquires, works, renews and releases through the public API. Checks the
//! results against what the witness knows.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use edgelatch::Error;
use edgelatch::client::LeaseEnd;
use edgelatch::error::{AcquireError, LossReason, ReleaseError, RequestError};
use edgelatch::host::Host as _;
use edgelatch::machine::Released;
use edgelatch::{AcquireOptions, Client, Lease, Lock};
use fastrand::Rng;

use super::beliefs::{Belief, LATE_MAX};
use super::engine::Sim;
use super::faults::Fault;
use super::host::Place;
use super::plan::Kind;
use super::seen::Sight;
use super::wire::Wire;
use super::witness::Owner;
use test_support::history::Claim;

/// One task of a host.
pub(crate) struct Player {
    pub(crate) sim: Rc<Sim>,
    pub(crate) host: usize,
    pub(crate) place: Place,
    /// One client for each Redis.
    pub(crate) clients: Rc<Vec<Client<Wire, Place>>>,
    pub(crate) rng: RefCell<Rng>,
}

/// The next hold to acquire.
pub(crate) struct Wanted {
    pub(crate) lock: Lock<Wire, Place>,
    pub(crate) claims: Vec<Claim>,
    /// The number of Redis servers that must grant it.
    pub(crate) parts: usize,
}

/// The longest wait for a lock after all faults have ended.
const SERVED_WITHIN: Duration = Duration::from_secs(600);

impl Player {
    pub(crate) async fn plays(self, is_clone: bool) {
        let (rounds, kind) = (self.sim.plan.rounds, self.sim.plan.kind);
        self.pauses(self.sim.plan.lease / 4).await;
        if !is_clone {
            self.prepares().await;
        }
        for _ in 0..rounds {
            match kind {
                Kind::Latch => self.counts_down().await,
                _ => self.takes(false).await,
            }
            self.pauses(self.sim.plan.lease / 8).await;
        }
        if self.sim.plan.heals && !is_clone && kind != Kind::Latch {
            while !self.sim.healed.get() {
                self.sleeps(Duration::from_secs(1)).await;
            }
            self.takes(true).await;
        }
    }

    pub(crate) fn draw(&self, most: u64) -> u64 {
        self.rng.borrow_mut().u64(0..=most)
    }

    pub(crate) fn one_in(&self, many: u64) -> bool {
        self.draw(many - 1) == 0
    }

    pub(crate) async fn sleeps(&self, time: Duration) {
        let until = self.place.now() + time;
        while !self.place.now().has_reached(until) {
            self.place.sleep_until(until).await;
        }
    }

    /// Sleeps for up to `most` milliseconds: mostly short.
    async fn pauses(&self, most: u64) {
        let time = self.draw(most) >> self.draw(6);
        self.sleeps(Duration::from_millis(time)).await;
    }

    pub(crate) fn begins(&self) -> u32 {
        self.sim.witness.borrow_mut().begins(self.sim.polled.get())
    }

    /// Acquires a hold, works, and releases it. With `must`, the acquisition must succeed.
    async fn takes(&self, must: bool) {
        let operation = self.begins();
        let wanted = self.wants();
        let sim = &self.sim;
        sim.tell(|| {
            format!("host {} wants {:?} (operation {operation})", self.host, wanted.claims)
        });
        let (mut options, mut time) = self.options();
        if must {
            self.prepares().await;
            time = Duration::from_millis(sim.plan.lease.max(4_000));
        }
        let take = sim.invokes(&wanted.claims, time);
        let result = match self.draw(3) {
            _ if must => {
                options = options.lease(time).wait(SERVED_WITHIN).max_requests(10_000);
                wanted.lock.acquire_with(options).await.map_err(Error::into_kind)
            }
            0 => {
                let busy = AcquireError::Busy { remaining: None };
                let tried = wanted.lock.try_acquire_with(options).await.map_err(Error::into_kind);
                tried.and_then(|lease| lease.ok_or(busy))
            }
            1 => {
                let time = Duration::from_millis(self.draw(self.sim.plan.lease));
                let cancel = self.sleeps(time);
                let waits = options.wait_until_cancelled();
                wanted.lock.acquire_cancellable(waits, cancel).await.map_err(Error::into_kind)
            }
            _ => {
                let wait = Duration::from_millis(1 + self.draw(self.sim.plan.lease * 2));
                wanted.lock.acquire_with(options.wait(wait)).await.map_err(Error::into_kind)
            }
        };
        match result {
            Ok(lease) => {
                sim.tell(|| format!("host {} holds it, token {}", self.host, lease.token()));
                sim.is_told_held(take, &lease);
                // A read hold gets a longer lease only step by step, and an owner may have had its
                // hold for a while.
                let (left, least) = (lease.remaining(), time.min(Duration::from_secs(30)) / 2);
                if left < least && sim.plan.kind != Kind::Owner {
                    sim.broken(|| {
                        format!("I8 host {} is granted a lease with {left:?} left", self.host)
                    });
                }
                if must {
                    sim.seen.count(Sight::Served, 1);
                }
                self.holds(Rc::new(lease), wanted, operation, take).await;
            }
            Err(error) => {
                sim.tell(|| format!("host {} has not got it: {error}", self.host));
                if must && !matches!(error, AcquireError::TokenRegressed { .. }) {
                    sim.broken(|| format!("I7 host {} was not served: {error}", self.host));
                }
                sim.is_told_no(take, &error);
                self.told(operation, &error);
            }
        }
    }

    /// Draws the options of an acquisition, and its lease.
    fn options(&self) -> (AcquireOptions, Duration) {
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
    fn told(&self, operation: u32, error: &AcquireError) {
        let (sight, held_at_most) = match error {
            // After a Redis has lost its data, the semaphore does not exist until a client sets it
            // up again.
            AcquireError::Busy { .. } | AcquireError::NotSetUp => (Sight::Busy, None),
            AcquireError::Cancelled { held_at_most } => (Sight::Cancelled, *held_at_most),
            AcquireError::TooSlow => (Sight::TooSlow, None),
            AcquireError::Unreachable(_) => (Sight::Unreachable, None),
            AcquireError::Refused(_) => (Sight::Refused, None),
            AcquireError::Unknown { held_at_most, .. } => (Sight::Unknown, Some(*held_at_most)),
            AcquireError::TokenRegressed { .. } if self.sim.tokens_may_fall() => {
                (Sight::TokenRegressed, None)
            }
            other => return self.sim.broken(|| format!("I10 an acquisition ends with {other}")),
        };
        self.sim.seen.count(sight, 1);
        self.sim.over(operation, self.host, held_at_most);
    }

    /// Uses a hold from its grant to its end.
    async fn holds(
        &self,
        lease: Rc<Lease<Wire, Place>>,
        wanted: Wanted,
        operation: u32,
        take: usize,
    ) {
        let sim = &self.sim;
        sim.seen.count(Sight::Held, 1);
        sim.granted(operation, self.host, wanted.parts, lease.token().as_u64());
        let kept = !self.one_in(8);
        sim.witness.borrow_mut().beliefs.push(Belief {
            host: self.host,
            operation,
            lease: Rc::clone(&lease),
            claims: wanted.claims,
            parts: wanted.parts,
            kept,
            valid: true,
            ended_at: None,
            late_max: LATE_MAX,
        });
        sim.look();
        self.works(&lease, kept, take).await;
        if self.one_in(16) {
            sim.seen.count(Sight::Dropped, 1);
            return self.gives_up(operation);
        }
        self.gives_up(operation);
        sim.sees(take, &lease);
        sim.asks_to_release(take);
        let verdict = lease.release().await.map_err(Error::into_kind);
        sim.is_told_of_release(take, &verdict);
        sim.tell(|| format!("host {} has released: {verdict:?}", self.host));
        match &verdict {
            Ok(released) => {
                sim.released(operation, wanted.parts, *released);
                sim.over(operation, self.host, None);
            }
            Err(ReleaseError::Unknown { held_at_most, .. }) => {
                sim.seen.count(Sight::ReleaseUnknown, 1);
                sim.over(operation, self.host, Some(*held_at_most));
            }
            Err(_) => {}
        }
        let again = lease.release().await.map_err(Error::into_kind);
        sim.is_told_of_release(take, &again);
        if verdict.is_ok() && again != verdict {
            sim.broken(|| format!("I4 released twice: {verdict:?}, then {again:?}"));
        }
    }

    /// The client does not rely on the operation's hold any more.
    fn gives_up(&self, operation: u32) {
        let mut witness = self.sim.witness.borrow_mut();
        let place = witness.beliefs.iter().position(|belief| belief.operation == operation);
        let belief = place.map(|place| witness.beliefs.swap_remove(place));
        drop(witness);
        drop(belief);
    }

    /// Works for a while under a lease, while the client keeps the lease or does not.
    async fn works(&self, lease: &Rc<Lease<Wire, Place>>, kept: bool, take: usize) {
        let mut work = pin!(async {
            for _ in 0..=self.draw(2) {
                let time = self.draw(self.sim.plan.lease * 3 / 2) >> self.draw(5);
                self.sleeps(Duration::from_millis(time)).await;
                self.sim.sees(take, lease);
                let asked = self.sim.now();
                match self.draw(7) {
                    0 => match lease.renew(None).await {
                        Ok(()) => self.sim.stood(take, asked),
                        Err(Error { kind: RequestError::Lost(LossReason::Gone), .. }) => {
                            self.sim.is_gone(take)
                        }
                        Err(_) => {}
                    },
                    1 => match lease.is_held().await {
                        Ok(true) => self.sim.stood(take, asked),
                        Ok(false) => self.sim.is_gone(take),
                        Err(_) => {}
                    },
                    2 => self.writes(lease).await,
                    3 if self.sim.plan.has_single_locks() => self.runs_own(lease).await,
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
                self.ends(lease, end, take);
                lost = Some(end);
            }
            Pin::new(&mut work).poll(cx)
        })
        .await;
    }

    /// The client was notified that its hold has ended.
    fn ends(&self, lease: &Rc<Lease<Wire, Place>>, end: LeaseEnd, take: usize) {
        let sim = &self.sim;
        sim.tell(|| format!("host {} has lost it: {end:?}", self.host));
        match end {
            LeaseEnd::Lost(LossReason::Expired) => sim.seen.count(Sight::Expired, 1),
            LeaseEnd::Lost(LossReason::Gone) => {
                sim.is_gone(take);
                sim.seen.count(Sight::Gone, 1)
            }
            LeaseEnd::Released => {
                return sim.broken(|| format!("I10 host {} is told of a release", self.host));
            }
        };
        if !lease.remaining().is_zero() {
            sim.broken(|| format!("I8 host {} trusts what it was told is lost", self.host));
        }
        // The client was notified.
        for belief in &mut sim.witness.borrow_mut().beliefs {
            belief.kept &= !Rc::ptr_eq(&belief.lease, lease);
        }
    }
}

impl Sim {
    /// I10: a client with a lease has a grant in Redis.
    fn granted(&self, operation: u32, host: usize, parts: usize, token: u64) {
        let mut witness = self.witness.borrow_mut();
        let (mut count, mut known) = (0, false);
        for node in 0..self.plan.nodes {
            // Earlier rounds of the wait were abandoned, each under an owner of its own.
            let granted =
                |owner: &&mut Owner| owner.node == node && owner.grants > 0 && !owner.freed;
            if let Some(owner) = witness.owners_of(operation).rfind(granted) {
                owner.held = true;
                count += 1;
                known |= owner.tokens.contains(&token);
            }
        }
        if count < parts || parts == 1 && !known {
            witness
                .breaks(self, || format!("I10 host {host} was granted nothing with token {token}"));
        }
    }

    /// I4: the result of a release is what has happened in Redis.
    fn released(&self, operation: u32, parts: usize, verdict: Released) {
        let has_lost = self.has_lost();
        let mut witness = self.witness.borrow_mut();
        // Owners that were released before the hold began, or granted too late for it, do not
        // count.
        let held = witness.owners_of(operation).filter(|owner| owner.held).count();
        let freed = witness.owners_of(operation).filter(|owner| owner.held && owner.freed).count();
        match verdict {
            Released::Released => {
                self.seen.count(Sight::Released, 1);
                if freed < parts {
                    witness
                        .breaks(self, || format!("I4 released, and {freed} of {parts} were freed"));
                }
            }
            Released::WasLost => {
                self.seen.count(Sight::WasLost, 1);
                if held >= parts && freed == held && !has_lost {
                    witness.breaks(self, || "I4 it was lost, and its release has freed it".into());
                }
            }
        }
    }

    /// A client received the result that nothing of an operation is held, or nothing after
    /// `held_at_most` by its clocks.
    fn over(&self, operation: u32, host: usize, held_at_most: Option<Duration>) {
        let now = self.now();
        let over_at = match held_at_most {
            None => now,
            // The client's upper bound assumes clocks within the drift allowance.
            Some(_) if self.plan.has(Fault::Drift) => return,
            Some(time) => {
                let clocks = &self.machines.borrow()[host].clocks;
                clocks.when(clocks.monotonic(now) + time.as_micros() as u64, now) + 10_000
            }
        };
        let nodes = self.nodes.borrow();
        let mut witness = self.witness.borrow_mut();
        let claims = witness.claims;
        let mut ghosts = 0;
        for owner in witness.owners_of(operation) {
            ghosts += usize::from(over_at <= now && owner.hold.stands(&nodes[owner.node], now));
            if self.plan.kind != Kind::Red {
                owner.over_at = Some(over_at);
            }
        }
        // What a minority still holds of a redLock blocks no client, and expires.
        let least = if self.plan.kind == Kind::Red { self.plan.nodes / 2 + 1 } else { 1 };
        if ghosts >= least && claims {
            witness.breaks(self, || {
                format!("I4 host {host} was told that it holds nothing, and it does")
            });
        }
    }
}
