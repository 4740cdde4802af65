//! A host: its clocks, its timers and its entropy. A host may be suspended, as by sleep or a long
//! pause of a garbage collector.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use edgelatch::host::{Host, NoEntropy};
use edgelatch::time::Instant;
use fastrand::Rng;

use super::clocks::Clocks;
use super::engine::{EventKind, Sim};
use super::faults::Fault;
use super::plan::SeededFault;

/// The longest single sleep, in milliseconds. Equals the limit in `src/host`, so that clients read
/// their clocks again soon after a suspension.
pub(crate) const SLEEP_MAX_MS: u64 = 5_000;

/// A host that runs clients.
pub(crate) struct SimHost {
    pub(crate) clocks: Clocks,
    pub(crate) rng: Rng,
    suspension: Option<Suspension>,
    pub(crate) is_dead: bool,
}

/// The events and tasks that a suspended host postpones.
#[derive(Default)]
struct Suspension {
    events: Vec<EventKind>,
    tasks: Vec<usize>,
}

impl SimHost {
    pub(crate) const fn new(clocks: Clocks, rng: Rng) -> Self {
        Self { clocks, rng, suspension: None, is_dead: false }
    }

    pub(crate) const fn is_suspended(&self) -> bool {
        self.suspension.is_some()
    }

    /// Returns the event if the host can handle it now. Postpones it while the host is suspended,
    /// and drops it if the host is dead.
    pub(crate) fn filter_event(&mut self, kind: EventKind) -> Option<EventKind> {
        match &mut self.suspension {
            _ if self.is_dead => None,
            Some(suspension) => {
                suspension.events.push(kind);
                None
            }
            None => Some(kind),
        }
    }

    pub(crate) fn defer_task(&mut self, task: usize) {
        if let Some(suspension) = &mut self.suspension {
            suspension.tasks.push(task);
        }
    }

    pub(crate) fn suspend(&mut self, now: u64) {
        if !self.is_suspended() && !self.is_dead {
            self.clocks.suspend(now);
            self.suspension = Some(Suspension::default());
        }
    }

    pub(crate) fn resume(&mut self, now: u64) -> (Vec<EventKind>, Vec<usize>) {
        self.clocks.resume(now);
        let Suspension { events, tasks } = self.suspension.take().unwrap_or_default();
        (events, tasks)
    }
}

/// A task's access to its host.
#[derive(Clone)]
pub(crate) struct HostHandle {
    pub(crate) sim: Rc<Sim>,
    pub(crate) host: usize,
}

impl Host for HostHandle {
    fn now(&self) -> Instant {
        self.sim.hosts.borrow()[self.host].clocks.read(self.sim.now())
    }

    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> {
        Sleep { handle: self, deadline, timer: None }
    }

    /// Returns random bytes behind a number that is unique to them, so that a history can tell
    /// owners apart.
    fn entropy(&self) -> Result<[u8; 32], NoEntropy> {
        let mut bytes = [0; 32];
        self.sim.hosts.borrow_mut()[self.host].rng.fill(&mut bytes);
        let number = self.sim.checker.borrow_mut().record_entropy(self.sim.polled.get(), &bytes);
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        Ok(bytes)
    }
}

/// A timer.
pub(crate) struct Timer {
    pub(crate) host: usize,
    /// When it is due, by the host's monotonic clock in microseconds.
    due: u64,
    waker: RefCell<Option<Waker>>,
    is_over: Cell<bool>,
}

impl Timer {
    pub(crate) const fn is_over(&self) -> bool {
        self.is_over.get()
    }
}

struct Sleep<'a> {
    handle: &'a HostHandle,
    deadline: Instant,
    timer: Option<Rc<Timer>>,
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let now = self.handle.now();
        if now.has_reached(self.deadline) {
            return Poll::Ready(());
        }
        if let Some(timer) = &self.timer {
            if timer.is_over() {
                return Poll::Ready(());
            }
            timer.waker.borrow_mut().replace(cx.waker().clone());
            return Poll::Pending;
        }
        let time = now.until(self.deadline).min(Duration::from_millis(SLEEP_MAX_MS));
        self.timer = Some(self.handle.sim.timer(self.handle.host, time, cx));
        Poll::Pending
    }
}

impl Drop for Sleep<'_> {
    fn drop(&mut self) {
        if let Some(timer) = self.timer.take() {
            timer.is_over.set(true);
            self.handle.sim.open.set(self.handle.sim.open.get() - 1);
        }
    }
}

impl Sim {
    fn timer(&self, host: usize, time: Duration, cx: &Context<'_>) -> Rc<Timer> {
        let now = self.now();
        let (due, mut at) = {
            let clocks = &self.hosts.borrow()[host].clocks;
            let due = clocks.monotonic(now) + time.as_micros() as u64;
            (due, clocks.time_of(due, now))
        };
        if self.plan.has(Fault::LateTimers) && !self.faults_ended.get() {
            let late = self.hosts.borrow_mut()[host].rng.u64(0..1 << 24);
            // Most timers fire a little late, some by seconds.
            at += late >> (late & 15);
        }
        if self.plan.has_seeded(SeededFault::MissingTimers) {
            at += 5_000_000;
        }
        let waker = RefCell::new(Some(cx.waker().clone()));
        let timer = Rc::new(Timer { host, due, waker, is_over: Cell::new(false) });
        self.open.set(self.open.get() + 1);
        self.at(at, EventKind::TimerFires(Rc::clone(&timer)));
        timer
    }

    /// Fires a timer, unless its clock has stood still meanwhile: then schedules it again.
    pub(crate) fn fire_timer(&self, timer: &Rc<Timer>) {
        let now = self.now();
        let at = {
            let clocks = &self.hosts.borrow()[timer.host].clocks;
            (clocks.monotonic(now) < timer.due).then(|| clocks.time_of(timer.due, now))
        };
        if let Some(at) = at {
            return self.at(at, EventKind::TimerFires(Rc::clone(timer)));
        }
        timer.is_over.set(true);
        if let Some(waker) = timer.waker.take() {
            waker.wake();
        }
    }
}
