//! The observer of a fair lock: compares Redis' state before and after each script, records what
//! has happened, and checks the invariants. A field with a UUID of version 8 is this library's; all
//! others are Redisson's.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::ScriptCall;

use super::super::network::arg;
use super::super::runner::{Check, Coverage, Owners};
use super::JAVA;
use test_support::script_model::ScriptModel;
use test_support::script_model::subscribers::Message;

/// How long this library lets a silent Redisson waiter block a free lock, in milliseconds, if the
/// waiter has no subscription (F8).
const GRACE_MS: u64 = 5_000;
/// How long this library lets a silent Redisson waiter with a subscription block a free lock, in
/// milliseconds: such a waiter receives a message that the lock is free (F8).
const SUBSCRIBED_GRACE_MS: u64 = 30_000;

/// Indices of arguments of `fair_acquire`.
const SEND_NUMBER: usize = 9;
const LAST_TRY: usize = 11;
const PREVIOUS_OWNER: usize = 14;
/// The index of the previous owner in the arguments of `fair_release`.
const RELEASED_PREVIOUS_OWNER: usize = 9;

/// The state of a fair lock in Redis after one script.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Snapshot {
    /// The fields of the lock's hash: at most one.
    pub(super) holders: Vec<String>,
    /// When the hash expires; `None` if the lock is free.
    hold_ends: Option<u64>,
    /// Redisson's queue, with the waiters of both sides.
    queue: VecDeque<String>,
    /// Redisson's timeouts: when its waiters evict each queued waiter once it is the head.
    timeouts: BTreeMap<String, i64>,
    /// Until when each waiter of this library counts as alive; every poll sets it.
    heartbeats: BTreeMap<String, i64>,
    /// The order in which this library's waiters have joined, by which an evicted one returns (F5).
    arrivals: BTreeMap<String, i64>,
    /// The channels with a subscriber.
    subscribed_channels: Vec<String>,
}

/// A script that ran: the parts of it that the checker needs.
pub(super) enum Script<'a> {
    /// Any script of this Redisson client.
    Java { holder: &'a str },
    /// A try of this library. With `copy`, it or a newer try of the owner was executed before.
    Try { field: &'a str, previous: Option<&'a str>, copy: bool, last: bool, reply: &'a Reply },
    /// A release by this library, of the owner and the previous owner.
    Release { fields: Vec<&'a str> },
}

/// The events so far.
pub(super) struct Checker {
    wild_clocks: bool,
    owners: Owners,
    /// The order in which waiters have joined the queue, as rising numbers.
    arrivals: BTreeMap<String, u64>,
    /// The last of these numbers.
    arrived: u64,
    /// The head of the queue, and when it became the head, in milliseconds.
    head: (Option<String>, u64),
    /// When the lock became free; `None` while it is held.
    free_since: Option<u64>,
    /// When the last hold expires or has expired.
    hold_ends: u64,
}

/// Whether the field's UUID has version 8; its version is at this index of the text.
fn is_ours(field: &str) -> bool {
    const VERSION: usize = 14;
    field.as_bytes()[VERSION] == b'8'
}

fn ensure(holds: bool, violation: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(violation()) }
}

impl Snapshot {
    pub(super) fn of(model: &ScriptModel, now: u64) -> Self {
        let hold_left = u64::try_from(model.pttl(JAVA.name, now)).ok();
        Self {
            holders: model.fields(JAVA.name, now).map(ToOwned::to_owned).collect(),
            hold_ends: hold_left.map(|left| now + left),
            queue: model.list(JAVA.queue).clone(),
            timeouts: model.members(JAVA.timeouts).clone(),
            heartbeats: model.members("el:{job}:beat").clone(),
            arrivals: model.members("el:{job}:seat").clone(),
            subscribed_channels: model.subscribers.channels().into(),
        }
    }

    /// Whether a key of the lock contains this field.
    pub(super) fn contains(&self, field: &str) -> bool {
        let queued = self.queue.iter().any(|other| other == field);
        let sorted = [&self.timeouts, &self.heartbeats, &self.arrivals];
        queued
            || self.holders.iter().any(|holder| holder == field)
            || sorted.iter().any(|members| members.contains_key(field))
    }

    /// For how many milliseconds a silent holder and silent waiters may exclude a new owner: the
    /// longest lease, for each waiter the time after which it counts as dead and the time to the
    /// next poll that notices it, and a margin.
    pub(super) fn max_blocked_ms(&self) -> u64 {
        let (longest_lease, next_poll, margin) = (30_000, 3_400, 10_000);
        let dead_after = |field: &String| if is_ours(field) { 10_000 } else { GRACE_MS + 1_000 };
        let waiters: u64 = self.queue.iter().map(|field| dead_after(field) + next_poll).sum();
        longest_lease + waiters + margin
    }

    /// Whether a waiter of this library has polled in time.
    fn is_alive(&self, field: &str, now: u64) -> bool {
        self.heartbeats.get(field).is_some_and(|ends| *ends > now.cast_signed())
    }
}

impl<'a> Script<'a> {
    /// Describes a script of this library. `latch` is the text in the owner's latch before it.
    pub(super) fn of_call(call: &'a ScriptCall, latch: Option<&str>, reply: &'a Reply) -> Self {
        let args = call.args();
        let owner = |index: usize| Some(args[index].as_str()).filter(|field| !field.is_empty());
        if call.script().name == "fair_acquire" {
            let number: u64 = args[SEND_NUMBER].parse().unwrap();
            let seen: Option<u64> = latch.and_then(|latch| latch.strip_prefix('w')?.parse().ok());
            let (copy, last) = (seen.is_some_and(|seen| number <= seen), args[LAST_TRY] == "1");
            Self::Try {
                field: &args[arg::OWNER],
                previous: owner(PREVIOUS_OWNER),
                copy,
                last,
                reply,
            }
        } else {
            let fields =
                [arg::OWNER, RELEASED_PREVIOUS_OWNER].into_iter().filter_map(owner).collect();
            Self::Release { fields }
        }
    }
}

impl Checker {
    pub(super) fn new(wild_clocks: bool) -> Self {
        Self {
            wild_clocks,
            owners: Owners::default(),
            arrivals: BTreeMap::new(),
            arrived: 0,
            head: (None, 0),
            free_since: Some(0),
            hold_ends: 0,
        }
    }

    /// Records that Redis must store nothing of this owner any more.
    pub(super) fn record_end(&mut self, field: &str) {
        self.owners.record_end(field);
    }

    /// Checks the effect of a script, and records it.
    pub(super) fn on_script(
        &mut self,
        script: &Script<'_>,
        before: &Snapshot,
        after: &Snapshot,
        published: &[Message],
        now: u64,
        coverage: &mut Coverage,
    ) -> Check {
        if before.holders.is_empty() && self.free_since.is_none() {
            // The hold has expired.
            self.free_since = Some(self.hold_ends);
        }
        if let Script::Try { copy: true, .. } = script {
            coverage.count("copies");
            ensure(before == after, || "a copy has an effect".into())?;
        }
        self.record_ends(script, coverage);
        self.record_arrivals(script, before, after);
        self.check_grants(script, before, after, now, coverage)?;
        self.check_evictions(script, before, after, now)?;
        check_messages(script, before, after, published)?;
        self.check_shape(after)?;
        self.record_times(after, now);
        Ok(())
    }

    /// Records which owners the script ends: the previous owner of a takeover, the owner of a
    /// refused last try, and both owners of a release.
    fn record_ends(&mut self, script: &Script<'_>, coverage: &mut Coverage) {
        match script {
            Script::Try { field, previous, last, reply, .. } => {
                let has_taken_over =
                    matches!(reply.code, Code::Done | Code::AlreadyYours | Code::No);
                if let Some(previous) = previous.filter(|_| has_taken_over)
                    && self.owners.record_end(previous)
                {
                    coverage.count("takeovers");
                }
                if *last && reply.code == Code::No {
                    self.owners.record_end(field);
                }
            }
            Script::Release { fields } => fields.iter().for_each(|field| self.record_end(field)),
            Script::Java { .. } => {}
        }
    }

    /// Records which waiters have joined. A new owner inherits the arrival of the one it takes
    /// over.
    fn record_arrivals(&mut self, script: &Script<'_>, before: &Snapshot, after: &Snapshot) {
        if let Script::Try { field, previous: Some(previous), .. } = script
            && !before.contains(field)
            && before.arrivals.contains_key(*previous)
            && let Some(arrival) = self.arrivals.get(*previous).copied()
        {
            self.arrivals.insert((*field).to_owned(), arrival);
        }
        for field in after.queue.iter().filter(|field| !before.queue.contains(field)) {
            self.arrived += 1;
            // An evicted waiter of this library returns to its place; one of Redisson's joins at
            // the end.
            if !is_ours(field) || !self.arrivals.contains_key(field) {
                self.arrivals.insert(field.clone(), self.arrived);
            }
        }
    }

    /// Checks that a grant is the owner's only one, with a rising token, of a lock that was free,
    /// and overtakes no live waiter of this library that has arrived earlier.
    fn check_grants(
        &mut self,
        script: &Script<'_>,
        before: &Snapshot,
        after: &Snapshot,
        now: u64,
        coverage: &mut Coverage,
    ) -> Check {
        let Some(field) = after.holders.iter().find(|field| !before.holders.contains(field)) else {
            return Ok(());
        };
        let previous = match script {
            Script::Try { previous: Some(previous), .. } => *previous,
            _ => "",
        };
        coverage.count(if is_ours(field) { "grants" } else { "grants of Java's" });
        let was_free = before.holders.iter().all(|holder| holder == previous);
        ensure(was_free, || "granted while it is held".into())?;
        ensure(after.holders.len() == 1, || "two fields in the hash".into())?;
        match script {
            Script::Try { reply, .. } => {
                let token = reply.value.parse().unwrap_or(0);
                self.owners.record_grant(field, token)?;
                self.owners.record_token("job", (token, 0))?;
            }
            _ => self.owners.record_grant(field, 0)?,
        }
        // A hold that the previous owner had already been granted overtakes no waiter.
        let arrival = if before.holders.is_empty() {
            self.arrivals.get(field).copied().unwrap_or(u64::MAX)
        } else {
            0
        };
        for other in before.arrivals.keys().filter(|other| *other != field && *other != previous) {
            let earlier = self.arrivals.get(other).is_some_and(|its| *its < arrival);
            let is_overtaken =
                before.is_alive(other, now) && earlier && !self.owners.has_ended(other);
            ensure(!is_overtaken || self.wild_clocks, || {
                format!("{other} is overtaken by {field}")
            })?;
        }
        Ok(())
    }

    /// Checks that no waiter leaves the queue while it is alive or within its grace, unless it
    /// leaves by itself. Redisson's waiters may evict each other by their own rules.
    fn check_evictions(
        &self,
        script: &Script<'_>,
        before: &Snapshot,
        after: &Snapshot,
        now: u64,
    ) -> Check {
        let gone = before.queue.iter().filter(|field| !after.queue.contains(field));
        for field in gone.filter(|field| !after.holders.contains(field)) {
            let left_by_itself = self.owners.has_ended(field)
                || matches!(script, Script::Java { holder } if holder == field);
            let is_alive = before.is_alive(field, now);
            match script {
                _ if left_by_itself => {}
                Script::Java { .. } if is_ours(field) => {
                    ensure(!is_alive || self.wild_clocks, || {
                        format!("Java evicts {field}, which is alive")
                    })?;
                }
                Script::Java { .. } => {}
                _ if is_ours(field) => {
                    ensure(!is_alive, || format!("{field} is evicted while it is alive"))?
                }
                _ => {
                    let is_over_grace = self.is_over_grace(field, before, now);
                    ensure(is_over_grace, || format!("{field} is evicted within its grace"))?;
                }
            }
        }
        Ok(())
    }

    /// Whether this library may evict a Redisson waiter from the queue.
    fn is_over_grace(&self, field: &str, before: &Snapshot, now: u64) -> bool {
        let since = match self.free_since {
            Some(free_since) if self.head.0.as_deref() == Some(field) => {
                free_since.max(self.head.1)
            }
            Some(_) => now,
            None => u64::MAX,
        };
        let is_subscribed =
            before.subscribed_channels.iter().any(|channel| channel.ends_with(field));
        let has_timed_out =
            before.timeouts.get(field).is_none_or(|score| *score <= now.cast_signed());
        let grace = if is_subscribed { SUBSCRIBED_GRACE_MS } else { GRACE_MS };
        now.saturating_sub(since) >= grace || !is_subscribed && has_timed_out
    }

    /// Checks that queue and timeouts have the same members, each once, and that no key contains an
    /// owner that has ended.
    fn check_shape(&self, after: &Snapshot) -> Check {
        let unique: BTreeSet<&String> = after.queue.iter().collect();
        ensure(unique.len() == after.queue.len(), || "a waiter is queued twice".into())?;
        let same = unique.iter().copied().eq(after.timeouts.keys());
        ensure(same, || format!("queue and timeouts differ: {after:?}"))?;
        match self.owners.ended().find(|field| after.contains(field)) {
            Some(field) => Err(format!("{field} has ended but is still stored")),
            None => Ok(()),
        }
    }

    /// Records when the head became the head, and when the lock became free.
    fn record_times(&mut self, after: &Snapshot, now: u64) {
        if after.queue.front() != self.head.0.as_ref() {
            self.head = (after.queue.front().cloned(), now);
        }
        if after.holders.is_empty() {
            self.free_since = self.free_since.or(Some(now));
        } else {
            (self.free_since, self.hold_ends) = (None, after.hold_ends.unwrap_or(u64::MAX));
        }
    }
}

/// Checks that a script of this library that changes the head of a free lock notifies the new head.
fn check_messages(
    script: &Script<'_>,
    before: &Snapshot,
    after: &Snapshot,
    published: &[Message],
) -> Check {
    let Some(head) = after.queue.front() else { return Ok(()) };
    let is_of_head = match script {
        Script::Java { .. } => return Ok(()),
        Script::Try { field, .. } => *field == head,
        Script::Release { .. } => false,
    };
    let changed = before.queue.front() != Some(head) || !before.holders.is_empty();
    let is_notified = published.iter().any(|message| message.channel.ends_with(head.as_str()));
    ensure(!after.holders.is_empty() || !changed || is_of_head || is_notified, || {
        format!("{head} gets no message that it is its turn")
    })
}
