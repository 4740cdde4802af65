//! The fair lock: clients that queue, leave, die and change their owner. A Java thread holds it at
//! the start, so that two clients are enough for a queue.

use edgelatch_proto::timing::WaitPolicy;

use super::plan::{Operation, Plan, seconds};
use super::properties;
use super::reachability::CoverPoint::{
    Abandoned, BothGranted, Busy, HandedOver, LateGrant, Lost, PassedOver, Queued, RefusedAsGone,
    RefusedAsLate, Repeated, Restored, Stale, TookOver, Unknown,
};
use super::search::{finds, holds, plan_for, waits, world};
use super::world::World;
use test_support::script_model::fair_head::Rule;

const FAIR: Plan = plan_for(Operation::Fair);
/// Waits without a limit: after 600 s it continues under another owner.
const STAYS: Plan = Plan { wait_policy: WaitPolicy::UntilCancelled, budget: 5, ..FAIR };

fn fair(plans: impl Into<Vec<Plan>>) -> World {
    World { properties: properties::of_a_queue, ..world(plans) }
}

/// Two clients that wait for the Java thread, and poll once before their wait ends.
fn queue() -> World {
    let waiter = Plan { budget: 4, ..waits(FAIR, 20) };
    World { java_holds_for: Some(15), times: &[0, 12, 18], ..fair([waiter, waiter]) }
}

#[test]
fn two_waiters_one_of_which_may_fall_silent() {
    let world = World { in_flight: 1, times: &[0, 4, 12, 18], ..queue() };
    let vacuous = &[
        properties::HELD_AT_MOST,
        properties::OUTCOME_IS_TRUE,
        properties::NOTHING_AFTER_END,
        properties::NO_RETURN,
        properties::COPY,
    ];
    holds(World { vacuous, ..world }, &[BothGranted, Queued, PassedOver, Restored, Repeated]);
}

#[test]
fn without_send_numbers_a_copy_of_a_poll_has_an_effect() {
    let world = World { without_fair: Some(Rule::SendNumber), copies: 1, ..queue() };
    finds(world, properties::COPY);
}

#[test]
fn without_its_place_a_silent_waiter_is_overtaken() {
    finds(World { without_fair: Some(Rule::Arrival), ..queue() }, properties::ORDER);
}

#[test]
fn without_a_tombstone_a_copy_of_a_poll_queues_again() {
    finds(
        World { without_fair: Some(Rule::Tombstone), copies: 1, ..queue() },
        properties::NOTHING_AFTER_END,
    );
}

#[test]
fn without_the_latch_of_a_grant_an_owner_is_granted_twice() {
    let world = World { without_fair: Some(Rule::GrantLatch), copies: 1, ..fair([FAIR, FAIR]) };
    finds(world, properties::AT_MOST_ONCE);
}

#[test]
fn a_takeover_without_its_tombstone_leaves_a_hold() {
    let world = fair([STAYS]);
    let world = World { without_fair: Some(Rule::HandOverTombstone), copies: 1, ..world };
    finds(
        World { java_holds_for: Some(605), times: &[0, 604, 612], ..world },
        properties::NOTHING_AFTER_END,
    );
}

#[test]
fn a_takeover_without_the_place_loses_its_order() {
    let world =
        World { without_fair: Some(Rule::HandOverPlace), in_flight: 1, ..fair([STAYS, STAYS]) };
    finds(World { java_holds_for: Some(604), times: &[0, 601, 606], ..world }, properties::ORDER);
}

#[test]
fn an_abandon_without_its_previous_owner_leaves_a_hold() {
    let leaves = Plan { cancels: true, ..STAYS };
    let world = World { without_fair: Some(Rule::AbandonPrevious), ..fair([leaves]) };
    finds(
        World { java_holds_for: Some(605), times: &[0, 604, 612], ..world },
        properties::OUTCOME_IS_TRUE,
    );
}

/// Searches that take many seconds without optimization: only a full run includes them.
// Slow: a search goes through up to 2.3 million states of real machines.
mod large {
    use super::*;

    #[test]
    fn two_tries_and_a_copy_of_any_request() {
        let world = World { copies: 1, in_flight: 1, times: &[0, 20, 40], ..fair([FAIR, FAIR]) };
        let vacuous = &[properties::HELD_AT_MOST, properties::ORDER];
        holds(World { vacuous, ..world }, &[BothGranted, Busy, Abandoned, Lost, RefusedAsGone]);
    }

    #[test]
    fn two_waiters_and_a_copy_of_any_request() {
        let world = World { copies: 1, in_flight: 1, times: &[0, 12, 18], ..queue() };
        holds(world, &[BothGranted, Queued, PassedOver, Restored, Stale, RefusedAsGone]);
    }

    #[test]
    fn three_waiters_in_the_queue() {
        let waiter = Plan { releases: 0, ..waits(FAIR, 20) };
        let world = World { plans: vec![waiter; 3], in_flight: 1, times: &[0, 8, 16], ..queue() };
        holds(World { first: None, copies: 1, ..world }, &[BothGranted, Queued, PassedOver, Stale]);
    }

    #[test]
    fn a_waiter_that_is_cancelled_while_a_copy_is_under_way() {
        let leaves = Plan { cancels: true, ..waits(FAIR, 20) };
        let world = World { copies: 1, in_flight: 1, times: &[0, 12, 18], ..queue() };
        let world = World { plans: vec![leaves, FAIR], ..world };
        let vacuous = &[properties::HELD_AT_MOST, properties::ORDER];
        holds(World { vacuous, ..world }, &[Queued, Abandoned, Stale, RefusedAsGone]);
    }

    #[test]
    fn a_wait_that_continues_under_another_owner() {
        let world = fair([STAYS, FAIR]);
        let world = World { java_holds_for: Some(605), in_flight: 1, copies: 1, ..world };
        let vacuous = &[properties::HELD_AT_MOST, properties::ORDER];
        holds(World { times: &[0, 604, 612], vacuous, ..world }, &[Queued, TookOver, BothGranted]);
    }

    #[test]
    fn a_wait_continues_while_the_outcome_of_an_attempt_is_unknown() {
        // The bound of its second owner is at 1291 s.
        let alone = World { java_holds_for: Some(595), breaks: 1, copies: 1, ..fair([STAYS]) };
        let world = || World { times: &[0, 590, 601, 691, 1291, 1329], ..alone.clone() };
        let vacuous = &[properties::EXCLUSION, properties::ORDER];
        holds(
            World { vacuous, ..world() },
            &[Queued, TookOver, HandedOver, RefusedAsLate, Unknown, LateGrant],
        );
        let horizon_and_lease = Some(seconds(90 + 30));
        finds(World { held_at_most: horizon_and_lease, ..world() }, properties::HELD_AT_MOST);
    }

    #[test]
    fn a_wait_under_two_owners_is_held_until_a_lease_after_the_later_bound_at_most() {
        // The first owner's request has no bound, so the client allows ten minutes for it; the
        // second owner's bound is at 695 s.
        let wait_policy = waits(FAIR, 605).wait_policy;
        let plan = Plan { wait_policy, knows_clock: false, cancels: true, ..STAYS };
        let alone = World { java_holds_for: Some(595), breaks: 2, in_flight: 4, ..fair([plan]) };
        let world = || World { times: &[0, 590, 601, 603, 1190, 1250], ..alone.clone() };
        let vacuous =
            &[properties::EXCLUSION, properties::NO_RETURN, properties::ORDER, properties::COPY];
        holds(World { vacuous, ..world() }, &[Queued, Unknown, LateGrant]);
        let later_alone = Some(seconds(95 + 30));
        finds(World { held_at_most: later_alone, ..world() }, properties::HELD_AT_MOST);
    }
}
