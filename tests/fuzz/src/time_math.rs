//! Times: whatever the clocks show, a lease is trusted for no longer than Redis keeps it, nothing
//! overflows, and no bound is later than allowed.

use std::time::Duration;

use arbitrary::{Arbitrary as _, Unstructured};
use edgelatch_proto::error::AcquireError;
use edgelatch_proto::machine::{Acquire, Input, Lease, Machine, Output, Renewal};
use edgelatch_proto::protocol::reply::ServerClock;
use edgelatch_proto::time::Instant;
use edgelatch_proto::timing::{
    AttemptTime, GuardMemory, LeaseTime, LifeTime, PeerSkew, WaitPolicy, WaitTime, WantTime,
};

use crate::kit::{FAILURES, acquisition, entropy, granted, lock, one_of, up_to};

/// A wait and 90 s beyond it, at most 10 minutes: `proto/src/protocol/README.md`, C3 and C8.
const HORIZON: u128 = 90_000;
const ROUND_MAX: u128 = 600_000;

pub(crate) fn run(input: &[u8]) {
    let mut input = Unstructured::new(input);
    let (sent, now) = (clocks(&mut input), clocks(&mut input));
    instants(sent, now, duration(&mut input));
    ranges(duration(&mut input));
    let lease = LeaseTime::new(Duration::from_millis(100 + up_to(&mut input, 86_399_900))).unwrap();
    leases(lease, sent, now, &mut input);
    renewals(lease, sent.0);
    bounds(lease, sent.0, now, &mut input);
}

/// The times of two clocks, and the numbers themselves.
type Clocks = (Instant, [u64; 2]);

fn clocks(input: &mut Unstructured<'_>) -> Clocks {
    let [monotonic, wall] = [0, 1].map(|_| match up_to(input, 3) {
        0 => u64::arbitrary(input).unwrap_or(0),
        1 => u64::MAX - up_to(input, 100_000_000),
        2 => up_to(input, 100_000),
        _ => 1_700_000_000_000 + up_to(input, 100_000_000),
    });
    (Instant::from_millis(monotonic, wall), [monotonic, wall])
}

fn duration(input: &mut Unstructured<'_>) -> Duration {
    let nanos = one_of(input, &[0, 0, 1, 500_000, 999_999]);
    let ms = if bool::arbitrary(input).unwrap_or(false) { u64::MAX } else { 400_000_000_000 };
    Duration::from_millis(up_to(input, ms)) + Duration::from_nanos(nanos)
}

fn instants((sent, shown): Clocks, (now, shows): Clocks, later: Duration) {
    let passed = [0, 1].map(|clock| shows[clock].saturating_sub(shown[clock]));
    assert_eq!(now.max_elapsed(sent), Duration::from_millis(passed[0].max(passed[1])));
    assert_eq!(sent.until(now), Duration::from_millis(passed[0].min(passed[1])));
    assert_eq!(now.has_reached(sent), (0..2).any(|clock| shows[clock] >= shown[clock]));
    assert_eq!(sent.sooner(now), now.sooner(sent));
    assert!(
        sent.sooner(now).max_elapsed(now).is_zero() && sent.sooner(now).max_elapsed(sent).is_zero()
    );
    let end = sent + later;
    assert!(end.has_reached(sent) && end.max_elapsed(sent) <= later && sent.until(end) <= later);
    let at_the_end = Instant::from_millis(u64::MAX, u64::MAX);
    assert_eq!(at_the_end + later, at_the_end);
}

/// The range of each type of time, by its documentation.
fn ranges(time: Duration) {
    const DAY: u128 = 86_400_000;
    let within = |least: u128, most: u128| {
        time.subsec_nanos().is_multiple_of(1_000_000) && (least..=most).contains(&time.as_millis())
    };
    assert_eq!(LeaseTime::new(time).is_ok(), within(100, DAY));
    assert_eq!(WaitTime::new(time).is_ok(), within(1, DAY));
    assert_eq!(AttemptTime::new(time).is_ok(), within(50, 60_000));
    assert_eq!(WantTime::new(time).is_ok(), within(100, 5_000));
    assert_eq!(PeerSkew::new(time).is_ok(), within(0, 60_000));
    assert_eq!(LifeTime::new(time).is_ok(), within(1, DAY * 3650));
    assert_eq!(GuardMemory::new(time).is_ok(), within(60_000, DAY * 3650));
}

/// How long a lease may be trusted: 1 % and 2 ms less than Redis keeps it.
pub(crate) fn trusted(lease: LeaseTime) -> Duration {
    lease.get() - lease.get() / 100 - Duration::from_millis(2)
}

fn leases(
    time: LeaseTime,
    (sent, shown): Clocks,
    (now, shows): Clocks,
    input: &mut Unstructured<'_>,
) {
    let lease = Lease::confirmed(time, sent);
    let left = lease.remaining(now);
    // A wall clock that goes back is overruled by the monotonic one.
    if shows[0] >= shown[0] {
        assert!(left <= trusted(time).saturating_sub(now.max_elapsed(sent)), "{left:?} are left");
    }
    assert_eq!(left.is_zero(), now.has_reached(lease.expires_at()));
    let again = clocks(input).0;
    let other = Lease::confirmed(time, again);
    let extended = lease.extended_by(&other);
    assert_eq!(extended.time(), time);
    assert!([lease.expires_at(), other.expires_at()].contains(&extended.expires_at()));
    // Never shorter by both clocks.
    assert!(extended.expires_at().until(lease.expires_at()).is_zero());
}

/// A renewal is due while there is time for it, and the end is the lease's.
fn renewals(time: LeaseTime, sent: Instant) {
    // If time itself ends before the lease does, nothing is granted.
    if (sent + time.get()).max_elapsed(sent) < time.get()
        || sent.until(sent + time.get()) < time.get()
    {
        return;
    }
    let target = lock("x");
    let grant = granted(target.clone(), time, sent);
    let expires = grant.lease.expires_at();
    for renews in [true, false] {
        let (grant, attempt) = (grant.clone(), AttemptTime::DEFAULT);
        let mut machine = Renewal::new(target.clone(), grant, renews, attempt, entropy(2), None);
        let Output::Timeout { until, .. } = machine.poll(sent) else { panic!("it waits first") };
        assert_eq!(until.sooner(expires), until, "nothing is due when the lease has ended");
        assert!(renews || until == expires);
        machine.handle(Input::Timeout, expires);
        assert!(matches!(machine.poll(expires), Output::Done(Some(_))), "it ends with the lease");
    }
}

/// Checks the request's not-after bound, and the upper bound on how long a hold with an unknown
/// outcome can exist.
fn bounds(lease: LeaseTime, seen: Instant, (now, shows): Clocks, input: &mut Unstructured<'_>) {
    let server_ms = if bool::arbitrary(input).unwrap_or(false) {
        u64::arbitrary(input).unwrap_or(0)
    } else {
        1_700_000_000_000
    };
    let clock = bool::arbitrary(input).unwrap_or(true).then(|| ServerClock::new(server_ms, seen));
    let wait_ms = up_to(input, 86_400_000);
    let patience =
        WaitTime::new(Duration::from_millis(wait_ms)).map_or(WaitPolicy::Once, WaitPolicy::UpTo);
    let mut spec = acquisition(lock("x"), lease);
    spec.wait = patience;
    let mut machine = Acquire::new(spec, entropy(3), clock, now);
    let Output::Call { script, .. } = machine.poll(now) else { panic!("it begins by asking") };
    let not_after = script.args()[1].parse::<u128>().ok();
    assert_eq!(not_after.is_some(), clock.is_some());
    if let Some(not_after) = not_after {
        let most = u128::from(server_ms)
            + now.max_elapsed(seen).as_millis()
            + u128::from(wait_ms).min(ROUND_MAX)
            + HORIZON;
        assert!(not_after <= most, "{not_after} is later than {most}");
        // Not sooner either, unless time itself ends before.
        let far = u64::MAX / 2;
        let is_ordinary = shows.into_iter().chain([server_ms]).all(|clock| clock < far);
        assert!(not_after == most || !is_ordinary, "{not_after} is sooner than {most}");
    }
    let Some(held) = unheard(&mut machine, now) else { return };
    assert!(held >= lease.get(), "a copy may still be granted for {lease:?}");
    let passed = now.max_elapsed(seen);
    // If the clocks disagree, the bound follows the faster one and the rest the slower one, so the
    // total is longer.
    if clock.is_none() || seen.until(now) == passed {
        let drift = |time: Duration| time / 100 + Duration::from_millis(2);
        let most = Duration::from_millis(u64::try_from(ROUND_MAX + HORIZON).unwrap());
        let most =
            most + lease.get() + if clock.is_some() { drift(passed) } else { Duration::ZERO };
        assert!(held <= most + drift(most), "{held:?} is more than {most:?}");
    }
}

/// Cancels an acquisition that never gets a reply, and returns its upper bound for a hold.
fn unheard(machine: &mut Acquire, begun: Instant) -> Option<Duration> {
    let mut now = begun;
    machine.handle(Input::Cancelled, now);
    for _ in 0..100 {
        match machine.poll(now) {
            Output::Call { call, .. } => {
                machine.handle(Input::Failed { call, kind: FAILURES[1] }, now);
            }
            Output::Timeout { until, .. } => {
                now = now + now.until(until);
                machine.handle(Input::Timeout, now);
            }
            Output::Subscribe { .. } => {}
            Output::Done(Err(AcquireError::Cancelled { held_at_most })) => return held_at_most,
            Output::Done(other) => panic!("{other:?} without a reply"),
        }
    }
    panic!("it never ends")
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let of = |byte: u8| vec![byte; 160];
    let counting: Vec<u8> = (0..=200).collect();
    let mixed = (0..200_u8).map(|place| place.wrapping_mul(83)).collect();
    vec![of(0), of(1), of(0xff), of(0x80), counting, mixed]
}
