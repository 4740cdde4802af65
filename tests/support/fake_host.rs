//! Hosts that a test leads.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use edgelatch::host::{Host, NoEntropy, TokioHost};
use edgelatch::time::Instant;

/// A host whose clocks stand still until the test moves them. Its entropy is a counter.
#[derive(Clone)]
pub(crate) struct FakeHost(Rc<RefCell<State>>);

struct State {
    now_ms: u64,
    drawn: u64,
    sleepers: Vec<Waker>,
}

impl FakeHost {
    pub(crate) fn new() -> Self {
        Self(Rc::new(RefCell::new(State { now_ms: 0, drawn: 0, sleepers: Vec::new() })))
    }

    /// Moves both clocks on and wakes whoever sleeps.
    pub(crate) fn pass(&self, time: Duration) {
        let sleepers = {
            let mut state = self.0.borrow_mut();
            state.now_ms += u64::try_from(time.as_millis()).unwrap();
            std::mem::take(&mut state.sleepers)
        };
        sleepers.into_iter().for_each(Waker::wake);
    }
}

impl Host for FakeHost {
    fn now(&self) -> Instant {
        let ms = self.0.borrow().now_ms;
        Instant::from_millis(ms, ms)
    }

    async fn sleep_until(&self, deadline: Instant) {
        poll_fn(|cx| {
            if self.now().has_reached(deadline) {
                return Poll::Ready(());
            }
            self.0.borrow_mut().sleepers.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn entropy(&self) -> Result<[u8; 32], NoEntropy> {
        let mut state = self.0.borrow_mut();
        state.drawn += 1;
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&state.drawn.to_le_bytes());
        Ok(bytes)
    }
}

/// A host on tokio whose time runs this many times as fast, so that a lease of 30 s can be lived through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FastHost {
    slow: TokioHost,
    began: Instant,
    times: u32,
}

impl FastHost {
    pub(crate) fn new(times: u32) -> Self {
        let slow = TokioHost::new();
        Self { slow, began: slow.now(), times }
    }
}

impl Host for FastHost {
    fn now(&self) -> Instant {
        self.began + self.slow.now().since(self.began) * self.times
    }

    async fn sleep_until(&self, deadline: Instant) {
        let left = self.now().until(deadline) / self.times;
        // One more, since a millisecond of the slow clock is many of this one.
        self.slow.sleep_until(self.slow.now() + left + Duration::from_millis(1)).await;
    }

    fn entropy(&self) -> Result<[u8; 32], NoEntropy> {
        self.slow.entropy()
    }
}

/// A host without a source of entropy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DullHost(pub(crate) TokioHost);

impl Host for DullHost {
    fn now(&self) -> Instant {
        self.0.now()
    }

    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> {
        self.0.sleep_until(deadline)
    }

    fn entropy(&self) -> Result<[u8; 32], NoEntropy> {
        Err(NoEntropy)
    }
}
