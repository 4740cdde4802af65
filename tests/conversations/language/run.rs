//! Runs a machine from its start to its end.

use edgelatch_proto::machine::{Endpoint, Input, Machine, Output};

use super::clock::Clocks;
use super::reply::Call;

/// The calls, the duration and the outcome of a machine.
pub(crate) struct Run<T> {
    pub(crate) calls: Vec<Call>,
    pub(crate) elapsed_ms: u64,
    pub(crate) outcome: T,
}

/// Polls `machine` until it is done. `respond` returns the input about a call, or `None` for a lost
/// reply, and may advance the clocks. Otherwise time advances from timeout to timeout.
pub(crate) fn run<M: Machine>(
    machine: M,
    respond: impl FnMut(&Call, &mut Clocks) -> Option<Input>,
) -> Run<M::Outcome> {
    run_with(machine, |_, _| {}, respond)
}

/// Runs a machine as [`run`] does, and wakes it needlessly before every poll.
pub(crate) fn run_with_needless_wakeups<M: Machine>(
    machine: M,
    respond: impl FnMut(&Call, &mut Clocks) -> Option<Input>,
) -> Run<M::Outcome> {
    run_with(machine, |machine, clocks| machine.handle(Input::Timeout, clocks.now()), respond)
}

fn run_with<M: Machine>(
    mut machine: M,
    before_poll: impl Fn(&mut M, &Clocks),
    mut respond: impl FnMut(&Call, &mut Clocks) -> Option<Input>,
) -> Run<M::Outcome> {
    let (mut clocks, mut calls) = (Clocks::default(), Vec::new());
    for _ in 0..20_000 {
        before_poll(&mut machine, &clocks);
        match machine.poll(clocks.now()) {
            Output::Call { call: id, to: Endpoint(gateway), script } => {
                let call = Call { id, gateway, script };
                if let Some(input) = respond(&call, &mut clocks) {
                    machine.handle(input, clocks.now());
                }
                calls.push(call);
            }
            Output::Subscribe { .. } => {}
            Output::Timeout { until, .. } => {
                clocks.advance_to(until);
                machine.handle(Input::Timeout, clocks.now());
            }
            Output::Done(outcome) => {
                return Run { calls, elapsed_ms: clocks.elapsed_ms(), outcome };
            }
        }
    }
    panic!("the machine does not end");
}
