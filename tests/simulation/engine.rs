//! Virtual time: a queue of events, and the tasks that they wake. Runs on one thread; the seed
//! determines everything.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering as MemoryOrdering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use super::checker::Checker;
use super::coverage::{CoverPoint, Coverage};
use super::host::{SimHost, Timer};
use super::host_fault::HostFault;
use super::plan::Plan;
use super::redis::Node;
use super::subscription::Subscription;
use super::trace::Trace;
use super::transport::{Outcome, ReplySlot, SentRequest};
use test_support::history::History;

/// More events than any schedule needs that ends.
const EVENTS_MAX: u32 = 60_000;

/// One running schedule.
pub(crate) struct Sim {
    pub(crate) plan: Plan,
    now: Cell<u64>,
    events: RefCell<BinaryHeap<Event>>,
    /// The number of the next event: events at the same time occur in the order of their numbers.
    next_number: Cell<u32>,
    tasks: RefCell<Vec<Task>>,
    ready: Ready,
    /// The index of the task that is polled.
    pub(crate) polled: Cell<usize>,
    pub(crate) hosts: RefCell<Vec<SimHost>>,
    pub(crate) nodes: RefCell<Vec<Node>>,
    pub(crate) checker: RefCell<Checker>,
    /// The observations of the clients, for the checker of histories.
    pub(crate) history: RefCell<History>,
    /// The host of each acquisition, or of each call to a latch, in the history; `None` for
    /// Redisson's.
    pub(crate) callers: RefCell<Vec<Option<usize>>>,
    pub(crate) coverage: Coverage,
    pub(crate) trace: Option<RefCell<Trace>>,
    pub(crate) faults_ended: Cell<bool>,
    /// The requests, sleeps and streams that a client still owns.
    pub(crate) open: Cell<usize>,
}

/// An event, and when it is due.
struct Event {
    at: u64,
    number: u32,
    kind: EventKind,
}

pub(crate) enum EventKind {
    TimerFires(Rc<Timer>),
    RequestArrives(Rc<SentRequest>, Option<Rc<ReplySlot>>),
    ReplyArrives(Rc<ReplySlot>, Outcome),
    /// Bytes of a stream, or its end.
    StreamBytes(Rc<Subscription>, Option<Vec<u8>>),
    HostFault(HostFault),
}

/// Orders events for the max-heap: the earlier is the greater; at the same time, the one scheduled
/// first.
impl Ord for Event {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}
impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Event {}

type Future = Pin<Box<dyn std::future::Future<Output = ()>>>;
type Ready = Arc<Mutex<VecDeque<usize>>>;

struct Task {
    host: usize,
    future: Option<Future>,
    task_waker: Arc<TaskWaker>,
}

struct TaskWaker {
    task: usize,
    is_woken: AtomicBool,
    ready: Ready,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_woken.swap(true, MemoryOrdering::Relaxed) {
            self.ready.lock().unwrap().push_back(self.task);
        }
    }
}

impl Sim {
    pub(crate) fn new(plan: Plan, hosts: Vec<SimHost>, nodes: Vec<Node>, with_trace: bool) -> Self {
        Self {
            now: Cell::new(0),
            events: RefCell::default(),
            next_number: Cell::new(0),
            tasks: RefCell::default(),
            ready: Ready::default(),
            polled: Cell::new(0),
            hosts: RefCell::new(hosts),
            checker: RefCell::new(Checker::new()),
            history: RefCell::default(),
            callers: RefCell::default(),
            nodes: RefCell::new(nodes),
            coverage: Coverage::default(),
            trace: with_trace.then(RefCell::default),
            faults_ended: Cell::new(false),
            open: Cell::new(0),
            plan,
        }
    }

    /// Microseconds since the schedule began.
    pub(crate) fn now(&self) -> u64 {
        self.now.get()
    }

    /// Schedules an event in `delay` microseconds.
    pub(crate) fn after(&self, delay: u64, kind: EventKind) {
        self.at(self.now() + delay, kind);
    }

    pub(crate) fn at(&self, at: u64, kind: EventKind) {
        let number = self.next_number.get();
        self.next_number.set(number + 1);
        self.events.borrow_mut().push(Event { at, number, kind });
    }

    /// Starts a task on a host.
    pub(crate) fn spawn(
        &self,
        host: usize,
        future: impl std::future::Future<Output = ()> + 'static,
    ) {
        let mut tasks = self.tasks.borrow_mut();
        let (task, ready) = (tasks.len(), Arc::clone(&self.ready));
        let task_waker = Arc::new(TaskWaker { task, is_woken: AtomicBool::new(false), ready });
        task_waker.wake_by_ref();
        tasks.push(Task { host, future: Some(Box::pin(future)), task_waker });
        self.checker.borrow_mut().operations.push(0);
    }

    /// Adds a line to the trace, if this run records one.
    pub(crate) fn trace(&self, line: impl FnOnce() -> String) {
        if let Some(trace) = &self.trace {
            trace.borrow_mut().add(self.now(), line());
        }
    }

    /// Records that a promise was broken.
    pub(crate) fn fail(&self, what: impl FnOnce() -> String) {
        let mut checker = self.checker.borrow_mut();
        if checker.violation.is_none() {
            let what = what();
            self.trace(|| format!("BROKEN  {what}"));
            checker.violation = Some(what);
        }
    }

    pub(crate) fn has_violation(&self) -> bool {
        !self.plan.checks_history_only && self.checker.borrow().violation.is_some()
    }

    /// Plays until no event is left.
    pub(crate) fn play(self: &Rc<Self>) {
        for _ in 0..EVENTS_MAX {
            self.poll_all();
            if self.has_violation() {
                return;
            }
            let Some(event) = self.next_event() else { return };
            self.now.set(event.at);
            self.dispatch(event.kind);
            self.check_leases();
        }
        self.fail(|| "I7 the schedule does not end".into());
    }

    /// Returns the next event that has an effect. Skips cancelled timers, so that time does not
    /// advance for them.
    fn next_event(&self) -> Option<Event> {
        let mut events = self.events.borrow_mut();
        while let Some(event) = events.pop() {
            let is_void = matches!(&event.kind, EventKind::TimerFires(timer) if timer.is_over());
            if !is_void {
                return Some(event);
            }
        }
        None
    }

    fn dispatch(self: &Rc<Self>, kind: EventKind) {
        let host = match &kind {
            EventKind::TimerFires(timer) => Some(timer.host),
            EventKind::ReplyArrives(reply_slot, _) => Some(reply_slot.host),
            EventKind::StreamBytes(subscription, _) => Some(subscription.host),
            EventKind::RequestArrives(..) | EventKind::HostFault(_) => None,
        };
        let kind = match host {
            Some(host) => self.hosts.borrow_mut()[host].filter_event(kind),
            None => Some(kind),
        };
        match kind {
            None => {}
            Some(EventKind::TimerFires(timer)) => self.fire_timer(&timer),
            Some(EventKind::ReplyArrives(reply_slot, outcome)) => reply_slot.put(outcome),
            Some(EventKind::StreamBytes(subscription, bytes)) => subscription.put(bytes),
            Some(EventKind::RequestArrives(sent, reply_slot)) => {
                self.on_request_arrives(&sent, reply_slot)
            }
            Some(EventKind::HostFault(host_fault)) => self.apply_host_fault(host_fault),
        }
    }

    fn poll_all(&self) {
        loop {
            let Some(task) = self.ready.lock().unwrap().pop_front() else { return };
            let (future, task_waker, host) = {
                let task = &mut self.tasks.borrow_mut()[task];
                (task.future.take(), Arc::clone(&task.task_waker), task.host)
            };
            task_waker.is_woken.store(false, MemoryOrdering::Relaxed);
            let Some(mut future) = future else { continue };
            if self.hosts.borrow().get(host).is_some_and(SimHost::is_suspended) {
                // The host is suspended: it polls the task when it resumes.
                self.hosts.borrow_mut()[host].defer_task(task);
                self.tasks.borrow_mut()[task].future = Some(future);
                continue;
            }
            self.polled.set(task);
            let waker = Waker::from(task_waker);
            if future.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Pending {
                self.tasks.borrow_mut()[task].future = Some(future);
            }
            self.check_leases();
        }
    }

    pub(crate) fn wake(&self, task: usize) {
        let task_waker = Arc::clone(&self.tasks.borrow()[task].task_waker);
        task_waker.wake_by_ref();
    }

    /// Drops all tasks of a host.
    pub(crate) fn drop_tasks(&self, host: usize) {
        let mut dropped = Vec::new();
        for task in self.tasks.borrow_mut().iter_mut().filter(|task| task.host == host) {
            dropped.extend(task.future.take());
        }
        self.coverage.count(CoverPoint::TasksDropped, dropped.len() as u64);
    }

    /// Whether any task is unfinished.
    pub(crate) fn is_busy(&self) -> bool {
        self.tasks.borrow().iter().any(|task| task.future.is_some())
    }

    /// Drops all tasks, leases and events. The tasks hold references to the simulation, which would
    /// never be freed otherwise.
    pub(crate) fn clear(&self) {
        let tasks = std::mem::take(&mut *self.tasks.borrow_mut());
        drop(tasks);
        self.checker.borrow_mut().trusted_leases.clear();
        let events = std::mem::take(&mut *self.events.borrow_mut());
        drop(events);
    }
}
