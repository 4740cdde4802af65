//! All invariants hold in random schedules; without any one rule, a schedule breaks one.

use std::time::Duration;

use super::super::runner::{Network, Plan, Request, assert_all_hold, assert_violated};
use super::FairRw;
use super::settings::{Settings, plan};

const SCHEDULES: u64 = 600;
/// The largest number of schedules that a counter-example takes.
const SEARCHED: u64 = 3_000;

/// S36.
#[test]
fn no_waiter_is_overtaken_and_no_owner_granted_twice_despite_faults() {
    let coverage = assert_all_hold::<FairRw>(SCHEDULES, plan);
    coverage.assert_above(4 * SCHEDULES, &["exclusive grants", "shared grants"]);
    coverage.assert_above(SCHEDULES, &["copies", "deaths", "queries"]);
    coverage.assert_above(SCHEDULES / 4, &["takeovers", "steals", "losses"]);
    coverage.assert_above(SCHEDULES / 20, &["restored places"]);
}

/// A rule, the change of the schedules that shows its purpose, and the invariant that it keeps.
type Rule = (&'static str, fn(&mut Plan<Settings>), &'static str);

fn usual(_: &mut Plan<Settings>) {}

/// Clients that steal send no bound at first, and copies outlast the memory of such requests.
fn unbounded_steals(plan: &mut Plan<Settings>) {
    plan.settings.unbounded_steals = true;
    plan.settings.bounded_percent = 100;
    plan.settings.steal_percent = 35;
    plan.settings.first_keep = Duration::from_millis(150);
}

fn few_holders(plan: &mut Plan<Settings>) {
    plan.settings.max_holders = 2;
    plan.settings.shared_percent = 85;
    plan.settings.clients = 6;
}

/// Without copies, losses and pauses, waits are short: so messages decide who enters.
fn calm(plan: &mut Plan<Settings>) {
    plan.network =
        Network { loss_percent: 0, reply_loss_percent: 0, copy_percent: 0, ..plan.network };
    plan.settings.give_up_percent = 15;
}

fn long_waits(plan: &mut Plan<Settings>) {
    plan.settings.max_wait = 9_000;
    plan.settings.max_round = 300;
}

const RULES: [Rule; 19] = [
    ("an owner is granted once", usual, "granted twice"),
    ("a copy of a poll only reads", usual, "a copy of a poll has an effect"),
    ("a release leaves a tombstone", usual, "after its end"),
    ("a refused last try leaves a tombstone", usual, "has an effect"),
    ("new owners look at the queue", usual, "is overtaken by"),
    ("readers stay behind writers", usual, "is overtaken by"),
    ("the ticket is in the latch", usual, "order of arrival"),
    ("dead waiters leave the queue", usual, "did not acquire the lock"),
    ("dead holders do not count", usual, "gets no message"),
    ("places for those in front", few_holders, "are overtaken at the limit"),
    ("a limit on holders", few_holders, "are overtaken at the limit"),
    ("the removal of dead waiters notifies", usual, "gets no message"),
    ("leaving the queue notifies", calm, "gets no message"),
    ("a steal needs a bound", unbounded_steals, "granted"),
    ("a steal ends all holds", usual, "hold the lock together"),
    ("the first shared grant mints a token", usual, "is not above"),
    ("a repeat extends the hold", usual, "does not extend"),
    ("a renewal needs hold and token", usual, "after its end"),
    ("the previous owner's place passes over", long_waits, "order of arrival"),
];

#[test]
fn without_any_one_of_its_rules_the_lock_breaks_an_invariant() {
    for (rule, change, expected) in RULES {
        assert_violated::<FairRw>(
            rule,
            SEARCHED,
            |seed| plan(seed).with(change).without(rule),
            &[expected],
        );
    }
}

/// C8: the latch of a waiter that is silent for a while expires before its next poll.
#[test]
fn with_bounds_that_move_a_waiter_loses_its_place() {
    let moving = |request: &Request, bound: Option<u64>| bound.map(|_| request.sent_at + 1_500);
    let moving = |seed| plan(seed).with(|plan| plan.moving_bound = Some(moving));
    let expected = ["order of arrival", "is overtaken by"];
    assert_violated::<FairRw>("one bound", SEARCHED, moving, &expected);
}
