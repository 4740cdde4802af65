//! What holds for each of the machines, whatever happens: it ends, it says nothing after its end, and being woken is harmless.

use std::fmt::Debug;
use std::time::Duration;

use edgelatch::error::FailureKind;
use edgelatch::machine::{Input, Machine};
use edgelatch::protocol::reply::Code;
use edgelatch::timing::Patience;
use proptest::prelude::*;

use crate::support::fixtures::{acquiring, force_release, inspect, release, renew, renewal, up_to};
use crate::support::virtual_time::{Says, Talk, talk};

/// One thing that may happen.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Hears(Code, u64, i64),
    Fails(FailureKind),
    Refused(&'static str),
    /// The two clocks of the host: they need not go together.
    Passes(u64, u64),
    Wakes,
    Cancelled,
    /// A subscription stands, brings a message, or is no more.
    Stream(u8),
}

pub(crate) fn event() -> impl Strategy<Value = Event> {
    use Code::{AlreadyYours, BoundRequired, Done, Gone, Late, Lost, No, TokenRange};
    use FailureKind::{Broken, Garbled, NotSent, TooLarge};
    let codes = [Done, AlreadyYours, No, Late, Gone, Lost, BoundRequired, TokenRange];
    let kinds = [NotSent, Broken, TooLarge, Garbled { status: 200 }];
    let errors = ["LOADING x", "NOPERM x", "OOM x", "ERR x"];
    let reply = (prop::sample::select(codes.to_vec()), 0_u64..3, -2_i64..60_000);
    prop_oneof![
        6 => reply.prop_map(|(code, value, ms)| Event::Hears(code, value, ms)),
        2 => prop::sample::select(kinds.to_vec()).prop_map(Event::Fails),
        2 => prop::sample::select(errors.to_vec()).prop_map(Event::Refused),
        3 => (0_u64..20_000, 0_u64..20_000).prop_map(|(mono, wall)| Event::Passes(mono, wall)),
        4 => Just(Event::Wakes),
        1 => Just(Event::Cancelled),
        3 => (0_u8..6).prop_map(Event::Stream),
    ]
}

fn happens<M: Machine>(talk: Talk<M>, event: &Event) -> Talk<M> {
    let is_answer = matches!(event, Event::Hears(..) | Event::Fails(_) | Event::Refused(_));
    if is_answer && talk.count() == 0 {
        return talk;
    }
    match event {
        Event::Hears(code, value, ms) => talk.hears(Says(*code, value.to_string(), *ms)),
        Event::Fails(kind) => talk.fails(*kind),
        Event::Refused(error) => talk.refused(error),
        Event::Passes(monotonic, wall) => talk.clocks(*monotonic, *wall).woken(),
        Event::Stream(news) => {
            let mut talk = talk;
            talk.tell(match news {
                0 => Input::Listening,
                1 => Input::Hearing,
                2 => Input::Notified { within: Duration::ZERO },
                3 => Input::Notified { within: Duration::from_millis(90) },
                4 => Input::Taken { lease: Some(Duration::from_secs(30)) },
                _ => Input::Deaf,
            });
            talk
        }
        Event::Wakes if talk.is_over() => talk.woken(),
        Event::Wakes => talk.wakes(),
        Event::Cancelled => talk.cancelled(),
    }
}

/// The events happen; then nothing is heard any more, and it ends after so many wake-ups at the most. What happens after
/// its end changes nothing.
pub(crate) fn ends<M: Machine>(
    machine: M,
    events: &[Event],
    wakes: usize,
) -> Result<(), TestCaseError>
where
    M::Outcome: Debug + Clone + PartialEq,
{
    let mut talk = events.iter().fold(talk(machine), happens);
    for _ in 0..wakes {
        if talk.is_over() {
            break;
        }
        talk = talk.wakes();
    }
    prop_assert!(talk.is_over(), "waits for {:?} after {:?}", talk.why(), talk.scripts());
    let (outcome, count) = (talk.outcome().cloned(), talk.count());
    let talk = events.iter().fold(talk, happens);
    prop_assert_eq!(talk.outcome(), outcome.as_ref());
    prop_assert_eq!(talk.count(), count);
    Ok(())
}

/// What waits for a time that has come is woken at once, as by whoever drives it.
fn driven<M: Machine>(mut talk: Talk<M>) -> Talk<M> {
    for _ in 0..100 {
        if !talk.is_due() {
            return talk;
        }
        talk = talk.woken();
    }
    panic!("it waits for what is over: {:?}", talk.why())
}

/// The same events make the same calls and the same end, with further wake-ups and without.
pub(crate) fn sleeps_well<M: Machine + Clone>(
    machine: M,
    events: &[Event],
    extra: &[u8],
) -> Result<(), TestCaseError>
where
    M::Outcome: Debug + PartialEq,
{
    let happens = |talk, event: &Event| driven(happens(talk, event));
    let quiet = events.iter().fold(talk(machine.clone()), happens);
    let mut woken = talk(machine);
    for (event, times) in events.iter().zip(extra) {
        for _ in 0..*times {
            woken = woken.woken();
        }
        woken = happens(woken, event);
    }
    prop_assert_eq!(quiet.scripts(), woken.scripts());
    for call in 0..quiet.count() {
        prop_assert_eq!(quiet.args(call), woken.args(call));
    }
    prop_assert_eq!(quiet.outcome(), woken.outcome());
    prop_assert_eq!(quiet.why(), woken.why());
    Ok(())
}

pub(crate) fn patience() -> impl Strategy<Value = Patience> {
    let waits = (1_u64..60_000).prop_map(up_to);
    prop_oneof![Just(Patience::Once), waits, Just(Patience::UntilCancelled)]
}

proptest! {
    #[test]
    fn every_machine_ends_whatever_happens(
        events in prop::collection::vec(event(), 0..40),
        patience in patience(),
        flag in any::<bool>(),
    ) {
        ends(acquiring(patience), &events, 200)?;
        ends(renewal(flag), &events, 2_000)?;
        ends(release(), &events, 20)?;
        ends(force_release(flag), &events, 40)?;
        ends(inspect(), &events, 20)?;
        ends(renew(), &events, 20)?;
    }

    #[test]
    fn being_woken_early_or_twice_moves_no_machine(
        events in prop::collection::vec(event(), 0..40),
        extra in prop::collection::vec(0_u8..3, 40),
        patience in patience(),
        flag in any::<bool>(),
    ) {
        sleeps_well(acquiring(patience), &events, &extra)?;
        sleeps_well(renewal(flag), &events, &extra)?;
        sleeps_well(release(), &events, &extra)?;
        sleeps_well(force_release(flag), &events, &extra)?;
        sleeps_well(inspect(), &events, &extra)?;
        sleeps_well(renew(), &events, &extra)?;
    }
}
