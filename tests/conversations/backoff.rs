//! The back-off between the retries of a waiter without notifications, and the pauses of a spin
//! lock.

use edgelatch_proto::error::AcquireError;
use edgelatch_proto::machine::{Acquire, AcquireSpec, Entropy, Pacing, SpinBackoff, TimeoutReason};
use edgelatch_proto::timing::WaitPolicy;

use crate::language::*;

const ACQUIRE: &str = "lock_acquire";

/// The pause of [`SpinBackoff::CONSTANT`], in milliseconds.
const SPIN_PAUSE_MS: u64 = 64;

fn spin_lock(policy: SpinBackoff, wait_ms: u64) -> Conversation<Acquire> {
    let mut spec = acquire_spec(up_to(wait_ms));
    spec.targets.pacing = Pacing::Spin(policy);
    acquire_with(spec)
}

/// Measures the mean delay from a release to the next retry of a polling waiter, as a fraction of
/// the back-off step in which the release comes.
#[test]
fn polling_finds_a_release_within_half_a_back_off_step_on_average() {
    let (mut weighted_delays, mut waited) = (0.0, 0.0);
    for seed in 0..100 {
        let spec = acquire_spec(WaitPolicy::UntilCancelled);
        let machine = Acquire::new(spec, Entropy::new([seed; 32]), Some(known_clock()), START);
        let mut it = Conversation::new(machine);
        for step in [50, 100, 200, 400, 800, 1_600, 2_000, 2_000, 2_000] {
            it = it.expect_call(ACQUIRE).reply(busy(30_000)).expect_timeout(TimeoutReason::BackOff);
            let pause = ms(it.timeout_ms()).as_secs_f64();
            // A release comes at any time with the same probability: in the middle of a pause on
            // average, and in a longer pause more often.
            let mean_delay = (pause / 2.0) / ms(step).as_secs_f64();
            weighted_delays += pause * mean_delay;
            waited += pause;
            it = it.advance_to_timeout();
        }
    }
    let mean = weighted_delays / waited;
    assert!(mean > 0.2 && mean < 0.5, "{mean} steps");
}

#[test]
fn a_spin_lock_keeps_its_own_back_off_regardless_of_the_holder_s_remaining_time() {
    let mut it = spin_lock(SpinBackoff::CONSTANT, 10_000);
    for _ in 0..5 {
        it = it.expect_call(ACQUIRE).reply(busy(3));
        it = it.expect_timeout_in(TimeoutReason::BackOff, SPIN_PAUSE_MS).advance_to_timeout();
    }
}

#[test]
fn a_pause_of_a_spin_lock_ends_with_its_wait() {
    let it = spin_lock(SpinBackoff::Constant(ms(30_000)), 2_000).expect_call(ACQUIRE);
    let it = it.reply(busy(60_000)).expect_timeout_in(TimeoutReason::WaitOver, 2_000);
    let it = it.advance_to_timeout().expect_call(ACQUIRE);
    assert_eq!(it.arg(LAST_TRY), "1");
    let outcome = it.reply(busy(58_000)).expect_done();
    assert!(matches!(outcome, Err(AcquireError::Busy { .. })), "{outcome:?}");
}

#[test]
fn pauses_of_a_spin_lock_that_are_out_of_range_are_rejected() {
    for bad in [
        SpinBackoff::Constant(ms(0)),
        SpinBackoff::Constant(ms(60_001)),
        SpinBackoff::Exponential { first: ms(2), max: ms(1), factor: 2 },
        SpinBackoff::Exponential { first: ms(1), max: ms(1), factor: 0 },
    ] {
        assert_eq!(bad.check().unwrap_err().option(), "backoff");
    }
    assert!(SpinBackoff::default().check().is_ok() && SpinBackoff::CONSTANT.check().is_ok());
}

#[test]
fn a_request_budget_spreads_the_tries_of_a_spin_lock_over_its_wait() {
    let (budget, pacing) = (budget(12), Pacing::Spin(SpinBackoff::CONSTANT));
    let mut spec = AcquireSpec { budget, ..acquire_spec(up_to(30_000)) };
    spec.targets.pacing = pacing;
    let mut it = acquire_with(spec);
    // One of the twelve calls is the first try, and one is reserved for a release. The other ten
    // are retries, one in 3 s.
    for tries in 1..8 {
        it = it.expect_call(ACQUIRE).reply(busy(60_000)).advance_to_timeout();
        let passed = it.elapsed_ms();
        assert!(passed >= 2_000 * tries && passed <= 4_000 * tries, "{tries}: {passed} ms");
    }
}

#[test]
fn a_spin_lock_in_a_multi_lock_keeps_its_own_back_off() {
    let multi_lock_with_spin_lock = || {
        let pacing = vec![Pacing::Jittered, Pacing::Spin(SpinBackoff::CONSTANT)];
        let mut spec = multi_lock_spec(vec![plain_part(0), plain_part(1)], up_to(60_000));
        spec.targets.pacing = pacing;
        multi_lock_with(spec)
    };
    let mut it = multi_lock_with_spin_lock().reply_from(0, granted(10));
    for _ in 0..5 {
        // The remaining time of 3 ms does not shorten the pause.
        it = it.reply_from(1, busy(3));
        let timeout = (it.timeout_ms(), it.timeout_reason());
        assert_eq!(timeout, (SPIN_PAUSE_MS, Some(TimeoutReason::BackOff)));
        it = it.advance_to_timeout();
    }
    // The other lock uses its usual back-off.
    let it = multi_lock_with_spin_lock().reply_from(1, busy(3)).reply_from(0, busy(3));
    assert_eq!((it.timeout_ms(), it.timeout_reason()), (4, Some(TimeoutReason::HolderExpires)));
}
