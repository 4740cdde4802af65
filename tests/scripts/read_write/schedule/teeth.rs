//! Each rule is needed: without it a schedule goes wrong.

use edgelatch::protocol::reply::{Code, Reply};

use super::super::given::{reads, writes};
use super::law::Law;
use super::world::{JOB, World};
use crate::support::calls::{UNBOUND, lease, owner, request};
use crate::support::script_model::read_write::rules;
use crate::support::script_model::{Latches, ScriptModel, Value, java_read_write::JavaRw};

/// Schedules that are tried at the most.
const SCHEDULES: u64 = 2_000;

/// A rule is left out, and a schedule goes wrong in the way that the rule is there for.
fn finds(what: &str, wanted: &str, change: impl Fn(&mut World)) {
    for seed in 0..SCHEDULES {
        let mut world = World::new(seed, Law::drawn(seed));
        change(&mut world);
        if let Err(wrong) = world.run()
            && wrong.contains(wanted)
        {
            println!("without `{what}`, schedule {seed}: {wrong}");
            return;
        }
    }
    panic!("without `{what}` nothing went wrong");
}

fn finds_without(rule: &'static str, wanted: &str) {
    finds(rule, wanted, |world| world.model.without = Some(rule));
}

const TWICE: &str = "is granted twice, or after its end";
const GONE: &str = "relies on what is not there";

#[test]
fn without_the_latch_one_owner_is_granted_twice() {
    finds("a latch", TWICE, |world| world.model = ScriptModel::new(Latches::Off));
}

#[test]
fn with_a_bound_that_moves_one_owner_is_granted_twice() {
    finds("one bound", TWICE, |world| world.law.moving_bound = true);
}

#[test]
fn an_unbounded_request_needs_a_long_memory() {
    finds("a long memory", TWICE, |world| {
        world.law.brief_first = true;
        world.law.unbounded = 50;
    });
}

#[test]
fn a_repeat_that_does_not_extend_leaves_a_hold_that_has_gone() {
    finds_without(rules::REPEAT_EXTENDS, GONE);
}

#[test]
fn a_last_try_without_a_tombstone_is_granted_after_its_end() {
    finds_without(rules::LAST_TRY, TWICE);
}

#[test]
fn without_timeout_keys_java_s_unlock_ends_our_hold() {
    finds_without(rules::TIMEOUT_KEYS, GONE);
}

#[test]
fn a_writer_that_does_not_look_at_timeout_keys_enters_among_readers() {
    finds_without(rules::ALIVE, GONE);
}

#[test]
fn a_read_that_ends_inside_cuts_a_write_short_unless_it_leaves_its_end_alone() {
    finds_without(rules::WRITER_S_END, GONE);
}

#[test]
fn readers_with_a_token_each_would_fence_each_other() {
    finds_without(rules::EPOCH, "readers have the tokens");
}

#[test]
fn without_a_new_token_a_read_inside_is_as_old_as_the_write_around_it() {
    finds_without(rules::DOWNGRADE, "has the token of a write that has ended");
}

#[test]
fn a_read_that_the_release_of_its_write_does_not_name_keeps_the_write_s_token() {
    finds_without(rules::RISES, "has the token of a write that has ended");
}

#[test]
fn a_reader_without_a_parent_does_not_come_in() {
    finds_without(rules::PARENT, "reads while");
}

#[test]
fn a_want_that_outlives_its_writer_keeps_readers_out_for_nobody() {
    finds_without(rules::WANT_ENDS, "has ended and something of it is there");
}

#[test]
fn what_is_trusted_beyond_redisson_s_renewal_has_gone() {
    finds("a bounded trust", GONE, |world| {
        world.law.trusts_all = true;
        world.law.java_dies = 20;
    });
}

const START: u64 = 1_700_000_000_000;
const HOLDER: &str = "8743c9c0-0795-4907-87fd-6c719a6b4586:1";
const JAVA: JavaRw<'_> = JavaRw { name: JOB, prefix: "{job}", holder: HOLDER };

fn model_without(rule: Option<&'static str>) -> ScriptModel {
    let mut model = ScriptModel::new(Latches::On);
    model.without = rule;
    model
}

/// What a writer of ours is told that asks once.
fn writer_is_told(model: &mut ScriptModel, now: u64) -> Code {
    let call = writes(JOB).acquire(request(1), UNBOUND, &owner(1), lease(30_000), true);
    Reply::read(&model.run(&call, now), call.request).unwrap().code
}

#[test]
fn a_reader_of_java_s_that_died_after_a_downgrade_holds_a_writer_up_unless_it_is_passed_over() {
    for (without, wanted) in [(None, Code::Done), (Some(rules::DEAD_READERS), Code::No)] {
        let mut model = model_without(without);
        assert!(model.java_write_acquire(&JAVA, 60_000, START));
        assert!(model.java_read_acquire(&JAVA, 500, START));
        assert_eq!(model.java_write_unlock(&JAVA, 60_000, ("unlock", 20_000), START), Some(1));
        assert_eq!(writer_is_told(&mut model.clone(), START), Code::No);
        assert_eq!(writer_is_told(&mut model, START + 501), wanted, "{without:?}");
    }
}

#[test]
fn a_timeout_key_without_an_end_is_taken_for_dead_unless_it_counts_as_alive() {
    for (without, wanted) in [(None, Code::No), (Some(rules::NO_END), Code::Done)] {
        let mut model = model_without(without);
        assert!(model.java_read_acquire(&JAVA, 10_000, START));
        let key = format!("{{job}}:{HOLDER}:rwlock_timeout:1");
        model.put(&key, Value::Text("1".into()), None);
        assert_eq!(writer_is_told(&mut model, START), wanted, "{without:?}");
    }
}

#[test]
fn what_a_reader_leaves_lasts_too_long_unless_the_others_decide() {
    for (without, wanted) in [(None, 10_000), (Some(rules::READERS_END), 60_000)] {
        let mut model = model_without(without);
        let side = reads(JOB);
        model.run(&side.acquire(request(1), UNBOUND, &owner(1), lease(60_000), false), START);
        assert!(model.java_read_acquire(&JAVA, 10_000, START));
        model.run(&side.release(request(2), UNBOUND, &owner(1)), START);
        assert_eq!(model.pttl(JOB, START), wanted, "{without:?}");
    }
}
