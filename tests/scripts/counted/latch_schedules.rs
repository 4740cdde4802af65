//! Random schedules of a count-down latch: whatever is lost, late or doubled, each count is counted once.

use std::collections::{BTreeMap, BTreeSet};

use edgelatch::protocol::calls::LatchCount;

use super::latch;
use super::schedule::{End, Executed, Network, Schedule};
use crate::support::script_model::holds::rules;

const NAME: &str = "gate";
const NETWORK: Network = Network { lost: 20, doubled: 35, longest: 6_000, late: 40 };
/// How much happens in one schedule.
const EVENTS: usize = 250;

#[derive(Default)]
struct Seen {
    /// What the latch has to be at.
    count: i64,
    /// The answers of what was done, by request.
    done: BTreeMap<String, (i64, String)>,
    /// Requests that must not be done any more.
    closed: BTreeSet<String>,
    wrong: Option<String>,
    opened: usize,
    nothing: usize,
    never: usize,
}

impl Seen {
    fn executed(&mut self, executed: &Executed<'_>) {
        let args = executed.call.args();
        if executed.call.script().name != "latch_change" || executed.code < 0 || executed.ms != 0 {
            return;
        }
        if self.closed.contains(&args[0]) {
            self.wrong = Some("done after its client was told".into());
        }
        if self.done.insert(args[0].clone(), (executed.code, executed.value.clone())).is_some() {
            self.wrong = Some("done twice".into());
        }
        match (args[5].as_str(), executed.code) {
            ("down", 1) => {
                self.count -= 1;
                self.opened += usize::from(self.count == 0);
            }
            ("down", _) => self.nothing += 1,
            ("set", 1) => self.count = args[6].parse().unwrap(),
            ("delete", 1) => self.count = 0,
            _ => {}
        }
    }

    fn told(&mut self, sent: BTreeSet<(String, String)>, end: End) {
        let End::Once(Some(told)) = end else { return };
        let done: Vec<_> = sent.iter().filter_map(|(request, _)| self.done.get(request)).collect();
        match told {
            Ok(reply) if done == [&(reply.code as i64, reply.value.clone())] => {}
            Err(()) if done.is_empty() => self.never += 1,
            other => self.wrong = Some(format!("told {other:?}, done {done:?}")),
        }
        self.closed.extend(sent.into_iter().map(|(request, _)| request));
    }
}

fn run(seed: u64, without: Option<&'static str>, moving_bound: bool) -> Result<Seen, String> {
    let mut schedule = Schedule::new(seed, 3, NETWORK);
    schedule.model.without = without;
    schedule.moving_bound = moving_bound;
    let mut seen = Seen::default();
    for event in 0.. {
        schedule.executes(&mut |executed| seen.executed(executed));
        for (client, end) in schedule.goes_on() {
            schedule.clients[client].idle_until = schedule.now + schedule.random.u64(0..2_000);
            seen.told(schedule.last_sent(client), end);
        }
        for client in 0..3 {
            let is_idle = schedule.clients[client].job.is_none();
            if is_idle && event < EVENTS && schedule.clients[client].idle_until <= schedule.now {
                let call = match schedule.random.u8(0..8) {
                    0 => latch(NAME).delete(),
                    1 | 2 => latch(NAME).try_set(LatchCount::new(3).unwrap()),
                    _ => latch(NAME).count_down(),
                };
                schedule.does_once(client, call);
            }
        }
        // Java counts, too.
        if schedule.random.u8(0..30) == 0 {
            schedule.model.java_counts_down(NAME);
            seen.count = (seen.count - 1).max(0);
        }
        let count = schedule.model.number(NAME).unwrap_or(0);
        if count != seen.count {
            seen.wrong
                .get_or_insert_with(|| format!("the count is {count} and not {}", seen.count));
        }
        if let Some(wrong) = seen.wrong {
            return Err(format!("seed {seed}, event {event}: {wrong}"));
        }
        let idle = schedule.clients.iter().filter(|client| client.job.is_none());
        let idle = idle.map(|client| client.idle_until).filter(|_| event < EVENTS);
        let Some(next) = schedule.next().into_iter().chain(idle).filter(|at| *at < u64::MAX).min()
        else {
            break;
        };
        schedule.now = next.max(schedule.now);
    }
    Ok(seen)
}

#[test]
fn counts_of_a_latch_are_counted_once() {
    let mut sights = [0; 3];
    for seed in 0..500 {
        let seen = run(seed, None, false).unwrap_or_else(|wrong| panic!("{wrong}"));
        sights[0] += seen.opened;
        sights[1] += seen.nothing;
        sights[2] += seen.never;
    }
    assert!(sights.into_iter().all(|seen| seen > 0), "{sights:?}");
}

#[test]
fn a_no_that_is_not_recorded_is_done_after_all() {
    let wrong = (0..200).find_map(|seed| run(seed, Some(rules::RECORDED), false).err());
    assert!(wrong.is_some());
}

#[test]
fn a_bound_that_moves_with_each_attempt_lets_a_client_be_told_wrongly() {
    let wrong = (0..200).find_map(|seed| run(seed, None, true).err());
    assert!(wrong.is_some());
}
