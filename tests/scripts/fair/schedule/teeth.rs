//! Without a rule, what it is for must go wrong: otherwise that nothing goes wrong means nothing.

use super::SCHEDULES;
use super::law::Law;
use super::world::World;
use crate::support::script_model::fair_head::Rule;

#[test]
fn without_any_of_its_rules_the_queue_goes_wrong() {
    let rules = [
        Rule::SendNumber,
        Rule::Seat,
        Rule::Room,
        Rule::Grace,
        Rule::Tell,
        Rule::Tombstone,
        Rule::GrantLatch,
        Rule::HandOverHold,
        Rule::HandOverSeat,
        Rule::HandOverTombstone,
        Rule::AbandonPrevious,
    ];
    for rule in rules {
        let run = |seed| World::new(seed, Law::drawn(seed)).without(rule).run().err();
        let found = (0..SCHEDULES).find_map(|seed| Some((seed, run(seed)?)));
        println!("without {rule:?}: {found:?}");
        assert!(found.is_some(), "nothing goes wrong without {rule:?}");
    }
}

#[test]
fn a_client_that_forgets_an_owner_whose_takeover_is_unknown_leaves_a_ghost() {
    let run = |seed| World::new(seed, Law { forgets: true, ..Law::drawn(seed) }).run().err();
    let found = (0..SCHEDULES).find_map(|seed| Some((seed, run(seed)?)));
    println!("forgetting: {found:?}");
    assert!(found.is_some_and(|(_, wrong)| wrong.contains("has ended and is there")));
}
