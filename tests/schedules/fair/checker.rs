//! The observer of a fair lock: compares Redis' state before and after each script, records what
//! has happened, and checks the invariants. A field with a UUID of version 8 is this library's; all
//! others are Redisson's.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::ScriptCall;

use super::super::runner::{Check, Coverage, Owners};
use super::JAVA;
use test_support::script_model::ScriptModel;
use test_support::script_model::subscribers::Message;

/// How long this library lets a silent Redisson waiter block a free lock, in milliseconds, if the
/// waiter has no subscription (F8).
const SHORT: u64 = 5_000;
/// The same time for a waiter with a subscription, which receives a message that the lock is free.
const LONG: u64 = 30_000;

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
    beats: BTreeMap<String, i64>,
    /// The order in which this library's waiters have joined, by which an evicted one returns (F5).
    arrivals: BTreeMap<String, i64>,
    /// The channels with a subscriber.
    subscribed: Vec<String>,
}

/// The client whose script ran, and the parts of the script that the checker needs.
pub(super) enum By<'a> {
    /// Any script of a Redisson client.
    Java {
        holder: &'a str,
    },
    /// A try of this library. `copy`: this try or a newer one of the owner was executed before.
    Try {
        field: &'a str,
        previous: Option<&'a str>,
        copy: bool,
        last: bool,
        reply: &'a Reply,
    },
    Release {
        fields: Vec<&'a str>,
    },
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

fn is_ours(field: &str) -> bool {
    field.as_bytes()[14] == b'8'
}

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(otherwise()) }
}

impl Snapshot {
    pub(super) fn of(model: &ScriptModel, now: u64) -> Self {
        let hold_left = u64::try_from(model.pttl(JAVA.name, now)).ok();
        Self {
            holders: model.fields(JAVA.name, now).map(ToOwned::to_owned).collect(),
            hold_ends: hold_left.map(|left| now + left),
            queue: model.list(JAVA.queue),
            timeouts: model.members(JAVA.timeouts),
            beats: model.members("el:{job}:beat"),
            arrivals: model.members("el:{job}:seat"),
            subscribed: model.subscribers.channels().into(),
        }
    }

    /// Whether a key of the lock contains this field.
    pub(super) fn names(&self, field: &str) -> bool {
        let queued = self.queue.iter().any(|other| other == field);
        let sorted = [&self.timeouts, &self.beats, &self.arrivals];
        queued
            || self.holders.iter().any(|holder| holder == field)
            || sorted.iter().any(|members| members.contains_key(field))
    }

    /// How many milliseconds the holder and the waiters may exclude a new owner if all are silent:
    /// the longest lease (30 s), for each waiter the time after which it counts as dead and the
    /// time to the next poll that notices it (3.4 s), and a margin of 10 s.
    pub(super) fn silence_ms(&self) -> u64 {
        let each = |field: &String| if is_ours(field) { 10_000 } else { SHORT + 1_000 };
        let waiters: u64 = self.queue.iter().map(|field| each(field) + 3_400).sum();
        30_000 + waiters + 10_000
    }

    /// Whether a waiter of this library has polled in time.
    fn is_alive(&self, field: &str, now: u64) -> bool {
        self.beats.get(field).is_some_and(|ends| *ends > now.cast_signed())
    }
}

impl<'a> By<'a> {
    /// Describes a script of this library. `latch` is the text in the owner's latch before it.
    pub(super) fn ours(call: &'a ScriptCall, latch: Option<&str>, reply: &'a Reply) -> Self {
        let args = call.args();
        let given = |place: usize| Some(args[place].as_str()).filter(|text| !text.is_empty());
        if call.script().name == "fair_acquire" {
            let send: u64 = args[9].parse().unwrap();
            let seen: Option<u64> = latch.and_then(|latch| latch.strip_prefix('w')?.parse().ok());
            let (copy, last) = (seen.is_some_and(|seen| send <= seen), args[11] == "1");
            Self::Try { field: &args[4], previous: given(14), copy, last, reply }
        } else {
            Self::Release { fields: given(4).into_iter().chain(given(9)).collect() }
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
    pub(super) fn end(&mut self, field: &str) {
        self.owners.end(field);
    }

    /// Records a script, and checks its effect.
    pub(super) fn on_script(
        &mut self,
        by: &By<'_>,
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
        if let By::Try { copy: true, .. } = by {
            coverage.count("copies");
            ensure(before == after, || "a copy has an effect".into())?;
        }
        self.note_ends(by, coverage);
        self.note_arrivals(by, before, after);
        self.check_grants(by, before, after, now, coverage)?;
        self.check_evictions(by, before, after, now)?;
        check_messages(by, before, after, published)?;
        self.check_shape(after)?;
        self.note_time(after, now);
        Ok(())
    }

    /// Records which owners the script ends: the previous owner of a takeover, the owner of a
    /// refused last try, and both owners of a release.
    fn note_ends(&mut self, by: &By<'_>, coverage: &mut Coverage) {
        match by {
            By::Try { field, previous, last, reply, .. } => {
                let answered = matches!(reply.code, Code::Done | Code::AlreadyYours | Code::No);
                if let Some(previous) = previous.filter(|_| answered)
                    && self.owners.end(previous)
                {
                    coverage.count("takeovers");
                }
                if *last && reply.code == Code::No {
                    self.owners.end(field);
                }
            }
            By::Release { fields } => fields.iter().for_each(|field| self.end(field)),
            By::Java { .. } => {}
        }
    }

    /// Records which waiters have joined. A new owner inherits the arrival of the one it takes
    /// over.
    fn note_arrivals(&mut self, by: &By<'_>, before: &Snapshot, after: &Snapshot) {
        if let By::Try { field, previous: Some(previous), .. } = by
            && !before.names(field)
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
        by: &By<'_>,
        before: &Snapshot,
        after: &Snapshot,
        now: u64,
        coverage: &mut Coverage,
    ) -> Check {
        let Some(field) = after.holders.iter().find(|field| !before.holders.contains(field)) else {
            return Ok(());
        };
        let previous = match by {
            By::Try { previous: Some(previous), .. } => *previous,
            _ => "",
        };
        coverage.count(if is_ours(field) { "grants" } else { "grants of Java's" });
        let was_free = before.holders.iter().all(|holder| holder == previous);
        ensure(was_free, || "granted while it is held".into())?;
        ensure(after.holders.len() == 1, || "two fields in the hash".into())?;
        match by {
            By::Try { reply, .. } => {
                let token = reply.value.parse().unwrap_or(0);
                self.owners.grant(field, token)?;
                self.owners.raise("job", (token, 0))?;
            }
            _ => self.owners.grant(field, 0)?,
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
    fn check_evictions(&self, by: &By<'_>, before: &Snapshot, after: &Snapshot, now: u64) -> Check {
        let gone = before.queue.iter().filter(|field| !after.queue.contains(field));
        for field in gone.filter(|field| !after.holders.contains(field)) {
            let by_itself = self.owners.has_ended(field)
                || matches!(by, By::Java { holder } if holder == field);
            let lives = before.is_alive(field, now);
            match by {
                _ if by_itself => {}
                By::Java { .. } if is_ours(field) => {
                    ensure(!lives || self.wild_clocks, || {
                        format!("Java evicts {field}, which lives")
                    })?;
                }
                By::Java { .. } => {}
                _ if is_ours(field) => ensure(!lives, || format!("{field} is evicted and lives"))?,
                _ => {
                    let fair = self.is_over_grace(field, before, now);
                    ensure(fair, || format!("{field} is evicted within its grace"))?;
                }
            }
        }
        Ok(())
    }

    /// Whether this library may evict a Redisson waiter from the queue.
    fn is_over_grace(&self, field: &str, before: &Snapshot, now: u64) -> bool {
        let since = match self.free_since {
            Some(free) if self.head.0.as_deref() == Some(field) => free.max(self.head.1),
            Some(_) => now,
            None => u64::MAX,
        };
        let has_listener = before.subscribed.iter().any(|channel| channel.ends_with(field));
        let passed = before.timeouts.get(field).is_none_or(|score| *score <= now.cast_signed());
        let grace = if has_listener { LONG } else { SHORT };
        now.saturating_sub(since) >= grace || !has_listener && passed
    }

    /// Checks that queue and timeouts have the same members, each once, and that no key contains an
    /// owner that has ended.
    fn check_shape(&self, after: &Snapshot) -> Check {
        let unique: BTreeSet<&String> = after.queue.iter().collect();
        ensure(unique.len() == after.queue.len(), || "one is queued twice".into())?;
        let same = unique.iter().copied().eq(after.timeouts.keys());
        ensure(same, || format!("queue and timeouts differ: {after:?}"))?;
        match self.owners.ended().find(|field| after.names(field)) {
            Some(ghost) => Err(format!("{ghost} has ended and is there")),
            None => Ok(()),
        }
    }

    /// Records since when the queue has its head, and since when the lock is free.
    fn note_time(&mut self, after: &Snapshot, now: u64) {
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
    by: &By<'_>,
    before: &Snapshot,
    after: &Snapshot,
    published: &[Message],
) -> Check {
    let Some(head) = after.queue.front() else { return Ok(()) };
    let is_its_own = match by {
        By::Java { .. } => return Ok(()),
        By::Try { field, .. } => *field == head,
        By::Release { .. } => false,
    };
    let changed = before.queue.front() != Some(head) || !before.holders.is_empty();
    let is_woken = published.iter().any(|message| message.channel.ends_with(head.as_str()));
    ensure(!after.holders.is_empty() || !changed || is_its_own || is_woken, || {
        format!("{head} gets no message that it is its turn")
    })
}
