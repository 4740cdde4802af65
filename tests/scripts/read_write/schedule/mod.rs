//! Random schedules: readers and writers of ours and of Redisson's at one lock, in a time that does not pass by itself; requests
//! and replies that are lost, late or doubled; holders that die or pause. What must hold is checked after each script, and the
//! rules are taken away one by one, to see that each is needed.

mod java;
mod law;
mod ours;
mod seen;
mod teeth;
mod world;

use law::Law;
use world::World;

/// How many schedules are run of each kind.
const SCHEDULES: u64 = 300;

#[test]
fn readers_and_writers_exclude_each_other_whatever_is_lost_late_or_doubled() {
    let mut sum = [0; 7];
    for seed in 0..SCHEDULES {
        let seen = World::new(seed, Law::drawn(seed)).run().unwrap_or_else(|wrong| {
            panic!("schedule {seed}: {wrong}");
        });
        sum.iter_mut().zip(seen.counts()).for_each(|(sum, count)| *sum += count);
    }
    let [reads, writes, insides, downgrades, java_reads, java_writes, lost] = sum;
    println!(
        "{reads} reads, {writes} writes, {insides} reads inside, {downgrades} downgrades, \
         {java_reads} reads and {java_writes} writes of Java's, {lost} requests lost"
    );
    assert!(sum.iter().all(|count| *count > SCHEDULES / 2), "{sum:?}");
}

#[test]
fn among_ours_alone_every_lease_is_trusted_to_its_end() {
    for seed in 0..SCHEDULES {
        let law = Law { java: 0, trusts_all: true, ..Law::drawn(seed) };
        let run = World::new(seed, law).run();
        run.unwrap_or_else(|wrong| panic!("schedule {seed}: {wrong}"));
    }
}
