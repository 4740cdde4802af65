//! The invariants of one fair read-write lock, checked after every script.

use std::collections::{BTreeMap, BTreeSet};

use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::ScriptCall;

use super::super::ledger::is_repeated;
use super::super::runner::{Check, Coverage, Owners};
use super::order::Arrivals;
use super::snapshot::{Snapshot, is_exclusive, owner_of};
use test_support::script_model::subscribers::Message;

/// The life of a waiter, in milliseconds.
const LIFE_MS: u64 = 1_000;

/// A script that ran, and its reply.
pub(super) struct Script<'a> {
    pub(super) name: &'static str,
    pub(super) code: Code,
    value: &'a str,
    is_repeated: bool,
    request: &'a str,
    /// The member of the request's owner; empty for a forced release.
    pub(super) member: &'a str,
    pub(super) kind: &'a str,
    send: u64,
    lease: i64,
    pub(super) previous: Option<&'a str>,
    /// Until when Redis remembers the owner of a waiter.
    remembered: u64,
}

impl<'a> Script<'a> {
    pub(super) fn of_call(call: &'a ScriptCall, reply: &'a Reply, now: u64) -> Self {
        let (name, args) = (call.script().name, call.args());
        let is_try = name == "fair_rw_acquire";
        let number = |place: usize| args[place].parse::<u64>().unwrap();
        let bound = args[1].parse().unwrap_or(0_u64).saturating_sub(now);
        let previous = match name {
            "fair_rw_acquire" => args[12].as_str(),
            "fair_rw_release" => args[6].as_str(),
            _ => "",
        };
        Self {
            name,
            code: reply.code,
            value: &reply.value,
            is_repeated: name == "fair_rw_force_release" && is_repeated(reply),
            request: &args[0],
            member: if name == "fair_rw_force_release" { "" } else { &args[4] },
            kind: if is_try { &args[5] } else { "" },
            send: if is_try { number(9) } else { 0 },
            lease: match name {
                "fair_rw_acquire" => number(10).cast_signed(),
                "fair_rw_renew" => number(5).cast_signed(),
                _ => 0,
            },
            previous: Some(previous).filter(|member| !member.is_empty()),
            remembered: now + number(2).max(bound) + 1000,
        }
    }
}

/// Which waiters a script has to notify.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Notifies {
    Nothing,
    /// The waiters that can enter because a hold or a wait has ended.
    AfterEnd,
    /// All waiters that can enter: a try also removes waiters that have died.
    AfterTry,
}

/// The history of one lock.
pub(super) struct Checker {
    max_holders: usize,
    owners: Owners,
    /// The owners whose holds were ended by a steal or by force.
    over: BTreeSet<String>,
    /// The newest send number of each owner that had an effect.
    sends: BTreeMap<String, u64>,
    arrivals: Arrivals,
    /// The waiters that can enter and were notified.
    notified: BTreeSet<String>,
    /// The requests that ended holds by force.
    forced: BTreeSet<String>,
    /// The newest token, whether its hold was shared, and the newest exclusive one.
    last_token: (u64, bool),
    last_exclusive: u64,
}

pub(super) fn ensure(holds: bool, message: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(message()) }
}

impl Checker {
    pub(super) fn new(max_holders: usize) -> Self {
        Self {
            max_holders,
            owners: Owners::default(),
            over: BTreeSet::new(),
            sends: BTreeMap::new(),
            arrivals: Arrivals::default(),
            notified: BTreeSet::new(),
            forced: BTreeSet::new(),
            last_token: (0, false),
            last_exclusive: 0,
        }
    }

    /// Whether this owner has ended, or another client has ended its hold.
    pub(super) fn is_over(&self, owner: &str) -> bool {
        self.over.contains(owner) || self.owners.has_ended(owner)
    }

    pub(super) fn on_script(
        &mut self,
        script: &Script<'_>,
        before: &Snapshot,
        after: &Snapshot,
        published: &[Message],
        now: u64,
        coverage: &mut Coverage,
    ) -> Check {
        let had_ended = self.owners.has_ended(owner_of_script(script));
        let is_fresh = self.is_fresh(script);
        match script.name {
            "fair_rw_acquire" => self.on_try(script, is_fresh, before, after, now, coverage)?,
            "fair_rw_release" => {
                for member in [Some(script.member), script.previous].into_iter().flatten() {
                    self.end(member);
                }
            }
            "fair_rw_renew" if script.code == Code::Done => {
                let owner = owner_of(script.member);
                ensure(!self.owners.has_ended(owner), || {
                    format!("{owner} is renewed after its end")
                })?;
                let ends = after.holders.get(script.member).copied().unwrap_or(0);
                ensure(ends >= now.cast_signed() + script.lease, || {
                    "a renewal is too short".into()
                })?;
            }
            "fair_rw_force_release" if script.code == Code::Done && !script.is_repeated => {
                ensure(self.forced.insert(script.request.to_owned()), || {
                    "one request ends holds by force twice".into()
                })?;
                self.over.extend(before.holders.keys().map(|member| owner_of(member).to_owned()));
            }
            _ => {}
        }
        self.check_shape(after, now)?;
        check_others(script, before, after, now)?;
        self.arrivals.check_queue(after)?;
        self.check_messages(after, published, now)?;
        let notifies = match (script.name, script.code) {
            ("fair_rw_release", _) if !had_ended => Notifies::AfterEnd,
            ("fair_rw_force_release", Code::Done) if !script.is_repeated => Notifies::AfterEnd,
            ("fair_rw_acquire", Code::Done | Code::No) if is_fresh => Notifies::AfterTry,
            _ => Notifies::Nothing,
        };
        self.check_notified(script, before, after, published, now, notifies)
    }

    /// Whether the request is one that Redis has not executed yet, of an owner that still waits.
    fn is_fresh(&self, script: &Script<'_>) -> bool {
        let owner = owner_of_script(script);
        script.send > self.sends.get(owner).copied().unwrap_or(0)
            && !self.owners.has_ended(owner)
            && self.owners.token(owner).is_none()
    }

    fn end(&mut self, member: &str) {
        self.owners.record_end(owner_of(member));
        self.arrivals.remove(member);
    }

    fn on_try(
        &mut self,
        script: &Script<'_>,
        is_fresh: bool,
        before: &Snapshot,
        after: &Snapshot,
        now: u64,
        coverage: &mut Coverage,
    ) -> Check {
        let (member, owner) = (script.member, owner_of(script.member));
        if !is_fresh && script.code == Code::No {
            ensure(after == before, || "a copy of a poll has an effect".into())?;
        }
        let mut is_handed = false;
        let previous = script.previous.filter(|_| is_fresh);
        let previous = previous.filter(|_| matches!(script.code, Code::Done | Code::No));
        if let Some(previous) = previous.filter(|member| !self.owners.has_ended(owner_of(member))) {
            is_handed = before.holds(previous, now);
            let is_queued = before.queue.contains_key(previous);
            self.arrivals.take_over(member, previous, is_queued, now);
            self.end(previous);
        }
        match script.code {
            Code::Done => {
                coverage.count(if is_exclusive(member) {
                    "exclusive grants"
                } else {
                    "shared grants"
                });
                if script.kind == "steal" {
                    coverage.count("steals");
                }
                self.on_grant(script, is_handed, before, after, now)?;
            }
            Code::AlreadyYours => {
                let is_granted = self.owners.token(owner).is_some();
                ensure(is_granted, || format!("{owner} was never granted"))?;
                let ends = after.holders.get(member).copied().unwrap_or(0);
                let least = now.cast_signed() + script.lease;
                ensure(ends >= least, || "a repeat does not extend the hold".into())?;
            }
            Code::No if is_fresh && script.kind == "wait" => {
                if script.value.ends_with(",1") {
                    coverage.count("restored places");
                }
                let is_queued = after.queue.contains_key(member);
                ensure(is_queued, || format!("{owner} is refused, but not queued"))?;
                self.arrivals.record(member, now + LIFE_MS, script.remembered);
            }
            Code::No if is_fresh => self.end(member),
            Code::No if !self.is_over(owner) => coverage.count("copies"),
            Code::Gone => {
                ensure(self.owners.has_ended(owner), || format!("{owner} is gone too early"))?;
            }
            _ => {}
        }
        if is_fresh && matches!(script.code, Code::Done | Code::No) {
            self.sends.insert(owner.to_owned(), script.send);
        }
        Ok(())
    }

    fn on_grant(
        &mut self,
        script: &Script<'_>,
        is_handed: bool,
        before: &Snapshot,
        after: &Snapshot,
        now: u64,
    ) -> Check {
        let member = script.member;
        let token = script.value.parse().unwrap();
        self.owners.record_grant(owner_of(member), token)?;
        let ends = after.holders.get(member).copied().unwrap_or(0);
        ensure(ends == now.cast_signed() + script.lease, || "a hold has another lease".into())?;
        self.check_token(member, token)?;
        if script.kind == "steal" {
            let others = before.holders.keys().filter(|other| *other != member);
            self.over.extend(others.map(|member| owner_of(member).to_owned()));
        } else if !is_handed {
            let live = before.live_holders(now).len();
            self.arrivals.check_grant(member, live, self.max_holders, now)?;
        }
        self.arrivals.remove(member);
        Ok(())
    }

    fn check_token(&mut self, member: &str, token: u64) -> Check {
        let is_shared = !is_exclusive(member);
        let (last, last_is_shared) = self.last_token;
        let rises = if is_shared && last_is_shared { token >= last } else { token > last };
        let is_above = token > self.last_exclusive;
        self.last_token = (token, is_shared);
        if !is_shared {
            self.last_exclusive = token;
        }
        ensure(rises && is_above, || format!("the token {token} of {member} is not above {last}"))
    }

    /// Checks the sorted sets against each other, and that no incompatible holds are live.
    fn check_shape(&self, after: &Snapshot, now: u64) -> Check {
        let live = after.live_holders(now);
        let has_exclusive = live.iter().any(|member| is_exclusive(member));
        ensure(live.len() <= 1 || !has_exclusive, || format!("{live:?} hold the lock together"))?;
        ensure(live.len() <= self.max_holders, || format!("{} hold the lock", live.len()))?;
        let same = after.queue.keys().eq(after.beats.keys());
        ensure(same, || format!("queue and heartbeats differ: {after:?}"))?;
        // The key of the writers may have expired with the last of them that was alive.
        let writers = after.queue.iter().filter(|(member, _)| is_exclusive(member));
        let same = writers
            .filter(|(member, _)| after.is_alive(member, now))
            .all(|(member, ticket)| after.writers.get(member) == Some(ticket));
        let others =
            after.writers.iter().all(|(member, ticket)| after.queue.get(member) == Some(ticket));
        ensure(same && others, || format!("queue and writers differ: {after:?}"))?;
        let tickets: BTreeSet<&i64> = after.queue.values().collect();
        ensure(tickets.len() == after.queue.len(), || "two waiters have one ticket".into())?;
        let mut members = after.holders.keys().chain(after.queue.keys());
        match members.find(|member| self.owners.has_ended(owner_of(member))) {
            Some(member) => Err(format!("{member} has ended but is still stored")),
            None => Ok(()),
        }
    }

    /// Checks that only waiters that can enter, and holders that have lost their holds, are
    /// notified.
    fn check_messages(&self, after: &Snapshot, published: &[Message], now: u64) -> Check {
        let able = after.can_enter(self.max_holders, now);
        let all_alive = after.queue.keys().all(|member| after.is_alive(member, now));
        for message in published {
            let owner = message.channel.split_once(":").unwrap().1;
            let is_of = |member: &&String| owner.ends_with(&format!(":{}", owner_of(member)));
            if message.text == "0" {
                let is_over = self.over.iter().any(|over| owner.ends_with(&format!(":{over}")));
                ensure(is_over, || format!("{owner} is told that its hold has ended"))?;
                continue;
            }
            let Some(member) = after.queue.keys().find(is_of) else {
                return Err(format!("{owner} is notified, but does not wait"));
            };
            let is_dead = !after.is_alive(member, now);
            ensure(able.contains(member) || is_dead || !all_alive, || {
                format!("{member} is notified, but cannot enter")
            })?;
        }
        Ok(())
    }

    /// Checks that each waiter that can enter because of this script is notified (W10).
    fn check_notified(
        &mut self,
        script: &Script<'_>,
        before: &Snapshot,
        after: &Snapshot,
        published: &[Message],
        now: u64,
        notifies: Notifies,
    ) -> Check {
        let able = after.can_enter(self.max_holders, now);
        let was_able = before.can_enter(self.max_holders, now);
        let is_notified = |member: &String| {
            let channel = format!(":{}", owner_of(member));
            published
                .iter()
                .any(|message| message.text == "1" && message.channel.ends_with(&channel))
        };
        // The poll of another waiter notifies those that can enter since time has passed.
        let is_excused = |member: &String| {
            *member == script.member || notifies == Notifies::AfterEnd && was_able.contains(member)
        };
        let silent = able.iter().find(|member| {
            !is_notified(member) && !is_excused(member) && !self.notified.contains(*member)
        });
        // A message to a waiter that has died reaches none behind it, until a try removes it.
        let all_alive = after.queue.keys().all(|member| after.is_alive(member, now));
        if let Some(silent) = silent.filter(|_| all_alive && notifies != Notifies::Nothing) {
            return Err(format!("{silent} can enter, but gets no message"));
        }
        let knows = |member: &String| is_notified(member) || self.notified.contains(member);
        self.notified =
            able.into_iter().filter(|member| knows(member) || is_excused(member)).collect();
        Ok(())
    }
}

fn owner_of_script<'a>(script: &Script<'a>) -> &'a str {
    if script.member.is_empty() { "" } else { owner_of(script.member) }
}

/// Checks that a script changes no live entry of other owners, except where it ends their holds or
/// takes over.
fn check_others(script: &Script<'_>, before: &Snapshot, after: &Snapshot, now: u64) -> Check {
    let is_own = |member: &String| {
        member == script.member || script.previous.is_some_and(|previous| member == previous)
    };
    let ends_holds = script.code == Code::Done
        && (script.kind == "steal" || script.name == "fair_rw_force_release");
    for (member, was) in &before.holders {
        let is = after.holders.get(member);
        let is_kept = is == Some(was) || is > Some(was) && member == script.member;
        let may_go = is.is_none() && (is_own(member) || ends_holds || !before.holds(member, now));
        ensure(is_kept || may_go, || format!("{} changes the hold of {member}", script.name))?;
    }
    for (member, ticket) in &before.queue {
        let is = after.queue.get(member);
        let may_go = is.is_none() && (is_own(member) || !before.is_alive(member, now));
        ensure(is == Some(ticket) || may_go, || {
            format!("{} changes the place of {member}", script.name)
        })?;
        let beat = after.beats.get(member);
        ensure(is_own(member) || beat.is_none() || beat == before.beats.get(member), || {
            format!("{} changes the heartbeat of {member}", script.name)
        })?;
    }
    let mut new = after.holders.keys().filter(|member| !before.holders.contains_key(*member));
    match new.find(|member| *member != script.member) {
        Some(member) => Err(format!("{} adds a hold of {member}", script.name)),
        None => Ok(()),
    }
}
