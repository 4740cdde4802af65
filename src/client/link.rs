//! The way to one gateway, and what was learned on it.

use std::sync::{Mutex, PoisonError};

use crate::host::Host;
use crate::protocol::exchange::{Answer, Exchange, Step};
use crate::protocol::gateway::{Gateway, Memory};
use crate::protocol::reply::ServerClock;
use crate::protocol::script::ScriptCall;
use crate::transport::Transport;

/// A gateway, the transport to it, and plain data: nothing here belongs to a request, a task or a connection.
#[derive(Debug)]
pub(super) struct Link<T> {
    gateway: Gateway,
    transport: T,
    learned: Mutex<Learned>,
}

#[derive(Debug, Default)]
struct Learned {
    memory: Memory,
    clock: Option<ServerClock>,
}

impl<T> Link<T> {
    pub(super) fn new(gateway: Gateway, transport: T) -> Self {
        Self { gateway, transport, learned: Mutex::default() }
    }

    pub(super) const fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// What is known of Redis' clock.
    pub(super) fn clock(&self) -> Option<ServerClock> {
        self.learned(|learned| learned.clock)
    }

    fn learned<R>(&self, access: impl FnOnce(&mut Learned) -> R) -> R {
        access(&mut self.learned.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T: Transport> Link<T> {
    /// Brings one call to an answer.
    pub(super) async fn call(&self, call: ScriptCall, host: &impl Host) -> Answer {
        let (mut exchange, mut request) =
            self.learned(|learned| Exchange::new(&self.gateway, &call, &learned.memory));
        loop {
            let result = self.transport.send(request).await;
            match self.learned(|learned| exchange.answered(result, &mut learned.memory)) {
                Step::Send(next) => request = next,
                Step::Done(answer) => {
                    if let Answer::Reply(reply) = &answer {
                        let clock = ServerClock::new(reply.server_ms, host.now());
                        self.learned(|learned| learned.clock = Some(clock));
                    }
                    return answer;
                }
            }
        }
    }
}
