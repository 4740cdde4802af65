//! What was seen of one schedule, and what must hold of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use edgelatch::protocol::reply::{Code, Reply};
use edgelatch::protocol::script::ScriptCall;

use super::super::kit::{Fair, field_of};
use crate::support::script_model::ScriptModel;
use crate::support::script_model::audience::Message;

/// The graces of waiters of Redisson's: unheard, heard.
const SHORT: u64 = 5_000;
const LONG: u64 = 30_000;

/// Everything that matters of a fair lock, after one script.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Snapshot {
    pub(crate) holders: Vec<String>,
    hold_ends: Option<u64>,
    queue: VecDeque<String>,
    timeouts: BTreeMap<String, i64>,
    beats: BTreeMap<String, i64>,
    seats: BTreeMap<String, i64>,
    listening: Vec<String>,
}

/// Whose script it was.
pub(crate) enum By<'a> {
    Java {
        holder: &'a str,
    },
    /// `copy`: a newer one had been seen of this owner.
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

/// What was seen so far.
pub(crate) struct Seen {
    wild_clocks: bool,
    wrong: Option<String>,
    /// When each came into the queue, as a number that rises.
    arrivals: BTreeMap<String, u64>,
    arrived: u64,
    granted: BTreeSet<String>,
    ended: BTreeSet<String>,
    last_token: u64,
    head: (Option<String>, u64),
    free_since: u64,
    hold_ends: u64,
    /// Grants to ours and to Redisson's, copies, takeovers.
    counts: [u64; 4],
}

pub(crate) fn is_ours(field: &str) -> bool {
    field.as_bytes()[14] == b'8'
}

impl Snapshot {
    pub(crate) fn of(model: &ScriptModel, lock: &Fair, now: u64) -> Self {
        let java = lock.java();
        let keys = java.model();
        Self {
            holders: model.fields(keys.name, now).map(ToOwned::to_owned).collect(),
            hold_ends: u64::try_from(model.pttl(keys.name, now)).ok().map(|left| now + left),
            queue: model.list(keys.queue),
            timeouts: model.members(keys.timeouts),
            beats: model.members(&lock.beats()),
            seats: model.members(&lock.seats()),
            listening: model.audience.channels().into(),
        }
    }

    pub(crate) fn names(&self, field: &str) -> bool {
        let queued = self.queue.iter().any(|other| other == field);
        let sorted = [&self.timeouts, &self.beats, &self.seats];
        queued
            || self.holders.iter().any(|holder| holder == field)
            || sorted.iter().any(|members| members.contains_key(field))
    }

    /// For how long those who are there, silent from now on, may keep out who is new: what each is given, and a poll.
    pub(crate) fn silence_costs(&self) -> u64 {
        let each = |field: &String| if is_ours(field) { 10_000 } else { SHORT + 1_000 };
        let waiters: u64 = self.queue.iter().map(|field| each(field) + 3_400).sum();
        30_000 + waiters + 10_000
    }
}

impl<'a> By<'a> {
    pub(crate) fn ours(call: &'a ScriptCall, latch: Option<String>, reply: &'a Reply) -> Self {
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

impl Seen {
    pub(crate) fn new(wild_clocks: bool) -> Self {
        Self {
            wild_clocks,
            wrong: None,
            arrivals: BTreeMap::new(),
            arrived: 0,
            granted: BTreeSet::new(),
            ended: BTreeSet::new(),
            last_token: 0,
            head: (None, 0),
            free_since: 0,
            hold_ends: 0,
            counts: [0; 4],
        }
    }

    pub(crate) fn wrong(&self) -> Option<String> {
        self.wrong.clone()
    }

    pub(crate) const fn counts(&self) -> [u64; 4] {
        self.counts
    }

    pub(crate) fn believers(&mut self, count: usize) {
        self.must(count <= 1, "two believe that they hold it");
    }

    /// Its client will never ask for this owner again, nor end it.
    pub(crate) fn forgets(&mut self, owner: u32) {
        self.ended.insert(field_of(owner));
    }

    fn must(&mut self, holds: bool, else_say: impl Into<String>) {
        if !holds && self.wrong.is_none() {
            self.wrong = Some(else_say.into());
        }
    }

    /// A script ran.
    pub(crate) fn ran(
        &mut self,
        by: &By<'_>,
        before: &Snapshot,
        after: &Snapshot,
        told: &[Message],
        now: u64,
    ) {
        if before.holders.is_empty() && self.free_since == u64::MAX {
            // It ran out by itself.
            self.free_since = self.hold_ends;
        }
        self.is_copy(by, before, after);
        self.note_ends(by);
        self.note_arrivals(by, before, after);
        self.check_grants(by, before, after, now);
        self.check_evictions(by, before, after, now);
        self.check_told(by, before, after, told);
        self.check_shape(after);
        self.note_time(after, now);
    }

    /// A copy of what was done changes nothing.
    fn is_copy(&mut self, by: &By<'_>, before: &Snapshot, after: &Snapshot) {
        if let By::Try { copy: true, .. } = by {
            self.counts[2] += 1;
            self.must(before == after, "a copy changes something");
        }
    }

    fn note_ends(&mut self, by: &By<'_>) {
        match by {
            By::Try { field, previous, last, reply, .. } => {
                let answered = matches!(reply.code, Code::Done | Code::AlreadyYours | Code::No);
                if let Some(previous) = previous.filter(|_| answered) {
                    let fresh = self.ended.insert((*previous).to_owned());
                    self.counts[3] += u64::from(fresh);
                }
                if *last && reply.code == Code::No {
                    self.ended.insert((*field).to_owned());
                }
            }
            By::Release { fields } => {
                self.ended.extend(fields.iter().map(|field| (*field).to_owned()));
            }
            By::Java { .. } => {}
        }
    }

    fn note_arrivals(&mut self, by: &By<'_>, before: &Snapshot, after: &Snapshot) {
        if let By::Try { field, previous: Some(previous), .. } = by
            && !before.names(field)
            && before.seats.contains_key(*previous)
            && let Some(arrival) = self.arrivals.get(*previous).copied()
        {
            self.arrivals.insert((*field).to_owned(), arrival);
        }
        for field in after.queue.iter().filter(|field| !before.queue.contains(field)) {
            self.arrived += 1;
            // One of ours that was evicted comes back to its seat; one of Redisson's begins anew.
            if !is_ours(field) || !self.arrivals.contains_key(field) {
                self.arrivals.insert(field.clone(), self.arrived);
            }
        }
    }

    fn check_grants(&mut self, by: &By<'_>, before: &Snapshot, after: &Snapshot, now: u64) {
        let Some(field) = after.holders.iter().find(|field| !before.holders.contains(field)) else {
            return;
        };
        let previous = match by {
            By::Try { previous: Some(previous), .. } => *previous,
            _ => "",
        };
        self.counts[usize::from(!is_ours(field))] += 1;
        let was_free = before.holders.iter().all(|holder| holder == previous);
        self.must(was_free, "granted while it is held");
        self.must(after.holders.len() == 1, "two fields in the hash");
        let ended = self.ended.contains(field);
        self.must(!ended, "granted after its end");
        let once = self.granted.insert(field.clone());
        self.must(once, "granted twice");
        if let By::Try { reply, .. } = by {
            let token = reply.value.parse().unwrap_or(0);
            self.must(token > self.last_token, "a token that does not rise");
            self.last_token = token;
        }
        // A hold that is handed over was its waiter's turn already.
        let arrival = if before.holders.is_empty() {
            self.arrivals.get(field).copied().unwrap_or(u64::MAX)
        } else {
            0
        };
        for other in before.seats.keys().filter(|other| *other != field && *other != previous) {
            let lives = before.beats.get(other).is_some_and(|ends| *ends > now.cast_signed());
            let earlier = self.arrivals.get(other).is_some_and(|its| *its < arrival);
            let overtaken = lives && earlier && !self.ended.contains(other) && !self.wild_clocks;
            self.must(!overtaken, format!("{other} is overtaken by {field}"));
        }
    }

    fn check_evictions(&mut self, by: &By<'_>, before: &Snapshot, after: &Snapshot, now: u64) {
        let gone = before.queue.iter().filter(|field| !after.queue.contains(field));
        for field in gone.filter(|field| !after.holders.contains(field)) {
            let lives = before.beats.get(field).is_some_and(|ends| *ends > now.cast_signed());
            let by_itself =
                self.ended.contains(field) || matches!(by, By::Java { holder } if holder == field);
            match by {
                _ if by_itself => {}
                By::Java { .. } if is_ours(field) => {
                    self.must(
                        !lives || self.wild_clocks,
                        format!("Java evicts {field}, which lives"),
                    );
                }
                By::Java { .. } => {}
                _ if is_ours(field) => self.must(!lives, format!("{field} is evicted and lives")),
                _ => {
                    let is_head = self.head.0.as_deref() == Some(field.as_str());
                    let since = if is_head { self.free_since.max(self.head.1) } else { now };
                    let hears =
                        before.listening.iter().any(|channel| channel.ends_with(field.as_str()));
                    let passed =
                        before.timeouts.get(field).is_none_or(|score| *score <= now.cast_signed());
                    let grace = if hears { LONG } else { SHORT };
                    let fair = now.saturating_sub(since) >= grace || !hears && passed;
                    self.must(fair, format!("{field} is evicted within its grace"));
                }
            }
        }
    }

    /// Whoever changes the head of a free lock tells the new one.
    fn check_told(&mut self, by: &By<'_>, before: &Snapshot, after: &Snapshot, told: &[Message]) {
        let Some(head) = after.queue.front() else { return };
        let asks = match by {
            By::Java { .. } => return,
            By::Try { field, .. } => *field == head,
            By::Release { .. } => false,
        };
        let changed = before.queue.front() != Some(head) || !before.holders.is_empty();
        let is_told = told.iter().any(|message| message.channel.ends_with(head.as_str()));
        let untold = after.holders.is_empty() && changed && !asks && !is_told;
        self.must(!untold, format!("{head} is not told that it is its turn"));
    }

    fn check_shape(&mut self, after: &Snapshot) {
        let unique: BTreeSet<&String> = after.queue.iter().collect();
        self.must(unique.len() == after.queue.len(), "one is queued twice");
        let same = unique.iter().copied().eq(after.timeouts.keys());
        self.must(same, format!("queue and timeouts differ: {after:?}"));
        let ghost = self.ended.iter().find(|field| after.names(field)).cloned();
        self.must(ghost.is_none(), format!("{ghost:?} has ended and is there"));
    }

    fn note_time(&mut self, after: &Snapshot, now: u64) {
        if after.queue.front() != self.head.0.as_ref() {
            self.head = (after.queue.front().cloned(), now);
        }
        if after.holders.is_empty() {
            self.free_since = if self.free_since == u64::MAX { now } else { self.free_since };
        } else {
            (self.free_since, self.hold_ends) = (u64::MAX, after.hold_ends.unwrap_or(u64::MAX));
        }
    }
}
