//! Random steps for a fair lock.

use edgelatch_proto::protocol::script::Publish;
use proptest::prelude::*;

use super::Limit;

/// The numbers of edgelatch owners, Redisson holders and request ids: few, so that many calls are
/// repetitions.
pub(crate) const OWNERS: u32 = 6;
pub(crate) const HOLDERS: usize = 3;
const IDS: u64 = 5;

/// One step.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Ours {
        what: Ours,
        publish: Publish,
        limit: Limit,
    },
    Java {
        what: Java,
        holder: usize,
        ahead: i64,
    },
    /// Time passes.
    Age {
        ms: u64,
    },
    /// One of the keys is removed.
    Loss {
        of: usize,
    },
    /// The expiry of one of the keys is removed.
    Persist {
        of: usize,
    },
    /// Another program writes a token.
    Token {
        value: u64,
    },
}

#[derive(Clone, Debug)]
pub(crate) enum Ours {
    Acquire {
        owner: u32,
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
    InspectQueue {
        owner: u32,
    },
}

#[derive(Clone, Debug)]
pub(crate) enum Java {
    Acquire { allowance: i64 },
    Once,
    Unlock { id: u64 },
    GiveUp { less: i64 },
    ForceUnlock,
}

/// Any step, weighted by its usefulness.
pub(crate) fn step() -> impl Strategy<Value = Step> {
    let publish = proptest::sample::select(vec![Publish::Plain, Publish::Sharded, Publish::Both]);
    let limit = Limit::any(8, 2, 6);
    let ours = (ours(), publish, limit).prop_map(|(what, publish, limit)| Step::Ours {
        what,
        publish,
        limit,
    });
    let ahead = proptest::sample::select(vec![0, 0, 0, 40_000, -40_000, 100_000_000]);
    let java = (java(), 0..HOLDERS, ahead).prop_map(|(what, holder, ahead)| Step::Java {
        what,
        holder,
        ahead,
    });
    let value = proptest::sample::select(vec![1, 5_000_000_000_000_000, (1 << 53) - 1]);
    let ms = proptest::sample::select(vec![900, 2_000, 6_000, 12_000, 31_000, 95_000, 700_000]);
    prop_oneof![
        20 => ours,
        8 => java,
        5 => ms.prop_map(|ms| Step::Age { ms }),
        1 => any::<usize>().prop_map(|of| Step::Loss { of }),
        1 => any::<usize>().prop_map(|of| Step::Persist { of }),
        2 => value.prop_map(|value| Step::Token { value }),
    ]
}

fn ours() -> impl Strategy<Value = Ours> {
    let owner = || 1..=OWNERS;
    let previous = || proptest::option::weighted(0.2, 1..=OWNERS);
    let lease = || proptest::sample::select(vec![10_000, 60_000, 3_600_000_u64]);
    prop_oneof![
        12 => (owner(), 1..5_u32, proptest::bool::weighted(0.2), lease(), previous()).prop_map(
            |(owner, number, last, lease, previous)| {
                let previous = previous.filter(|previous| *previous != owner);
                Ours::Acquire { owner, number, last, lease, previous }
            }
        ),
        4 => (owner(), previous())
            .prop_map(|(owner, previous)| Ours::Release { owner, previous }),
        2 => (any::<bool>(), owner(), lease())
            .prop_map(|(newest, owner, lease)| Ours::Renew { newest, owner, lease }),
        4 => (1..=IDS).prop_map(|id| Ours::ForceRelease { id }),
        4 => (1..=IDS).prop_map(|id| Ours::Cancel { id }),
        1 => owner().prop_map(|owner| Ours::Inspect { owner }),
        1 => owner().prop_map(|owner| Ours::InspectQueue { owner }),
    ]
}

fn java() -> impl Strategy<Value = Java> {
    let allowance = || proptest::sample::select(vec![5_000, 300_000]);
    prop_oneof![
        6 => allowance().prop_map(|allowance| Java::Acquire { allowance }),
        1 => Just(Java::Once),
        3 => (1..=IDS).prop_map(|id| Java::Unlock { id }),
        2 => allowance().prop_map(|less| Java::GiveUp { less }),
        1 => Just(Java::ForceUnlock),
    ]
}
