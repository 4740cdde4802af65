//! The waiters of a stream, and which of them a message concerns.

#[cfg(test)]
mod hand_offs;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::task::Waker;
use core::time::Duration;

use super::crowd::Shared;
use edgelatch_proto::machine::{Input, TimeoutReason};
use edgelatch_proto::protocol::calls::{Message, Taken, Wakes};
use edgelatch_proto::time::Instant;

/// Matches the waiters for any number of permits.
const ANY_PERMITS: Wakes = Wakes::Permits(u32::MAX);

/// The waiters, in the order of arrival.
#[derive(Default)]
pub(super) struct Waiters {
    list: Vec<Waiter>,
    /// The place of the next waiter.
    next: u64,
    crowd: Arc<Shared>,
    /// When the last message arrived that did not announce a grant.
    heard_at: Option<Instant>,
}

struct Waiter {
    place: u64,
    wakes: Wakes,
    waker: Option<Waker>,
    /// The event that its machine has not received yet.
    news: Option<News>,
    tries: Tries,
    /// Whether its machine takes the subscription for confirmed.
    hears: bool,
}

/// The state of the retry that an event has triggered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tries {
    /// No retry is pending.
    Not,
    /// The waiter retries at its random time.
    InTurn,
    /// The waiter retries now, or its retry has no reply yet.
    Now,
}

/// An event for a waiter's machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    Listening,
    Hearing,
    Notified,
    Taken(Option<Duration>),
    Deaf,
}

impl Waiters {
    /// No waiter yet, at a channel with this contention.
    pub(super) fn of(crowd: Arc<Shared>) -> Self {
        Self { crowd, ..Self::default() }
    }

    /// Adds a waiter whose last attempt was sent at `asked_at`, and returns its place. `stands` is
    /// the time when the subscription was confirmed.
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
            // Another waiter was notified; it acquires, or passes the message on.
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

    /// Removes a waiter, and returns whether any is left.
    pub(super) fn leave(&mut self, place: u64) -> bool {
        if let Some(at) = self.list.iter().position(|waiter| waiter.place == place) {
            let gone = self.list.remove(at);
            if gone.is_called() {
                // It was woken in place of another waiter, which is notified now.
                match gone.wakes {
                    Wakes::One => self.wake_one(Wakes::One),
                    Wakes::Permits(_) => self.wake_one(ANY_PERMITS),
                    Wakes::All => {}
                }
            }
        }
        // Another waiter has to go on reading the stream.
        self.calls_a_reader();
        !self.list.is_empty()
    }

    /// Records the reason of the timeout that a waiter's machine has set.
    pub(super) fn waits(&mut self, place: u64, why: TimeoutReason) {
        match why {
            // Its attempt has no reply yet, or it leaves now and passes the message on.
            TimeoutReason::ReplyDue | TimeoutReason::LastTry => {}
            TimeoutReason::Turn => {
                if let Some(waiter) = self.get(place).filter(|waiter| waiter.tries == Tries::Now) {
                    waiter.tries = Tries::InTurn;
                }
            }
            _ => self.tried(place, true),
        }
    }

    /// Records that a waiter's machine sends an attempt.
    pub(super) fn asks(&mut self, place: u64) {
        if let Some(waiter) = self.get(place).filter(|waiter| waiter.tries == Tries::InTurn) {
            waiter.tries = Tries::Now;
        }
    }

    /// Ends the retry of a waiter that was woken, and notifies the next waiter that the same
    /// message may serve.
    pub(super) fn tried(&mut self, place: u64, refused: bool) {
        let Some(waiter) = self.get(place).filter(|waiter| waiter.tries != Tries::Not) else {
            return;
        };
        waiter.tries = Tries::Not;
        match (waiter.wakes, refused) {
            // More permits may be available.
            (Wakes::Permits(_), false) => self.wake_one(ANY_PERMITS),
            // Fewer permits may be available.
            (Wakes::Permits(most), true) => self.wake_one(Wakes::Permits(most - 1)),
            (Wakes::One | Wakes::All, _) => {}
        }
    }

    /// Takes the event that this waiter's machine has to receive, as an input.
    pub(super) fn news(&mut self, place: u64) -> Option<Input> {
        let waiter = self.get(place)?;
        let news = waiter.news.take()?;
        if news == News::Notified || news == News::Listening && waiter.wakes == Wakes::One {
            waiter.tries = Tries::Now;
        }
        // Waiters that are all served at once need not spread their retries.
        let takes_turns = waiter.wakes != Wakes::All;
        Some(match news {
            News::Listening => Input::Subscribed { must_retry: true },
            News::Hearing => Input::Subscribed { must_retry: false },
            News::Notified if takes_turns => {
                Input::Notified { within: self.crowd.with(|crowd| crowd.within()) }
            }
            News::Notified => Input::Notified { within: Duration::ZERO },
            News::Taken(lease) => {
                // It skips its retry, and the outcome of its call under way concerns no other
                // waiter.
                waiter.tries = Tries::Not;
                Input::AcquiredByOther { lease }
            }
            News::Deaf => Input::Unsubscribed,
        })
    }

    /// Stores the waker to wake when there is an event for this waiter.
    pub(super) fn keep_waker(&mut self, place: u64, waker: &Waker) {
        if let Some(waiter) = self.get(place) {
            waiter.waker = Some(waker.clone());
        }
    }

    /// Handles the confirmation of the subscription. Messages published before it were missed, so
    /// waiters retry: each that is served together with others, each new one for permits, and the
    /// first of the remaining waiters on behalf of them all.
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

    /// Notifies the waiters that no more messages will arrive.
    pub(super) fn grow_deaf(&mut self) {
        for waiter in self.list.iter_mut().filter(|waiter| waiter.hears) {
            waiter.hears = false;
            waiter.news = Some(News::Deaf);
        }
        self.calls_a_reader();
    }

    /// Handles a message. For permits its number is that of the available permits.
    pub(super) fn message(&mut self, message: Message, now: Instant) {
        // All waiters of a channel read its messages alike.
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

    /// Notifies the first waiter that may still be served: of those that exclude each other, or of
    /// those that want at most as many permits as `like`.
    fn wake_one(&mut self, like: Wakes) {
        let fits = |waiter: &&mut Waiter| match (waiter.wakes, like) {
            (Wakes::Permits(permits), Wakes::Permits(most)) => permits <= most,
            (wakes, _) => wakes == like,
        };
        let mut fitting: Vec<&mut Waiter> = self.list.iter_mut().filter(fits).collect();
        // A waiter that is about to retry does so after this message.
        if fitting.iter().any(|waiter| waiter.will_ask()) {
            return;
        }
        // A waiter whose retry is under way may have sent it too early: it is notified if there is
        // no other waiter.
        let next = fitting.iter().position(|waiter| !waiter.is_called()).unwrap_or(0);
        if let Some(waiter) = fitting.get_mut(next) {
            waiter.news = Some(News::Notified);
        }
    }

    /// Wakes a waiter, since no other waiter reads the stream.
    fn calls_a_reader(&self) {
        if let Some(waker) = self.list.last().and_then(|waiter| waiter.waker.as_ref()) {
            waker.wake_by_ref();
        }
    }

    /// Takes the wakers of the waiters that have an event.
    pub(super) fn due(&mut self) -> Vec<Waker> {
        let due = self.list.iter_mut().filter(|waiter| waiter.news.is_some());
        due.filter_map(|waiter| waiter.waker.take()).collect()
    }

    fn get(&mut self, place: u64) -> Option<&mut Waiter> {
        self.list.iter_mut().find(|waiter| waiter.place == place)
    }
}

impl Waiter {
    /// Whether it was woken in place of other waiters, and its retry has no outcome yet.
    fn is_called(&self) -> bool {
        self.tries != Tries::Not || self.news == Some(News::Notified) || self.will_ask()
    }

    /// Whether it will retry, later than now, on behalf of all waiters that it excludes.
    fn will_ask(&self) -> bool {
        let will = match self.news {
            Some(News::Listening | News::Notified) => true,
            // It will skip its retry.
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
