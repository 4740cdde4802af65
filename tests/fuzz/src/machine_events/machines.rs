//! One machine of each kind, with any parameters, and its obligations.

use std::time::Duration;

use arbitrary::{Arbitrary as _, Unstructured};
use edgelatch_proto::error::{LossReason, ReleaseError, RequestError};
use edgelatch_proto::machine::{
    Acquire, AcquireAll, AcquireAllSpec, AcquireQuorum, AcquireQuorumSpec, AcquireSpec, AllTargets,
    AwaitLatch, Entropy, ExecuteOnce, Grant, LeaseState, OneTarget, Pacing, Query, QuorumLease,
    QuorumNodes, Release, ReleaseAll, Released, Renewal, RenewalOnDemand, SpinBackoff,
};
use edgelatch_proto::protocol::calls::{CountDownLatchCalls, LockCalls, Target};
use edgelatch_proto::protocol::reply::{Code, ServerClock};
use edgelatch_proto::protocol::script::Publish;
use edgelatch_proto::timing::{
    AttemptTime, LeaseTime, Replicas, RequestBudget, WaitPolicy, WaitTime,
};

use super::log::Log;
use super::{invariants, play};
use crate::kit::{entropy, granted, name, one_of, up_to};
use crate::name_to_keys::targets;

/// The number of kinds.
pub(super) const KINDS: u8 = 11;

/// The parameters that all acquisitions have in common.
struct Terms {
    lease: LeaseTime,
    wait: WaitPolicy,
    budget: Option<RequestBudget>,
    attempt: AttemptTime,
    replicas: Option<Replicas>,
    clock: Option<ServerClock>,
    is_contended: bool,
    entropy: Entropy,
}

fn terms(input: &mut Unstructured<'_>, log: &Log) -> Terms {
    let ms = Duration::from_millis;
    let wait = WaitTime::new(ms(1 + up_to(input, 60_000))).unwrap();
    Terms {
        lease: LeaseTime::new(ms(one_of(input, &[30_000, 100, 700, 1_800_000]))).unwrap(),
        wait: one_of(
            input,
            &[WaitPolicy::Once, WaitPolicy::UpTo(wait), WaitPolicy::UntilCancelled],
        ),
        budget: RequestBudget::new(u32::try_from(up_to(input, 40)).unwrap()).ok(),
        attempt: AttemptTime::new(ms(one_of(input, &[5_000, 50, 60_000]))).unwrap(),
        replicas: one_of(input, &[None, None, Replicas::new(1).ok()]),
        clock: bool::arbitrary(input).unwrap_or(true).then(|| log.clock()),
        is_contended: bool::arbitrary(input).unwrap_or(false),
        entropy: entropy(up_to(input, 255) + 1),
    }
}

fn target(input: &mut Unstructured<'_>) -> Target {
    let all = targets(&name("invoice:42"));
    input.choose(&all).cloned().unwrap_or_else(|_| all[0].clone())
}

/// A hold that was just granted.
fn held(target: &Target, terms: &Terms, log: &Log) -> Grant {
    granted(target.clone(), terms.lease, log.now)
}

/// Creates a machine and sends it events.
pub(super) fn any(input: &mut Unstructured<'_>) {
    let kind = u8::arbitrary(input).unwrap_or(0) % KINDS;
    let log = Log::new();
    let terms = terms(input, &log);
    match kind {
        0 => acquire(terms, input, log),
        1 => renewal(terms, input, log),
        2 => release(terms, input, log),
        3 => gather(terms, input, log),
        4 => majority(terms, input, log),
        5 => once(terms, input, log),
        6 => query(terms, input, log),
        7 => renew(terms, input, log),
        8 => awaiting(terms, input, log),
        9 => keeping(terms, input, log),
        _ => release_all(terms, input, log),
    }
}

fn acquire(terms: Terms, input: &mut Unstructured<'_>, log: Log) {
    let target = target(input);
    let spins = SpinBackoff::default();
    let pacing = if target.has_queue() {
        Pacing::Queue
    } else {
        one_of(input, &[Pacing::Jittered, Pacing::Spin(spins)])
    };
    let Terms { lease, wait, budget, attempt, replicas, clock, is_contended, entropy } = terms;
    let has_queue = target.has_queue();
    let targets = OneTarget { target, pacing, newest_token: None };
    let spec =
        AcquireSpec { targets, lease, wait, budget, attempt_time: attempt, replicas, is_contended };
    let machine = Acquire::new(spec, entropy, clock, log.now);
    play(
        machine,
        input,
        log,
        |_, log| invariants::within(budget, log),
        |outcome, log| match outcome {
            Ok(grant) => {
                invariants::granted(grant, 0, lease, replicas, log);
                invariants::stored_token(grant.token, log);
                invariants::is_worth_it(&grant.lease, lease, log);
            }
            // In a queue the next owner takes over what the last one has left.
            Err(_) if has_queue => {}
            Err(error) => invariants::left_nothing(error, lease, log),
        },
    );
}

fn gather(terms: Terms, input: &mut Unstructured<'_>, log: Log) {
    let parts: Vec<Target> = (0..=up_to(input, 2)).map(|_| target(input)).collect();
    let Terms { lease, wait, budget, attempt, replicas, clock, is_contended, entropy } = terms;
    let pacing = parts
        .iter()
        .map(|part| if part.has_queue() { Pacing::Queue } else { Pacing::Jittered })
        .collect();
    let (count, queues) = (parts.len(), parts.iter().any(Target::has_queue));
    let keep_time = Duration::from_millis(one_of(input, &[0, 1_500, 100_000]));
    let targets = AllTargets { parts, keep_time, pacing, newest_tokens: Vec::new() };
    let spec = AcquireAllSpec {
        targets,
        lease,
        wait,
        budget,
        attempt_time: attempt,
        replicas,
        is_contended,
    };
    let machine = AcquireAll::new(spec, entropy, vec![clock; count], log.now);
    play(
        machine,
        input,
        log,
        |_, _| {},
        |outcome, log| match outcome {
            Ok(multi_grant) => {
                assert_eq!(multi_grant.parts.len(), count);
                for (place, part) in multi_grant.parts.iter().enumerate() {
                    assert!(part.counts, "all or none");
                    invariants::granted(&part.grant, place, lease, replicas, log);
                    invariants::is_worth_it(&part.grant.lease, lease, log);
                }
                invariants::stored_token(multi_grant.token, log);
            }
            Err(_) if queues => {}
            Err(error) => invariants::left_nothing(error, lease, log),
        },
    );
}

fn majority(terms: Terms, input: &mut Unstructured<'_>, log: Log) {
    let count = one_of(input, &[3, 5]);
    let parts = vec![LockCalls::new(name("invoice:42"), Publish::Plain); count];
    let Terms { lease, wait, budget, attempt, replicas, clock, is_contended, entropy } = terms;
    let keep_time = Duration::from_millis(one_of(input, &[0, 1_500]));
    let targets = QuorumNodes { parts, keep_time };
    let spec = AcquireQuorumSpec {
        targets,
        lease,
        wait,
        budget,
        attempt_time: attempt,
        replicas,
        is_contended,
    };
    let machine = AcquireQuorum::new(spec, entropy, vec![clock; count], log.now);
    play(
        machine,
        input,
        log,
        |_, _| {},
        |outcome, log| match outcome {
            Ok(multi_grant) => {
                let counting = multi_grant.parts.iter().enumerate().filter(|(_, part)| part.counts);
                let counted = counting.map(|(place, part)| {
                    invariants::granted(&part.grant, place, lease, replicas, log);
                    assert_eq!(part.grant.token, multi_grant.token, "one token, in all that count");
                });
                assert!(counted.count() > count / 2, "fewer than a majority");
                for part in multi_grant.parts.iter().filter(|part| !part.counts) {
                    assert!(
                        invariants::was_requested(part.grant.owner, log),
                        "to be released, and never asked"
                    );
                }
            }
            Err(error) => {
                if let edgelatch_proto::error::AcquireError::Unknown { held_at_most, .. } = error {
                    invariants::lasts(*held_at_most, lease);
                }
            }
        },
    );
}

/// A trusted lease rests on a reply; at its end it is lost at once.
fn trusts(machine: &Renewal, grant: &Grant, log: &Log) {
    let confirmed = log.replies().filter(|(_, reply)| reply.code == Code::Done);
    let of = |sent_at| (sent_at, grant.lease.time());
    // It was granted at the start of the conversation; no call was sent before.
    let sent = confirmed.map(|(call, _)| of(call.sent_at)).collect::<Vec<_>>();
    let original = grant.lease.expires_at();
    let lease = machine.lease();
    if lease.expires_at() != original {
        invariants::rests_on(&lease, sent);
    }
    let is_lost = matches!(machine.state(), LeaseState::Lost(_));
    assert!(
        is_lost || log.cancelled || !log.now.has_reached(lease.expires_at()),
        "believed in at its end"
    );
}

fn renewal(terms: Terms, input: &mut Unstructured<'_>, log: Log) {
    let target = target(input);
    let grant = held(&target, &terms, &log);
    let renews = bool::arbitrary(input).unwrap_or(true);
    let until = bool::arbitrary(input).unwrap_or(false).then(|| log.now + terms.lease.get() * 3);
    let machine =
        Renewal::new(target, grant.clone(), renews, terms.attempt, terms.entropy, terms.clock)
            .with_end(until);
    play(
        machine,
        input,
        log,
        |machine, log| trusts(machine, &grant, log),
        |outcome, log| match outcome {
            None => assert!(log.cancelled, "it was not cancelled"),
            Some(LossReason::Gone | LossReason::Stolen) => {
                assert!(
                    log.replies().any(|(_, reply)| reply.code == Code::Lost),
                    "Redis has it still"
                );
            }
            Some(_) => {
                assert!(renews || log.calls.is_empty(), "asked for what was only to be watched")
            }
        },
    );
}

fn keeping(terms: Terms, input: &mut Unstructured<'_>, log: Log) {
    let (count, quorum) = one_of(input, &[(1, 1), (2, 2), (3, 2)]);
    let target = target(input);
    let grant = held(&target, &terms, &log);
    let part = |_| {
        Renewal::new(
            target.clone(),
            grant.clone(),
            true,
            terms.attempt,
            terms.entropy.clone(),
            terms.clock,
        )
    };
    let machine = QuorumLease::new((0..count).map(part), quorum);
    let keeps = |machine: &QuorumLease, log: &Log| {
        machine.parts().for_each(|part| trusts(part, &grant, log));
        let lost =
            machine.parts().filter(|part| matches!(part.state(), LeaseState::Lost(_))).count();
        assert_eq!(matches!(machine.state(), LeaseState::Lost(_)), lost > count - quorum);
    };
    play(machine, input, log, keeps, |outcome, log| assert!(outcome.is_some() || log.cancelled));
}

fn ended(outcome: &Result<Released, ReleaseError>, lease: LeaseTime, log: &Log) {
    let response = |code| log.replies().any(|(_, reply)| reply.code == code);
    match outcome {
        Ok(Released::Released) => assert!(response(Code::Done), "no reply confirmed the release"),
        Ok(Released::WasLost) => assert!(response(Code::No), "no reply said that it was lost"),
        Err(ReleaseError::Unknown { held_at_most, .. }) => invariants::lasts(*held_at_most, lease),
        Err(_) => {}
    }
}

fn release(terms: Terms, input: &mut Unstructured<'_>, log: Log) {
    let target = target(input);
    let grant = held(&target, &terms, &log);
    let machine = Release::new(&target, &grant, grant.outstanding(), terms.attempt, terms.clock);
    let few =
        |_: &Release, log: &Log| assert!(log.calls.len() <= 5, "{} attempts", log.calls.len());
    play(machine, input, log, few, |outcome, log| ended(outcome, terms.lease, log));
}

fn release_all(terms: Terms, input: &mut Unstructured<'_>, log: Log) {
    let (count, quorum) = one_of(input, &[(1, 1), (2, 2), (3, 2)]);
    let target = target(input);
    let grant = held(&target, &terms, &log);
    let part =
        |_| (Release::new(&target, &grant, grant.outstanding(), terms.attempt, terms.clock), true);
    let machine = ReleaseAll::new((0..count).map(part), quorum);
    play(machine, input, log, |_, _| {}, |outcome, log| ended(outcome, terms.lease, log));
}

fn once(terms: Terms, input: &mut Unstructured<'_>, log: Log) {
    let call = target(input).force_release();
    let has_clock = terms.clock.is_some();
    let machine = ExecuteOnce::new(call, terms.attempt, terms.entropy, terms.clock, log.now);
    let few =
        |_: &ExecuteOnce, log: &Log| assert!(log.calls.len() <= 12, "{} calls", log.calls.len());
    play(machine, input, log, few, |outcome, log| match outcome {
        Ok(reply) => {
            invariants::was_received(reply, log);
            assert!(
                ![Code::Late, Code::Gone, Code::BoundRequired, Code::Unknown].contains(&reply.code)
            );
        }
        // Redis reported it; or there was no clock, so no bound, and a call that needs one is never
        // executed.
        Err(RequestError::NotExecuted(_)) => {
            let replied = |code| log.replies().any(|(_, reply)| reply.code == code);
            assert!(
                !has_clock || replied(Code::Gone) || replied(Code::Late),
                "it may have been done"
            );
        }
        Err(_) => {}
    });
}

fn query(terms: Terms, input: &mut Unstructured<'_>, log: Log) {
    let target = target(input);
    let machine = Query::new(|request| target.inspect(request, None), terms.attempt, terms.entropy);
    let few = |_: &Query, log: &Log| assert!(log.calls.len() <= 3, "{} attempts", log.calls.len());
    play(machine, input, log, few, |outcome, log| {
        if let Ok(reply) = outcome {
            invariants::was_received(reply, log);
        }
    });
}

fn renew(terms: Terms, input: &mut Unstructured<'_>, log: Log) {
    let target = target(input);
    let grant = held(&target, &terms, &log);
    let Terms { lease, attempt, entropy, clock, .. } = terms;
    let machine = RenewalOnDemand::new(&target, &grant, lease, attempt, entropy, clock, log.now);
    let few = |_: &RenewalOnDemand, log: &Log| {
        assert!(log.calls.len() <= 1, "{} attempts", log.calls.len())
    };
    play(machine, input, log, few, |outcome, log| match outcome {
        Ok(renewed) => {
            let done = log.replies().filter(|(_, reply)| reply.code == Code::Done);
            invariants::rests_on(&renewed.lease, done.map(|(call, _)| (call.sent_at, lease)));
            invariants::stored_token(renewed.token, log);
        }
        Err(RequestError::Lost(_)) => {
            assert!(log.replies().any(|(_, reply)| reply.code == Code::Lost), "Redis has it still");
        }
        Err(_) => {}
    });
}

fn awaiting(terms: Terms, input: &mut Unstructured<'_>, log: Log) {
    let calls = CountDownLatchCalls::new(name("invoice:42"), Publish::Plain);
    let Terms { wait, budget, attempt, entropy, .. } = terms;
    let machine = AwaitLatch::new(calls, wait, budget, attempt, entropy, log.now);
    play(
        machine,
        input,
        log,
        |_, _| {},
        |outcome, log| {
            let is_open = log.replies().any(|(_, reply)| reply.code == Code::No);
            assert!(outcome.is_err() || is_open, "open only when Redis says so");
        },
    );
}
