//! Random steps for fair read-write locks of one namespace.

use edgelatch_proto::protocol::calls::FairMode;
use edgelatch_proto::protocol::script::Publish;
use proptest::prelude::*;
use proptest::sample::select;

use super::Limit;

/// The number of owners and of request ids: few, so that many calls are repetitions.
pub(crate) const OWNERS: u32 = 6;
const IDS: u64 = 5;

/// One step.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Call {
        what: Call,
        /// The index of the lock.
        lock: usize,
        /// Whether the limits are small.
        small: bool,
        publish: Publish,
        limit: Limit,
    },
    /// Time passes.
    Age { ms: u64 },
    /// One of the keys is removed.
    Loss { of: usize },
    /// The expiry of one of the keys is removed.
    Persist { of: usize },
    /// Another program writes a token.
    Token { value: u64, is_shared: bool },
}

#[derive(Clone, Debug)]
pub(crate) enum Call {
    Acquire {
        owner: u32,
        mode: FairMode,
        number: u32,
        last: bool,
        lease: u64,
        previous: Option<u32>,
    },
    Release {
        owner: u32,
        previous: Option<u32>,
    },
    /// The owner that was granted last, or another one.
    Renew {
        newest: bool,
        owner: u32,
        lease: u64,
    },
    ForceRelease {
        id: u64,
    },
    Cancel {
        id: u64,
    },
    Inspect {
        owner: u32,
    },
    Query,
}

/// Any step, weighted by its usefulness.
pub(crate) fn step() -> impl Strategy<Value = Step> {
    let publish = select(vec![Publish::Plain, Publish::Sharded, Publish::Both]);
    let lock = select(vec![0_usize, 0, 0, 1]);
    let small = proptest::bool::weighted(0.3);
    let call = (call(), lock, small, publish, Limit::any(8, 2, 6)).prop_map(
        |(what, lock, small, publish, limit)| Step::Call { what, lock, small, publish, limit },
    );
    let value = select(vec![1, 5_000_000_000_000_000, (1 << 53) - 1]);
    let ms = select(vec![900, 2_000, 6_000, 12_000, 31_000, 95_000, 700_000]);
    prop_oneof![
        24 => call,
        4 => ms.prop_map(|ms| Step::Age { ms }),
        1 => any::<usize>().prop_map(|of| Step::Loss { of }),
        1 => any::<usize>().prop_map(|of| Step::Persist { of }),
        1 => (value, any::<bool>())
            .prop_map(|(value, is_shared)| Step::Token { value, is_shared }),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    let owner = || 1..=OWNERS;
    let previous = || proptest::option::weighted(0.2, 1..=OWNERS);
    let lease = || select(vec![10_000, 60_000, 3_600_000_u64]);
    let steals = proptest::bool::weighted(0.1);
    prop_oneof![
        16 => (owner(), 1..5_u32, proptest::bool::weighted(0.2), lease(), previous(), steals).prop_map(
            |(owner, number, last, lease, previous, steals)| {
                let previous = previous.filter(|previous| *previous != owner);
                let mode = if steals && is_exclusive(owner) { FairMode::Steal } else { mode_of(owner) };
                Call::Acquire { owner, mode, number, last, lease, previous }
            }
        ),
        6 => (owner(), previous())
            .prop_map(|(owner, previous)| Call::Release { owner, previous }),
        3 => (any::<bool>(), owner(), lease())
            .prop_map(|(newest, owner, lease)| Call::Renew { newest, owner, lease }),
        3 => (1..=IDS).prop_map(|id| Call::ForceRelease { id }),
        3 => (1..=IDS).prop_map(|id| Call::Cancel { id }),
        1 => owner().prop_map(|owner| Call::Inspect { owner }),
        1 => Just(Call::Query),
    ]
}

const fn is_exclusive(owner: u32) -> bool {
    owner.is_multiple_of(2)
}

/// Each owner has one mode.
pub(crate) const fn mode_of(owner: u32) -> FairMode {
    if is_exclusive(owner) { FairMode::Exclusive } else { FairMode::Shared }
}
