//! One machine of each kind, made at the start of a talk.

use edgelatch::LockName;
use edgelatch::machine::{
    Acquire, AcquireSpec, Entropy, Grant, Once, Question, Release, Renew, Renewal,
};
use edgelatch::protocol::calls::{LockCalls, Target};
use edgelatch::protocol::script::Publish;
use edgelatch::timing::{AttemptTime, LeaseTime, Patience, RequestBudget, WaitTime};

use crate::support::virtual_time::{START, granted, known_clock, ms, talk};

fn target() -> Target {
    Target::Lock(LockCalls::new(LockName::parse("invoice:42").unwrap(), Publish::Plain))
}

const fn entropy() -> Entropy {
    Entropy::new([7; 32])
}

pub(crate) fn up_to(wait_ms: u64) -> Patience {
    Patience::UpTo(WaitTime::new(ms(wait_ms)).unwrap())
}

/// An acquisition of a 30 s lease by a client that has seen Redis' clock.
pub(crate) fn acquiring(patience: Patience) -> Acquire {
    acquiring_within(30, patience)
}

/// The same with a budget of so many requests.
pub(crate) fn acquiring_within(requests: u32, patience: Patience) -> Acquire {
    let budget = RequestBudget::new(requests).ok();
    let spec = AcquireSpec { budget, ..AcquireSpec::new(target(), patience) };
    Acquire::new(spec, entropy(), Some(known_clock()), START)
}

pub(crate) fn held() -> Grant {
    talk(acquiring(Patience::Once)).asks("lock_acquire").hears(granted(42)).ends().unwrap()
}

pub(crate) fn renewal(renews: bool) -> Renewal {
    Renewal::new(target(), held(), renews, AttemptTime::DEFAULT, entropy(), Some(known_clock()))
}

pub(crate) fn release() -> Release {
    let (grant, clock) = (held(), Some(known_clock()));
    Release::new(&target(), &grant, grant.reach(), AttemptTime::DEFAULT, clock)
}

pub(crate) fn force_release(knows_clock: bool) -> Once {
    let clock = knows_clock.then(known_clock);
    Once::new(target().force_release(), AttemptTime::DEFAULT, entropy(), clock, START)
}

pub(crate) fn inspect() -> Question {
    Question::new(|request| target().inspect(request, None), AttemptTime::DEFAULT, entropy())
}

pub(crate) fn renew() -> Renew {
    let (lease, attempt) = (LeaseTime::DEFAULT, AttemptTime::DEFAULT);
    Renew::new(&target(), &held(), lease, attempt, entropy(), Some(known_clock()), START)
}
