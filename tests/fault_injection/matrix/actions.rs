//! Faults that a gateway can inject into a request, and their effect on the caller.

use edgelatch::error::FailureKind;

use test_support::bad_responses::{indeterminate, refusals};
use test_support::faults::{Fault, FaultResponse};

/// One fault of a request.
#[derive(Clone, Debug)]
pub(crate) struct Action {
    pub(crate) name: String,
    pub(crate) fault: Fault,
    pub(crate) class: Class,
}

/// The effect of a fault on the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// The response leaves the outcome unknown: the client retries, and reports this failure if no
    /// retry succeeds.
    Indeterminate(FailureKind),
    /// The response is a clear refusal.
    Refused,
    /// The response is correct, but the request is executed more than once.
    Duplicated,
}

/// How many of an operation's requests have the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Times {
    First,
    All,
}

impl Action {
    /// Whether the operation succeeds in the end, by a retry or since the response is correct.
    pub(crate) fn is_survived(&self, times: Times) -> bool {
        match self.class {
            Class::Indeterminate(_) => times == Times::First,
            Class::Refused => false,
            Class::Duplicated => true,
        }
    }
}

/// Every fault, once for the first request of an operation and once for all of its requests; some
/// only for one of these.
pub(crate) fn actions() -> Vec<(Action, Times)> {
    let mut all = Vec::new();
    for (name, response, kind) in indeterminate() {
        let class = Class::Indeterminate(kind);
        // A truncated response is half of the real one, which exists only after an execution.
        if !matches!(response, FaultResponse::Truncated) {
            all.extend(with_each_times(
                format!("{name}, not executed"),
                Fault::not_executed(response.clone()),
                class,
            ));
        }
        all.extend(with_each_times(
            format!("{name}, executed"),
            Fault::executed(response.clone()),
            class,
        ));
        let twice = Fault { executions: 2, ..Fault::executed(response) }.copied();
        all.extend(with_each_times(
            format!("{name}, executed twice, and once more later"),
            twice,
            class,
        ));
    }
    for (phase, fault) in [
        ("not executed, and once later", Fault::not_executed(FaultResponse::Silence)),
        ("executed, and once more later", Fault::executed(FaultResponse::Silence)),
    ] {
        // Only the first request: each silence takes as long as an attempt.
        let class = Class::Indeterminate(FailureKind::TimedOut);
        let action = Action { name: format!("silence, {phase}"), fault: fault.copied(), class };
        all.push((action, Times::First));
    }
    for (name, response) in refusals() {
        let action = Action {
            name: name.into(),
            fault: Fault::not_executed(response),
            class: Class::Refused,
        };
        all.push((action, Times::All));
    }
    for (name, fault) in [("twice", Fault::twice()), ("a copy later", Fault::none().copied())] {
        let action = Action { name: name.into(), fault, class: Class::Duplicated };
        all.push((action, Times::All));
    }
    all
}

/// The fault for the first request of an operation, and for all.
fn with_each_times(name: String, fault: Fault, class: Class) -> [(Action, Times); 2] {
    [Times::First, Times::All]
        .map(|times| (Action { name: name.clone(), fault: fault.clone(), class }, times))
}
