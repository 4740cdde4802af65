//! What a gateway may do to a request, and what that is for whoever asks.

use edgelatch::error::FailureKind;

use test_support::answers::{indeterminate, refusals};
use test_support::misbehaviour::{Fault, Said};

/// One way in which a request goes wrong.
#[derive(Clone, Debug)]
pub(crate) struct Action {
    pub(crate) name: String,
    pub(crate) fault: Fault,
    pub(crate) class: Class,
}

/// What an action is for whoever asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// The answer tells nothing: it is asked again, and said to be this when that does not help.
    TellsNothing(FailureKind),
    /// The answer is a clear no.
    No,
    /// The answer is right, but the request was executed more than once.
    Repeated,
}

/// How many of the requests it befalls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Times {
    First,
    All,
}

impl Action {
    /// Whether what is asked for is got in the end.
    pub(crate) fn is_survived(&self, times: Times) -> bool {
        match self.class {
            Class::TellsNothing(_) => times == Times::First,
            Class::No => false,
            Class::Repeated => true,
        }
    }
}

/// Every action, and how many of the requests it befalls.
pub(crate) fn actions() -> Vec<(Action, Times)> {
    let mut all = Vec::new();
    for (name, said, kind) in indeterminate() {
        let class = Class::TellsNothing(kind);
        // Half of what was never said is nothing.
        if !matches!(said, Said::HalfTheTruth) {
            all.extend(often(format!("{name}, not executed"), Fault::instead(said.clone()), class));
        }
        all.extend(often(format!("{name}, executed"), Fault::after(said.clone()), class));
        let twice = Fault { executions: 2, ..Fault::after(said) }.copied();
        all.extend(often(format!("{name}, executed twice, and once more later"), twice, class));
    }
    for (phase, fault) in
        [("not executed", Fault::instead(Said::Silence)), ("executed", Fault::after(Said::Silence))]
    {
        // Once is enough: each takes as long as an attempt may.
        let class = Class::TellsNothing(FailureKind::TimedOut);
        let action = Action { name: format!("silence, {phase}"), fault: fault.copied(), class };
        all.push((action, Times::First));
    }
    for (name, said) in refusals() {
        let action = Action { name: name.into(), fault: Fault::instead(said), class: Class::No };
        all.push((action, Times::All));
    }
    for (name, fault) in [("twice", Fault::twice()), ("a copy later", Fault::none().copied())] {
        let action = Action { name: name.into(), fault, class: Class::Repeated };
        all.push((action, Times::All));
    }
    all
}

fn often(name: String, fault: Fault, class: Class) -> [(Action, Times); 2] {
    [Times::First, Times::All]
        .map(|times| (Action { name: name.clone(), fault: fault.clone(), class }, times))
}
