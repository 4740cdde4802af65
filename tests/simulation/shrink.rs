//! Shrinks a schedule to a smaller one that breaks the same promise.

use super::faults::Faults;
use super::plan::{Kind, Limits, Plan};
use super::schedule::play;

/// How many seeds are tried for each smaller set of limits.
const SEEDS: u64 = 400;

/// Removes clients, rounds and faults while the same promise is broken, by the same seed or by one
/// close to it.
pub(crate) fn shrink(kind: Kind, limits: Limits, seed: u64, what: &str) -> Plan {
    let mut smallest = Plan::draw(seed, kind, &limits);
    while let Some(smaller) =
        smaller(&smallest).into_iter().find_map(|less| breaks(kind, less, smallest.seed, what))
    {
        smallest = smaller;
    }
    smallest
}

/// The limits with one client, one round or one fault less.
fn smaller(plan: &Plan) -> Vec<Limits> {
    let (clients, rounds, faults) = (plan.clients, plan.rounds, plan.faults);
    let less = |clients: usize, rounds: u32, faults: Faults| Limits {
        checks_history_only: plan.checks_history_only,
        exports: plan.exports,
        clients: Some(clients),
        rounds: Some(rounds),
        faults: Some(faults),
        seeded_fault: plan.seeded_fault,
    };
    let mut all = Vec::new();
    if clients > 1 {
        all.push(less(clients - 1, rounds, faults));
    }
    if rounds > 1 {
        all.push(less(clients, rounds - 1, faults));
    }
    all.extend(faults.iter().map(|fault| less(clients, rounds, faults.without(fault))));
    all
}

fn breaks(kind: Kind, limits: Limits, seed: u64, what: &str) -> Option<Plan> {
    let promise = what.split(' ').next().unwrap_or_default();
    let plans = (0..SEEDS).map(|more| Plan::draw(seed.wrapping_add(more), kind, &limits));
    plans.into_iter().find(|plan| {
        play(plan.clone(), false).broken.is_some_and(|broken| broken.starts_with(promise))
    })
}
