//! The path to one gateway, and the state learned from its replies.

use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use super::alarm::Alarm;
use super::batch::{self, Batches, Joined};
use super::listening::Subscriptions;
use super::notice::Notice;
use super::rollback::RollbackDetector;
use crate::error::FailureKind;
use crate::host::Host;
use crate::transport::Transport;
use edgelatch_proto::name::FencingToken;
use edgelatch_proto::protocol::calls::Target;
use edgelatch_proto::protocol::exchange::{Answer, Exchange, Step};
use edgelatch_proto::protocol::gateway::{Gateway, GatewayCapabilities};
use edgelatch_proto::protocol::reply::ServerClock;
use edgelatch_proto::protocol::script::ScriptCall;
use edgelatch_proto::time::Instant;

/// A gateway, the transport to it, and plain data. Nothing here belongs to a request, a task or a
/// connection: a stream belongs to its waiters, through which other waiters find it.
#[derive(Debug)]
pub(super) struct Link<T: Transport> {
    gateway: Gateway,
    transport: T,
    learned: Mutex<Learned>,
    /// Notifies tasks that Redis' clock was set back.
    news: Notice,
    subscriptions: Subscriptions<T::Stream>,
    batches: Batches<T::Sending>,
    /// `None` where each lease has to sleep by itself, as in a Worker, where one request must not
    /// do work that another request waits for.
    alarm: Option<Alarm>,
}

#[derive(Debug, Default)]
pub(super) struct Learned {
    pub(super) memory: GatewayCapabilities,
    rollback: RollbackDetector,
    /// Whether it has refused a call with keys in two slots.
    is_cluster: bool,
    /// A request has ended otherwise than unsent or with a web page, so a gateway may have executed
    /// it.
    may_be_gateway: bool,
}

impl<T: Transport> Link<T> {
    pub(super) fn new(gateway: Gateway, transport: T) -> Self {
        let (subscriptions, batches) = (Subscriptions::default(), Batches::default());
        let (learned, alarm) = (Mutex::default(), transport.streams().shared.then(Alarm::default));
        let news = Notice::default();
        Self { gateway, transport, learned, news, subscriptions, batches, alarm }
    }

    pub(super) const fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    pub(super) const fn transport(&self) -> &T {
        &self.transport
    }

    pub(super) const fn subscriptions(&self) -> &Subscriptions<T::Stream> {
        &self.subscriptions
    }

    /// Whether other waiters are known to compete for `target`.
    pub(super) fn is_contended(&self, target: &Target, now: Instant) -> bool {
        self.subscriptions.is_contended(|| target.announcements(), now)
    }

    pub(super) const fn batches(&self) -> &Batches<T::Sending> {
        &self.batches
    }

    /// The shared timer of renewals that are due, if there is one.
    pub(super) const fn alarm(&self) -> Option<&Alarm> {
        self.alarm.as_ref()
    }

    /// Redis' clock, as last known.
    pub(super) fn clock(&self) -> Option<ServerClock> {
        self.learned(|learned| learned.rollback.clock())
    }

    /// The newest fencing token remembered for the names of `target`.
    pub(super) fn newest(&self, target: &Target) -> Option<FencingToken> {
        self.learned(|learned| learned.rollback.newest(target))
    }

    /// Remembers that `target` was granted with this token.
    pub(super) fn granted(&self, target: &Target, token: FencingToken) {
        self.learned(|learned| learned.rollback.granted(target, token));
    }

    /// Waits until the number of times that Redis' clock was set back differs from `seen`; returns
    /// that number and the size of the last step.
    pub(super) async fn last_rollback(&self, seen: u32) -> (u32, Duration) {
        self.news.until(|| self.learned(|learned| learned.rollback.last_rollback(seen))).await
    }

    /// Whether the gateway is known to be in front of a Redis Cluster.
    pub(super) fn is_cluster(&self) -> bool {
        self.learned(|learned| learned.is_cluster)
    }

    /// Records that the gateway is in front of a Redis Cluster.
    pub(super) fn note_cluster(&self) {
        self.learned(|learned| learned.is_cluster = true);
    }

    /// Whether this address has returned nothing but web pages, if anything.
    pub(super) fn has_no_gateway(&self) -> bool {
        !self.learned(|learned| learned.may_be_gateway)
    }

    pub(super) fn learned<R>(&self, access: impl FnOnce(&mut Learned) -> R) -> R {
        access(&mut self.learned.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T: Transport> Link<T> {
    /// Sends a call, alone or in a batch, and returns its outcome.
    pub(super) async fn call(&self, call: ScriptCall, host: &impl Host) -> Answer {
        let mut evidence = Evidence { link: self, is_left_out: false };
        let may_share = self.gateway.may_share(&call);
        let (known_clock, (mut exchange, mut step)) = self.learned(|learned| {
            (learned.rollback.clock(), Exchange::new(&self.gateway, &call, &learned.memory))
        });
        loop {
            match step {
                Step::Send(request) => {
                    let shares = may_share && self.learned(|learned| learned.memory.shares());
                    let joined = if shares {
                        batch::join(self, request).await
                    } else {
                        Joined::Alone(request)
                    };
                    let result = match joined {
                        Joined::Alone(request) => self.transport.send(request).await,
                        Joined::Answered(result) => result,
                    };
                    step = self.learned(|learned| exchange.answered(result, &mut learned.memory));
                }
                Step::Done(answer) => {
                    evidence.is_left_out = matches!(
                        answer,
                        Answer::Failed(FailureKind::NotSent | FailureKind::WebPage { .. })
                    );
                    if let Answer::Reply(reply) = &answer {
                        let clock = ServerClock::new(reply.server_ms, host.now());
                        if self.learned(|learned| learned.rollback.observe(clock, known_clock)) {
                            self.news.notify();
                        }
                    }
                    return answer;
                }
            }
        }
    }
}

/// Records, when it is dropped, that the address may be a gateway's, unless the call's outcome
/// leaves that open. It does so also for a call that was dropped without an outcome.
struct Evidence<'a, T: Transport> {
    link: &'a Link<T>,
    is_left_out: bool,
}

impl<T: Transport> Drop for Evidence<'_, T> {
    fn drop(&mut self) {
        if !self.is_left_out {
            self.link.learned(|learned| learned.may_be_gateway = true);
        }
    }
}
