//! Virtual time: a queue of events, and the tasks that they wake. Runs on one thread; the seed
//! determines everything.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering as Memory};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use super::host::{Alarm, Machine};
use super::plan::Plan;
use super::redis::Node;
use super::seen::{Seen, Sight};
use super::story::Story;
use super::strikes::Strike;
use super::wire::{Feed, Letter, Mailbox, Outcome};
use super::witness::Witness;
use test_support::history::History;

/// More events than any schedule needs that ends.
const EVENTS_MAX: u32 = 60_000;

/// One running schedule.
pub(crate) struct Sim {
    pub(crate) plan: Plan,
    now: Cell<u64>,
    events: RefCell<BinaryHeap<Event>>,
    numbered: Cell<u32>,
    tasks: RefCell<Vec<Task>>,
    ready: Ready,
    /// The index of the task that is polled.
    pub(crate) polled: Cell<usize>,
    pub(crate) machines: RefCell<Vec<Machine>>,
    pub(crate) nodes: RefCell<Vec<Node>>,
    pub(crate) witness: RefCell<Witness>,
    /// What the clients observe.
    pub(crate) history: RefCell<History>,
    pub(crate) seen: Seen,
    pub(crate) story: Option<RefCell<Story>>,
    pub(crate) healed: Cell<bool>,
    /// The requests, sleeps and streams that a client still owns.
    pub(crate) open: Cell<usize>,
}

/// An event, and when it is due.
struct Event {
    at: u64,
    number: u32,
    what: What,
}

pub(crate) enum What {
    Rings(Rc<Alarm>),
    Arrives(Rc<Letter>, Option<Rc<Mailbox>>),
    Answers(Rc<Mailbox>, Outcome),
    /// Bytes of a stream, or its end.
    Heard(Rc<Feed>, Option<Vec<u8>>),
    Strikes(Strike),
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
    bell: Arc<Bell>,
}

struct Bell {
    task: usize,
    rung: AtomicBool,
    ready: Ready,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.rung.swap(true, Memory::Relaxed) {
            self.ready.lock().unwrap().push_back(self.task);
        }
    }
}

impl Sim {
    pub(crate) fn new(plan: Plan, machines: Vec<Machine>, nodes: Vec<Node>, tells: bool) -> Self {
        Self {
            now: Cell::new(0),
            events: RefCell::default(),
            numbered: Cell::new(0),
            tasks: RefCell::default(),
            ready: Ready::default(),
            polled: Cell::new(0),
            machines: RefCell::new(machines),
            witness: RefCell::new(Witness::new()),
            history: RefCell::default(),
            nodes: RefCell::new(nodes),
            seen: Seen::default(),
            story: tells.then(RefCell::default),
            healed: Cell::new(false),
            open: Cell::new(0),
            plan,
        }
    }

    /// Microseconds since the schedule began.
    pub(crate) fn now(&self) -> u64 {
        self.now.get()
    }

    /// Schedules an event in `delay` microseconds.
    pub(crate) fn after(&self, delay: u64, what: What) {
        self.at(self.now() + delay, what);
    }

    pub(crate) fn at(&self, at: u64, what: What) {
        let number = self.numbered.get();
        self.numbered.set(number + 1);
        self.events.borrow_mut().push(Event { at, number, what });
    }

    /// Starts a task on a host.
    pub(crate) fn spawn(
        &self,
        host: usize,
        future: impl std::future::Future<Output = ()> + 'static,
    ) {
        let mut tasks = self.tasks.borrow_mut();
        let (task, ready) = (tasks.len(), Arc::clone(&self.ready));
        let bell = Arc::new(Bell { task, rung: AtomicBool::new(false), ready });
        bell.wake_by_ref();
        tasks.push(Task { host, future: Some(Box::pin(future)), bell });
        self.witness.borrow_mut().operations.push(0);
    }

    /// Adds a line to the history, if this run records one.
    pub(crate) fn tell(&self, line: impl FnOnce() -> String) {
        if let Some(story) = &self.story {
            story.borrow_mut().add(self.now(), line());
        }
    }

    /// Records that a promise was broken.
    pub(crate) fn broken(&self, what: impl FnOnce() -> String) {
        let mut witness = self.witness.borrow_mut();
        if witness.broken.is_none() {
            let what = what();
            self.tell(|| format!("BROKEN  {what}"));
            witness.broken = Some(what);
        }
    }

    pub(crate) fn is_broken(&self) -> bool {
        !self.plan.is_blind && self.witness.borrow().broken.is_some()
    }

    /// Plays until no event is left.
    pub(crate) fn play(self: &Rc<Self>) {
        for _ in 0..EVENTS_MAX {
            self.poll_all();
            if self.is_broken() {
                return;
            }
            let Some(event) = self.next() else { return };
            self.now.set(event.at);
            self.happens(event.what);
            self.look();
        }
        self.broken(|| "I7 it goes on and on".into());
    }

    /// Returns the next event that has an effect. Skips cancelled timers, so that time does not
    /// advance for them.
    fn next(&self) -> Option<Event> {
        let mut events = self.events.borrow_mut();
        while let Some(event) = events.pop() {
            let is_void = matches!(&event.what, What::Rings(alarm) if alarm.is_over());
            if !is_void {
                return Some(event);
            }
        }
        None
    }

    fn happens(self: &Rc<Self>, what: What) {
        let host = match &what {
            What::Rings(alarm) => Some(alarm.host),
            What::Answers(mailbox, _) => Some(mailbox.host),
            What::Heard(feed, _) => Some(feed.host),
            What::Arrives(..) | What::Strikes(_) => None,
        };
        let what = match host {
            Some(host) => self.machines.borrow_mut()[host].meets(what),
            None => Some(what),
        };
        match what {
            None => {}
            Some(What::Rings(alarm)) => self.rings(&alarm),
            Some(What::Answers(mailbox, outcome)) => mailbox.put(outcome),
            Some(What::Heard(feed, bytes)) => feed.put(bytes),
            Some(What::Arrives(letter, mailbox)) => self.arrives(&letter, mailbox),
            Some(What::Strikes(strike)) => self.strikes(strike),
        }
    }

    fn poll_all(&self) {
        loop {
            let Some(task) = self.ready.lock().unwrap().pop_front() else { return };
            let (future, bell, host) = {
                let task = &mut self.tasks.borrow_mut()[task];
                (task.future.take(), Arc::clone(&task.bell), task.host)
            };
            bell.rung.store(false, Memory::Relaxed);
            let Some(mut future) = future else { continue };
            if self.machines.borrow().get(host).is_some_and(Machine::stands) {
                // Its host stands still: the task is polled when the host continues.
                self.machines.borrow_mut()[host].slept(task);
                self.tasks.borrow_mut()[task].future = Some(future);
                continue;
            }
            self.polled.set(task);
            let waker = Waker::from(bell);
            if future.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Pending {
                self.tasks.borrow_mut()[task].future = Some(future);
            }
            self.look();
        }
    }

    pub(crate) fn wake(&self, task: usize) {
        let bell = Arc::clone(&self.tasks.borrow()[task].bell);
        bell.wake_by_ref();
    }

    /// Drops all tasks of a host.
    pub(crate) fn drop_tasks(&self, host: usize) {
        let mut dropped = Vec::new();
        for task in self.tasks.borrow_mut().iter_mut().filter(|task| task.host == host) {
            dropped.extend(task.future.take());
        }
        self.seen.count(Sight::TasksDropped, dropped.len() as u64);
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
        self.witness.borrow_mut().beliefs.clear();
        let events = std::mem::take(&mut *self.events.borrow_mut());
        drop(events);
    }
}
