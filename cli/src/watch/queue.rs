//! The queue of a fair lock. The client does not show it, so the query runs without one: the
//! machine of a query, the exchange with the gateway, and the transport.

use std::time::Duration;

use edgelatch::Gateway;
use edgelatch::error::FailureKind;
use edgelatch::host::{Host as _, TokioHost};
use edgelatch::transport::{Reqwest, Transport as _};
use edgelatch_proto::machine::{Entropy, Machine as _, Output, Query};
use edgelatch_proto::name::LockName;
use edgelatch_proto::protocol::calls::{FairCalls, FairSettings};
use edgelatch_proto::protocol::exchange::{Answer, Exchange, Step};
use edgelatch_proto::protocol::gateway::GatewayCapabilities;
use edgelatch_proto::protocol::script::ScriptCall;
use tokio::time;

use crate::exit::{Exit, Failure};

/// How long one request may take. The next query of `watch` is the retry.
const ATTEMPT: Duration = Duration::from_secs(10);

/// Queries the length of a queue.
pub(super) struct Queue {
    gateway: Gateway,
    transport: Reqwest,
    host: TokioHost,
    calls: FairCalls,
}

impl Queue {
    pub(super) fn new(gateway: Gateway, name: &str) -> Result<Self, Failure> {
        let name = LockName::parse(name)?;
        let calls = FairCalls::new(name, FairSettings::default(), gateway.announces());
        Ok(Self { gateway, transport: Reqwest::new(), host: TokioHost::new(), calls })
    }

    /// Returns the number of waiters.
    pub(super) async fn length(&self) -> Result<u64, Failure> {
        let call = self.call()?;
        let mut capabilities = GatewayCapabilities::default();
        let (mut exchange, mut step) = Exchange::new(&self.gateway, call, &capabilities);
        loop {
            let request = match step {
                Step::Send(request) => request,
                Step::Done(answer) => return self.read(answer),
            };
            let sending = time::timeout(ATTEMPT, self.transport.send(request));
            let result = sending.await.unwrap_or(Err(FailureKind::TimedOut));
            step = exchange.answered(&self.gateway, result, &mut capabilities);
        }
    }

    fn call(&self) -> Result<ScriptCall, Failure> {
        let entropy = self.host.entropy();
        let entropy = entropy.map_err(|error| Failure::new(Exit::Internal, error.to_string()))?;
        let question = |request| self.calls.queue(request, None);
        let mut query = Query::new(question, self.gateway.attempt(), Entropy::new(entropy));
        match query.poll(self.host.now()) {
            Output::Call { script, .. } => Ok(script),
            _ => Err(Failure::new(Exit::Internal, "a query begins with a call")),
        }
    }

    fn read(&self, answer: Answer) -> Result<u64, Failure> {
        let host = self.gateway.host();
        let (exit, message) = match answer {
            Answer::Reply(reply) => {
                let length = reply.value.split(',').next().and_then(|length| length.parse().ok());
                let Some(length) = length else {
                    return Err(Failure::new(Exit::Unreachable, "the queue has no length"));
                };
                return Ok(length);
            }
            Answer::Refused(refusal) => (Exit::Refused, refusal.message()),
            Answer::Failed(kind) => (Exit::Unreachable, kind.message()),
        };
        Err(Failure::new(exit, format!("{message} (queue, gateway {host})")))
    }
}
