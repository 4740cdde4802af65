//! A host: its clocks, its timers and its entropy. A host may stand still.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use edgelatch::host::{Host, NoEntropy};
use edgelatch::time::Instant;
use fastrand::Rng;

use super::clocks::Clocks;
use super::engine::{Sim, What};
use super::faults::Fault;
use super::plan::Tooth;

/// The longest single sleep, in milliseconds. Equals the limit in `src/host`, so that clients read
/// their clocks again soon after a host has stood still.
pub(crate) const SLEEP_MAX_MS: u64 = 5_000;

/// A host that runs clients.
pub(crate) struct Machine {
    pub(crate) clocks: Clocks,
    pub(crate) rng: Rng,
    standing: Option<Standing>,
    pub(crate) is_dead: bool,
}

/// The events and tasks of a host that it postpones while it stands still.
#[derive(Default)]
struct Standing {
    events: Vec<What>,
    tasks: Vec<usize>,
}

impl Machine {
    pub(crate) const fn new(clocks: Clocks, rng: Rng) -> Self {
        Self { clocks, rng, standing: None, is_dead: false }
    }

    pub(crate) const fn stands(&self) -> bool {
        self.standing.is_some()
    }

    /// Filters an event for this host: postpones it while the host stands still, and drops it when
    /// the host is dead.
    pub(crate) fn meets(&mut self, what: What) -> Option<What> {
        match &mut self.standing {
            _ if self.is_dead => None,
            Some(standing) => {
                standing.events.push(what);
                None
            }
            None => Some(what),
        }
    }

    pub(crate) fn slept(&mut self, task: usize) {
        if let Some(standing) = &mut self.standing {
            standing.tasks.push(task);
        }
    }

    pub(crate) fn stand(&mut self, now: u64) {
        if !self.stands() && !self.is_dead {
            self.clocks.stand(now);
            self.standing = Some(Standing::default());
        }
    }

    pub(crate) fn go_on(&mut self, now: u64) -> (Vec<What>, Vec<usize>) {
        self.clocks.go_on(now);
        let Standing { events, tasks } = self.standing.take().unwrap_or_default();
        (events, tasks)
    }
}

/// A task's access to its host.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) sim: Rc<Sim>,
    pub(crate) host: usize,
}

impl Host for Place {
    fn now(&self) -> Instant {
        self.sim.machines.borrow()[self.host].clocks.read(self.sim.now())
    }

    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> {
        Sleep { place: self, deadline, alarm: None }
    }

    /// Returns random bytes behind a number that is unique to them, so that a history can tell
    /// owners apart.
    fn entropy(&self) -> Result<[u8; 32], NoEntropy> {
        let mut bytes = [0; 32];
        self.sim.machines.borrow_mut()[self.host].rng.fill(&mut bytes);
        let number = self.sim.witness.borrow_mut().draws(self.sim.polled.get(), &bytes);
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        Ok(bytes)
    }
}

/// A timer.
pub(crate) struct Alarm {
    pub(crate) host: usize,
    /// When it is due, by the host's monotonic clock in microseconds.
    due: u64,
    waker: RefCell<Option<Waker>>,
    is_over: Cell<bool>,
}

impl Alarm {
    pub(crate) const fn is_over(&self) -> bool {
        self.is_over.get()
    }
}

struct Sleep<'a> {
    place: &'a Place,
    deadline: Instant,
    alarm: Option<Rc<Alarm>>,
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let now = self.place.now();
        if now.has_reached(self.deadline) {
            return Poll::Ready(());
        }
        if let Some(alarm) = &self.alarm {
            if alarm.is_over() {
                return Poll::Ready(());
            }
            alarm.waker.borrow_mut().replace(cx.waker().clone());
            return Poll::Pending;
        }
        let time = now.until(self.deadline).min(Duration::from_millis(SLEEP_MAX_MS));
        self.alarm = Some(self.place.sim.alarm(self.place.host, time, cx));
        Poll::Pending
    }
}

impl Drop for Sleep<'_> {
    fn drop(&mut self) {
        if let Some(alarm) = self.alarm.take() {
            alarm.is_over.set(true);
            self.place.sim.open.set(self.place.sim.open.get() - 1);
        }
    }
}

impl Sim {
    fn alarm(&self, host: usize, time: Duration, cx: &Context<'_>) -> Rc<Alarm> {
        let now = self.now();
        let (due, mut at) = {
            let clocks = &self.machines.borrow()[host].clocks;
            let due = clocks.monotonic(now) + time.as_micros() as u64;
            (due, clocks.when(due, now))
        };
        if self.plan.has(Fault::LateTimers) && !self.healed.get() {
            let late = self.machines.borrow_mut()[host].rng.u64(0..1 << 24);
            // Most timers fire a little late, some by seconds.
            at += late >> (late & 15);
        }
        if self.plan.lacks(Tooth::DeafTimers) {
            at += 5_000_000;
        }
        let waker = RefCell::new(Some(cx.waker().clone()));
        let alarm = Rc::new(Alarm { host, due, waker, is_over: Cell::new(false) });
        self.open.set(self.open.get() + 1);
        self.at(at, What::Rings(Rc::clone(&alarm)));
        alarm
    }

    /// Fires a timer, unless its clock has stood still meanwhile: then schedules it again.
    pub(crate) fn rings(&self, alarm: &Rc<Alarm>) {
        let now = self.now();
        let at = {
            let clocks = &self.machines.borrow()[alarm.host].clocks;
            (clocks.monotonic(now) < alarm.due).then(|| clocks.when(alarm.due, now))
        };
        if let Some(at) = at {
            return self.at(at, What::Rings(Rc::clone(alarm)));
        }
        alarm.is_over.set(true);
        if let Some(waker) = alarm.waker.take() {
            waker.wake();
        }
    }
}
