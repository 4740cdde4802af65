//! `parts/fair.lua`: the queue of a fair lock, and its head.

use super::{Run, ScriptModel, Value};

/// The rules of the protocol that a test may leave out, to show the purpose of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    SendNumber,
    Arrival,
    Room,
    Grace,
    Notify,
    Tombstone,
    GrantLatch,
    HandOverHold,
    HandOverPlace,
    HandOverTombstone,
    AbandonPrevious,
}

/// A fair lock's keys and times, as its scripts receive them.
pub(super) struct Queue<'a> {
    pub(super) run: &'a Run<'a>,
    pub(super) name: &'a str,
    pub(super) queue: &'a str,
    pub(super) timeouts: &'a str,
    pub(super) beats: &'a str,
    pub(super) arrivals: &'a str,
    pub(super) watch: &'a str,
    channel: &'a str,
    pub(super) alive: i64,
    pub(super) skew: i64,
    pub(super) short: i64,
    long: i64,
    pub(super) now: i64,
}

/// The record of the head.
struct Watch {
    since: i64,
    sent: i64,
    listened: bool,
}

const DAY: i64 = 86_400_000;
/// The number of dead heads that one call removes at most.
const EVICTED_MAX: usize = 128;

impl<'a> Queue<'a> {
    pub(super) fn read(run: &'a Run<'a>) -> Self {
        let time = |place: usize| run.args[place].parse().unwrap();
        Self {
            run,
            name: &run.keys[1],
            queue: &run.keys[2],
            timeouts: &run.keys[3],
            beats: &run.keys[4],
            arrivals: &run.keys[5],
            watch: &run.keys[6],
            channel: &run.keys[7],
            alive: time(5),
            skew: time(6),
            short: time(7),
            long: time(8),
            now: i64::try_from(run.now).unwrap(),
        }
    }

    pub(super) fn is_ours(field: &str) -> bool {
        field.as_bytes().get(8) == Some(&b'-') && field.as_bytes().get(14) == Some(&b'8')
    }
}

impl ScriptModel {
    pub(super) fn is_off(&self, rule: Rule) -> bool {
        self.without_fair == Some(rule)
    }

    pub(super) fn is_free(&self, queue: &Queue<'_>) -> bool {
        !self.keys.contains_key(queue.name)
    }

    pub(super) fn place(&self, queue: &Queue<'_>, field: &str) -> Option<usize> {
        self.list(queue.queue).iter().position(|other| other == field)
    }

    pub(super) fn leave(&mut self, queue: &Queue<'_>, field: &str) {
        self.change_list(queue.queue, |list| list.retain(|other| other != field));
        for key in [queue.timeouts, queue.beats, queue.arrivals] {
            self.remove_member(key, field);
        }
    }

    /// Writes a score to a sorted set of edgelatch's own, which expires.
    pub(super) fn put_score(&mut self, queue: &Queue<'_>, key: &str, field: &str, score: i64) {
        self.set_score(key, field, score);
        let life = queue.run.record_ttl(0) + u64::try_from(queue.alive).unwrap();
        self.extend_ttl(key, life, queue.run.now);
    }

    fn notify(&mut self, queue: &Queue<'_>, field: &str) -> bool {
        let channel = format!("{}:{field}", queue.channel);
        if !self.is_off(Rule::Notify) {
            self.publish_to_both(queue.run, &channel, "0");
        }
        self.has_receiver(queue.run, &channel)
    }

    /// Removes dead heads, notifies the remaining head, and returns it; and whether that head was
    /// not examined, since too many were dead.
    pub(super) fn fair_head(
        &mut self,
        queue: &Queue<'_>,
        me: Option<&str>,
        mut must: bool,
    ) -> (Option<String>, bool) {
        for _ in 0..EVICTED_MAX {
            let Some(head) = self.list(queue.queue).front().cloned() else { return (None, false) };
            if Some(head.as_str()) == me || self.lives(queue, &head, must) {
                return (Some(head), false);
            }
            self.change_list(queue.queue, |list| drop(list.pop_front()));
            self.remove_member(queue.timeouts, &head);
            must = true;
        }
        let head = self.list(queue.queue).front().cloned();
        let more = head.is_some() && head.as_deref() != me;
        (head, more)
    }

    fn lives(&mut self, queue: &Queue<'_>, head: &str, must: bool) -> bool {
        let (now, open) = (queue.now, self.is_free(queue));
        let score = self.score(queue.timeouts, head);
        let mut watch = self.watch(queue, head);
        if watch.since == 0 || now - watch.sent > queue.short {
            watch.since = now;
        }
        let due = must || now - watch.sent >= 1000;
        let (dead, score_to) = if Queue::is_ours(head) {
            let ends = self.score(queue.beats, head).unwrap_or_else(|| {
                self.put_score(queue, queue.beats, head, now + queue.alive);
                now + queue.alive
            });
            if ends > now && open && due {
                self.notify(queue, head);
                watch.sent = now;
            }
            let least = ends + queue.skew;
            (ends <= now, score.is_none_or(|score| score < least).then_some(least))
        } else {
            self.is_dead_foreign(queue, head, score, due, &mut watch)
        };
        if dead {
            return false;
        }
        if let Some(to) = score_to {
            self.set_score(queue.timeouts, head, to);
        }
        let Watch { since, sent, listened } = watch;
        let text = format!("{since} {sent} {} {head}", i64::from(listened));
        let ends_at = u64::try_from(now + 2 * queue.long).unwrap();
        self.put(queue.watch, Value::Text(text), Some(ends_at));
        true
    }

    /// F8 and F9: whether a waiter of Redisson's is dead, and what its score must be.
    fn is_dead_foreign(
        &mut self,
        queue: &Queue<'_>,
        head: &str,
        score: Option<i64>,
        due: bool,
        watch: &mut Watch,
    ) -> (bool, Option<i64>) {
        let now = queue.now;
        let low = score.is_none_or(|score| score < now + queue.long);
        let passed = score.is_none_or(|score| score <= now);
        let open = self.is_free(queue);
        if due && (open || low) {
            watch.listened = self.notify(queue, head);
            watch.sent = now;
        }
        let dead = if open {
            let grace = if watch.listened { queue.long } else { queue.short };
            !watch.listened && passed || now - watch.since >= grace
        } else {
            watch.since = 0;
            false
        };
        let to = match score {
            _ if watch.listened && low => Some(now + 2 * queue.long),
            None => Some(now + queue.short),
            Some(score) => (score > now + DAY).then_some(now + DAY),
        };
        (if self.is_off(Rule::Grace) { passed } else { dead }, to)
    }

    fn watch(&self, queue: &Queue<'_>, head: &str) -> Watch {
        let text = self.text(queue.watch).unwrap_or_default();
        let mut words = text.splitn(4, ' ');
        let mut number = || words.next().and_then(|word| word.parse().ok());
        match (number(), number(), number(), words.next()) {
            (Some(since), Some(sent), Some(listened), Some(who)) if who == head => {
                Watch { since, sent, listened: listened == 1 }
            }
            _ => Watch { since: queue.now, sent: 0, listened: false },
        }
    }
}
