//! Random steps for a semaphore, a permit-expirable semaphore and a count-down latch.

use proptest::prelude::*;

use super::Limit;

/// The names of the three objects, one of each form.
pub(crate) const NAMES: [&str; 3] = [SEM, PERM, GATE];
pub(crate) const SEM: &str = "sem";
pub(crate) const PERM: &str = "x{a}b";
pub(crate) const GATE: &str = "gate";

/// One step.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// An edgelatch call about a hold: its kind, owner, operation and parameters.
    Hold {
        kind: Kind,
        verb: Verb,
        owner: u8,
        request: u64,
        lease: Option<u64>,
        bound: Limit,
        keep: u64,
    },
    /// An idempotent edgelatch call: `change` is its index among those of all objects.
    Once { change: usize, number: u32, request: u64, bound: Limit, keep: u64 },
    /// The cancellation of an idempotent call.
    Cancel { change: usize, number: u32, request: u64, bound: Limit, keep: u64 },
    /// A query about an object, and an owner.
    Ask { object: usize, owner: u8 },
    /// A call of Redisson's.
    Java(Java),
    /// The leases of all holds end: `from_now` ms from now, or long ago.
    RunOut { from_now: Option<i64> },
    /// One of the keys is removed: expired, evicted, or deleted.
    Loss { of: usize },
    /// An object is removed.
    Gone { object: usize },
    /// An object gets an expiry, or its last token is at the end of the range.
    End { object: usize, ms: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Semaphore,
    Permits,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Verb {
    Acquire { last: bool },
    Renew,
    Release,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Java {
    Take(i64),
    Give(i64),
    Drain,
    Begin(i64),
    Add(i64),
    /// Takes a permit of this number, with an end relative to Redis' clock, by a clock that differs
    /// by `off`.
    TakePermits {
        id: u8,
        ends: Option<i64>,
        off: i64,
    },
    GivePermit {
        id: u8,
        off: i64,
    },
    /// Releases one of edgelatch's permits, by a clock that differs by `off`.
    GiveOurs {
        owner: u8,
        off: i64,
    },
    GiveAll {
        id: u8,
        owner: u8,
        off: i64,
    },
    Update {
        owner: u8,
        ends: Option<i64>,
        off: i64,
    },
    Count {
        off: i64,
    },
    SetPermits(i64),
    SetCount(i64),
    CountDown,
    Delete,
}

fn limit() -> impl Strategy<Value = Limit> {
    Limit::any(2, 1, 6)
}

fn hold() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![Just(Kind::Semaphore), Just(Kind::Permits)];
    let verb = prop_oneof![
        4 => any::<bool>().prop_map(|last| Verb::Acquire { last }),
        2 => Just(Verb::Renew),
        2 => Just(Verb::Release),
    ];
    let lease = proptest::sample::select(vec![None, Some(60_000), Some(200_000), Some(3_600_000)]);
    let keep = proptest::sample::select(vec![30_000, 90_000, 600_000_u64]);
    (kind, verb, 1..4_u8, 1..=6_u64, lease, limit(), keep).prop_map(
        |(kind, verb, owner, request, lease, bound, keep)| Step::Hold {
            kind,
            verb,
            owner,
            request,
            lease,
            bound,
            keep,
        },
    )
}

fn java() -> impl Strategy<Value = Step> {
    let off = || proptest::sample::select(vec![0_i64, -400, 400]);
    let ends = || proptest::sample::select(vec![None, Some(90_000), Some(-1_000)]);
    prop_oneof![
        3 => (1..3_i64).prop_map(Java::Take),
        3 => (1..3_i64).prop_map(Java::Give),
        1 => Just(Java::Drain),
        2 => (1..5_i64).prop_map(Java::Begin),
        1 => (-3..4_i64).prop_map(Java::Add),
        4 => (0..3_u8, ends(), off()).prop_map(|(id, ends, off)| Java::TakePermits { id, ends, off }),
        2 => (0..3_u8, off()).prop_map(|(id, off)| Java::GivePermit { id, off }),
        1 => (1..4_u8, off()).prop_map(|(owner, off)| Java::GiveOurs { owner, off }),
        1 => (0..3_u8, 1..4_u8, off()).prop_map(|(id, owner, off)| Java::GiveAll { id, owner, off }),
        1 => (1..4_u8, ends(), off()).prop_map(|(owner, ends, off)| Java::Update { owner, ends, off }),
        1 => off().prop_map(|off| Java::Count { off }),
        1 => (0..5_i64).prop_map(Java::SetPermits),
        1 => (0..3_i64).prop_map(Java::SetCount),
        2 => Just(Java::CountDown),
        1 => Just(Java::Delete),
    ]
    .prop_map(Step::Java)
}

/// Any step, weighted by its usefulness. `changes`: the number of idempotent calls.
pub(crate) fn step(changes: usize) -> impl Strategy<Value = Step> {
    let keep = || proptest::sample::select(vec![30_000, 600_000_u64]);
    let once = move || (0..changes, 1..5_u32, 1..=6_u64, limit(), keep());
    prop_oneof![
        10 => hold(),
        8 => once().prop_map(|(change, number, request, bound, keep)| Step::Once {
            change, number, request, bound, keep,
        }),
        2 => once().prop_map(|(change, number, request, bound, keep)| Step::Cancel {
            change, number, request, bound, keep,
        }),
        3 => (0..3_usize, 1..4_u8).prop_map(|(object, owner)| Step::Ask { object, owner }),
        6 => java(),
        1 => Just(Step::RunOut { from_now: None }),
        // Not yet expired, or by less than clocks may differ.
        1 => prop_oneof![Just(2_000), Just(-250)].prop_map(|ms| Step::RunOut { from_now: Some(ms) }),
        1 => any::<usize>().prop_map(|of| Step::Loss { of }),
        1 => (0..3_usize).prop_map(|object| Step::Gone { object }),
        2 => (0..3_usize, 60_000..600_000_u64).prop_map(|(object, ms)| Step::End { object, ms }),
    ]
}
