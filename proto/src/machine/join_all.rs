//! Runs machines concurrently as one, each for one part of a hold on its own gateway.

use alloc::vec::Vec;

use super::{CallId, Endpoint, Input, Machine, Output, TimeoutReason, sooner};
use crate::time::Instant;

/// Machines of one type; the index of each is the endpoint of its calls. Ends when all have ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JoinAll<M> {
    machines: Vec<M>,
}

impl<M> JoinAll<M> {
    /// Combines these machines.
    pub fn new(machines: impl IntoIterator<Item = M>) -> Self {
        Self { machines: machines.into_iter().collect() }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &M> {
        self.machines.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut M> {
        self.machines.iter_mut()
    }
}

/// Returns the index of the machine that an input concerns, of `count` machines, and replaces the
/// call id by that machine's. `None` means all machines.
fn route(input: &mut Input, count: usize) -> Option<usize> {
    let count = u32::try_from(count).unwrap_or(u32::MAX).max(1);
    match input {
        Input::Reply { call: CallId(call), .. }
        | Input::Refused { call: CallId(call), .. }
        | Input::Failed { call: CallId(call), .. } => {
            let index = usize::try_from(*call % count).ok();
            *call /= count;
            index
        }
        Input::Subscribed { .. }
        | Input::Notified { .. }
        | Input::AcquiredByOther { .. }
        | Input::Unsubscribed
        | Input::Timeout
        | Input::Cancelled => None,
    }
}

impl<M: Machine> Machine for JoinAll<M> {
    type Outcome = Vec<M::Outcome>;

    /// Passes the input to the machine whose call it concerns, else to all machines. Time has
    /// passed for the other machines too.
    fn handle(&mut self, mut input: Input, now: Instant) {
        let concerned = route(&mut input, self.machines.len());
        for (index, machine) in self.machines.iter_mut().enumerate() {
            let is_concerned = concerned.is_none_or(|concerned| concerned == index);
            let input = if is_concerned { input.clone() } else { Input::Timeout };
            machine.handle(input, now);
        }
    }

    /// Returns the next action of any machine, or all outcomes once each machine has one.
    fn poll(&mut self, now: Instant) -> Output<Self::Outcome> {
        let count = self.machines.len();
        let mut outcomes = Vec::with_capacity(count);
        let mut first: Option<(Instant, TimeoutReason)> = None;
        for (index, machine) in self.machines.iter_mut().enumerate() {
            match machine.poll(now) {
                Output::Call { call, script, .. } => {
                    let call = encode_call_id(call, index, count);
                    return Output::Call { call, to: Endpoint(index), script };
                }
                Output::Subscribe { topic, .. } => {
                    return Output::Subscribe { to: Endpoint(index), topic };
                }
                Output::Timeout { until, why } => first = Some(sooner(first, (until, why), now)),
                Output::Done(outcome) => outcomes.push(outcome),
            }
        }
        match first {
            Some((until, why)) => Output::Timeout { until, why },
            None => Output::Done(outcomes),
        }
    }
}

/// Makes call ids unique: each machine counts its own calls, so the index becomes part of the
/// number.
fn encode_call_id(CallId(call): CallId, index: usize, count: usize) -> CallId {
    let number = |n| u32::try_from(n).unwrap_or(u32::MAX);
    CallId(call.wrapping_mul(number(count)).wrapping_add(number(index)))
}
