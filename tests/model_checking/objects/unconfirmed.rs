//! A client with an unknown outcome gets an upper bound for its hold. Checked for every kind of
//! object, with a request that arrives at the last moment at which it is executed.

use std::time::Duration;

use edgelatch_proto::timing::{LeaseTime, WaitPolicy};

use super::network::DeliveryLimit;
use super::plan::{Operation, Plan, seconds};
use super::properties;
use super::reachability::CoverPoint::{LateGrant, Unknown};
use super::search::{PLAN, finds, holds, plan_for, waits, world};
use super::world::World;

const KINDS: [Operation; 7] = [
    Operation::Lock,
    Operation::Fair,
    Operation::Read,
    Operation::Write,
    Operation::Permits(1),
    Operation::Batch(2),
    Operation::Values(&["A", "B"]),
];
/// An upper bound that is too small: 90 s for a request in flight, and the lease.
const HORIZON_AND_LEASE: Option<Duration> = Some(seconds(90 + 30));

/// A client that waits for a free object, is cancelled at once, and gets no reply: neither to its
/// request nor to its abandon, which it sends twice.
fn unconfirmed(plan: Plan, times: &'static [u64]) -> World {
    let permits = plan.operation.permits();
    let plan = Plan { cancels: true, ..plan };
    World {
        number: permits,
        breaks: 2,
        in_flight: 3,
        times,
        properties: properties::of_unconfirmed_holds,
        vacuous: &[properties::BESIDE],
        ..world([plan])
    }
}

#[test]
fn without_rule_c3_a_request_without_a_bound_outlasts_its_reported_end() {
    let plan = Plan { knows_clock: false, ..waits(PLAN, 20) };
    let world = unconfirmed(plan, &[0, 1, 640]);
    finds(World { delivery_limit: DeliveryLimit::Late, ..world }, properties::HELD_AT_MOST);
}

/// Searches that take many seconds without optimization: only a full run includes them.
mod large {
    use super::*;

    /// S2.
    #[test]
    fn an_attempt_of_a_wait_is_held_until_a_lease_after_its_bound_at_most() {
        // The bound is at 110 s. The allowance for Java's clocks adds 2 s.
        for kind in KINDS {
            let world = || unconfirmed(waits(plan_for(kind), 20), &[0, 1, 110, 125, 139, 144]);
            holds(world(), &[Unknown, LateGrant]);
            finds(World { held_at_most: HORIZON_AND_LEASE, ..world() }, properties::HELD_AT_MOST);
        }
    }

    #[test]
    fn an_endless_wait_is_held_until_a_lease_after_its_bound_at_most() {
        // The bound is at 690 s.
        for kind in KINDS {
            let plan = Plan { wait_policy: WaitPolicy::UntilCancelled, ..plan_for(kind) };
            let world = || unconfirmed(plan, &[0, 1, 122, 690, 719, 730]);
            holds(world(), &[Unknown, LateGrant]);
            finds(World { held_at_most: HORIZON_AND_LEASE, ..world() }, properties::HELD_AT_MOST);
        }
    }

    #[test]
    fn an_attempt_without_a_bound_is_held_until_a_lease_after_ten_minutes_at_most() {
        for kind in KINDS {
            let plan = Plan { knows_clock: false, ..waits(plan_for(kind), 20) };
            let world = || unconfirmed(plan, &[0, 1, 122, 600, 629, 640]);
            holds(world(), &[Unknown, LateGrant]);
            finds(World { held_at_most: HORIZON_AND_LEASE, ..world() }, properties::HELD_AT_MOST);
        }
    }

    /// S14.
    #[test]
    fn a_hold_with_a_failed_release_lasts_until_a_lease_after_its_bound_at_most() {
        // None of five attempts gets a reply; a copy of the acquisition extends the hold at its
        // bound, at 110 s.
        let lease = LeaseTime::new(seconds(120)).unwrap();
        let plan = Plan { releases: 5, lease, ..waits(PLAN, 20) };
        let times = &[0, 2, 4, 6, 110, 220, 240];
        let world = || World { breaks: 5, in_flight: 5, copies: 1, times, ..world([plan]) };
        let vacuous = &[properties::EXCLUSION, properties::NO_RETURN, properties::TOKENS];
        holds(World { vacuous, ..world() }, &[Unknown, LateGrant]);
        let horizon_and_lease = Some(seconds(90 + 120));
        finds(World { held_at_most: horizon_and_lease, ..world() }, properties::HELD_AT_MOST);
    }
}
