//! One acquisition of ours, from its first request to its end: as the machines do it, in short.

use edgelatch::name::{OwnerId, RequestId};
use edgelatch::protocol::calls::Target;
use edgelatch::protocol::reply::{Code, Reply};
use edgelatch::protocol::script::{Bound, ScriptCall};
use std::time::Duration;

use super::super::given::{read_calls, want, write_calls};
use super::law::{COPY_MS, PEER_LEASE};
use super::world::{Event, JOB, World};
use crate::support::calls::{Calls, field, lease, numbered_owner, request, token};

/// How long one attempt may take, for how long a copy is reckoned with when the clock is known, and what is given to clocks.
const ATTEMPT: u64 = 300;
const HORIZON: u64 = 5_000;
const DRIFT: u64 = 2;
const ATTEMPTS: u32 = 4;

/// One acquisition.
#[derive(Clone, Debug)]
pub(super) struct Taker {
    pub(super) owner: OwnerId,
    /// The field in Redis.
    pub(super) field: String,
    pub(super) writes: bool,
    /// Inside whose write hold it reads.
    pub(super) parent: Option<usize>,
    /// A read inside its write hold.
    pub(super) inner: Option<usize>,
    pub(super) stage: Stage,
    lease: u64,
    renews: bool,
    wants: bool,
    bound: Bound,
    wait_over: u64,
    /// What was sent last, under which turn.
    asked: Option<ScriptCall>,
    asked_last: bool,
    attempts: u32,
    pub(super) turn: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Asking,
    Pausing,
    Holding { until: u64, token: u64, renewing: bool },
    Ending,
    Over,
    Dead,
}

impl Taker {
    /// Whether its holder may rely on it.
    pub(super) const fn is_valid(&self, now: u64) -> bool {
        matches!(self.stage, Stage::Holding { until, .. } if now < until)
    }

    fn side(&self, world: &World) -> Calls {
        Calls(if self.writes {
            let calls = write_calls(JOB);
            let calls = match self.inner {
                Some(inner) => calls.around(world.takers[inner].owner),
                None => calls,
            };
            Target::Write(if self.wants { calls.prefers_writers(want(1_000)) } else { calls })
        } else {
            let calls = read_calls(JOB);
            Target::Read(match self.parent {
                Some(parent) => calls.inside(world.takers[parent].owner),
                None => calls,
            })
        })
    }
}

impl World {
    /// Somebody new wants it: a read inside a write, or any side.
    pub(super) fn begins(&mut self, parent: Option<usize>) {
        let who = self.takers.len();
        let owner = numbered_owner(u32::try_from(who).unwrap() + 1);
        let writes = parent.is_none() && self.rng.u8(0..3) > 0;
        let wait = if self.rng.bool() { 0 } else { self.rng.u64(100..4_000) };
        let knows_clock = !self.chance(self.law.unbounded);
        let not_after = knows_clock.then(|| self.now + wait + HORIZON);
        // What no bound limits is remembered for longer than any copy can be on its way.
        let keep = if knows_clock || self.law.brief_first { 100 } else { COPY_MS + 1_000 };
        let (wants, lease) = (writes && self.chance(self.law.wants), self.rng.u64(400..4_000));
        self.takers.push(Taker {
            owner,
            field: field(&owner) + if writes { ":write" } else { "" },
            writes,
            parent,
            inner: None,
            stage: Stage::Asking,
            lease,
            renews: self.rng.bool(),
            wants,
            bound: Bound { not_after, keep: Duration::from_millis(keep) },
            wait_over: self.now + wait,
            asked: None,
            asked_last: false,
            attempts: 0,
            turn: 0,
        });
        self.asks(who);
    }

    fn next_request(&mut self) -> RequestId {
        self.requests += 1;
        request(self.requests)
    }

    fn asks(&mut self, who: usize) {
        let (id, taker) = (self.next_request(), &self.takers[who]);
        let last = self.now >= taker.wait_over;
        let time = lease(taker.lease);
        let call = taker.side(self).acquire(id, taker.bound, &taker.owner, time, last);
        self.takers[who].stage = Stage::Asking;
        self.takers[who].asked_last = last;
        self.begins_to_send(who, call);
    }

    fn begins_to_send(&mut self, who: usize, call: ScriptCall) {
        self.takers[who].attempts = 0;
        self.takers[who].asked = Some(call);
        self.sends(who);
    }

    fn sends(&mut self, who: usize) {
        let call = self.takers[who].asked.clone().unwrap();
        self.takers[who].attempts += 1;
        self.send(who, &call);
        self.wakes_after(who, ATTEMPT);
    }

    fn wakes_after(&mut self, who: usize, ms: u64) {
        self.takers[who].turn += 1;
        let turn = self.takers[who].turn;
        self.after(ms, Event::Wakes { who, turn });
    }

    /// An attempt has taken too long, a pause is over, or a hold needs looking after.
    pub(super) fn wakes(&mut self, who: usize) {
        match self.takers[who].stage {
            Stage::Asking if self.takers[who].attempts < ATTEMPTS => self.sends(who),
            Stage::Ending if self.takers[who].attempts < ATTEMPTS => self.sends(who),
            Stage::Asking => self.ends(who),
            Stage::Ending => self.is_over(who),
            Stage::Pausing => self.asks(who),
            Stage::Holding { until, .. } if self.now >= until => self.ends(who),
            Stage::Holding { until, token: grant, .. } if self.takers[who].renews => {
                let id = self.next_request();
                let taker = &self.takers[who];
                let not_after = taker.bound.not_after.map(|_| self.now + 1_000);
                let bound = Bound { not_after, ..taker.bound };
                let time = lease(taker.lease);
                let call = taker.side(self).renew(id, bound, &taker.owner, time, token(grant));
                self.takers[who].stage = Stage::Holding { until, token: grant, renewing: true };
                self.takers[who].asked = Some(call.clone());
                self.send(who, &call);
                self.wakes_after(who, ATTEMPT.min(until - self.now));
            }
            Stage::Holding { until, .. } => self.wakes_after(who, until - self.now),
            Stage::Over | Stage::Dead => {}
        }
    }

    /// The holder has done what it wanted the lock for.
    pub(super) fn has_done(&mut self, who: usize) {
        if matches!(self.takers[who].stage, Stage::Holding { .. }) {
            self.ends(who);
        }
    }

    fn ends(&mut self, who: usize) {
        let (id, taker) = (self.next_request(), &self.takers[who]);
        let call = taker.side(self).release(id, taker.bound, &taker.owner);
        self.takers[who].stage = Stage::Ending;
        self.begins_to_send(who, call);
    }

    fn is_over(&mut self, who: usize) {
        self.stops(who, Stage::Over);
    }

    fn stops(&mut self, who: usize, stage: Stage) {
        self.takers[who].stage = stage;
        self.takers[who].turn += 1;
        if self.is_open() && self.takers[who].parent.is_none() {
            let pause = self.rng.u64(1..1_000);
            self.after(pause, Event::Begins);
        }
    }

    /// An answer, which counts only if it is to what is being asked.
    pub(super) fn hears(
        &mut self,
        who: usize,
        sent: u64,
        to: RequestId,
        reply: &Reply,
    ) -> Result<(), String> {
        let taker = &self.takers[who];
        let is_news = taker.asked.as_ref().is_some_and(|call| call.request == to);
        match taker.stage {
            Stage::Asking if is_news => self.hears_of_asking(who, sent, reply),
            Stage::Ending if is_news => {
                self.is_over(who);
                Ok(())
            }
            Stage::Holding { renewing: true, .. } if is_news => {
                self.hears_of_renewing(who, sent, reply)
            }
            _ => Ok(()),
        }
    }

    fn trusted(&self, who: usize, sent: u64) -> u64 {
        let lease = self.takers[who].lease;
        let cut = !self.takers[who].writes && !self.law.trusts_all;
        sent + if cut { lease.min(PEER_LEASE) } else { lease } - DRIFT
    }

    fn hears_of_asking(&mut self, who: usize, sent: u64, reply: &Reply) -> Result<(), String> {
        let last = self.takers[who].asked_last;
        match reply.code {
            Code::Done | Code::AlreadyYours => {
                let until = self.trusted(who, sent);
                if until <= self.now + 50 {
                    self.ends(who);
                } else {
                    let token = reply.value.parse().unwrap();
                    self.holds(who, until, token);
                }
                Ok(())
            }
            Code::No if last => {
                self.is_over(who);
                Ok(())
            }
            Code::No if self.chance(self.law.aborts) => {
                self.ends(who);
                Ok(())
            }
            Code::No => {
                let pause = self.rng.u64(10..600);
                self.takers[who].stage = Stage::Pausing;
                self.wakes_after(who, pause);
                Ok(())
            }
            Code::Gone if last => {
                self.is_over(who);
                Ok(())
            }
            Code::Late | Code::Lost => {
                self.ends(who);
                Ok(())
            }
            other => Err(format!("{other:?} to {who}, which has not ended")),
        }
    }

    fn holds(&mut self, who: usize, until: u64, token: u64) {
        self.takers[who].stage = Stage::Holding { until, token, renewing: false };
        if self.chance(self.law.dies) {
            return self.stops(who, Stage::Dead);
        }
        let paused = if self.chance(self.law.pauses) { self.rng.u64(100..2_500) } else { 0 };
        let next = if self.takers[who].renews { self.takers[who].lease / 3 } else { u64::MAX };
        self.wakes_after(who, paused.max(next.min(until - self.now)));
        let work = self.rng.u64(50..3_000);
        self.after(work.max(paused), Event::HasDone { who });
        while self.takers[who].writes && self.is_open() && self.rng.bool() {
            let inner = self.takers.len();
            self.begins(Some(who));
            if self.rng.u8(0..4) > 0 {
                self.takers[who].inner = Some(inner);
            }
        }
    }

    fn hears_of_renewing(&mut self, who: usize, sent: u64, reply: &Reply) -> Result<(), String> {
        let Stage::Holding { until, token, .. } = self.takers[who].stage else { return Ok(()) };
        match reply.code {
            Code::Done => {
                let until = until.max(self.trusted(who, sent));
                let token = reply.value.parse::<u64>().unwrap().max(token);
                self.takers[who].stage = Stage::Holding { until, token, renewing: false };
                let next = self.takers[who].lease / 3;
                self.wakes_after(who, next.min(until.saturating_sub(self.now)));
            }
            Code::Lost if self.takers[who].is_valid(self.now) => {
                return Err(format!("{who} is told that it has lost what is valid"));
            }
            Code::Lost => self.ends(who),
            // Late: asked again when its attempt is over.
            _ => {}
        }
        Ok(())
    }
}
