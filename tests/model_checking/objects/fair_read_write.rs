//! The fair read-write lock: readers and writers in one queue, copies of their polls, and the
//! takeover of a place by the next owner.

use edgelatch_proto::protocol::calls::FairMode;
use edgelatch_proto::timing::WaitPolicy;

use super::plan::{Operation, Plan};
use super::properties;
use super::reachability::CoverPoint::{
    Abandoned, BothGranted, Busy, HandedOver, Lost, PassedOver, Queued, RefusedAsGone, Repeated,
    Restored, Stale, TookOver,
};
use super::search::{finds, holds, plan_for, waits, world};
use super::world::World;

const SHARED: Plan = plan_for(Operation::FairReadWrite(FairMode::Shared));
const EXCLUSIVE: Plan = plan_for(Operation::FairReadWrite(FairMode::Exclusive));
/// Waits without a limit: after 600 s it continues under another owner.
const STAYS: Plan = Plan { wait_policy: WaitPolicy::UntilCancelled, budget: 5, ..EXCLUSIVE };

fn modes(plans: impl Into<Vec<Plan>>) -> World {
    World { first: None, properties: properties::of_a_queue_of_two_modes, ..world(plans) }
}

/// A holder of the lease of 30 s, and a waiter for 20 s that polls once more.
fn queue(holder: Plan, waiter: Plan) -> World {
    let waiter = Plan { budget: 4, ..waits(waiter, 20) };
    World { first: Some(0), times: &[0, 12, 18], ..modes([holder, waiter]) }
}

#[test]
fn without_the_latch_of_a_grant_an_owner_is_granted_twice() {
    let world = World { copies: 1, ..modes([EXCLUSIVE, SHARED]) };
    let without = Some("an owner is granted once");
    finds(World { without, ..world }, properties::AT_MOST_ONCE);
}

#[test]
fn without_a_tombstone_a_copy_of_a_released_hold_is_granted() {
    let world = World { copies: 1, ..modes([EXCLUSIVE]) };
    let without = Some("a release leaves a tombstone");
    finds(World { first: Some(0), without, ..world }, properties::NOTHING_AFTER_END);
}

#[test]
fn a_last_try_without_a_tombstone_is_granted_after_its_end() {
    let world = World { copies: 1, ..modes([EXCLUSIVE, SHARED]) };
    let without = Some("a refused last try leaves a tombstone");
    finds(World { without, ..world }, properties::NOTHING_AFTER_END);
}

#[test]
fn without_send_numbers_a_copy_of_a_poll_has_an_effect() {
    let world = World { copies: 1, ..queue(EXCLUSIVE, SHARED) };
    finds(World { without: Some("a copy of a poll only reads"), ..world }, properties::COPY);
}

#[test]
fn a_repeat_that_does_not_extend_leaves_a_hold_that_has_gone() {
    let world = modes([waits(SHARED, 20), EXCLUSIVE]);
    let without = Some("a repeat extends the hold");
    let world = World { without, times: &[0, 20, 40], ..world };
    finds(world, properties::TRUSTED_IS_STORED);
}

#[test]
fn readers_without_a_token_of_their_own_have_that_of_an_earlier_writer() {
    let without = Some("the first shared grant mints a token");
    finds(World { without, ..modes([EXCLUSIVE, SHARED]) }, properties::READ_TOKENS);
}

#[test]
fn a_takeover_without_the_hold_leaves_it_to_an_ended_owner() {
    let leaves = Plan { cancels: true, ..STAYS };
    let holder = Plan { releases: 1, ..EXCLUSIVE };
    let world = World { first: Some(0), copies: 1, ..modes([holder, leaves]) };
    let without = Some("the previous owner gets a tombstone");
    finds(World { without, times: &[0, 604, 612], ..world }, properties::NOTHING_AFTER_END);
}

#[test]
fn a_reader_and_a_writer_that_wait_for_each_other() {
    let vacuous = &[properties::HELD_AT_MOST, properties::ORDER, properties::SHARED];
    for (holder, waiter) in [(EXCLUSIVE, SHARED), (SHARED, EXCLUSIVE)] {
        let world = World { copies: 1, in_flight: 1, vacuous, ..queue(holder, waiter) };
        holds(world, &[BothGranted, Queued, Stale, RefusedAsGone]);
    }
}

/// Searches that take many seconds without optimization: only a full run includes them.
mod large {
    use super::*;

    #[test]
    fn tries_of_both_modes_and_a_copy_of_any_request() {
        for plans in [[EXCLUSIVE, SHARED], [EXCLUSIVE, EXCLUSIVE], [SHARED, SHARED]] {
            let world = World { copies: 1, in_flight: 1, times: &[0, 20, 40], ..modes(plans) };
            let mut vacuous = vec![properties::HELD_AT_MOST, properties::ORDER];
            if plans[0].operation == plans[1].operation {
                vacuous.push(properties::READ_TOKENS);
            }
            if plans[0].operation == SHARED.operation {
                vacuous.push(properties::BESIDE);
            } else {
                vacuous.push(properties::SHARED);
            }
            holds(World { vacuous: vacuous.leak(), ..world }, &[BothGranted, Lost, RefusedAsGone]);
        }
    }

    #[test]
    fn two_waiters_one_of_which_may_fall_silent() {
        let reader = Plan { releases: 0, budget: 4, ..waits(SHARED, 20) };
        let writer = Plan { releases: 0, budget: 4, ..waits(EXCLUSIVE, 20) };
        let plans = [EXCLUSIVE, writer, reader];
        let world = World { first: Some(0), in_flight: 1, times: &[0, 4, 12, 18], ..modes(plans) };
        // No owner ends within these bounds.
        let vacuous = &[
            properties::HELD_AT_MOST,
            properties::SHARED,
            properties::COPY,
            properties::NOTHING_AFTER_END,
            properties::OUTCOME_IS_TRUE,
        ];
        holds(World { vacuous, ..world }, &[BothGranted, Queued, PassedOver, Restored, Busy]);
    }

    #[test]
    fn a_wait_that_continues_under_another_owner() {
        let world = World { first: Some(0), ..modes([STAYS, SHARED]) };
        let vacuous = &[properties::HELD_AT_MOST, properties::ORDER, properties::SHARED];
        let world = World { copies: 1, in_flight: 1, times: &[0, 604, 612], vacuous, ..world };
        holds(world, &[Queued, TookOver, HandedOver, Repeated, Abandoned]);
    }
}
