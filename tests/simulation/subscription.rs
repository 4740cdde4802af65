//! The streams of the gateways: they deliver messages late, lose them, end, or stay silent.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use edgelatch::error::FailureKind;
use edgelatch::transport::ByteStream;

use super::coverage::CoverPoint;
use super::engine::{EventKind, Sim};
use super::faults::Fault;

/// A stream of messages.
pub(crate) struct Subscription {
    pub(crate) host: usize,
    pub(crate) node: usize,
    pub(crate) channel: String,
    pub(crate) is_closed: Cell<bool>,
    /// `None` is its end.
    bytes: RefCell<VecDeque<Option<Vec<u8>>>>,
    waker: RefCell<Option<Waker>>,
}

impl Subscription {
    pub(crate) fn put(&self, bytes: Option<Vec<u8>>) {
        self.bytes.borrow_mut().push_back(bytes);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// The client's end of a stream.
pub(crate) struct Stream {
    sim: Rc<Sim>,
    subscription: Rc<Subscription>,
}

impl Stream {
    /// Opens the stream of the channel in this URL; `None` if it has none.
    pub(crate) fn open(sim: &Rc<Sim>, host: usize, node: usize, url: &str) -> Option<Self> {
        let subscription = Rc::new(Subscription {
            host,
            node,
            channel: channel_of(url)?,
            is_closed: Cell::new(false),
            bytes: RefCell::default(),
            waker: RefCell::default(),
        });
        sim.open.set(sim.open.get() + 1);
        sim.subscribe(&subscription);
        Some(Self { sim: Rc::clone(sim), subscription })
    }
}

impl ByteStream for Stream {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, FailureKind>>> {
        if let Some(bytes) = self.subscription.bytes.borrow_mut().pop_front() {
            return Poll::Ready(bytes.map(Ok));
        }
        self.subscription.waker.replace(Some(cx.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.subscription.is_closed.set(true);
        self.sim.open.set(self.sim.open.get() - 1);
    }
}

impl Sim {
    /// Opens a stream: the gateway confirms it after a while, unless the stream stays silent.
    fn subscribe(&self, subscription: &Rc<Subscription>) {
        self.trace(|| {
            format!(
                "host {} listens to {} at redis {}",
                subscription.host, subscription.channel, subscription.node
            )
        });
        let mut rng = self.hosts.borrow_mut()[subscription.host].rng.fork();
        let faults_ended = self.faults_ended.get();
        let occurs = |fault, rng: &mut fastrand::Rng| {
            self.plan.has(fault) && !faults_ended && rng.u32(0..256) < self.plan.odds
        };
        if occurs(Fault::StreamsSilent, &mut rng) {
            self.coverage.count(CoverPoint::StreamsSilent, 1);
            return;
        }
        let at = 50 + rng.u64(0..self.plan.max_latency);
        let frame = format!("data: subscribe,{},1\n\n", subscription.channel).into_bytes();
        self.after(at, EventKind::StreamBytes(Rc::clone(subscription), Some(frame)));
        self.nodes.borrow_mut()[subscription.node].listeners.push(Rc::clone(subscription));
        if occurs(Fault::StreamsEnd, &mut rng) {
            self.coverage.count(CoverPoint::StreamsEnded, 1);
            self.after(
                at + rng.u64(0..self.plan.lease * 1_000),
                EventKind::StreamBytes(Rc::clone(subscription), None),
            );
        }
        if occurs(Fault::Forged, &mut rng) {
            self.coverage.count(CoverPoint::Forged, 1);
            let frame =
                format!("data: message,{},{}\n\n", subscription.channel, rng.u32(..)).into_bytes();
            self.after(
                at + rng.u64(0..self.plan.lease * 1_000),
                EventKind::StreamBytes(Rc::clone(subscription), Some(frame)),
            );
        }
    }

    /// Publishes a message.
    pub(crate) fn publish(&self, node: usize, channel: &str, message: &str) {
        let mut nodes = self.nodes.borrow_mut();
        let listeners = &mut nodes[node].listeners;
        listeners.retain(|subscription| !subscription.is_closed.get());
        for subscription in listeners.iter().filter(|subscription| subscription.channel == channel)
        {
            let mut rng = self.hosts.borrow_mut()[subscription.host].rng.fork();
            let loses_messages = self.plan.has(Fault::LostMessages) && !self.faults_ended.get();
            if loses_messages && rng.u32(0..256) < self.plan.odds {
                self.coverage.count(CoverPoint::LostMessages, 1);
                continue;
            }
            self.coverage.count(CoverPoint::Messages, 1);
            let frame = format!("data: message,{channel},{message}\n\n").into_bytes();
            self.after(
                50 + rng.u64(0..self.plan.max_latency),
                EventKind::StreamBytes(Rc::clone(subscription), Some(frame)),
            );
        }
    }
}

/// The channel in a URL with `/subscribe/`, where it is percent-encoded.
fn channel_of(url: &str) -> Option<String> {
    let mut bytes = url.split_once("/subscribe/")?.1.bytes();
    let mut channel = Vec::new();
    while let Some(byte) = bytes.next() {
        channel.push(match byte {
            b'%' => {
                let mut digit = || Some(char::from(bytes.next()?).to_digit(16)? as u8);
                digit()? << 4 | digit()?
            }
            byte => byte,
        });
    }
    String::from_utf8(channel).ok()
}
