//! The read-write lock without one of its rules: a schedule must break the invariant that the rule
//! protects.

use edgelatch_proto::protocol::calls::Target;
use edgelatch_proto::protocol::reply::{Code, Reply};

use super::super::runner::{MovingBound, Plan, START, assert_violated};
use super::{JOB, ReadWrite, Settings, plan, read_calls, write_calls};
use test_support::calls::{Calls, UNBOUND, lease, owner, request};
use test_support::script_model::java_read_write::JavaRw;
use test_support::script_model::read_write::rules;
use test_support::script_model::{Latches, ScriptModel, Value};

/// The largest number of schedules that a test tries.
const SCHEDULES: u64 = 2_000;

/// Checks that a schedule with the changed plan breaks an invariant. `what` names the missing rule.
fn assert_needed(what: &str, expected: &[&str], change: impl Fn(&mut Plan<Settings>)) {
    let plan = |seed| plan(seed).with(&change);
    assert_violated::<ReadWrite>(what, SCHEDULES, plan, expected);
}

/// Checks that a schedule breaks an invariant if the scripts leave out this rule.
fn assert_rule_needed(rule: &'static str, expected: &[&str]) {
    assert_needed(rule, expected, |plan| plan.without = Some(rule));
}

const TWICE: &[&str] = &["is granted twice", "is granted after its end"];
const GONE: &[&str] = &["relies on what is not there"];

#[test]
fn without_the_latch_one_owner_is_granted_twice() {
    assert_needed("a latch", TWICE, |plan| plan.latches = Latches::Off);
}

#[test]
fn with_a_bound_that_moves_one_owner_is_granted_twice() {
    let moving_bound: MovingBound = |request, own| match request.script() {
        "read_acquire" | "write_acquire" => own.map(|_| request.sent_at + 9_000),
        _ => own,
    };
    assert_needed("one bound", TWICE, |plan| plan.moving_bound = Some(moving_bound));
}

#[test]
fn an_unbounded_request_needs_a_long_memory() {
    assert_needed("a long memory", TWICE, |plan| {
        plan.settings.brief_memory = true;
        plan.settings.unbounded = 50;
    });
}

#[test]
fn a_repeat_that_does_not_extend_leaves_a_hold_that_has_gone() {
    assert_rule_needed(rules::REPEAT_EXTENDS, GONE);
}

#[test]
fn a_last_try_without_a_tombstone_is_granted_after_its_end() {
    assert_rule_needed(rules::LAST_TRY, TWICE);
}

#[test]
fn without_timeout_keys_java_s_unlock_ends_our_hold() {
    assert_rule_needed(rules::TIMEOUT_KEYS, GONE);
}

#[test]
fn a_writer_that_does_not_look_at_timeout_keys_enters_among_readers() {
    assert_rule_needed(rules::ALIVE, GONE);
}

#[test]
fn a_nested_read_that_ends_shortens_the_write_unless_it_keeps_the_expiry() {
    assert_rule_needed(rules::WRITER_S_END, GONE);
}

#[test]
fn readers_with_a_token_each_would_fence_each_other() {
    assert_rule_needed(rules::EPOCH, &["readers have the tokens"]);
}

#[test]
fn without_a_new_token_a_nested_read_has_the_token_of_its_write() {
    assert_rule_needed(rules::DOWNGRADE, &["has the token of a write that has ended"]);
}

#[test]
fn a_read_that_the_release_of_its_write_does_not_name_keeps_the_write_s_token() {
    assert_rule_needed(rules::RISES, &["has the token of a write that has ended"]);
}

// Without the rule, any reader is granted beside a writer.
#[test]
fn a_reader_without_a_parent_does_not_come_in() {
    assert_rule_needed(rules::PARENT, &["reads while"]);
}

#[test]
fn a_want_that_outlives_its_writer_keeps_readers_out_needlessly() {
    assert_rule_needed(rules::WANT_ENDS, &["has ended and has a record"]);
}

#[test]
fn a_hold_trusted_beyond_redisson_s_renewal_is_gone() {
    assert_needed("a bounded trust", GONE, |plan| {
        plan.settings.trusts_all = true;
        plan.settings.java_dies = 20;
    });
}

const HOLDER: &str = "8743c9c0-0795-4907-87fd-6c719a6b4586:1";
const JAVA: JavaRw<'_> = JavaRw { name: JOB, prefix: "{job}", holder: HOLDER };

fn model_without(rule: Option<&'static str>) -> ScriptModel {
    let mut model = ScriptModel::new(Latches::On);
    model.without = rule;
    model
}

/// Returns the code of the reply to a writer of this library that tries once.
fn writer_is_told(model: &mut ScriptModel, now: u64) -> Code {
    let call = Calls(Target::Write(write_calls())).acquire(
        request(1),
        UNBOUND,
        &owner(1),
        lease(30_000),
        true,
    );
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
fn a_timeout_key_without_an_end_is_dead_unless_it_counts_as_alive() {
    for (without, wanted) in [(None, Code::No), (Some(rules::NO_END), Code::Done)] {
        let mut model = model_without(without);
        assert!(model.java_read_acquire(&JAVA, 10_000, START));
        let key = format!("{{job}}:{HOLDER}:rwlock_timeout:1");
        model.put(&key, Value::Text("1".into()), None);
        assert_eq!(writer_is_told(&mut model, START), wanted, "{without:?}");
    }
}

#[test]
fn an_expiry_that_ignores_the_other_readers_is_too_long() {
    for (without, wanted) in [(None, 10_000), (Some(rules::READERS_END), 60_000)] {
        let mut model = model_without(without);
        let side = Calls(Target::Read(read_calls()));
        model.run(&side.acquire(request(1), UNBOUND, &owner(1), lease(60_000), false), START);
        assert!(model.java_read_acquire(&JAVA, 10_000, START));
        model.run(&side.release(request(2), UNBOUND, &owner(1)), START);
        assert_eq!(model.pttl(JOB, START), wanted, "{without:?}");
    }
}
