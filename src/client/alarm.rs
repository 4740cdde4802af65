//! One timer for all leases of a client: renewals that are due at the same time are sent in the
//! same event-loop turn.
//!
//! Each lease sleeps on a timer of its own, and timers that are due together may fire in different
//! turns: in JavaScript each has its own. So the first lease whose timer fires wakes the others
//! that are due by then, and their calls are sent together with its own.

use alloc::vec::Vec;
use core::future::poll_fn;
use core::pin::pin;
use core::task::{Poll, Waker};
use std::sync::{Mutex, PoisonError};

use crate::host::Host;
use edgelatch_proto::time::Instant;

/// The sleeping leases and their deadlines.
#[derive(Debug, Default)]
pub(super) struct Alarm(Mutex<Sleepers>);

#[derive(Debug, Default)]
struct Sleepers {
    /// `None` once the lease was woken, and for a free place.
    places: Vec<Option<(Instant, Waker)>>,
    free: Vec<usize>,
}

impl Alarm {
    /// Sleeps until `deadline`, or until another lease's timer finds that it has passed.
    pub(super) async fn sleep_until(&self, deadline: Instant, host: &impl Host) {
        let mut sleep = pin!(host.sleep_until(deadline));
        let mut place: Option<Place<'_>> = None;
        let woken = poll_fn(|cx| match &place {
            Some(place) if place.is_woken(cx.waker()) => Poll::Ready(true),
            _ if sleep.as_mut().poll(cx).is_ready() => Poll::Ready(false),
            Some(_) => Poll::Pending,
            None => {
                place = Some(self.enter(deadline, cx.waker().clone()));
                Poll::Pending
            }
        })
        .await;
        drop(place);
        if !woken {
            self.ring(host.now());
        }
    }

    fn enter(&self, deadline: Instant, waker: Waker) -> Place<'_> {
        let place = self.sleepers(|sleepers| {
            let place = sleepers.free.pop().unwrap_or(sleepers.places.len());
            if place == sleepers.places.len() {
                sleepers.places.push(None);
            }
            sleepers.set(place, Some((deadline, waker)));
            place
        });
        Place { alarm: self, place }
    }

    fn ring(&self, now: Instant) {
        let due: Vec<Waker> = self.sleepers(|sleepers| {
            let due = |(deadline, _): &mut (Instant, Waker)| now.has_reached(*deadline);
            let woken = sleepers.places.iter_mut().filter_map(|sleeper| sleeper.take_if(due));
            woken.map(|(_, waker)| waker).collect()
        });
        due.into_iter().for_each(Waker::wake);
    }

    fn sleepers<R>(&self, access: impl FnOnce(&mut Sleepers) -> R) -> R {
        access(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Sleepers {
    fn set(&mut self, place: usize, sleeper: Option<(Instant, Waker)>) {
        if let Some(kept) = self.places.get_mut(place) {
            *kept = sleeper;
        }
    }
}

/// The place of one sleeper, freed when it is dropped.
struct Place<'a> {
    alarm: &'a Alarm,
    place: usize,
}

impl Place<'_> {
    fn is_woken(&self, waker: &Waker) -> bool {
        self.alarm.sleepers(|sleepers| match sleepers.places.get_mut(self.place) {
            Some(Some((_, kept))) => {
                kept.clone_from(waker);
                false
            }
            _ => true,
        })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.alarm.sleepers(|sleepers| {
            sleepers.set(self.place, None);
            sleepers.free.push(self.place);
        });
    }
}
