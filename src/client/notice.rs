//! Notifies tasks of this program that some state has changed.

use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use core::future::poll_fn;
use core::mem;
use core::task::{Poll, Waker};
use std::sync::{Mutex, PoisonError};

/// The wakers of the tasks that wait. The state itself is stored elsewhere.
#[derive(Debug, Default)]
pub(super) struct Notice {
    wakers: Mutex<Vec<Waker>>,
}

impl Notice {
    /// Wakes all tasks that wait. Call it after the change, and without the lock of the state that
    /// they read.
    pub(super) fn notify(&self) {
        let wakers = mem::take(&mut *self.wakers.lock().unwrap_or_else(PoisonError::into_inner));
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Adds a waker for the next notification.
    pub(super) fn tell(&self, new: &Waker) {
        let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        if !wakers.iter().any(|waker| waker.will_wake(new)) {
            wakers.push(new.clone());
        }
    }

    /// Waits until `look` returns a value; it is called at once, and again after each notification.
    pub(super) async fn until<R>(&self, mut look: impl FnMut() -> Option<R>) -> R {
        poll_fn(|cx| {
            // The waker is stored before `look` is called, so a change in between is not missed.
            self.tell(cx.waker());
            look().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

/// Wakes all tasks on whose behalf a shared future is polled.
impl Wake for Notice {
    fn wake(self: Arc<Self>) {
        self.notify();
    }
}

/// Waits for the first of two futures and drops the other.
pub(crate) async fn first<A, B>(
    a: impl Future<Output = A>,
    b: impl Future<Output = B>,
) -> First<A, B> {
    let (mut a, mut b) = (core::pin::pin!(a), core::pin::pin!(b));
    poll_fn(|cx| {
        if let Poll::Ready(a) = a.as_mut().poll(cx) {
            return Poll::Ready(First::A(a));
        }
        b.as_mut().poll(cx).map(First::B)
    })
    .await
}

/// Which of two futures was first.
#[derive(Debug)]
pub(crate) enum First<A, B> {
    A(A),
    B(B),
}
