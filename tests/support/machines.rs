//! Drives the machines of the client without I/O.

use edgelatch_proto::machine::{CallId, Endpoint, Machine, Output};
use edgelatch_proto::protocol::script::ScriptCall;
use edgelatch_proto::time::Instant;

/// Polls a machine until it is done, or until it waits: then the error is its timeout. Passes each
/// of its calls to `send`, and ignores subscriptions.
pub fn poll_to_wait<M: Machine>(
    machine: &mut M,
    now: Instant,
    mut send: impl FnMut(Endpoint, CallId, ScriptCall),
) -> Result<M::Outcome, Instant> {
    loop {
        match machine.poll(now) {
            Output::Call { call, to, script } => send(to, call, script),
            Output::Subscribe { .. } => {}
            Output::Timeout { until, .. } => return Err(until),
            Output::Done(outcome) => return Ok(outcome),
        }
    }
}
