//! One acquisition of this library, from its first request to its end: a simplified version of its
//! machines.

use std::time::Duration;

use edgelatch_proto::name::{OwnerId, RequestId};
use edgelatch_proto::protocol::calls::Target;
use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::{Bound, ScriptCall};
use edgelatch_proto::timing::WantTime;

use super::super::runner::{Check, Request};
use super::{MAX_COPY_DELAY_MS, REDISSON_LEASE_MS, ReadWrite, Timer, read_calls, write_calls};
use test_support::calls::{Calls, field, lease, numbered_owner, request, token};

/// The timeout of one attempt, in milliseconds.
const ATTEMPT_MS: u64 = 300;
/// The largest number of attempts of one call.
const MAX_ATTEMPTS: u32 = 4;
/// How long after the acquisition's wait has ended Redis may still execute its tries, in
/// milliseconds.
const MAX_LATENESS_MS: u64 = 5_000;
/// A grant whose reply leaves no more than this time is released at once, in milliseconds.
const MIN_HOLD_MS: u64 = 50;
/// The allowance for the clocks' drift, in milliseconds.
const DRIFT_MS: u64 = 2;

/// One acquisition, and the hold that it is granted.
#[derive(Clone, Debug)]
pub(super) struct Client {
    owner: OwnerId,
    /// Its field in the lock's hash.
    pub(super) field: String,
    pub(super) is_writer: bool,
    /// For a nested read, the client with the write hold.
    pub(super) parent: Option<usize>,
    /// For a writer, the nested read that its release names, which then receives the new epoch. A
    /// nested read that no release names takes the epoch with its next call.
    pub(super) nested: Option<usize>,
    stage: Stage,
    /// The lease that it requests, in milliseconds.
    lease: u64,
    /// Whether it renews its hold.
    renews: bool,
    /// For a writer, whether it keeps new readers out while it waits.
    prefers_writers: bool,
    /// The bound of its tries and of its release.
    bound: Bound,
    /// The first try from this time on is the last one.
    wait_until: u64,
    /// The newest call.
    call: Option<ScriptCall>,
    /// Whether its newest try is its last one.
    is_last: bool,
    /// The number of times that its newest try or release was sent. A renewal is sent once, and
    /// does not count.
    attempts: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Trying,
    /// Until the next try.
    Waiting,
    Holding {
        /// Until when it relies on the hold.
        until: u64,
        /// The newest token that it knows.
        token: u64,
        /// Whether a renewal is under way.
        is_renewing: bool,
    },
    /// Its release is under way, after a hold or after an acquisition without a grant.
    Ending,
    /// The client is done or dead.
    Over,
}

impl Client {
    /// The fencing token of its hold; `None` if it holds nothing.
    pub(super) const fn token(&self) -> Option<u64> {
        match self.stage {
            Stage::Holding { token, .. } => Some(token),
            _ => None,
        }
    }
}

impl ReadWrite {
    /// Starts a new client: a nested read in the `parent`'s write, or without a parent a reader or
    /// writer.
    pub(super) fn begin(&mut self, parent: Option<usize>) {
        let index = self.clients.len();
        let owner = numbered_owner(u32::try_from(index).unwrap() + 1);
        let is_writer = parent.is_none() && self.env.rng.u8(0..3) > 0;
        let wait = if self.env.rng.bool() { 0 } else { self.env.rng.u64(100..4_000) };
        let is_bounded = !self.env.chance(self.settings.unbounded_percent);
        let not_after = is_bounded.then(|| self.env.now + wait + MAX_LATENESS_MS);
        // Redis remembers a request without a bound for longer than any copy is in flight. The
        // latch of a request with a bound lasts until that bound anyway.
        let is_brief = is_bounded || self.settings.brief_memory;
        let keep = if is_brief { 100 } else { MAX_COPY_DELAY_MS + 1_000 };
        self.clients.push(Client {
            owner,
            field: field(&owner) + if is_writer { ":write" } else { "" },
            is_writer,
            parent,
            nested: None,
            stage: Stage::Trying,
            lease: self.env.rng.u64(400..4_000),
            renews: self.env.rng.bool(),
            prefers_writers: is_writer && self.env.chance(self.settings.prefers_writers_percent),
            bound: Bound { not_after, keep: Duration::from_millis(keep) },
            wait_until: self.env.now + wait,
            call: None,
            is_last: false,
            attempts: 0,
        });
        self.try_again(index);
    }

    fn calls(&self, index: usize) -> Calls {
        let client = &self.clients[index];
        let owner = |other: Option<usize>| other.map(|other| self.clients[other].owner);
        Calls(if client.is_writer {
            let calls = write_calls();
            let calls = match owner(client.nested) {
                Some(nested) => calls.with_nested_read(nested),
                None => calls,
            };
            let want = WantTime::new(Duration::from_secs(1)).unwrap();
            Target::Write(if client.prefers_writers { calls.prefers_writers(want) } else { calls })
        } else {
            let calls = read_calls();
            Target::Read(match owner(client.parent) {
                Some(parent) => calls.nested_in_write(parent),
                None => calls,
            })
        })
    }

    fn next_request(&mut self) -> RequestId {
        self.requests += 1;
        request(self.requests)
    }

    /// Sends a new try; it is the last one if the wait is over.
    fn try_again(&mut self, index: usize) {
        let (id, client) = (self.next_request(), &self.clients[index]);
        let (last, lease) = (self.env.now >= client.wait_until, lease(client.lease));
        let call = self.calls(index).acquire(id, client.bound, &client.owner, lease, last);
        self.clients[index].is_last = last;
        self.send_first(index, Stage::Trying, call);
    }

    /// Releases the hold, or abandons the acquisition. The release carries the bound of the tries:
    /// its tombstone must last until then. Redis executes a release after its bound, too.
    fn release(&mut self, index: usize) {
        let (id, client) = (self.next_request(), &self.clients[index]);
        let call = self.calls(index).release(id, client.bound, &client.owner);
        self.drop_lease(index);
        self.send_first(index, Stage::Ending, call);
    }

    /// Sends a new call for the first time.
    fn send_first(&mut self, index: usize, stage: Stage, call: ScriptCall) {
        let client = &mut self.clients[index];
        (client.stage, client.call, client.attempts) = (stage, Some(call), 0);
        self.send(index);
    }

    fn send(&mut self, index: usize) {
        let client = &mut self.clients[index];
        client.attempts += 1;
        self.env.send(index, client.call.clone().unwrap());
        self.env.set_timer(Timer::Client(index), ATTEMPT_MS);
    }

    pub(super) fn on_client_timer(&mut self, index: usize) {
        let now = self.env.now;
        let Client { stage, attempts, renews, .. } = self.clients[index];
        match stage {
            Stage::Trying | Stage::Ending if attempts < MAX_ATTEMPTS => self.send(index),
            Stage::Trying => self.release(index),
            Stage::Ending => self.stop(index),
            Stage::Waiting => self.try_again(index),
            Stage::Holding { until, .. } if now >= until => self.release(index),
            Stage::Holding { until, token: number, .. } if renews => {
                let (id, client) = (self.next_request(), &self.clients[index]);
                let not_after = client.bound.not_after.map(|_| now + 1_000);
                let bound = Bound { not_after, ..client.bound };
                let (owner, lease) = (&client.owner, lease(client.lease));
                let call = self.calls(index).renew(id, bound, owner, lease, token(number));
                let client = &mut self.clients[index];
                client.stage = Stage::Holding { until, token: number, is_renewing: true };
                client.call = Some(call);
                self.send(index);
                // Replaces the timer that `send` set: it fires no later than the end of the lease.
                self.env.set_timer(Timer::Client(index), ATTEMPT_MS.min(until - now));
            }
            Stage::Holding { until, .. } => self.env.set_timer(Timer::Client(index), until - now),
            Stage::Over => {}
        }
    }

    /// The holder has finished its work.
    pub(super) fn on_done(&mut self, index: usize) {
        if self.clients[index].token().is_some() {
            self.release(index);
        }
    }

    /// Ends the client, and lets a new one take its place unless it is a nested read.
    fn stop(&mut self, index: usize) {
        self.drop_lease(index);
        self.clients[index].stage = Stage::Over;
        self.env.cancel_timer(Timer::Client(index));
        if self.env.accepts_new_work() && self.clients[index].parent.is_none() {
            let pause = self.env.rng.u64(1..1_000);
            self.env.set_timer(Timer::Begin(self.settings.clients + index), pause);
        }
    }

    fn drop_lease(&mut self, index: usize) {
        let field = &self.clients[index].field;
        self.leases.retain(|holder| holder != field);
    }

    /// Handles a reply; ignores replies to all but the newest call.
    pub(super) fn on_client_reply(&mut self, request: &Request, reply: &Reply) -> Check {
        let (index, sent_at) = (request.client, request.sent_at);
        let client = &self.clients[index];
        if client.call.as_ref().is_none_or(|call| call.request != request.call.request) {
            return Ok(());
        }
        match client.stage {
            Stage::Trying => return self.on_try_reply(index, sent_at, reply),
            Stage::Ending => self.stop(index),
            Stage::Holding { until, token, is_renewing: true } => {
                return self.on_renew_reply(index, sent_at, (until, token), reply);
            }
            _ => {}
        }
        Ok(())
    }

    /// Until when a client relies on its hold after the confirmation of a request that was sent at
    /// `sent_at`. A reader trusts it for at most `REDISSON_LEASE_MS`: the renewal of a Redisson
    /// reader may cut the expiry of the hash to that time from the renewal. A writer excludes
    /// Redisson's readers, so none shortens its lease.
    fn confirmed_until(&self, index: usize, sent_at: u64) -> u64 {
        let Client { lease, is_writer, .. } = self.clients[index];
        let is_limited = !is_writer && !self.settings.trusts_whole_lease;
        let trusted = if is_limited { lease.min(REDISSON_LEASE_MS) } else { lease };
        sent_at + trusted - DRIFT_MS
    }

    fn on_try_reply(&mut self, index: usize, sent_at: u64, reply: &Reply) -> Check {
        match reply.code {
            Code::Done | Code::AlreadyYours => {
                let until = self.confirmed_until(index, sent_at);
                if until <= self.env.now + MIN_HOLD_MS {
                    self.release(index);
                } else {
                    self.begin_hold(index, until, reply.value.parse().unwrap());
                }
            }
            // `Gone` repeats the refusal of a last try: the tombstone is there.
            Code::No | Code::Gone if self.clients[index].is_last => self.stop(index),
            Code::No if self.env.chance(self.settings.abort_percent) => self.release(index),
            Code::No => {
                self.clients[index].stage = Stage::Waiting;
                let pause = self.env.rng.u64(10..600);
                self.env.set_timer(Timer::Client(index), pause);
            }
            // An earlier attempt may have been granted, and its grant may have expired since.
            Code::Late | Code::Lost => self.release(index),
            other => return Err(format!("client {index}, which has not ended, gets {other:?}")),
        }
        Ok(())
    }

    /// Begins a hold: draws its faults, and begins the nested reads of a writer.
    fn begin_hold(&mut self, index: usize, until: u64, token: u64) {
        let client = &mut self.clients[index];
        client.stage = Stage::Holding { until, token, is_renewing: false };
        // Dies before it relies on the hold, which stays in Redis until its lease ends.
        if self.env.chance(self.settings.death_percent) {
            return self.stop(index);
        }
        let (env, client) = (&mut self.env, &self.clients[index]);
        self.leases.extend(client.field.clone(), until);
        let pause =
            if env.chance(self.settings.pause_percent) { env.rng.u64(100..2_500) } else { 0 };
        let renewal = if client.renews { client.lease / 3 } else { u64::MAX };
        // A pause may outlast the lease.
        env.set_timer(Timer::Client(index), pause.max(renewal.min(until - env.now)));
        let work = env.rng.u64(50..3_000);
        env.set_timer(Timer::Done(index), work.max(pause));
        while self.clients[index].is_writer && self.env.accepts_new_work() && self.env.rng.bool() {
            let nested = self.clients.len();
            self.begin(Some(index));
            // The release names the last one of these.
            if self.env.rng.u8(0..4) > 0 {
                self.clients[index].nested = Some(nested);
            }
        }
    }

    fn on_renew_reply(
        &mut self,
        index: usize,
        sent_at: u64,
        (until, token): (u64, u64),
        reply: &Reply,
    ) -> Check {
        match reply.code {
            Code::Done => {
                let until = until.max(self.confirmed_until(index, sent_at));
                let token = reply.value.parse::<u64>().unwrap().max(token);
                let client = &mut self.clients[index];
                client.stage = Stage::Holding { until, token, is_renewing: false };
                self.leases.extend(client.field.clone(), until);
                let renewal = (client.lease / 3).min(until.saturating_sub(self.env.now));
                self.env.set_timer(Timer::Client(index), renewal);
            }
            Code::Lost if self.env.now < until => {
                return Err(format!("client {index} loses its hold before the end of its lease"));
            }
            Code::Lost => self.release(index),
            // The client sends another renewal when this attempt times out.
            Code::Late => {}
            other => return Err(format!("a renewal of client {index} gets {other:?}")),
        }
        Ok(())
    }
}
