//! Compares the deadlines with a look at each operation.

use fastrand::Rng;

use super::*;
use crate::engine::HoldId;
use crate::engine::operation::{Outcome, Task};
use crate::engine::{Context, LeaseEnd};
use crate::error::LossReason;

const SCOPES: u32 = 3;

/// Checks the index of an engine against its operations, at this time.
pub(in crate::engine) fn check(engine: &Engine, now: Instant) {
    for scope in (0..=SCOPES).map(ScopeId::from_number) {
        let of_scope = || engine.ops.iter().filter(|(_, op)| op.scope == scope && !op.is_over());
        let deadlines = of_scope().filter_map(|(_, op)| op.deadline.map(|(until, _)| until));
        assert_eq!(engine.deadlines.next(scope), deadlines.reduce(Instant::sooner));
        assert_eq!(engine.deadlines.has(scope), of_scope().next().is_some());
        let is_due = |op: &(_, &crate::engine::Operation)| {
            op.1.deadline.is_some_and(|(until, _)| now.has_reached(until))
        };
        let mut expected: Vec<_> = of_scope().filter(is_due).map(|(key, _)| OpId(key)).collect();
        let mut due: Vec<_> = engine.deadlines.due(scope, now).collect();
        expected.sort();
        due.sort();
        assert_eq!(due, expected, "the operations of {scope:?} that are due");
    }
}

/// Operations of several scopes begin, change their deadlines and end in random order. The two
/// clocks disagree, so that neither decides alone.
#[test]
fn the_next_deadline_is_the_soonest_of_all_operations() {
    for seed in 0..40 {
        let mut random = Rng::with_seed(seed);
        let (mut engine, mut ops) = (Engine::new(), Vec::new());
        let instant = |random: &mut Rng| {
            Instant::from_millis(random.u64(1_000..2_000), random.u64(50_000..51_000))
        };
        for _ in 0..400 {
            let now = instant(&mut random);
            let cx = Context { now, entropy: &mut || None };
            // In the second half more operations end than begin.
            let grows = random.u8(0..10) < if ops.len() < 60 { 4 } else { 1 };
            if grows || ops.is_empty() {
                let scope = ScopeId::from_number(random.u32(0..SCOPES));
                ops.push(engine.insert(scope, Task::Request, &cx));
            } else {
                let index = random.usize(0..ops.len());
                let deadline = (instant(&mut random), TimeoutReason::BackOff);
                match random.u8(0..5) {
                    0 => engine.finish(ops.swap_remove(index), outcome()),
                    1 => engine.abandon(
                        ops.swap_remove(index),
                        &mut Context { now, entropy: &mut || None },
                    ),
                    2 => engine.set_deadline(ops[index], None),
                    _ => engine.set_deadline(ops[index], Some(deadline)),
                }
            }
            check(&engine, now);
        }
        for op in ops.drain(..) {
            engine.finish(op, outcome());
        }
        check(&engine, instant(&mut random));
        assert!(engine.deadlines.0.is_empty(), "an ended scope leaves nothing");
    }
}

fn outcome() -> Outcome {
    let hold = HoldId::from_number(1 << 32).unwrap();
    Outcome::Ended(hold, LeaseEnd::Lost(LossReason::Gone))
}
