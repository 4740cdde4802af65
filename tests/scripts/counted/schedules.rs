//! Random schedules: whatever is lost, late or doubled, permits are counted exactly once.

use edgelatch::machine::Grant;
use edgelatch::protocol::calls::{PermitCount, Target};
use edgelatch::timing::LeaseTime;

use super::observer::{NAME, PLAN, Plan, SET_OF_PERMITS, Seen, Sights};
use super::schedule::{End, Job, Network, START, Schedule};
use super::steps::Kind;
use super::{batch, held, permits, semaphore};
use crate::support::calls::{lease, request};
use crate::support::script_model::holds::raw;
use crate::support::script_model::java_permits::JavaPermits;
use crate::support::script_model::{ScriptModel, Value};

/// How much happens in one schedule.
const EVENTS: usize = 400;

/// Runs a schedule; an error tells what was wrong.
pub(super) fn run(plan: Plan, seed: u64, sights: &mut Sights) -> Result<(), String> {
    let mut schedule = Schedule::new(seed, 3, plan.network);
    schedule.model = ScriptModel::new(plan.latches);
    schedule.model.without = plan.without;
    schedule.model.put(NAME, Value::Text("4".into()), None);
    let most = plan.java.unwrap_or(0);
    let off = schedule.random.i64(-most..=most);
    let targets = vec![target(plan, 1); 3];
    let mut world = World { seen: Seen::new(plan), targets, off, schedule };
    for event in 0.. {
        let winds_up = event > EVENTS;
        world.plays(winds_up, sights);
        world.checks();
        if let Some(wrong) = world.seen.wrong.take() {
            return Err(format!("seed {seed}, event {event}: {wrong}"));
        }
        let Some(next) = world.next(winds_up) else { return Ok(()) };
        world.schedule.now = next.max(world.schedule.now);
    }
    Ok(())
}

fn target(plan: Plan, count: u16) -> Target {
    match plan.kind {
        Kind::Semaphore => held(&semaphore(NAME, count.into())).0,
        Kind::Permits => batch(&permits(NAME, count, plan.skew)).0,
    }
}

struct World {
    schedule: Schedule,
    seen: Seen,
    /// What each client is about.
    targets: Vec<Target>,
    /// By how much Java's clocks are off.
    off: i64,
}

impl World {
    fn next(&self, winds_up: bool) -> Option<u64> {
        let idle = self.schedule.clients.iter().filter(|client| client.job.is_none());
        let idle = idle.map(|client| client.idle_until).filter(|_| !winds_up);
        self.schedule.next().into_iter().chain(idle).filter(|at| *at < u64::MAX).min()
    }

    fn plays(&mut self, winds_up: bool, sights: &mut Sights) {
        let seen = &mut self.seen;
        self.schedule.executes(&mut |executed| seen.executed(executed, sights));
        for (client, end) in self.schedule.goes_on() {
            self.ended(client, end, sights);
        }
        for client in 0..self.targets.len() {
            self.client(client, winds_up);
        }
        if self.seen.plan.java.is_some() && self.schedule.random.u8(0..4) == 0 {
            self.java(winds_up, sights);
        }
        if self.seen.plan.evicts && self.schedule.random.u8(0..20) == 0 {
            let latches = self.seen.members.keys().cloned().collect::<Vec<_>>();
            if let Some(latch) = self.schedule.random.choice(&latches) {
                self.schedule.model.delete(latch);
            }
        }
    }

    fn client(&mut self, client: usize, winds_up: bool) {
        let now = self.schedule.now;
        match &self.schedule.clients[client].job {
            None if !winds_up && self.schedule.clients[client].idle_until <= now => {
                if self.schedule.random.u8(0..4) == 0 {
                    self.does_once(client);
                } else {
                    self.targets[client] = target(self.seen.plan, self.schedule.random.u16(1..4));
                    let terms = if self.schedule.random.u8(0..10) < self.seen.plan.endless {
                        LeaseTime::ENDLESS
                    } else {
                        lease(self.schedule.random.u64(2_000..20_000))
                    };
                    self.schedule.acquires(client, self.targets[client].clone(), terms);
                }
            }
            Some(Job::Hold { until, grant, .. }) if *until <= now || winds_up => {
                let grant = grant.clone();
                // A client that dies takes an endless hold with it for good: only those with a lease do.
                if !grant.lease.time().is_endless() && self.schedule.random.u8(0..10) == 0 {
                    self.schedule.crashes(client);
                } else {
                    self.schedule.releases(client, &self.targets[client].clone(), &grant);
                }
            }
            _ => {}
        }
    }

    fn does_once(&mut self, client: usize) {
        let s = semaphore(NAME, 1);
        let call = match (self.seen.plan.kind, self.schedule.random.u8(0..5)) {
            (Kind::Permits, 0..2) => permits(NAME, 1, 0).add(1),
            (Kind::Permits, _) => permits(NAME, 1, 0).add(-1),
            (_, 0) => s.add(2),
            (_, 1) => s.add_if_exists(PermitCount::new(1).unwrap()),
            (_, 2) => s.drain(),
            (_, _) => s.add(-1),
        };
        self.schedule.does_once(client, call);
    }

    fn ended(&mut self, client: usize, end: End, sights: &mut Sights) {
        let idle = self.schedule.now + self.schedule.random.u64(0..3_000);
        self.schedule.clients[client].idle_until = idle;
        let sent = self.schedule.last_sent(client);
        match end {
            End::Granted(grant) => {
                let until = self.schedule.now + self.schedule.random.u64(0..30_000);
                self.schedule.holds(client, self.targets[client].clone(), grant, until);
            }
            End::Lost(grant) => {
                sights.lost += 1;
                self.schedule.releases(client, &self.targets[client].clone(), &grant);
            }
            End::NotGranted(true) | End::Released(true) => {
                self.seen.ended.extend(sent.into_iter().map(|(_, latch)| latch));
            }
            End::NotGranted(false) | End::Released(false) | End::Once(None) => {}
            End::Once(Some(told)) => {
                let done: Vec<_> =
                    sent.iter().filter_map(|(request, _)| self.seen.done.get(request)).collect();
                match told {
                    Ok(reply) if done == [&(reply.code as i64, reply.value.clone())] => {}
                    Err(()) if done.is_empty() => sights.never += 1,
                    other => self.seen.wrong = Some(format!("told {other:?}, done {done:?}")),
                }
                self.seen.closed.extend(sent.into_iter().map(|(request, _)| request));
            }
        }
    }

    fn java(&mut self, winds_up: bool, sights: &mut Sights) {
        // Java's machines agree with each other: where they do not, they take permits from each other.
        let (off, random) = (self.off, &mut self.schedule.random);
        let (server, takes) = (self.schedule.now + START, random.bool() && !winds_up);
        if self.seen.plan.kind == Kind::Semaphore {
            if takes && self.schedule.model.java_takes(NAME, 1) {
                (self.seen.java, sights.by_java) = (self.seen.java + 1, sights.by_java + 1);
            } else if !takes && self.seen.java > 0 {
                self.schedule.model.java_gives(NAME, 1);
                self.seen.java -= 1;
            }
            return;
        }
        let now = i64::try_from(server).unwrap() + off;
        let at = JavaPermits { name: NAME, held: SET_OF_PERMITS, now, server };
        if takes {
            let id = raw(&format!("f{:031x}", self.schedule.random.u64(..)));
            let ends = now + self.schedule.random.i64(1_000..20_000);
            if self.schedule.model.java_permits(at, ends, std::slice::from_ref(&id)).is_ok() {
                sights.by_java += 1;
                // The machine that took it is the one whose clock counts.
                self.seen.java_ids.insert(id, ends - off);
            }
        } else if let Some((id, _)) = self.seen.java_ids.pop_first() {
            self.schedule.model.java_gives_one(at, &id);
        }
    }

    fn checks(&mut self) {
        let server = START + self.schedule.now;
        self.schedule.model.expire(server);
        let set = self.schedule.model.members(self.seen.set());
        let latch_of = |grant: &Grant, client: usize| {
            let release = self.targets[client].release(request(1), grant.bound, grant.owner);
            release.keys()[0].clone()
        };
        let believed: Vec<String> = (0..self.targets.len())
            .filter_map(|client| Some(latch_of(self.schedule.believes(client)?, client)))
            .collect();
        self.seen.checks(&self.schedule.model, &set, &believed, i64::try_from(server).unwrap());
    }
}

fn all_hold(plan: Plan, seeds: u64) -> Sights {
    let mut sights = Sights::default();
    for seed in 0..seeds {
        run(plan, seed, &mut sights).unwrap_or_else(|wrong| panic!("{wrong}"));
    }
    println!("{seeds} schedules: {sights:?}");
    let Sights { granted, lost, once, never, refused, .. } = sights;
    assert!([granted, lost, once, never, refused].into_iter().all(|seen| seen > 0), "{sights:?}");
    sights
}

/// S36.
#[test]
fn permits_of_a_semaphore_are_counted_once() {
    assert!(all_hold(PLAN, 400).by_java > 0);
}

/// S93.
#[test]
fn permits_with_ids_are_counted_once() {
    assert!(all_hold(Plan { kind: Kind::Permits, ..PLAN }, 400).by_java > 0);
}

#[test]
fn permits_are_counted_once_by_a_network_that_keeps_requests_for_minutes() {
    let network = Network { lost: 10, doubled: 30, longest: 200_000, late: 15 };
    for kind in [Kind::Semaphore, Kind::Permits] {
        all_hold(Plan { kind, network, ..PLAN }, 200);
    }
}

/// S64.
#[test]
fn permits_are_counted_once_although_latches_are_evicted() {
    for kind in [Kind::Semaphore, Kind::Permits] {
        let mut sights = Sights::default();
        for seed in 0..200 {
            run(Plan { kind, evicts: true, ..PLAN }, seed, &mut sights)
                .unwrap_or_else(|wrong| panic!("{wrong}"));
        }
        assert!(sights.granted > 500, "{sights:?}");
    }
}
