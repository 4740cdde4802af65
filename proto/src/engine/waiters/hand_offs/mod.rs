//! Simulates the machines of waiters, and which of them is woken, in random orders of events. No
//! order may leave a lock or permits free while a waiter waits for them without a retry.

mod contender;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use super::{RetryOutcome, WaiterId, Waiters};
use crate::machine::{ContentionEstimator, Input, Output, TimeoutReason};
use crate::protocol::calls::{Message, WakePolicy};
use crate::protocol::reply::{Code, Reply};
use crate::time::Instant;
use contender::{Contender, UnderWay};

const CLIENTS: usize = 2;
const WAITERS: usize = 5;
/// The index of the first holder, which is no waiter and has no subscription.
const OUTSIDE_HOLDER: usize = WAITERS;
const LEASE_MS: u64 = 60_000;

#[derive(Default)]
struct Client {
    waiters: Waiters,
    contention: ContentionEstimator,
    confirmed_at: Option<Instant>,
    /// Messages that were published and have not arrived yet.
    in_flight: VecDeque<Message>,
}

impl Client {
    fn has_event(&self, id: WaiterId) -> bool {
        self.waiters.list.iter().any(|waiter| waiter.id == id && waiter.event.is_some())
    }
}

struct Simulation {
    random: fastrand::Rng,
    now: Instant,
    wakes: fn(u32) -> WakePolicy,
    /// The number of permits; 1 for a lock.
    total: u32,
    /// The number of permits that each contender holds, and the outside holder.
    held: [u32; WAITERS + 1],
    /// The number of permits that each of them never releases.
    kept: [u32; WAITERS + 1],
    clients: Vec<Client>,
    contenders: Vec<Contender>,
}

/// An event that may happen next.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Redis executes a request.
    ExecuteRequest(usize),
    /// The reply to a request arrives.
    DeliverReply(usize),
    /// One or several messages arrive.
    DeliverMessages(usize),
    /// A waiter takes its event.
    DeliverEvent(usize),
    /// A timeout is over that is short, or that has been reached.
    Timeout(usize),
    Release(usize),
    Cancel(usize),
    /// A client's stream ends, or is confirmed again.
    ToggleStream(usize),
}

impl Simulation {
    /// Creates a simulation in which the outside holder holds all permits.
    fn new(seed: u64, total: u32, wakes: fn(u32) -> WakePolicy) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let now = Instant::from_millis(5_000, 9_000_000);
        let contenders = (0..WAITERS).map(|_| Contender::new(&mut random, total, now)).collect();
        let clients = (0..CLIENTS).map(|_| Client::default()).collect();
        let mut held = [0; WAITERS + 1];
        held[OUTSIDE_HOLDER] = total;
        let kept = [(); WAITERS + 1].map(|()| random.u32(..total));
        Self { random, now, wakes, total, held, kept, clients, contenders }
    }

    fn free(&self) -> u32 {
        self.total - self.held.iter().sum::<u32>()
    }

    /// Polls a contender's machine as the client's driver does, until it waits or ends.
    fn drive(&mut self, index: usize) {
        let contender = &mut self.contenders[index];
        let client = &mut self.clients[contender.client];
        loop {
            match contender.machine.poll(self.now) {
                Output::Call { call, script, .. } => {
                    if let Some(waiter) = contender.waiter {
                        client.waiters.on_sent(waiter);
                    }
                    let is_announced =
                        script.args().get(11).is_some_and(|channel| !channel.is_empty());
                    contender.sent_at = self.now;
                    let is_acquire = script.script().name == "lock_acquire";
                    contender.under_way =
                        Some(UnderWay { call, is_acquire, is_announced, reply: None });
                }
                Output::Subscribe { .. } => contender.wants_subscription = true,
                Output::Timeout { until, why } => {
                    contender.waits = Some((until, why));
                    contender.on_timeout_set(client, why, self.wakes);
                    return;
                }
                Output::Done(is_served) => {
                    if let Some(waiter) = contender.waiter.take() {
                        if is_served {
                            client.waiters.on_retry_outcome(waiter, RetryOutcome::Acquired);
                        }
                        client.waiters.leave(waiter);
                    }
                    contender.is_over = true;
                    if !is_served {
                        // A grant whose reply did not arrive is undone.
                        self.kept[index] = 0;
                        self.release(index);
                    }
                    return;
                }
            }
        }
    }

    fn handle(&mut self, index: usize, input: Input) {
        self.contenders[index].machine.handle(input, self.now);
        self.drive(index);
    }

    fn publish(&mut self, number: u64, digits: u8) {
        let message = Message { number, digits };
        for client in self.clients.iter_mut().filter(|client| client.confirmed_at.is_some()) {
            client.in_flight.push_back(message);
        }
    }

    fn release(&mut self, index: usize) {
        // The outside holder releases its permits one by one.
        let at_once = if index == OUTSIDE_HOLDER { 1 } else { self.total };
        let count = self.held[index].saturating_sub(self.kept[index]).min(at_once);
        self.held[index] -= count;
        if count > 0 {
            self.publish(if self.is_exclusive() { 0 } else { self.free().into() }, 1);
        }
    }

    fn is_exclusive(&self) -> bool {
        (self.wakes)(1) == WakePolicy::One
    }

    /// Executes one of the possible events, chosen at random; returns `None` if there is none.
    fn step(&mut self, may_disturb: bool) -> Option<Step> {
        let mut steps = Vec::new();
        for (index, contender) in
            self.contenders.iter_mut().enumerate().filter(|(_, it)| !it.is_over)
        {
            let waits = contender.waits;
            match &contender.under_way {
                Some(UnderWay { reply: None, .. }) => steps.push(Step::ExecuteRequest(index)),
                Some(_) => steps.push(Step::DeliverReply(index)),
                None if waits
                    .is_some_and(|(until, why)| is_short(why) || self.now.has_reached(until)) =>
                {
                    steps.push(Step::Timeout(index))
                }
                None => {}
            }
            if contender
                .waiter
                .is_some_and(|waiter| self.clients[contender.client].has_event(waiter))
            {
                steps.push(Step::DeliverEvent(index));
            }
            if may_disturb && !contender.is_cancelled && self.random.u8(..) < 4 {
                steps.push(Step::Cancel(index));
            }
        }
        for (index, client) in self.clients.iter().enumerate() {
            if !client.in_flight.is_empty() {
                steps.push(Step::DeliverMessages(index));
            }
            let may_open = client.confirmed_at.is_none() && !client.waiters.list.is_empty();
            if may_open || may_disturb && client.confirmed_at.is_some() && self.random.u8(..) < 4 {
                steps.push(Step::ToggleStream(index));
            }
        }
        // A contender that is done and the outside holder may release what they do not keep.
        let may_release = |index: usize| self.contenders.get(index).is_none_or(|it| it.is_over);
        let releasing = (0..=OUTSIDE_HOLDER)
            .filter(|index| self.held[*index] > self.kept[*index] && may_release(*index));
        steps.extend(releasing.map(Step::Release));
        let step = self.random.choice(&steps).copied()?;
        self.now = self.now + Duration::from_millis(1);
        self.execute(step);
        for client in self.clients.iter_mut().filter(|client| client.waiters.list.is_empty()) {
            // A stream is closed with its last waiter.
            (client.confirmed_at, client.in_flight) = (None, VecDeque::new());
        }
        Some(step)
    }

    fn execute(&mut self, step: Step) {
        match step {
            Step::ExecuteRequest(index) => self.execute_request(index),
            Step::DeliverReply(index) => {
                let UnderWay { call, reply, .. } = self.contenders[index].under_way.take().unwrap();
                self.handle(index, Input::Reply { call, reply: reply.unwrap() });
            }
            Step::DeliverMessages(index) => {
                let client = &mut self.clients[index];
                let count = self.random.usize(1..=client.in_flight.len());
                client.in_flight.drain(..count).for_each(|message| {
                    client.waiters.on_message(message, Some(&mut client.contention), self.now)
                });
            }
            Step::DeliverEvent(index) => {
                let Contender { client, waiter, .. } = self.contenders[index];
                let event = waiter.and_then(|waiter| {
                    let client = &mut self.clients[client];
                    client.waiters.take_input(waiter, client.contention.retry_spread())
                });
                self.handle(index, event.unwrap().1);
            }
            Step::Timeout(index) => {
                let (until, _) = self.contenders[index].waits.unwrap();
                self.now = self.now + self.now.until(until);
                self.handle(index, Input::Timeout);
            }
            Step::Release(index) => self.release(index),
            Step::Cancel(index) => {
                self.contenders[index].is_cancelled = true;
                self.handle(index, Input::Cancelled);
            }
            Step::ToggleStream(index) => {
                let client = &mut self.clients[index];
                client.confirmed_at =
                    if client.confirmed_at.is_none() { Some(self.now) } else { None };
                match client.confirmed_at {
                    Some(_) => client.waiters.on_subscribed(),
                    None => {
                        client.in_flight.clear();
                        // A stream that is reopened at the end of its time notifies no waiter.
                        if self.random.bool() {
                            client.waiters.on_unsubscribed();
                        }
                    }
                }
            }
        }
    }

    fn execute_request(&mut self, index: usize) {
        if self.contenders[index].under_way.as_ref().is_some_and(|call| !call.is_acquire) {
            self.kept[index] = 0;
            self.release(index);
        }
        let free = self.free();
        let contender = &mut self.contenders[index];
        let under_way = contender.under_way.as_mut().unwrap();
        let code = match self.held[index] {
            _ if !under_way.is_acquire => Code::Nothing,
            0 if contender.wants > free => Code::No,
            0 => Code::Done,
            _ => Code::AlreadyYours,
        };
        let value = if code == Code::No { "1" } else { "1795276611386445" };
        under_way.reply = Some(Reply {
            code,
            value: value.into(),
            ms: i64::try_from(LEASE_MS).unwrap(),
            server_ms: 1_000_000,
            acknowledged: None,
        });
        let is_announced = under_way.is_announced;
        if code == Code::Done {
            self.held[index] = contender.wants;
            if is_announced && self.is_exclusive() {
                self.publish(LEASE_MS * 1000 + CLIENTS as u64, 8);
            } else if is_announced && self.free() == 0 {
                self.publish(0, 2);
            }
        }
    }
}

/// Whether a waiter with this timeout retries soon, whatever messages it receives.
const fn is_short(why: TimeoutReason) -> bool {
    matches!(why, TimeoutReason::BackOff | TimeoutReason::Notification)
}

/// Runs a simulation for each seed from 0 to `seeds`.
fn simulate(total: u32, wakes: fn(u32) -> WakePolicy, seeds: u64) {
    for seed in 0..seeds {
        let mut simulation = Simulation::new(seed, total, wakes);
        (0..WAITERS).for_each(|index| simulation.drive(index));
        let mut steps = Vec::new();
        while let Some(step) = simulation.step(steps.len() < 40) {
            steps.push(step);
            assert!(steps.len() < 10_000, "seed {seed}: there is no end of it");
        }
        // A contender that could be served now has received no message of it, and retries only at
        // the end of its wait.
        let free = simulation.free();
        for contender in simulation.contenders.iter().filter(|it| !it.is_over && it.wants <= free) {
            let waits = contender.waits.map(|(_, why)| why);
            assert_eq!(waits, Some(TimeoutReason::LastTry), "seed {seed}: {steps:?}");
        }
    }
}

/// S74.
// Slow: 30,000 random orders of the events of five machines.
#[test]
fn no_waiter_misses_the_release_of_a_lock() {
    simulate(1, |_| WakePolicy::One, 30_000);
}

// Slow: 30,000 random orders of the events of five machines.
#[test]
fn no_waiter_misses_available_permits() {
    simulate(3, WakePolicy::Permits, 30_000);
}
