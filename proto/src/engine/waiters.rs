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
//! A waiter has a *pending wake-up* from the event that wakes it until its retry has an outcome. An
//! event that makes it retry only on its own behalf is none.

#[cfg(test)]
mod hand_offs;

use alloc::vec::Vec;
use core::time::Duration;

use super::OpId;
use crate::machine::{ContentionEstimator, Input, TimeoutReason};
use crate::protocol::calls::{GrantNotice, Message, WakePolicy};
use crate::time::Instant;

/// For [`Waiters::notify_permits`]: matches each waiter for permits, whatever number it requests.
const ANY_NUMBER: u32 = u32::MAX;

/// Identifies a waiter of a subscription. It is neither an index nor a position in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WaiterId(u64);

/// The waiters of one subscription.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiters {
    /// In the order of arrival: the first one that fits is woken first.
    list: Vec<Waiter>,
    /// The id of the next waiter that enters. Ids are not reused.
    next_id: u64,
    /// When the last release message arrived: one that did not announce a grant.
    released_at: Option<Instant>,
}

/// A waiting machine of this client.
#[derive(Clone, Debug)]
struct Waiter {
    id: WaiterId,
    op: OpId,
    wakes: WakePolicy,
    /// The event that its machine has not received yet. A later event replaces it.
    event: Option<WaiterEvent>,
    retry: Retry,
    /// Whether the last subscription event for its machine is a confirmation, and not an end. It
    /// stays so while a stream is reopened in time: the machine gets no event of that end.
    is_subscribed: bool,
}

/// The state of the retry that a message or a confirmation has triggered. It decides whether
/// another waiter must be woken when this one leaves or is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Retry {
    /// No such retry is pending.
    None,
    /// The waiter's machine has set a random time for the retry, and has not sent it.
    Scheduled,
    /// The waiter's machine has received the event and has not set a time, or it has sent the retry
    /// and has no reply yet.
    UnderWay,
}

/// The outcome of a waiter's retry, for the other waiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetryOutcome {
    /// The waiter has acquired.
    Acquired,
    /// Redis has refused the retry, or it has failed.
    NotAcquired,
}

/// An event for a waiter's machine. [`Waiters::take_input`] converts it to an [`Input`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaiterEvent {
    /// The subscription is confirmed, and the waiter must retry on its own behalf, since it may
    /// have missed a message.
    MustRetry,
    /// The subscription is confirmed, and the waiter must retry on behalf of the waiters that have
    /// [`Subscribed`](Self::Subscribed).
    RetryForAll,
    /// The subscription is confirmed, and another waiter retries.
    Subscribed,
    /// A release message chose this waiter.
    Notified,
    /// Another client has acquired the object, for this lease if the message has one.
    AcquiredByOther(Option<Duration>),
    /// The subscription has ended.
    Unsubscribed,
}

impl Waiters {
    /// Adds a waiter whose last attempt was sent at `sent_at`, and returns its id.
    /// `confirmed_at` is the time when the subscription was confirmed; `None` if it is not yet.
    ///
    /// The waiter must retry if the confirmation or a release message came after `sent_at`, since
    /// Redis may have refused the attempt before that release; under [`WakePolicy::One`] only if it
    /// is the first of this policy.
    pub(super) fn enter(
        &mut self,
        op: OpId,
        wakes: WakePolicy,
        sent_at: Instant,
        confirmed_at: Option<Instant>,
    ) -> WaiterId {
        let id = WaiterId(self.next_id);
        self.next_id += 1;
        let is_newer = |at: Instant| !sent_at.is_later(at);
        // That message or confirmation has woken another waiter with `One`: it acquires, or the
        // next one is woken.
        let was_passed_on =
            wakes == WakePolicy::One && self.list.iter().any(|other| other.wakes == wakes);
        let missed = !was_passed_on
            && (confirmed_at.is_some_and(is_newer) || self.released_at.is_some_and(is_newer));
        let event = if missed { WaiterEvent::MustRetry } else { WaiterEvent::Subscribed };
        self.list.push(Waiter {
            id,
            op,
            wakes,
            event: confirmed_at.map(|_| event),
            retry: Retry::None,
            is_subscribed: confirmed_at.is_some(),
        });
        id
    }

    /// Removes a waiter, and returns whether another one is left. If the waiter has a pending
    /// wake-up, another waiter is notified instead.
    pub(super) fn leave(&mut self, id: WaiterId) -> bool {
        if let Some(index) = self.list.iter().position(|waiter| waiter.id == id) {
            let gone = self.list.remove(index);
            if gone.has_pending_wake_up() {
                // For permits any request fits, since the number in the message is not stored.
                match gone.wakes {
                    WakePolicy::One => self.notify_exclusive(),
                    WakePolicy::Permits(_) => self.notify_permits(ANY_NUMBER),
                    WakePolicy::All => {}
                }
            }
        }
        !self.list.is_empty()
    }

    /// Records that a waiter's machine has set a timeout for this reason. The reason shows the
    /// state of the retry: scheduled, sent, or over without a grant.
    pub(super) fn on_timeout_set(&mut self, id: WaiterId, why: TimeoutReason) {
        match why {
            // With `ReplyDue` the attempt has no reply yet. With `LastTry` the engine removes the
            // waiter now, which passes the message on.
            TimeoutReason::ReplyDue | TimeoutReason::LastTry => {}
            TimeoutReason::Notification => {
                if let Some(waiter) = self.get(id).filter(|waiter| waiter.retry == Retry::UnderWay)
                {
                    waiter.retry = Retry::Scheduled;
                }
            }
            // The machine pauses for another reason than a message, so the retry was refused or
            // failed, or the pause may not be shortened.
            _ => self.on_retry_outcome(id, RetryOutcome::NotAcquired),
        }
    }

    /// Records that a waiter's machine sends an attempt: a retry that was scheduled is under way.
    pub(super) fn on_sent(&mut self, id: WaiterId) {
        if let Some(waiter) = self.get(id).filter(|waiter| waiter.retry == Retry::Scheduled) {
            waiter.retry = Retry::UnderWay;
        }
    }

    /// Ends the retry of a waiter that was woken, and for permits notifies the next waiter: a
    /// message announces a number of permits, which may suffice for several waiters. Without a
    /// pending retry this changes nothing.
    pub(super) fn on_retry_outcome(&mut self, id: WaiterId, outcome: RetryOutcome) {
        let Some(waiter) = self.get(id).filter(|waiter| waiter.retry != Retry::None) else {
            return;
        };
        waiter.retry = Retry::None;
        match (waiter.wakes, outcome) {
            // Permits may be left.
            (WakePolicy::Permits(_), RetryOutcome::Acquired) => self.notify_permits(ANY_NUMBER),
            // Fewer permits than this waiter requests may be available. Nothing is known after a
            // failure; more would let waiters wake each other for as long as it lasts.
            (WakePolicy::Permits(requested), RetryOutcome::NotAcquired) => {
                self.notify_permits(requested - 1);
            }
            // `One`: after a grant no waiter can acquire, after a refusal another client holds, and
            // after a failure this waiter retries by itself. `All`: the message has woken each one.
            (WakePolicy::One | WakePolicy::All, _) => {}
        }
    }

    /// The operations of the waiters.
    pub(super) fn ops(&self) -> impl Iterator<Item = OpId> {
        self.list.iter().map(|waiter| waiter.op)
    }

    /// The first waiter that has an event.
    pub(super) fn next_with_event(&self) -> Option<WaiterId> {
        self.list.iter().find(|waiter| waiter.event.is_some()).map(|waiter| waiter.id)
    }

    /// Takes the event of a waiter, and returns it as an input for the machine of its operation.
    /// `retry_spread` is the time over which competing clients spread their retries.
    pub(super) fn take_input(
        &mut self,
        id: WaiterId,
        retry_spread: Duration,
    ) -> Option<(OpId, Input)> {
        let waiter = self.get(id)?;
        let (op, event) = (waiter.op, waiter.event.take()?);
        if matches!(event, WaiterEvent::Notified | WaiterEvent::RetryForAll) {
            waiter.retry = Retry::UnderWay;
        }
        // Waiters that one release serves together need not spread their retries.
        let retries_alone = waiter.wakes != WakePolicy::All;
        let input = match event {
            WaiterEvent::MustRetry | WaiterEvent::RetryForAll => {
                Input::Subscribed { must_retry: true }
            }
            WaiterEvent::Subscribed => Input::Subscribed { must_retry: false },
            WaiterEvent::Notified if retries_alone => Input::Notified { within: retry_spread },
            WaiterEvent::Notified => Input::Notified { within: Duration::ZERO },
            WaiterEvent::AcquiredByOther(lease) => {
                // The machine skips its retry. If the retry is under way already, its outcome
                // concerns no other waiter: the other client has got what this release freed.
                waiter.retry = Retry::None;
                Input::AcquiredByOther { lease }
            }
            WaiterEvent::Unsubscribed => Input::Unsubscribed,
        };
        Some((op, input))
    }

    /// Handles the confirmation of the subscription. The stream has not delivered messages that
    /// were published before it, so waiters must retry:
    ///
    /// * under [`WakePolicy::All`] each waiter;
    /// * under [`WakePolicy::Permits`] each waiter without an earlier confirmation, since the
    ///   requests differ in their numbers;
    /// * of the other waiters the first, on behalf of them all. If it leaves, or is refused
    ///   permits, the next waiter that may be served retries.
    pub(super) fn on_subscribed(&mut self) {
        let mut one_retries = false;
        for waiter in &mut self.list {
            let is_new = !core::mem::replace(&mut waiter.is_subscribed, true);
            waiter.event = Some(match waiter.wakes {
                WakePolicy::All => WaiterEvent::MustRetry,
                WakePolicy::Permits(_) if is_new => WaiterEvent::MustRetry,
                _ if !core::mem::replace(&mut one_retries, true) => WaiterEvent::RetryForAll,
                _ => WaiterEvent::Subscribed,
            });
        }
    }

    /// Handles the end of the subscription: the machines poll from now on.
    pub(super) fn on_unsubscribed(&mut self) {
        for waiter in self.list.iter_mut().filter(|waiter| waiter.is_subscribed) {
            waiter.is_subscribed = false;
            waiter.event = Some(WaiterEvent::Unsubscribed);
        }
    }

    /// Handles a message. A published grant makes waiters with a pending wake-up skip their
    /// retries, except those that [wake together](WakePolicy::All) and those that must retry once;
    /// any other message is a release, and wakes waiters. For permits its number is that of the
    /// available permits. `contention` is the estimate for the channel, if it is remembered.
    pub(super) fn on_message(
        &mut self,
        message: Message,
        contention: Option<&mut ContentionEstimator>,
        now: Instant,
    ) {
        // Either all waiters of a channel wait for permits or none does, so the first one's policy
        // decides how to parse a message.
        let wakes = self.list.first().map_or(WakePolicy::All, |waiter| waiter.wakes);
        let grant = GrantNotice::read(message, wakes);
        // A retry that is about to be sent, or has no reply, counts as made before the grant.
        let retry_in_flight = self.list.iter().any(|waiter| waiter.retry == Retry::UnderWay);
        match (contention, grant) {
            (Some(contention), Some(grant)) => contention.on_grant(grant, retry_in_flight, now),
            (Some(contention), None) => contention.on_release(now),
            // The channel is no longer remembered.
            (None, _) => {}
        }
        if let Some(GrantNotice { lease, .. }) = grant {
            let others = self.list.iter_mut().filter(|waiter| waiter.wakes != WakePolicy::All);
            return others.for_each(|waiter| waiter.on_grant(lease));
        }
        self.released_at = Some(now);
        let all = self.list.iter_mut().filter(|waiter| waiter.wakes == WakePolicy::All);
        all.for_each(|waiter| waiter.event = Some(WaiterEvent::Notified));
        // At most one of these calls finds a waiter, since permits have a channel of their own.
        self.notify_exclusive();
        self.notify_permits(u32::try_from(message.number).unwrap_or(u32::MAX));
    }

    /// Notifies one of the waiters with [`WakePolicy::One`].
    fn notify_exclusive(&mut self) {
        self.notify_first(&|wakes| wakes == WakePolicy::One);
    }

    /// Notifies one of the waiters that request at most `available` permits.
    fn notify_permits(&mut self, available: u32) {
        self.notify_first(
            &|wakes| matches!(wakes, WakePolicy::Permits(requested) if requested <= available),
        );
    }

    /// Notifies one waiter whose policy `fits`: the first one without a pending wake-up, else the
    /// first; none if one of them makes another wake-up superfluous.
    fn notify_first(&mut self, fits: &dyn Fn(WakePolicy) -> bool) {
        let mut fitting: Vec<&mut Waiter> =
            self.list.iter_mut().filter(|waiter| fits(waiter.wakes)).collect();
        // A retry that is not sent yet will see this release, so no second waiter is needed.
        if fitting.iter().any(|waiter| waiter.makes_wake_up_superfluous()) {
            return;
        }
        // If all waiters that fit have a pending wake-up, the first one must retry once more: Redis
        // may have executed its retry before this release.
        let next = fitting.iter().position(|waiter| !waiter.has_pending_wake_up()).unwrap_or(0);
        if let Some(waiter) = fitting.get_mut(next) {
            waiter.event = Some(WaiterEvent::Notified);
        }
    }

    fn get(&mut self, id: WaiterId) -> Option<&mut Waiter> {
        self.list.iter_mut().find(|waiter| waiter.id == id)
    }
}

impl Waiter {
    /// Whether it was woken, or will be with its event, and its retry has no outcome yet.
    fn has_pending_wake_up(&self) -> bool {
        let will_be_woken =
            matches!(self.event, Some(WaiterEvent::Notified | WaiterEvent::RetryForAll));
        self.retry != Retry::None || will_be_woken || self.makes_wake_up_superfluous()
    }

    /// Whether it will send a retry after this moment, so that no other waiter need be woken: only
    /// under [`WakePolicy::One`], where one grant excludes all other waiters.
    fn makes_wake_up_superfluous(&self) -> bool {
        let will_retry = match self.event {
            Some(WaiterEvent::MustRetry | WaiterEvent::RetryForAll | WaiterEvent::Notified) => true,
            // The machine will skip its retry.
            Some(WaiterEvent::AcquiredByOther(_)) => false,
            Some(WaiterEvent::Subscribed | WaiterEvent::Unsubscribed) | None => {
                self.retry == Retry::Scheduled
            }
        };
        will_retry && self.wakes == WakePolicy::One
    }

    /// Handles a grant to another client, for `lease` if the message has one: a waiter with a
    /// pending wake-up skips its retry. A waiter without one was woken on its own behalf alone, or
    /// not at all.
    fn on_grant(&mut self, lease: Option<Duration>) {
        // A waiter whose subscription was not yet confirmed must retry once: it may have missed a
        // release.
        let must_retry =
            matches!(self.event, Some(WaiterEvent::MustRetry | WaiterEvent::RetryForAll));
        if self.has_pending_wake_up() && !must_retry {
            self.event = Some(WaiterEvent::AcquiredByOther(lease));
        }
    }
}
