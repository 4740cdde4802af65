//! The read-write lock without one of its rules: a schedule must break the invariant that the rule
//! protects. The last three tests show a rule by fixed calls instead. The constants of the model
//! (`script_model::read_write::rules`) state each rule with its number.

use edgelatch_proto::protocol::calls::Target;
use edgelatch_proto::protocol::reply::{Code, Reply};

use super::super::runner::{MovingBound, Plan, START_MS, assert_violated};
use super::{NAME, ReadWrite, Settings, plan, read_calls, write_calls};
use test_support::calls::{Calls, UNBOUND, lease, owner, request};
use test_support::script_model::java_read_write::JavaRw;
use test_support::script_model::read_write::rules;
use test_support::script_model::{Latches, ScriptModel, Value};

/// The largest number of schedules that a test tries.
const MAX_SCHEDULES: u64 = 2_000;

/// Checks that a schedule with the changed plan breaks an invariant, with an error that contains
/// one of the `expected` texts. `missing` names the rule.
fn assert_needed(missing: &str, expected: &[&str], change: impl Fn(&mut Plan<Settings>)) {
    let plan = |seed| plan(seed).with(&change);
    assert_violated::<ReadWrite>(missing, MAX_SCHEDULES, plan, expected);
}

/// Checks that a schedule breaks an invariant if the scripts leave out this rule.
fn assert_rule_needed(rule: &'static str, expected: &[&str]) {
    assert_needed(rule, expected, |plan| plan.without = Some(rule));
}

const GRANTED_AGAIN: &[&str] = &["is granted twice", "is granted after its end"];
const NOT_STORED: &[&str] = &["relies on a hold that is not stored"];

#[test]
fn without_latches_one_owner_is_granted_twice() {
    assert_needed("latches", GRANTED_AGAIN, |plan| plan.latches = Latches::Off);
}

#[test]
fn with_a_bound_that_moves_one_owner_is_granted_twice() {
    // As long as the longest bound of a client's first try, but from the sending of each attempt.
    const BOUND_MS: u64 = 9_000;
    let moving_bound: MovingBound = |request, not_after| match request.script() {
        "read_acquire" | "write_acquire" => not_after.map(|_| request.sent_at + BOUND_MS),
        _ => not_after,
    };
    assert_needed("one bound", GRANTED_AGAIN, |plan| plan.moving_bound = Some(moving_bound));
}

#[test]
fn without_a_long_memory_an_unbounded_request_is_granted_twice() {
    assert_needed("a long memory", GRANTED_AGAIN, |plan| {
        plan.settings.brief_memory = true;
        plan.settings.unbounded_percent = 50;
    });
}

#[test]
fn a_repeat_that_does_not_extend_makes_a_client_trust_its_hold_too_long() {
    assert_rule_needed(rules::REPEAT_EXTENDS, NOT_STORED);
}

#[test]
fn a_last_try_without_a_tombstone_is_granted_after_its_end() {
    assert_rule_needed(rules::LAST_TRY, GRANTED_AGAIN);
}

#[test]
fn without_timeout_keys_java_s_unlock_ends_our_hold() {
    assert_rule_needed(rules::TIMEOUT_KEYS, NOT_STORED);
}

#[test]
fn a_writer_that_does_not_look_at_timeout_keys_enters_among_readers() {
    // The writer's grant deletes the readers' fields. `check_holds` reports that before it compares
    // the readers with the writer.
    assert_rule_needed(rules::ALIVE, NOT_STORED);
}

#[test]
fn a_nested_read_that_changes_the_expiry_shortens_its_write() {
    assert_rule_needed(rules::WRITER_S_END, NOT_STORED);
}

#[test]
fn readers_with_a_token_each_would_fence_each_other() {
    assert_rule_needed(rules::EPOCH, &["readers have the tokens"]);
}

#[test]
fn without_a_new_token_a_downgraded_read_keeps_the_token_of_its_write() {
    assert_rule_needed(rules::DOWNGRADE, &["has the token of a write that has ended"]);
}

#[test]
fn a_nested_read_that_takes_no_epoch_keeps_the_token_of_its_write() {
    assert_rule_needed(rules::RISES, &["has the token of a write that has ended"]);
}

#[test]
fn without_a_check_of_its_parent_a_reader_is_granted_beside_a_writer() {
    assert_rule_needed(rules::PARENT, &["reads while"]);
}

#[test]
fn a_waiting_mark_that_outlives_its_writer_keeps_readers_out_needlessly() {
    assert_rule_needed(rules::WANT_ENDS, &["has ended but is still stored"]);
}

#[test]
fn a_reader_that_trusts_its_lease_beyond_redisson_s_renewal_loses_its_hold() {
    assert_needed("the limit of a reader's trust", NOT_STORED, |plan| {
        plan.settings.trusts_whole_lease = true;
        // The hash expires too early if the Java reader dies after a renewal has shortened the
        // expiry; the next renewal would move it on.
        plan.settings.java_death_percent = 20;
    });
}

const HOLDER: &str = "8743c9c0-0795-4907-87fd-6c719a6b4586:1";
const JAVA: JavaRw<'_> = JavaRw { name: NAME, prefix: "{job}", holder: HOLDER };

fn model_without(rule: Option<&'static str>) -> ScriptModel {
    let mut model = ScriptModel::new(Latches::On);
    model.without = rule;
    model
}

/// Returns the code of the reply to the only try of a writer of this library.
fn try_write(model: &mut ScriptModel, now: u64) -> Code {
    let (side, is_last) = (Calls(Target::Write(write_calls())), true);
    let call = side.acquire(request(1), UNBOUND, &owner(1), lease(30_000), is_last);
    Reply::read(&model.run(&call, now), call.request).unwrap().code
}

#[test]
fn a_java_reader_that_died_after_a_downgrade_does_not_block_a_writer() {
    for (without, expected) in [(None, Code::Done), (Some(rules::DEAD_READERS), Code::No)] {
        let mut model = model_without(without);
        assert!(model.java_write_acquire(&JAVA, 60_000, START_MS));
        assert!(model.java_read_acquire(&JAVA, 500, START_MS));
        assert_eq!(model.java_write_unlock(&JAVA, 60_000, ("unlock", 20_000), START_MS), Some(1));
        assert_eq!(try_write(&mut model.clone(), START_MS), Code::No);
        assert_eq!(try_write(&mut model, START_MS + 501), expected, "{without:?}");
    }
}

#[test]
fn a_reader_whose_timeout_key_has_no_expiry_counts_as_alive() {
    for (without, expected) in [(None, Code::No), (Some(rules::NO_END), Code::Done)] {
        let mut model = model_without(without);
        assert!(model.java_read_acquire(&JAVA, 10_000, START_MS));
        let key = format!("{{job}}:{HOLDER}:rwlock_timeout:1");
        model.put(&key, Value::Text("1".into()), None);
        assert_eq!(try_write(&mut model, START_MS), expected, "{without:?}");
    }
}

#[test]
fn an_expiry_that_ignores_the_remaining_readers_is_too_long() {
    for (without, expected) in [(None, 10_000), (Some(rules::READERS_END), 60_000)] {
        let mut model = model_without(without);
        let (side, is_last) = (Calls(Target::Read(read_calls())), false);
        model.run(&side.acquire(request(1), UNBOUND, &owner(1), lease(60_000), is_last), START_MS);
        assert!(model.java_read_acquire(&JAVA, 10_000, START_MS));
        model.run(&side.release(request(2), UNBOUND, &owner(1)), START_MS);
        assert_eq!(model.pttl(NAME, START_MS), expected, "{without:?}");
    }
}
