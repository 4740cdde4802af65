//! Simulates the machines of waiters, and which of them is woken, in random orders of events. No
//! order may leave a lock or permits free while a waiter waits for them without a retry.

mod contender;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use super::Waiters;
use crate::machine::{ContentionEstimator, Input, Output, TimeoutReason};
use crate::protocol::calls::{Message, WakePolicy};
use crate::protocol::reply::{Code, Reply};
use crate::time::Instant;
use contender::{Contender, UnderWay};

const CLIENTS: usize = 2;
const WAITERS: usize = 5;
/// The index of a holder that has no subscription.
const STRANGER: usize = WAITERS;
const LEASE_MS: u64 = 60_000;

#[derive(Default)]
struct Ear {
    waiters: Waiters,
    contention: ContentionEstimator,
    stands: Option<Instant>,
    /// Messages that were published and have not arrived yet.
    coming: VecDeque<Message>,
}

impl Ear {
    fn has_news(&self, place: u64) -> bool {
        self.waiters.list.iter().any(|waiter| waiter.place == place && waiter.event.is_some())
    }
}

struct World {
    random: fastrand::Rng,
    now: Instant,
    wakes: fn(u32) -> WakePolicy,
    /// The number of permits; 1 for a lock.
    total: u32,
    /// The number of permits that each contender holds, and the stranger.
    held: [u32; WAITERS + 1],
    /// The number of permits that each of them never releases.
    kept: [u32; WAITERS + 1],
    ears: Vec<Ear>,
    contenders: Vec<Contender>,
}

/// An event that may happen next.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Redis executes a request.
    Runs(usize),
    /// The reply to a request arrives.
    Answers(usize),
    /// One or several messages arrive.
    Comes(usize),
    /// A waiter is polled.
    Polled(usize),
    /// A timeout is over that is short, or that has been reached.
    WakePolicy(usize),
    Releases(usize),
    Cancels(usize),
    /// A client's stream ends, or is confirmed again.
    Turns(usize),
}

impl World {
    /// Creates a world in which the stranger holds all permits.
    fn new(seed: u64, total: u32, wakes: fn(u32) -> WakePolicy) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let now = Instant::from_millis(5_000, 9_000_000);
        let contenders = (0..WAITERS).map(|_| Contender::new(&mut random, total, now)).collect();
        let ears = (0..CLIENTS).map(|_| Ear::default()).collect();
        let mut held = [0; WAITERS + 1];
        held[STRANGER] = total;
        let kept = [(); WAITERS + 1].map(|()| random.u32(..total));
        Self { random, now, wakes, total, held, kept, ears, contenders }
    }

    fn free(&self) -> u32 {
        self.total - self.held.iter().sum::<u32>()
    }

    /// Polls a contender's machine as the client's driver does, until it waits or ends.
    fn drives(&mut self, who: usize) {
        let contender = &mut self.contenders[who];
        let ear = &mut self.ears[contender.client];
        loop {
            match contender.machine.poll(self.now) {
                Output::Call { call, script, .. } => {
                    if let Some(place) = contender.place {
                        ear.waiters.on_sent(place);
                    }
                    let announces =
                        script.args().get(11).is_some_and(|channel| !channel.is_empty());
                    contender.asked_at = self.now;
                    let takes = script.script().name == "lock_acquire";
                    contender.under_way = Some(UnderWay { call, takes, announces, reply: None });
                }
                Output::Subscribe { .. } => contender.wanted = true,
                Output::Timeout { until, why } => {
                    contender.waits = Some((until, why));
                    contender.listens(ear, why, self.wakes);
                    return;
                }
                Output::Done(is_served) => {
                    if let Some(place) = contender.place.take() {
                        if is_served {
                            ear.waiters.retry_ended(place, false);
                        }
                        ear.waiters.leave(place);
                    }
                    contender.is_over = true;
                    if !is_served {
                        // A grant whose reply did not arrive is undone.
                        self.kept[who] = 0;
                        self.released(who);
                    }
                    return;
                }
            }
        }
    }

    fn tells(&mut self, who: usize, input: Input) {
        self.contenders[who].machine.handle(input, self.now);
        self.drives(who);
    }

    fn publishes(&mut self, number: u64, digits: u8) {
        let message = Message { number, digits };
        for ear in self.ears.iter_mut().filter(|ear| ear.stands.is_some()) {
            ear.coming.push_back(message);
        }
    }

    fn released(&mut self, who: usize) {
        // The stranger releases its permits one by one.
        let at_once = if who == STRANGER { 1 } else { self.total };
        let count = self.held[who].saturating_sub(self.kept[who]).min(at_once);
        self.held[who] -= count;
        if count > 0 {
            self.publishes(if self.excludes() { 0 } else { self.free().into() }, 1);
        }
    }

    fn excludes(&self) -> bool {
        (self.wakes)(1) == WakePolicy::One
    }

    /// Executes one of the possible events, chosen at random; returns `None` if there is none.
    fn step(&mut self, disturbs: bool) -> Option<Step> {
        let mut steps = Vec::new();
        for (who, contender) in self.contenders.iter_mut().enumerate().filter(|(_, it)| !it.is_over)
        {
            let waits = contender.waits;
            match &contender.under_way {
                Some(UnderWay { reply: None, .. }) => steps.push(Step::Runs(who)),
                Some(_) => steps.push(Step::Answers(who)),
                None if waits
                    .is_some_and(|(until, why)| is_short(why) || self.now.has_reached(until)) =>
                {
                    steps.push(Step::WakePolicy(who))
                }
                None => {}
            }
            if contender.place.is_some_and(|place| self.ears[contender.client].has_news(place)) {
                steps.push(Step::Polled(who));
            }
            if disturbs && !contender.is_cancelled && self.random.u8(..) < 4 {
                steps.push(Step::Cancels(who));
            }
        }
        for (client, ear) in self.ears.iter().enumerate() {
            if !ear.coming.is_empty() {
                steps.push(Step::Comes(client));
            }
            let may_open = ear.stands.is_none() && !ear.waiters.list.is_empty();
            if may_open || disturbs && ear.stands.is_some() && self.random.u8(..) < 4 {
                steps.push(Step::Turns(client));
            }
        }
        // A contender that is done, and the stranger, may release what they do not keep.
        let knows = |who: usize| self.contenders.get(who).is_none_or(|it| it.is_over);
        let lets_go = (0..=STRANGER).filter(|who| self.held[*who] > self.kept[*who] && knows(*who));
        steps.extend(lets_go.map(Step::Releases));
        let step = self.random.choice(&steps).copied()?;
        self.now = self.now + Duration::from_millis(1);
        self.does(step);
        for ear in self.ears.iter_mut().filter(|ear| ear.waiters.list.is_empty()) {
            // A stream is closed with its last waiter.
            (ear.stands, ear.coming) = (None, VecDeque::new());
        }
        Some(step)
    }

    fn does(&mut self, step: Step) {
        match step {
            Step::Runs(who) => self.runs(who),
            Step::Answers(who) => {
                let UnderWay { call, reply, .. } = self.contenders[who].under_way.take().unwrap();
                self.tells(who, Input::Reply { call, reply: reply.unwrap() });
            }
            Step::Comes(client) => {
                let ear = &mut self.ears[client];
                let count = self.random.usize(1..=ear.coming.len());
                ear.coming.drain(..count).for_each(|message| {
                    ear.waiters.on_message(message, Some(&mut ear.contention), self.now)
                });
            }
            Step::Polled(who) => {
                let Contender { client, place, .. } = self.contenders[who];
                let news = place.and_then(|place| {
                    let ear = &mut self.ears[client];
                    ear.waiters.take_input(place, ear.contention.within())
                });
                self.tells(who, news.unwrap().1);
            }
            Step::WakePolicy(who) => {
                let (until, _) = self.contenders[who].waits.unwrap();
                self.now = self.now + self.now.until(until);
                self.tells(who, Input::Timeout);
            }
            Step::Releases(who) => self.released(who),
            Step::Cancels(who) => {
                self.contenders[who].is_cancelled = true;
                self.tells(who, Input::Cancelled);
            }
            Step::Turns(client) => {
                let ear = &mut self.ears[client];
                ear.stands = if ear.stands.is_none() { Some(self.now) } else { None };
                match ear.stands {
                    Some(_) => ear.waiters.on_subscribed(),
                    None => {
                        ear.coming.clear();
                        // A stream that is reopened at the end of its time notifies no waiter.
                        if self.random.bool() {
                            ear.waiters.on_unsubscribed();
                        }
                    }
                }
            }
        }
    }

    fn runs(&mut self, who: usize) {
        if self.contenders[who].under_way.as_ref().is_some_and(|call| !call.takes) {
            self.kept[who] = 0;
            self.released(who);
        }
        let free = self.free();
        let contender = &mut self.contenders[who];
        let under_way = contender.under_way.as_mut().unwrap();
        let code = match self.held[who] {
            _ if !under_way.takes => Code::Nothing,
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
        let announces = under_way.announces;
        if code == Code::Done {
            self.held[who] = contender.wants;
            if announces && self.excludes() {
                self.publishes(LEASE_MS * 1000 + CLIENTS as u64, 8);
            } else if announces && self.free() == 0 {
                self.publishes(0, 2);
            }
        }
    }
}

/// Whether a waiter with this timeout retries soon, whatever messages it receives.
const fn is_short(why: TimeoutReason) -> bool {
    matches!(why, TimeoutReason::BackOff | TimeoutReason::Notification)
}

/// Runs a world for each seed from 0 to `seeds`.
fn happen(total: u32, wakes: fn(u32) -> WakePolicy, seeds: u64) {
    for seed in 0..seeds {
        let mut world = World::new(seed, total, wakes);
        (0..WAITERS).for_each(|who| world.drives(who));
        let mut steps = Vec::new();
        while let Some(step) = world.step(steps.len() < 40) {
            steps.push(step);
            assert!(steps.len() < 10_000, "seed {seed}: there is no end of it");
        }
        // A contender that could be served now has received no message of it, and retries only at
        // the end of its wait.
        let free = world.free();
        for contender in world.contenders.iter().filter(|it| !it.is_over && it.wants <= free) {
            let waits = contender.waits.map(|(_, why)| why);
            assert_eq!(waits, Some(TimeoutReason::LastTry), "seed {seed}: {steps:?}");
        }
    }
}

/// S74.
// Slow: 30,000 random orders of the events of five machines.
#[test]
fn no_waiter_misses_the_release_of_a_lock() {
    happen(1, |_| WakePolicy::One, 30_000);
}

// Slow: 30,000 random orders of the events of five machines.
#[test]
fn no_waiter_misses_available_permits() {
    happen(3, WakePolicy::Permits, 30_000);
}
