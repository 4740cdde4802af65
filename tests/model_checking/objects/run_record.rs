//! The record of one run by an observer of all scripts: a part of the model's state.

use std::collections::BTreeSet;
use std::sync::Arc;

use edgelatch_proto::protocol::reply::RespValue;
use edgelatch_proto::protocol::script::ScriptCall;

use super::plan::{NAME, latch_of, owner_of};
use test_support::script_model::{ScriptModel, holds};

/// The keys of a fair lock.
pub(crate) const QUEUE: &str = "redisson_lock_queue:{lock}";
pub(crate) const TIMEOUTS: &str = "redisson_lock_timeout:{lock}";
pub(crate) const HEARTBEATS: &str = "el:{lock}:beat";
pub(crate) const ARRIVALS: &str = "el:{lock}:seat";

/// The keys of a fair read-write lock.
pub(crate) const FAIR_RW_HOLDERS: &str = "el:{lock}:frw:holders";
pub(crate) const FAIR_RW_QUEUE: &str = "el:{lock}:frw:queue";
pub(crate) const FAIR_RW_WRITERS: &str = "el:{lock}:frw:writers";
pub(crate) const FAIR_RW_BEATS: &str = "el:{lock}:frw:beats";

/// The owners in a queue, in its order.
pub(crate) fn waiters(redis: &ScriptModel) -> Vec<&str> {
    let mut waiters = Vec::from_iter(redis.list(QUEUE).iter().map(String::as_str));
    let mut members = Vec::from_iter(redis.members(FAIR_RW_QUEUE));
    members.sort_by_key(|(_, ticket)| *ticket);
    waiters.extend(members.into_iter().map(|(member, _)| owner_of_member(member)));
    waiters
}

/// The owner of a holder or a waiter of a fair read-write lock: `<mode><owner>|<client id>`.
pub(crate) fn owner_of_member(member: &str) -> &str {
    member[1..].split('|').next().unwrap()
}

/// The events of one run so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct RunRecord {
    /// Owner and token of each grant, in order.
    pub(crate) grants: Vec<(Arc<str>, u64)>,
    /// The owners that a release, an abandon or a last try has ended. For permits with ids, the
    /// ids.
    pub(crate) ended: BTreeSet<Arc<str>>,
    /// The owners in the queue, in order of arrival.
    queued: Vec<Arc<str>>,
    pub(crate) overtaken: bool,
    pub(crate) copy_had_effect: bool,
    /// The results of idempotent calls.
    pub(crate) done: Vec<Done>,
    /// The reads that outlived a released write around them.
    pub(crate) outlived: Vec<Outlived>,
    /// Whether a reply gave such a read a token no newer than that write's, after the write had
    /// ended.
    pub(crate) returned_ended_write: bool,
    /// Whether the latch was open when a client inspected it.
    pub(crate) found_open: bool,
}

/// A read hold that still exists when the write around it is released.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Outlived {
    pub(crate) reader: Arc<str>,
    /// The token of that write.
    pub(crate) write: u64,
    /// Whether the release named this read.
    pub(crate) is_named: bool,
}

/// The first execution of an idempotent call: the client, the reply, and the change of the number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Done {
    pub(crate) number: u8,
    pub(crate) code: i64,
    pub(crate) value: String,
    pub(crate) change: i64,
}

/// One execution of a script.
pub(crate) struct Executed<'a> {
    pub(crate) number: u8,
    pub(crate) script: &'a ScriptCall,
    pub(crate) name: &'static str,
    pub(crate) code: i64,
    pub(crate) value: &'a str,
    pub(crate) ms: i64,
    pub(crate) before: &'a ScriptModel,
    pub(crate) after: &'a ScriptModel,
    now: u64,
}

impl<'a> Executed<'a> {
    pub(crate) fn new(
        number: u8,
        script: &'a ScriptCall,
        cells: &'a [RespValue],
        [before, after]: [&'a ScriptModel; 2],
        now: u64,
    ) -> Self {
        let [RespValue::Int(code), RespValue::Text(value), RespValue::Int(ms), ..] = cells else {
            panic!("a reply begins with a number, a text and a number")
        };
        let name = script.script().name;
        Self { number, script, name, code: *code, value, ms: *ms, before, after, now }
    }

    pub(crate) fn owner(&self) -> &'a str {
        owner_of(self.script)
    }

    pub(crate) fn acquires(&self) -> bool {
        self.name.ends_with("_acquire")
    }

    pub(crate) fn releases(&self) -> bool {
        self.name.ends_with("_release")
    }

    /// Whether it is a call of a waiter in a queue.
    pub(crate) fn polls(&self) -> bool {
        matches!(self.name, "fair_acquire" | "fair_rw_acquire")
    }

    /// Whether this owner had a hold before, which a takeover hands over.
    pub(crate) fn had_hold(&self, owner: &str) -> bool {
        let members = self.before.members(FAIR_RW_HOLDERS);
        self.before.field(NAME, owner).is_some()
            || members.keys().any(|member| owner_of_member(member) == owner)
    }

    /// Whether this was the first execution of an idempotent call: a repeated result has `ms` 1.
    pub(crate) fn is_first_execution(&self) -> bool {
        self.name.ends_with("_change") && self.code >= 0 && self.ms == 0
    }

    /// The earlier owner whose place or hold this call takes over.
    pub(crate) fn previous(&self) -> Option<&'a str> {
        let place = match self.name {
            "fair_acquire" => 14,
            "fair_release" => 9,
            "fair_rw_acquire" => 12,
            "fair_rw_release" => 6,
            _ => return None,
        };
        let owner = Some(self.arg(place)).filter(|owner| !owner.is_empty())?;
        Some(if self.name.starts_with("fair_rw") { owner_of_member(owner) } else { owner })
    }

    /// Whether a newer poll of the same owner was executed before.
    pub(crate) fn is_stale(&self) -> bool {
        let latch = self.before.text(&self.script.keys()[0]);
        let newest =
            latch.and_then(|latch| latch.strip_prefix('w')?.split(',').next()?.parse().ok());
        let number: u64 = self.arg(9).parse().unwrap();
        newest.is_some_and(|newest| number <= newest)
    }

    fn arg(&self, place: usize) -> &'a str {
        &self.script.args()[place]
    }

    fn is_last_try(&self) -> bool {
        match self.name {
            "fair_acquire" => self.arg(11) == "1",
            "fair_rw_acquire" => self.arg(5) == "last",
            _ => self.arg(6) == "1",
        }
    }

    fn is_bounded(&self) -> bool {
        !self.arg(1).is_empty()
    }

    /// The names under which Redis keeps the owner's hold: the owner field, or the ids of its
    /// permits.
    fn marks(&self) -> Vec<Arc<str>> {
        match self.name {
            "permits_acquire" => ids(&self.script.args()[9..]),
            "permits_release" => ids(&self.script.args()[4..]),
            _ => vec![self.owner().into()],
        }
    }

    fn change(&self) -> i64 {
        match (self.arg(5), self.code) {
            ("down", 1) => -1,
            ("set" | "add", 1) => self.arg(6).parse().unwrap(),
            _ => 0,
        }
    }
}

impl RunRecord {
    /// Records a script's execution and its reply.
    pub(crate) fn executed(&mut self, run: &Executed<'_>) {
        self.returned_ended_write |= self.returns_ended_write(run);
        if run.acquires() {
            self.acquired(run);
        } else if run.releases() {
            self.ended.extend(run.marks());
            self.ended.extend(run.previous().map(Arc::from));
            self.record_released_write(run);
        } else if run.is_first_execution() {
            let (number, code, value) = (run.number, run.code, run.value.to_owned());
            self.done.push(Done { number, code, value, change: run.change() });
        } else if run.name == "latch_inspect" {
            self.found_open |= run.before.number(NAME).unwrap_or(0) <= 0;
        }
        let Self { queued, ended, .. } = self;
        queued.retain(|owner| !ended.contains(owner));
    }

    fn acquired(&mut self, run: &Executed<'_>) {
        if run.polls() {
            self.polled(run);
        }
        match run.code {
            1 => self.grants.push((run.owner().into(), run.value.parse().unwrap())),
            // Without a bound, a later attempt of the same last try may outlive the tombstone: then
            // only the abandon ends the owner.
            0 if run.is_last_try() && run.is_bounded() => self.ended.extend(run.marks()),
            _ => {}
        }
    }

    /// Records a call of a waiter in a queue.
    fn polled(&mut self, run: &Executed<'_>) {
        let owner = run.owner();
        self.copy_had_effect |= run.is_stale() && run.before != run.after;
        if let Some(previous) = run.previous().filter(|_| (0..=2).contains(&run.code)) {
            let is_new = !self.queued.iter().any(|other| **other == *owner);
            if let Some(place) = self.queued.iter_mut().find(|other| ***other == *previous)
                && is_new
            {
                *place = owner.into();
            }
            self.ended.insert(previous.into());
        }
        for other in waiters(run.after) {
            if !self.queued.iter().any(|known| **known == *other) {
                self.queued.push(other.into());
            }
        }
        if run.code == 1 {
            self.overtaken |= self.overtakes(run);
            self.queued.retain(|other| **other != *owner);
        }
    }

    /// Whether the grant passes over a waiter that came earlier, is alive, and still waits.
    fn overtakes(&self, run: &Executed<'_>) -> bool {
        // A hold that was handed over had been granted to its waiter before.
        let handed_over = run.previous().is_some_and(|previous| run.had_hold(previous));
        let steals = run.name == "fair_rw_acquire" && run.arg(5) == "steal";
        let now = i64::try_from(run.now).unwrap();
        // Of a fair read-write lock, only a waiter of a mode that the grant excludes.
        let is_exclusive = |member: &str| member.starts_with('x');
        let beats = run.before.members(FAIR_RW_BEATS);
        let lives = |other: &str| {
            run.before.score(HEARTBEATS, other).is_some_and(|ends| ends > now)
                || beats.iter().any(|(member, ends)| {
                    owner_of_member(member) == other
                        && *ends > now
                        && (is_exclusive(member) || is_exclusive(run.arg(4)))
                })
        };
        let mut earlier = self.queued.iter().take_while(|other| ***other != *run.owner());
        !handed_over && !steals && earlier.any(|other| lives(other) && !self.ended.contains(other))
    }

    /// Records the reads that continue after the release of a write.
    fn record_released_write(&mut self, run: &Executed<'_>) {
        let granted = self.grants.iter().find(|(owner, _)| **owner == *run.owner());
        let Some((_, write)) = granted.filter(|_| run.name == "write_release" && run.code == 1)
        else {
            return;
        };
        let known = run.script.keys().get(6);
        for reader in run.after.fields(NAME, run.now).filter(|field| *field != "mode") {
            // A repeated reply is about the same end.
            if !self.outlived.iter().any(|outlived| *outlived.reader == *reader) {
                let is_named = known.is_some_and(|latch| *latch == latch_of(reader));
                self.outlived.push(Outlived { reader: reader.into(), write: *write, is_named });
            }
        }
    }

    fn returns_ended_write(&self, run: &Executed<'_>) -> bool {
        let has_ended = |token: u64| {
            let mut outlived = self.outlived.iter();
            outlived.any(|outlived| *outlived.reader == *run.owner() && token <= outlived.write)
        };
        let returns_token = matches!((run.name, run.code), ("read_renew", 1) | ("read_acquire", 2));
        returns_token && run.value.parse().is_ok_and(has_ended)
    }
}

fn ids(args: &[String]) -> Vec<Arc<str>> {
    args.iter().map(|hex| holds::raw(hex).into()).collect()
}
