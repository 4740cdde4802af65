//! Random schedules: waiters of ours and of Redisson's at one lock, in a time that does not pass by itself; requests and replies
//! that are lost, late or doubled; waiters that die, pause, or go on under a new owner. What must hold is checked after each
//! script, and the rules are taken away one by one, to see that each is needed.

mod java;
mod law;
mod ours;
mod seen;
mod teeth;
mod world;

use law::Law;
use world::World;

/// How many schedules are run.
const SCHEDULES: u64 = 250;

/// S36, S90.
#[test]
fn nobody_is_overtaken_or_granted_twice_whatever_is_lost_late_or_doubled() {
    let mut sum = [0; 4];
    for seed in 0..SCHEDULES {
        let mut world = World::new(seed, Law::drawn(seed));
        world.run().unwrap_or_else(|wrong| panic!("{seed}: {wrong}"));
        sum.iter_mut().zip(world.seen.counts()).for_each(|(sum, count)| *sum += count);
    }
    let [ours, java, copies, handed_over] = sum;
    println!("grants {ours} and {java} to Java, copies {copies}, handed over {handed_over}");
    assert!(ours > 8 * SCHEDULES && java > 3 * SCHEDULES, "{sum:?}");
    assert!(copies > 4 * SCHEDULES && handed_over > 4 * SCHEDULES, "{sum:?}");
}

/// S89.
#[test]
fn with_clocks_of_java_that_are_hours_off_all_but_the_order_holds() {
    for seed in 0..SCHEDULES / 4 {
        let law = Law { wild_clocks: true, ..Law::drawn(seed) };
        World::new(seed, law).run().unwrap_or_else(|wrong| panic!("{seed}: {wrong}"));
    }
}
