//! Hosts that a test controls.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use edgelatch::host::{Host, NoEntropy, TokioHost};
use edgelatch_proto::time::Instant;

/// A host whose clocks stand still until the test advances them: however slow the machine is, no
/// time limit expires by itself. Its entropy is a counter.
#[derive(Clone)]
pub struct FakeHost(Arc<Mutex<State>>);

struct State {
    now_ms: u64,
    drawn: u64,
    sleepers: Vec<Waker>,
}

impl FakeHost {
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(State { now_ms: 0, drawn: 0, sleepers: Vec::new() })))
    }

    /// Advances both clocks and wakes all sleeping futures.
    pub fn pass(&self, time: Duration) {
        let sleepers = {
            let mut state = self.0.lock().unwrap();
            state.now_ms += u64::try_from(time.as_millis()).unwrap();
            std::mem::take(&mut state.sleepers)
        };
        sleepers.into_iter().for_each(Waker::wake);
    }
}

impl FakeHost {
    /// Sets the entropy counter to `drawn` draws.
    pub fn draw_from(&self, drawn: u64) {
        self.0.lock().unwrap().drawn = drawn;
    }

    /// Advances both clocks and wakes one sleeping future, so that timers that are due together
    /// fire one after the other.
    pub fn pass_for_one(&self, time: Duration) {
        let sleeper = {
            let mut state = self.0.lock().unwrap();
            state.now_ms += u64::try_from(time.as_millis()).unwrap();
            state.sleepers.pop()
        };
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
    }
}

impl Host for FakeHost {
    fn now(&self) -> Instant {
        let ms = self.0.lock().unwrap().now_ms;
        Instant::from_millis(ms, ms)
    }

    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> {
        poll_fn(move |cx| {
            // The waker is registered first, so that time that passes in between is not missed.
            self.0.lock().unwrap().sleepers.push(cx.waker().clone());
            if self.now().has_reached(deadline) { Poll::Ready(()) } else { Poll::Pending }
        })
    }

    fn entropy(&self) -> Result<[u8; 32], NoEntropy> {
        let mut state = self.0.lock().unwrap();
        state.drawn += 1;
        let mut bytes = [0; 32];
        // Owner, request ids and jitter are drawn from different parts.
        for part in bytes.chunks_exact_mut(8) {
            part.copy_from_slice(&(state.drawn << 32).to_le_bytes());
        }
        Ok(bytes)
    }
}

/// A host without a source of entropy.
#[derive(Clone, Copy, Debug)]
pub struct DullHost(pub TokioHost);

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
