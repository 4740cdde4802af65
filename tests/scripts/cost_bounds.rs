//! Every call of the library has a bounded cost, whatever is stored under its names, and however
//! many arguments it has. `cost.rs` says which commands the dearest calls run.

use std::collections::BTreeMap;
use std::fmt::Debug;

use edgelatch_proto::protocol::script::scripts;
use test_support::costed_calls::{in_every_world, with_most_arguments};
use test_support::redis::Redis;
use test_support::work::{EditableCall, Work};

/// The largest numbers of commands, elements and kilobytes of one call.
type Row = (&'static str, u64, u64, u64);

/// The cost of calls with few arguments: at most three values, permits or names. A full group and a
/// hash of many readers are swept from a random position, so their numbers differ from run to run:
/// these bounds follow from the sizes of the slices. A writer and the last reader read the timeout
/// keys of up to 256 holds, and before that those of 256 fields of a larger hash; a new reader of a
/// full lock does so at 256. One poll of a queue removes up to 128 dead heads, at six commands
/// each, and in a full queue up to 64 dead waiters; it searches the queue for each waiter.
const ANY_STATE: [Row; 41] = [
    ("cancel", 5, 15, 1),
    ("fair_acquire", 1_400, 170_000, 200),
    ("fair_force_release", 790, 2_300, 55),
    ("fair_queue", 25, 2_200, 4),
    ("fair_release", 795, 6_500, 55),
    ("fair_rw_acquire", 900, 3_500, 80),
    ("fair_rw_force_release", 20, 1_500, 30),
    ("fair_rw_inspect", 10, 40, 1),
    ("fair_rw_release", 60, 400, 15),
    ("fair_rw_renew", 20, 60, 3),
    ("group_acquire", 700, 4_500, 150),
    ("group_force_release", 8, 20, 1),
    ("group_inspect", 5, 15, 1),
    ("group_release", 9, 30, 1),
    ("group_renew", 3, 10, 1),
    ("guard_newest", 4, 10, 1),
    ("guard_write", 8, 20, 1),
    ("latch_change", 9, 30, 1),
    ("latch_inspect", 3, 10, 1),
    ("lock_acquire", 28, 900, 20),
    ("lock_force_release", 9, 900, 20),
    ("lock_inspect", 8, 20, 1),
    ("lock_release", 9, 25, 1),
    ("lock_renew", 3, 10, 1),
    ("permits_acquire", 30, 1_200, 45),
    ("permits_change", 12, 100, 1),
    ("permits_inspect", 8, 20, 1),
    ("permits_release", 7, 20, 1),
    ("permits_renew", 4, 10, 1),
    ("read_acquire", 285, 2_500, 60),
    ("read_release", 550, 4_000, 110),
    ("read_renew", 3, 10, 1),
    ("rw_force_release", 9, 100, 1),
    ("rw_inspect", 10, 850, 20),
    ("semaphore_acquire", 27, 1_200, 45),
    ("semaphore_change", 32, 10_500, 420),
    ("semaphore_inspect", 10, 1_100, 30),
    ("semaphore_release", 7, 20, 1),
    ("semaphore_renew", 4, 10, 1),
    ("write_acquire", 550, 4_000, 110),
    ("write_release", 550, 4_000, 110),
];

/// The cost of calls with as many arguments as they may have, on objects at their limits: 100 locks
/// with the longest names, 1,000 values or permits, a value of 64 kB, a caller's script with 4,000
/// words. The caller's own commands are not counted.
const MOST_ARGUMENTS: [Row; 40] = [
    ("eval", 1_010, 3_100, 100),
    ("fair_acquire", 1_400, 130_000, 120),
    ("fair_force_release", 790, 2_300, 55),
    ("fair_release", 795, 4_500, 55),
    ("fair_rw_acquire", 900, 3_500, 160),
    ("fair_rw_force_release", 20, 1_500, 150),
    ("fair_rw_inspect", 10, 40, 1),
    ("fair_rw_query", 1_100, 5_800, 130),
    ("fair_rw_release", 60, 400, 20),
    ("fair_rw_renew", 20, 60, 3),
    ("group_acquire", 2_050, 12_500, 540),
    ("group_force_release", 2_010, 8_100, 250),
    ("group_inspect", 3_010, 9_100, 240),
    ("group_release", 3_010, 10_100, 250),
    ("group_renew", 3_015, 10_100, 260),
    ("guard_newest", 4, 10, 1),
    ("guard_write", 8, 20, 70),
    ("lock_acquire", 920, 3_500, 680),
    ("lock_force_release", 9, 30, 5),
    ("lock_inspect", 8, 20, 5),
    ("lock_raise", 410, 1_300, 240),
    ("lock_release", 110, 1_000, 180),
    ("lock_renew", 410, 1_100, 230),
    ("permits_acquire", 1_050, 6_500, 150),
    ("permits_change", 1_020, 5_100, 80),
    ("permits_inspect", 1_010, 3_100, 50),
    ("permits_release", 10, 1_100, 20),
    ("permits_renew", 1_015, 5_100, 80),
    ("read_acquire", 285, 2_500, 60),
    ("read_release", 550, 4_000, 110),
    ("read_renew", 15, 35, 1),
    ("rw_force_release", 9, 100, 1),
    ("rw_inspect", 10, 850, 20),
    ("semaphore_acquire", 27, 1_200, 45),
    ("semaphore_change", 32, 10_500, 420),
    ("semaphore_inspect", 10, 1_100, 30),
    ("semaphore_release", 7, 30, 1),
    ("semaphore_renew", 7, 20, 1),
    ("write_acquire", 550, 4_000, 110),
    ("write_release", 550, 4_000, 110),
];

/// Scripts that `every_call` lacks: the caller supplies the script to run, only one machine makes
/// the call, or no scoped token allows it. Their bounds are those with the most arguments.
const WITH_ARGUMENTS_ALONE: [&str; 3] = ["eval", "fair_rw_query", "lock_raise"];

/// The largest cost of each script so far, and where it occurred.
#[derive(Default)]
struct Seen(BTreeMap<&'static str, (Work, String)>);

impl Seen {
    fn add(&mut self, call: &EditableCall, work: Work, place: impl Debug) {
        let (most, places) = self.0.entry(call.script.name).or_default();
        if !work.is_within(*most) {
            *places = format!("{places} {place:?}: {work:?}");
        }
        *most = most.max(work);
    }

    fn assert_within(&self, bounds: &[Row]) {
        let rows = self.0.iter().map(|(name, (most, _))| {
            (*name, most.commands, most.elements, most.bytes.div_ceil(1_000))
        });
        println!("{:#?}", rows.collect::<Vec<_>>());
        assert!(self.0.keys().eq(bounds.iter().map(|(name, ..)| name)), "{:?}", self.0.keys());
        for (name, commands, elements, kilobytes) in bounds {
            let bound = Work { commands: *commands, elements: *elements, bytes: kilobytes * 1_000 };
            let (most, places) = &self.0[name];
            assert!(most.is_within(bound), "{name}: {most:?}, bound {bound:?};{places}");
        }
    }
}

// Slow: large objects are restored after each call.
#[tokio::test]
async fn no_call_costs_more_than_its_bound_in_any_state_of_its_object() {
    let redis = Redis::start().await;
    let mut seen = Seen::default();
    in_every_world(&redis, async |here, call, world| {
        let (work, _) = call.run_counted(here).await;
        seen.add(call, work, world);
    })
    .await;
    let names = scripts::ALL.into_iter().map(|script| script.name);
    let with_few = names.filter(|name| !WITH_ARGUMENTS_ALONE.contains(name));
    assert!(with_few.eq(ANY_STATE.map(|(name, ..)| name)));
    seen.assert_within(&ANY_STATE);
}

#[tokio::test]
async fn no_call_costs_more_than_its_bound_with_as_many_arguments_as_it_may_have() {
    let redis = Redis::start().await;
    let mut seen = Seen::default();
    with_most_arguments(&redis, async |redis, call| {
        let (work, reply) = call.run_counted(redis).await;
        seen.add(call, work, &reply[0]);
        reply
    })
    .await;
    seen.assert_within(&MOST_ARGUMENTS);
}

/// The page states the bounds that these tests check.
#[test]
fn the_page_has_the_bounds_of_every_script() {
    let page = include_str!("../../docs/performance.md");
    let cells = |rows: &[Row], script: &str| match rows.iter().find(|(name, ..)| *name == script) {
        Some((_, commands, elements, kilobytes)) => {
            [*commands, *elements, *kilobytes].map(grouped).join(" | ")
        }
        None => ["–"; 3].join(" | "),
    };
    for script in scripts::ALL.into_iter().map(|script| script.name) {
        let (any, most) = (cells(&ANY_STATE, script), cells(&MOST_ARGUMENTS, script));
        let line = format!("| `{script}` | {any} | {most} |\n");
        assert!(page.contains(&line), "{line}");
    }
}

/// The number with a comma between the thousands.
fn grouped(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1_000), number % 1_000),
    }
}
