//! Properties of every machine under arbitrary events: it ends, it does nothing after its end, and
//! needless wake-ups change nothing.

use std::fmt::Debug;
use std::time::Duration;

use edgelatch_proto::error::FailureKind;
use edgelatch_proto::machine::{Acquire, AcquireSpec, Machine};
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::timing::{LeaseTime, WaitPolicy};
use proptest::prelude::*;
use test_support::random::cases;

use crate::language::*;

/// An event of a machine.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A code, a value and milliseconds.
    Reply(Code, u64, i64),
    Fail(FailureKind),
    Refuse(&'static str),
    /// The two clocks of the host advance, each by its own milliseconds, and the machine is woken.
    Advance(u64, u64),
    AdvanceToTimeout,
    Cancel,
    Subscription(SubscriptionEvent),
}

/// An event of a machine's subscription.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SubscriptionEvent {
    Confirm,
    Join,
    NotifyWithin(u64),
    NotifyAcquired,
    End,
}

pub(crate) fn event() -> impl Strategy<Value = Event> {
    use Code::{AlreadyYours, BoundRequired, Done, Gone, Late, Lost, No, TokenRange};
    use FailureKind::{Broken, Garbled, NotSent, TooLarge};
    use SubscriptionEvent::{Confirm, End, Join, NotifyAcquired, NotifyWithin};
    let codes = [Done, AlreadyYours, No, Late, Gone, Lost, BoundRequired, TokenRange];
    let kinds = [NotSent, Broken, TooLarge, Garbled { status: 200 }];
    let errors = ["LOADING x", "NOPERM x", "OOM x", "ERR x"];
    let reply = (prop::sample::select(codes.to_vec()), 0_u64..3, -2_i64..60_000);
    let messages = [Confirm, Join, NotifyWithin(0), NotifyWithin(90), NotifyAcquired, End];
    prop_oneof![
        6 => reply.prop_map(|(code, value, ms)| Event::Reply(code, value, ms)),
        2 => prop::sample::select(kinds.to_vec()).prop_map(Event::Fail),
        2 => prop::sample::select(errors.to_vec()).prop_map(Event::Refuse),
        3 => (0_u64..20_000, 0_u64..20_000).prop_map(|(mono, wall)| Event::Advance(mono, wall)),
        4 => Just(Event::AdvanceToTimeout),
        1 => Just(Event::Cancel),
        3 => prop::sample::select(messages.to_vec()).prop_map(Event::Subscription),
    ]
}

/// Applies an event. A response is left out while there is no call.
fn apply<M: Machine>(it: Conversation<M>, event: &Event) -> Conversation<M> {
    let is_response = matches!(event, Event::Reply(..) | Event::Fail(_) | Event::Refuse(_));
    if is_response && it.calls().is_empty() {
        return it;
    }
    match event {
        Event::Reply(code, value, ms) => it.reply(ScriptReply::new(*code, value, *ms)),
        Event::Fail(kind) => it.fail(*kind),
        Event::Refuse(error) => it.refuse(error),
        Event::Advance(monotonic, wall) => {
            it.advance_host_clocks(*monotonic, i64::try_from(*wall).unwrap()).wake()
        }
        Event::AdvanceToTimeout if it.is_done() => it.wake(),
        Event::AdvanceToTimeout => it.advance_to_timeout(),
        Event::Cancel => it.cancel(),
        Event::Subscription(event) => match event {
            SubscriptionEvent::Confirm => it.confirm_subscription(),
            SubscriptionEvent::Join => it.join_subscription(),
            SubscriptionEvent::NotifyWithin(ms) => it.notify_within(*ms),
            SubscriptionEvent::NotifyAcquired => it.notify_acquired(Some(Duration::from_secs(30))),
            SubscriptionEvent::End => it.end_subscription(),
        },
    }
}

/// Checks that the machine ends within `max_timeouts` after the events, and that repeating them
/// changes nothing after its end.
pub(crate) fn check_end<M: Machine>(
    machine: M,
    events: &[Event],
    max_timeouts: usize,
) -> Result<(), TestCaseError>
where
    M::Outcome: Debug + Clone + PartialEq,
{
    let mut it = events.iter().fold(Conversation::new(machine), apply);
    for _ in 0..max_timeouts {
        if it.is_done() {
            break;
        }
        it = it.advance_to_timeout();
    }
    prop_assert!(it.is_done(), "the machine {it}");
    let (outcome, calls) = (it.outcome().cloned(), it.calls().len());
    let it = events.iter().fold(it, apply);
    prop_assert_eq!(it.outcome(), outcome.as_ref());
    prop_assert_eq!(it.calls().len(), calls);
    Ok(())
}

/// Wakes the machine while its timeout has come, as the client's driver does.
fn wake_while_due<M: Machine>(mut it: Conversation<M>) -> Conversation<M> {
    for _ in 0..100 {
        if !it.is_due() {
            return it;
        }
        it = it.wake();
    }
    panic!("a timeout that has come stays: the machine {it}")
}

/// Checks that the same events cause the same calls and the same outcome, with and without `extra`
/// wake-ups before each event.
pub(crate) fn check_needless_wakeups<M: Machine + Clone>(
    machine: M,
    events: &[Event],
    extra: &[u8],
) -> Result<(), TestCaseError>
where
    M::Outcome: Debug + PartialEq,
{
    let apply = |it, event: &Event| wake_while_due(apply(it, event));
    let undisturbed = events.iter().fold(Conversation::new(machine.clone()), apply);
    let mut woken = Conversation::new(machine);
    for (event, times) in events.iter().zip(extra) {
        for _ in 0..*times {
            woken = woken.wake();
        }
        woken = apply(woken, event);
    }
    prop_assert_eq!(undisturbed.scripts(), woken.scripts());
    for (one, other) in undisturbed.calls().iter().zip(woken.calls()) {
        prop_assert_eq!(&one.script, &other.script);
    }
    prop_assert_eq!(undisturbed.outcome(), woken.outcome());
    prop_assert_eq!(undisturbed.timeout_reason(), woken.timeout_reason());
    Ok(())
}

pub(crate) fn wait_policy() -> impl Strategy<Value = WaitPolicy> {
    let waits = (1_u64..60_000).prop_map(up_to);
    prop_oneof![Just(WaitPolicy::Once), waits, Just(WaitPolicy::UntilCancelled)]
}

/// An acquisition that ends by its budget, even without a wait that ends.
fn budgeted_acquire(wait_policy: WaitPolicy) -> Acquire {
    acquire_machine(AcquireSpec { budget: budget(30), ..acquire_spec(wait_policy) })
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn every_machine_ends_for_any_sequence_of_inputs(
        events in prop::collection::vec(event(), 0..40),
        wait_policy in wait_policy(),
        renews: bool,
        knows_clock: bool,
    ) {
        check_end(budgeted_acquire(wait_policy), &events, 200)?;
        check_end(auto_renewal_machine(LeaseTime::DEFAULT, renews), &events, 2_000)?;
        check_end(release_machine(LeaseTime::DEFAULT), &events, 20)?;
        check_end(force_release_machine(knows_clock), &events, 40)?;
        check_end(inspect_machine(), &events, 20)?;
        check_end(renew_on_demand_machine(LeaseTime::DEFAULT), &events, 20)?;
    }

    #[test]
    fn an_early_or_repeated_timeout_changes_no_machine(
        events in prop::collection::vec(event(), 0..40),
        extra in prop::collection::vec(0_u8..3, 40),
        wait_policy in wait_policy(),
        renews: bool,
        knows_clock: bool,
    ) {
        check_needless_wakeups(budgeted_acquire(wait_policy), &events, &extra)?;
        check_needless_wakeups(auto_renewal_machine(LeaseTime::DEFAULT, renews), &events, &extra)?;
        check_needless_wakeups(release_machine(LeaseTime::DEFAULT), &events, &extra)?;
        check_needless_wakeups(force_release_machine(knows_clock), &events, &extra)?;
        check_needless_wakeups(inspect_machine(), &events, &extra)?;
        check_needless_wakeups(renew_on_demand_machine(LeaseTime::DEFAULT), &events, &extra)?;
    }
}
