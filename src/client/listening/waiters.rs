//! Who waits at a stream, and whom what is heard concerns.

#[cfg(test)]
mod hand_offs;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::task::Waker;
use core::time::Duration;

use super::crowd::Shared;
use crate::machine::{Input, TimeoutReason};
use crate::protocol::calls::{Message, Taken, Wakes};
use crate::time::Instant;

/// However many permits.
const ANY_PERMITS: Wakes = Wakes::Permits(u32::MAX);

/// Those who wait, in the order of arrival.
#[derive(Default)]
pub(super) struct Waiters {
    list: Vec<Waiter>,
    /// The number of the next.
    next: u64,
    crowd: Arc<Shared>,
    /// When something was last heard.
    heard_at: Option<Instant>,
}

struct Waiter {
    place: u64,
    wakes: Wakes,
    waker: Option<Waker>,
    /// What it has not been told yet.
    news: Option<News>,
    tries: Tries,
    /// It believes that it hears.
    hears: bool,
}

/// What a waiter does about what it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tries {
    /// Nothing.
    Not,
    /// It will ask when its turn has come.
    InTurn,
    /// It asks.
    Now,
}

/// What a waiter is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    Listening,
    Hearing,
    Notified,
    Taken(Option<Duration>),
    Deaf,
}

impl Waiters {
    /// Nobody yet, of all who wait at a channel.
    pub(super) fn of(crowd: Arc<Shared>) -> Self {
        Self { crowd, ..Self::default() }
    }

    /// A new waiter, whose last try left at `asked_at`. `stands`: since when the subscription does.
    pub(super) fn enter(
        &mut self,
        wakes: Wakes,
        asked_at: Instant,
        stands: Option<Instant>,
    ) -> u64 {
        let place = self.next;
        self.next += 1;
        let is_newer = |at: Instant| !asked_at.is_later(at);
        let missed = match wakes {
            // Somebody was told of it, and is served or hands it on.
            Wakes::One => false,
            Wakes::Permits(_) | Wakes::All => {
                stands.is_some_and(is_newer) || self.heard_at.is_some_and(is_newer)
            }
        };
        let news = if missed { News::Listening } else { News::Hearing };
        self.list.push(Waiter {
            place,
            wakes,
            waker: None,
            news: stands.map(|_| news),
            tries: Tries::Not,
            hears: stands.is_some(),
        });
        place
    }

    /// A waiter has gone. Whether others are left.
    pub(super) fn leave(&mut self, place: u64) -> bool {
        if let Some(at) = self.list.iter().position(|waiter| waiter.place == place) {
            let gone = self.list.remove(at);
            if gone.is_called() {
                // It was woken in place of another.
                match gone.wakes {
                    Wakes::One => self.wake_one(Wakes::One),
                    Wakes::Permits(_) => self.wake_one(ANY_PERMITS),
                    Wakes::All => {}
                }
            }
        }
        // Somebody has to go on reading.
        self.calls_a_reader();
        !self.list.is_empty()
    }

    /// A waiter's machine waits for this, whatever it was told.
    pub(super) fn waits(&mut self, place: u64, why: TimeoutReason) {
        match why {
            // What it asks has not been answered yet, or it leaves what it was told to somebody
            // else.
            TimeoutReason::ReplyDue | TimeoutReason::LastTry => {}
            TimeoutReason::Turn => {
                if let Some(waiter) = self.get(place).filter(|waiter| waiter.tries == Tries::Now) {
                    waiter.tries = Tries::InTurn;
                }
            }
            _ => self.tried(place, true),
        }
    }

    /// A waiter asks.
    pub(super) fn asks(&mut self, place: u64) {
        if let Some(waiter) = self.get(place).filter(|waiter| waiter.tries == Tries::InTurn) {
            waiter.tries = Tries::Now;
        }
    }

    /// What came of a waiter that was woken.
    pub(super) fn tried(&mut self, place: u64, refused: bool) {
        let Some(waiter) = self.get(place).filter(|waiter| waiter.tries != Tries::Not) else {
            return;
        };
        waiter.tries = Tries::Not;
        match (waiter.wakes, refused) {
            // There may be more.
            (Wakes::Permits(_), false) => self.wake_one(ANY_PERMITS),
            // Fewer may be had.
            (Wakes::Permits(most), true) => self.wake_one(Wakes::Permits(most - 1)),
            (Wakes::One | Wakes::All, _) => {}
        }
    }

    /// What this waiter has to know now; else its waker is kept.
    pub(super) fn news(&mut self, place: u64) -> Option<Input> {
        let waiter = self.get(place)?;
        let news = waiter.news.take()?;
        if news == News::Notified || news == News::Listening && waiter.wakes == Wakes::One {
            waiter.tries = Tries::Now;
        }
        // Whoever is served with all others needs no turn.
        let takes_turns = waiter.wakes != Wakes::All;
        Some(match news {
            News::Listening => Input::Subscribed { must_retry: true },
            News::Hearing => Input::Subscribed { must_retry: false },
            News::Notified if takes_turns => {
                Input::Notified { within: self.crowd.with(|crowd| crowd.within()) }
            }
            News::Notified => Input::Notified { within: Duration::ZERO },
            News::Taken(lease) => {
                // It asks no more, and what it asks is no matter of the others.
                waiter.tries = Tries::Not;
                Input::AcquiredByOther { lease }
            }
            News::Deaf => Input::Unsubscribed,
        })
    }

    /// Who is to be woken when there is something for this waiter.
    pub(super) fn keep_waker(&mut self, place: u64, waker: &Waker) {
        if let Some(waiter) = self.get(place) {
            waiter.waker = Some(waker.clone());
        }
    }

    /// The subscription stands. What was published before nobody has heard: of those who exclude
    /// each other one asks for all.
    pub(super) fn listen(&mut self) {
        let mut asked = false;
        for waiter in &mut self.list {
            let is_new = !core::mem::replace(&mut waiter.hears, true);
            waiter.news = Some(match waiter.wakes {
                Wakes::All => News::Listening,
                Wakes::Permits(_) if is_new => News::Listening,
                _ if !core::mem::replace(&mut asked, true) => News::Listening,
                _ => News::Hearing,
            });
        }
    }

    /// Nothing will be heard any more.
    pub(super) fn grow_deaf(&mut self) {
        for waiter in self.list.iter_mut().filter(|waiter| waiter.hears) {
            waiter.hears = false;
            waiter.news = Some(News::Deaf);
        }
        self.calls_a_reader();
    }

    /// Something was published: of permits how many there are.
    pub(super) fn message(&mut self, message: Message, now: Instant) {
        // All who wait at one channel read it alike.
        let wakes = self.list.first().map_or(Wakes::All, |waiter| waiter.wakes);
        let taken = Taken::read(message, wakes);
        let asked = self.list.iter().any(|waiter| waiter.tries == Tries::Now);
        self.crowd.with(|crowd| match taken {
            Some(taken) => crowd.takes(taken, asked, now),
            None => crowd.is_told(now),
        });
        if let Some(Taken { lease, .. }) = taken {
            let others = self.list.iter_mut().filter(|waiter| waiter.wakes != Wakes::All);
            return others.for_each(|waiter| waiter.lets_pass(lease));
        }
        self.heard_at = Some(now);
        let all = self.list.iter_mut().filter(|waiter| waiter.wakes == Wakes::All);
        all.for_each(|waiter| waiter.news = Some(News::Notified));
        self.wake_one(Wakes::One);
        self.wake_one(Wakes::Permits(u32::try_from(message.number).unwrap_or(u32::MAX)));
    }

    /// Wakes the first of those who exclude each other, or of those who want as many permits at the
    /// most, who may still be served.
    fn wake_one(&mut self, like: Wakes) {
        let fits = |waiter: &&mut Waiter| match (waiter.wakes, like) {
            (Wakes::Permits(permits), Wakes::Permits(most)) => permits <= most,
            (wakes, _) => wakes == like,
        };
        let mut fitting: Vec<&mut Waiter> = self.list.iter_mut().filter(fits).collect();
        // Whoever is about to ask asks after this.
        if fitting.iter().any(|waiter| waiter.will_ask()) {
            return;
        }
        // A waiter that is trying may have asked too early: it is told when nobody else can be.
        let next = fitting.iter().position(|waiter| !waiter.is_called()).unwrap_or(0);
        if let Some(waiter) = fitting.get_mut(next) {
            waiter.news = Some(News::Notified);
        }
    }

    /// Somebody is to be polled, since nobody else reads.
    fn calls_a_reader(&self) {
        if let Some(waker) = self.list.last().and_then(|waiter| waiter.waker.as_ref()) {
            waker.wake_by_ref();
        }
    }

    /// The wakers of those for whom there is something.
    pub(super) fn due(&mut self) -> Vec<Waker> {
        let due = self.list.iter_mut().filter(|waiter| waiter.news.is_some());
        due.filter_map(|waiter| waiter.waker.take()).collect()
    }

    fn get(&mut self, place: u64) -> Option<&mut Waiter> {
        self.list.iter_mut().find(|waiter| waiter.place == place)
    }
}

impl Waiter {
    /// It was woken in place of others, and has not said yet what came of it.
    fn is_called(&self) -> bool {
        self.tries != Tries::Not || self.news == Some(News::Notified) || self.will_ask()
    }

    /// It asks for all whom it excludes, later than now.
    fn will_ask(&self) -> bool {
        let will = match self.news {
            Some(News::Listening | News::Notified) => true,
            // It will let its turn pass.
            Some(News::Taken(_)) => false,
            Some(News::Hearing | News::Deaf) | None => self.tries == Tries::InTurn,
        };
        will && self.wakes == Wakes::One
    }

    /// Another client acquired it, for `lease` if the message says so.
    fn lets_pass(&mut self, lease: Option<Duration>) {
        // A waiter whose subscription was not yet confirmed must retry once: it may have missed a
        // release.
        if self.is_called() && self.news != Some(News::Listening) {
            self.news = Some(News::Taken(lease));
        }
    }
}
