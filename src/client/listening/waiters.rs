//! The waiters of one subscription of a client, and the choice of the waiters that a message wakes.
//!
//! The waiters of a channel may differ in their [`WakePolicy`]: the readers of a read-write lock
//! have [`WakePolicy::All`], its writers [`WakePolicy::One`]. Waiters for permits have a channel of
//! their own. A release message wakes each waiter with `All`, and one of those with `One` or
//! [`WakePolicy::Permits`], since a grant to it leaves nothing, or less, for the others. If that
//! waiter leaves without a grant, it passes the message on to the next one; a refusal for permits
//! does so too. Otherwise the message would be lost for waiters that trust the subscription and do
//! not poll.
//!
//! A waiter is *called* from the event that wakes it until its retry has an outcome. A waiter whose
//! event makes it retry only on its own behalf is not called.

#[cfg(test)]
mod hand_offs;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::task::Waker;
use core::time::Duration;

use super::crowd::Shared;
use edgelatch_proto::machine::{Input, TimeoutReason};
use edgelatch_proto::protocol::calls::{GrantNotice, Message, WakePolicy};
use edgelatch_proto::time::Instant;

/// For [`Waiters::wake_one`]: matches the waiters for permits, whatever number each requests.
const ANY_PERMITS: WakePolicy = WakePolicy::Permits(u32::MAX);

/// The waiters of one subscription.
#[derive(Default)]
pub(super) struct Waiters {
    /// In the order of arrival: the first one that fits is woken first.
    list: Vec<Waiter>,
    /// The place of the next waiter. Places are not reused.
    next: u64,
    /// The contention at the channel, as all subscriptions of this client to it estimate it.
    crowd: Arc<Shared>,
    /// When the last release message arrived: one that did not announce a grant.
    heard_at: Option<Instant>,
}

/// A waiting machine of this client.
struct Waiter {
    /// Identifies the waiter. Not an index of the list.
    place: u64,
    wakes: WakePolicy,
    /// The waker of its task; `None` until the waiter is polled again after a wake-up.
    waker: Option<Waker>,
    /// The event that its machine has not received yet. A later event replaces it.
    news: Option<News>,
    tries: Tries,
    /// Whether the last subscription event for its machine is a confirmation, and not an end. A
    /// stream that is replaced in time ends without an event.
    hears: bool,
}

/// The state of the retry that an event has triggered in place of other waiters. It decides whether
/// another waiter must be woken when this one leaves or is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tries {
    /// No such retry is pending.
    Not,
    /// The waiter's machine has set a random time for the retry, and has not sent it.
    InTurn,
    /// The waiter's machine has received the event and has not set a time, or it has sent the retry
    /// and has no reply yet.
    Now,
}

/// An event for a waiter's machine. [`Waiters::news`] converts it to an [`Input`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    /// The subscription is confirmed, and the waiter must retry on its own behalf, since it may
    /// have missed a message.
    Listening,
    /// The subscription is confirmed, and the waiter must retry on behalf of the waiters that have
    /// [`Hearing`](Self::Hearing).
    ListeningForAll,
    /// The subscription is confirmed, and another waiter retries.
    Hearing,
    /// A release message chose this waiter.
    Notified,
    /// Another client has acquired the object, for this lease if the message has one.
    Taken(Option<Duration>),
    /// The subscription has ended.
    Deaf,
}

impl Waiters {
    /// Creates a list without waiters. `crowd` is the contention at the channel.
    pub(super) fn of(crowd: Arc<Shared>) -> Self {
        Self { crowd, ..Self::default() }
    }

    /// Adds a waiter whose last attempt was sent at `asked_at`, and returns its place. `stands` is
    /// the time when the subscription was confirmed; `None` if it is not yet.
    ///
    /// Under [`WakePolicy::All`] and [`WakePolicy::Permits`] the waiter must retry if the
    /// confirmation or a release message came after `asked_at`: Redis may have refused the attempt
    /// before that release.
    pub(super) fn enter(
        &mut self,
        wakes: WakePolicy,
        asked_at: Instant,
        stands: Option<Instant>,
    ) -> u64 {
        let place = self.next;
        self.next += 1;
        let is_newer = |at: Instant| !asked_at.is_later(at);
        let missed = match wakes {
            // Another waiter was called for that message; it acquires, or the next one is called.
            WakePolicy::One => false,
            WakePolicy::Permits(_) | WakePolicy::All => {
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

    /// Removes a waiter, and returns whether another one is left. If the waiter is called, another
    /// waiter is notified in its place.
    pub(super) fn leave(&mut self, place: u64) -> bool {
        if let Some(at) = self.list.iter().position(|waiter| waiter.place == place) {
            let gone = self.list.remove(at);
            if gone.is_called() {
                // For permits any request fits, since the number in the message is not stored.
                match gone.wakes {
                    WakePolicy::One => self.wake_one(WakePolicy::One),
                    WakePolicy::Permits(_) => self.wake_one(ANY_PERMITS),
                    WakePolicy::All => {}
                }
            }
        }
        // The stream may have the waker of the removed waiter only.
        self.calls_a_reader();
        !self.list.is_empty()
    }

    /// Records that a waiter's machine has set a timeout for this reason. The reason shows the
    /// state of the retry: scheduled, sent, or over without a grant.
    pub(super) fn waits(&mut self, place: u64, why: TimeoutReason) {
        match why {
            // With `ReplyDue` the attempt has no reply yet. With `LastTry` the driver removes the
            // waiter now, which passes the message on.
            TimeoutReason::ReplyDue | TimeoutReason::LastTry => {}
            TimeoutReason::Notification => {
                if let Some(waiter) = self.get(place).filter(|waiter| waiter.tries == Tries::Now) {
                    waiter.tries = Tries::InTurn;
                }
            }
            // The machine pauses for another reason than a message, so the retry was refused or
            // failed, or the pause may not be shortened.
            _ => self.tried(place, true),
        }
    }

    /// Records that a waiter's machine sends an attempt: a retry that was scheduled is under way.
    pub(super) fn asks(&mut self, place: u64) {
        if let Some(waiter) = self.get(place).filter(|waiter| waiter.tries == Tries::InTurn) {
            waiter.tries = Tries::Now;
        }
    }

    /// Ends the retry of a waiter that was woken, and for permits notifies the next waiter: a
    /// message announces a number of permits, which may suffice for several waiters. `refused` is
    /// false if the waiter has acquired. Without a pending retry this changes nothing.
    pub(super) fn tried(&mut self, place: u64, refused: bool) {
        let Some(waiter) = self.get(place).filter(|waiter| waiter.tries != Tries::Not) else {
            return;
        };
        waiter.tries = Tries::Not;
        match (waiter.wakes, refused) {
            // Permits may be left.
            (WakePolicy::Permits(_), false) => self.wake_one(ANY_PERMITS),
            // Fewer permits than this waiter requests may be available.
            (WakePolicy::Permits(most), true) => self.wake_one(WakePolicy::Permits(most - 1)),
            // `One`: after a grant no waiter can acquire, after a refusal another client holds, and
            // after a failure this waiter retries by itself. `All`: the message has woken each one.
            (WakePolicy::One | WakePolicy::All, _) => {}
        }
    }

    /// Takes this waiter's event, and returns it as an input for its machine; `None` without one.
    pub(super) fn news(&mut self, place: u64) -> Option<Input> {
        let waiter = self.get(place)?;
        let news = waiter.news.take()?;
        if matches!(news, News::Notified | News::ListeningForAll) {
            waiter.tries = Tries::Now;
        }
        // Waiters that one release serves together need not spread their retries.
        let takes_turns = waiter.wakes != WakePolicy::All;
        Some(match news {
            News::Listening | News::ListeningForAll => Input::Subscribed { must_retry: true },
            News::Hearing => Input::Subscribed { must_retry: false },
            News::Notified if takes_turns => {
                Input::Notified { within: self.crowd.with(|crowd| crowd.within()) }
            }
            News::Notified => Input::Notified { within: Duration::ZERO },
            News::Taken(lease) => {
                // The machine skips its retry. If the retry is under way already, its outcome
                // concerns no other waiter, since the grant to another client ended this release.
                waiter.tries = Tries::Not;
                Input::AcquiredByOther { lease }
            }
            News::Deaf => Input::Unsubscribed,
        })
    }

    /// Stores the waker of this waiter's task, which is woken when the waiter has an event.
    pub(super) fn keep_waker(&mut self, place: u64, waker: &Waker) {
        if let Some(waiter) = self.get(place) {
            waiter.waker = Some(waker.clone());
        }
    }

    /// Handles the confirmation of the subscription. The stream has not delivered messages that
    /// were published before it, so waiters must retry:
    ///
    /// * under [`WakePolicy::All`] each waiter;
    /// * under [`WakePolicy::Permits`] each waiter without an earlier confirmation, since the
    ///   requests differ in their numbers;
    /// * of the other waiters the first, on behalf of them all. If it leaves, or is refused
    ///   permits, the next waiter that may be served retries.
    pub(super) fn listen(&mut self) {
        let mut asked = false;
        for waiter in &mut self.list {
            let is_new = !core::mem::replace(&mut waiter.hears, true);
            waiter.news = Some(match waiter.wakes {
                WakePolicy::All => News::Listening,
                WakePolicy::Permits(_) if is_new => News::Listening,
                _ if !core::mem::replace(&mut asked, true) => News::ListeningForAll,
                _ => News::Hearing,
            });
        }
    }

    /// Handles the end of the subscription: the machines poll from now on, and one waiter is woken
    /// to open the stream again.
    pub(super) fn grow_deaf(&mut self) {
        for waiter in self.list.iter_mut().filter(|waiter| waiter.hears) {
            waiter.hears = false;
            waiter.news = Some(News::Deaf);
        }
        self.calls_a_reader();
    }

    /// Handles a message. A published grant makes called waiters skip their retries; any other
    /// message is a release, and wakes waiters. For permits its number is that of the available
    /// permits.
    pub(super) fn message(&mut self, message: Message, now: Instant) {
        // Either all waiters of a channel wait for permits or none does, so the first one's policy
        // decides how to parse a message.
        let wakes = self.list.first().map_or(WakePolicy::All, |waiter| waiter.wakes);
        let taken = GrantNotice::read(message, wakes);
        // A retry that is about to be sent, or has no reply, counts as made before the grant.
        let asked = self.list.iter().any(|waiter| waiter.tries == Tries::Now);
        self.crowd.with(|crowd| match taken {
            Some(taken) => crowd.on_grant(taken, asked, now),
            None => crowd.on_release(now),
        });
        if let Some(GrantNotice { lease, .. }) = taken {
            let others = self.list.iter_mut().filter(|waiter| waiter.wakes != WakePolicy::All);
            return others.for_each(|waiter| waiter.lets_pass(lease));
        }
        self.heard_at = Some(now);
        let all = self.list.iter_mut().filter(|waiter| waiter.wakes == WakePolicy::All);
        all.for_each(|waiter| waiter.news = Some(News::Notified));
        // At most one of these calls finds a waiter, since permits have a channel of their own.
        self.wake_one(WakePolicy::One);
        self.wake_one(WakePolicy::Permits(u32::try_from(message.number).unwrap_or(u32::MAX)));
    }

    /// Notifies one waiter that a release may serve. With [`WakePolicy::One`] any waiter of that
    /// policy fits; with [`WakePolicy::Permits`] any that requests at most this number of permits.
    /// The first one that is not called is notified, else the first.
    fn wake_one(&mut self, like: WakePolicy) {
        let fits = |waiter: &&mut Waiter| match (waiter.wakes, like) {
            (WakePolicy::Permits(permits), WakePolicy::Permits(most)) => permits <= most,
            (wakes, _) => wakes == like,
        };
        let mut fitting: Vec<&mut Waiter> = self.list.iter_mut().filter(fits).collect();
        // A retry that is not sent yet will see this release, so no second waiter is needed.
        if fitting.iter().any(|waiter| waiter.will_ask()) {
            return;
        }
        // If all waiters that fit are called, the first one must retry once more: Redis may have
        // executed its retry before this release.
        let next = fitting.iter().position(|waiter| !waiter.is_called()).unwrap_or(0);
        if let Some(waiter) = fitting.get_mut(next) {
            waiter.news = Some(News::Notified);
        }
    }

    /// Wakes a waiter to read the stream, or to open it. Any waiter will do, since each one that is
    /// polled reads for all.
    fn calls_a_reader(&self) {
        if let Some(waker) = self.list.last().and_then(|waiter| waiter.waker.as_ref()) {
            waker.wake_by_ref();
        }
    }

    /// Takes the wakers of the waiters that have an event. The caller wakes them after it has
    /// unlocked the subscription.
    pub(super) fn due(&mut self) -> Vec<Waker> {
        let due = self.list.iter_mut().filter(|waiter| waiter.news.is_some());
        due.filter_map(|waiter| waiter.waker.take()).collect()
    }

    fn get(&mut self, place: u64) -> Option<&mut Waiter> {
        self.list.iter_mut().find(|waiter| waiter.place == place)
    }
}

impl Waiter {
    /// Whether it was woken in place of other waiters, or will be with its event, and its retry has
    /// no outcome yet.
    fn is_called(&self) -> bool {
        let is_news = matches!(self.news, Some(News::Notified | News::ListeningForAll));
        self.tries != Tries::Not || is_news || self.will_ask()
    }

    /// Whether it will send a retry after this moment that makes another wake-up superfluous: only
    /// under [`WakePolicy::One`], where one grant excludes all other waiters.
    fn will_ask(&self) -> bool {
        let will = match self.news {
            Some(News::Listening | News::ListeningForAll | News::Notified) => true,
            // The machine will skip its retry.
            Some(News::Taken(_)) => false,
            Some(News::Hearing | News::Deaf) | None => self.tries == Tries::InTurn,
        };
        will && self.wakes == WakePolicy::One
    }

    /// Handles a grant to another client, for `lease` if the message has one: a called waiter skips
    /// its retry. A waiter that is not called has no retry to skip.
    fn lets_pass(&mut self, lease: Option<Duration>) {
        // A waiter whose subscription was not yet confirmed must retry once: it may have missed a
        // release.
        let must_retry = matches!(self.news, Some(News::Listening | News::ListeningForAll));
        if self.is_called() && !must_retry {
            self.news = Some(News::Taken(lease));
        }
    }
}
