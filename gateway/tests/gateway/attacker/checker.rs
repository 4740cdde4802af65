//! Checks that requests with a scoped token broke no rule, by the contents of Redis before and
//! after them.

use std::collections::{BTreeMap, BTreeSet};

use edgelatch_proto::protocol::scope::ObjectKind::{self, Guard, Latch, Lock, Permits, Semaphore};
use edgelatch_proto::protocol::scope::Right;
use test_support::redis::{Content, Stored};

use super::env::Snapshot;
use super::form::{Form, names};
use super::scope::Scope;
use super::victims::{JAVA, Victims};

const SECOND: u64 = 1000;
const DAY: u64 = 24 * 60 * 60 * SECOND;
/// The longest life of a request's record: the bound of a call, its window, the clock skew, the
/// timeout of a waiter, and a second.
const MEMORY: u64 = (690 + 60 + 60 + 10 + 1) * SECOND;
/// How far ahead of Redis' clock a token may be, in microseconds, with a second for tokens that
/// rise one by one.
const AHEAD: u64 = 61_000_000;
/// A second less than the timeout of a silent waiter of a fair lock.
const WAITER: u64 = 9 * SECOND;
/// The life of a silent waiter of a fair read-write lock.
const LIFE: u64 = 10 * SECOND;
/// The largest value of a guarded key, in bytes.
const VALUE_MAX: usize = 65_536;

/// Checks the effects of requests of one scope.
pub(crate) struct Checker<'a> {
    pub(crate) scope: &'a Scope,
    pub(crate) victims: &'a Victims,
    /// When the other clients had acquired their objects, by Redis' clock in milliseconds.
    pub(crate) since: u64,
}

/// The change of one key.
#[derive(Debug)]
struct Change<'a> {
    key: &'a str,
    old: Option<&'a Stored>,
    new: Option<&'a Stored>,
}

impl Change<'_> {
    /// Whether only the remaining time differs.
    fn is_passing_of_time(&self) -> bool {
        let lasting = |stored: &'_ Stored| (stored.value.clone(), stored.ends_at);
        self.old.map(lasting) == self.new.map(lasting)
    }
}

/// The object that a key belongs to, and the key's purpose.
struct Object {
    kind: ObjectKind,
    name: String,
    form: Form,
}

impl Checker<'_> {
    /// Returns an error for the first rule that was broken between two snapshots.
    pub(crate) fn check(&self, before: &Snapshot, after: &Snapshot) -> Result<(), String> {
        let has_ended = |old: &Stored| old.ends_at >= 0 && old.ends_at <= millis(after.now);
        let all: BTreeSet<&String> = before.keys.keys().chain(after.keys.keys()).collect();
        for key in all {
            let change = Change { key, old: before.keys.get(key), new: after.keys.get(key) };
            let is_over = change.new.is_none() && change.old.is_some_and(has_ended);
            if change.is_passing_of_time() || is_over {
                continue;
            }
            let Some((kind, name, form)) = self.scope.owner_of(key) else {
                return Err(format!("it is out of reach, but changed: {change:?}"));
            };
            let object = Object { kind, name, form };
            self.token(&change, &object)?;
            self.end(&change, &object, after)?;
            self.content(&change, &object, after)?;
            self.count(&change, &object, (before, after))?;
            self.holds(&change, &object, after)?;
        }
        Ok(())
    }

    /// Checks that no token falls, and none expires too soon.
    fn token(&self, change: &Change<'_>, object: &Object) -> Result<(), String> {
        let has_token = matches!(object.form, Form::Token | Form::Fence | Form::FairLast);
        let Some(old) = change.old.filter(|_| has_token) else { return Ok(()) };
        let is_kept = change.new.is_some_and(|new| {
            let is_as_long = new.ends_at < 0 || old.ends_at >= 0 && new.ends_at + 1 >= old.ends_at;
            number(new) >= number(old) && is_as_long
        });
        if is_kept { Ok(()) } else { Err(format!("a token fell, or ends sooner: {change:?}")) }
    }

    /// Checks that a key without an expiry belongs to an object in the token's `lasting`, and that
    /// every other key expires in time.
    fn end(&self, change: &Change<'_>, object: &Object, after: &Snapshot) -> Result<(), String> {
        let Some(new) = change.new else { return Ok(()) };
        let had = change.old.map_or(0, |old| old.ends_at);
        // The holds of a semaphore may live as long as the semaphore.
        let whole = after.keys.get(&object.name).filter(|_| object.form == Form::Holds);
        if self.scope.lasting.contains(&object.name) {
            return Ok(());
        }
        if new.ends_at < 0 {
            let is_fine = had < 0 || whole.is_some_and(|whole| whole.ends_at < 0);
            return if is_fine { Ok(()) } else { Err(format!("it has no end: {change:?}")) };
        }
        let latest = millis(after.now + self.longest(object) + 1);
        let is_fine = had < 0
            || new.ends_at <= latest.max(had + 1)
            || whole.is_some_and(|whole| new.ends_at <= whole.ends_at + 1);
        let late = new.ends_at - latest;
        if is_fine { Ok(()) } else { Err(format!("it ends {late} ms too late: {change:?}")) }
    }

    /// Returns the longest life of a key, in milliseconds.
    fn longest(&self, object: &Object) -> u64 {
        let Scope { max_lease, peer_skew, .. } = *self.scope;
        match (object.form, object.kind) {
            (Form::Bare, Lock) => max_lease + 2 * peer_skew + SECOND,
            (Form::Bare | Form::Token | Form::Holds | Form::Queue | Form::Seats, _) => DAY,
            (Form::Fence, _) => DAY + 60 * SECOND,
            (Form::ReadTimeout, _) => max_lease,
            (Form::Want, _) => 5 * SECOND,
            (Form::Watch, _) => 60 * SECOND,
            (Form::FairHolders, _) => max_lease + SECOND,
            (Form::FairQueue, _) => LIFE + SECOND,
            (Form::FairLast, _) => DAY,
            // A poll or grant writes the entry ahead by the life of a waiter, a renewal by a third
            // of its lease.
            (Form::Registry, _) => max_lease.max(LIFE) + (max_lease / 3).max(LIFE) + SECOND,
            (Form::Memory, _) => MEMORY.max(max_lease + SECOND),
        }
    }

    /// Checks that a value has the type and size of its kind, and that no hold in it lasts too
    /// long.
    fn content(
        &self,
        change: &Change<'_>,
        object: &Object,
        after: &Snapshot,
    ) -> Result<(), String> {
        let Some(new) = change.new else { return Ok(()) };
        let Scope { max_lease, peer_skew, .. } = *self.scope;
        let form = object.form;
        let is_of_its_kind = match (form, object.kind, &new.value) {
            (Form::Bare, Lock, Content::Hash(_)) => true,
            (Form::Bare, Semaphore | Permits | Latch, Content::Text(text)) => {
                text.parse::<i64>().is_ok()
            }
            (Form::Bare, Guard, Content::Text(text)) => text.len() <= VALUE_MAX,
            (Form::Bare, ..) => false,
            _ => true,
        };
        if !is_of_its_kind {
            return Err(format!("it is not of its kind: {change:?}"));
        }
        if form == Form::Registry {
            return self.registry(change, after);
        }
        let has_token = matches!(form, Form::Token | Form::Fence | Form::FairLast);
        if has_token && number(new) > after.now * 1000 + AHEAD {
            return Err(format!("a token is ahead: {change:?}"));
        }
        let latest = after.now + max_lease + peer_skew + 1;
        let ends: Vec<(&String, u64)> = match (&new.value, form) {
            (Content::Sorted(members), Form::Holds | Form::FairHolders) => {
                members.iter().map(|(member, score)| (member, *score as u64)).collect()
            }
            (Content::Hash(fields), Form::Bare) => {
                let ends = fields.iter().filter(|(field, _)| field.ends_with(":expire_time"));
                ends.map(|(field, end)| (field, end.parse().unwrap())).collect()
            }
            _ => Vec::new(),
        };
        let is_late = |(holder, end): &(&String, u64)| *end > latest && !self.is_theirs(holder);
        let late = ends.into_iter().find(is_late);
        late.map_or(Ok(()), |late| Err(format!("{late:?} is later than {latest}: {change:?}")))
    }

    /// Checks that only names of the token join a registry, and that no name leaves it while it is
    /// held.
    fn registry(&self, change: &Change<'_>, after: &Snapshot) -> Result<(), String> {
        let [old, new] =
            [change.old, change.new].map(|stored| stored.map(parts).unwrap_or_default());
        let is_foreign =
            |form: &&String| !names(form).iter().any(|name| self.scope.covers(Lock, name));
        if let Some(foreign) = new.keys().filter(|form| !old.contains_key(*form)).find(is_foreign) {
            return Err(format!("{foreign} was registered: {change:?}"));
        }
        let is_held = |form: &&String| {
            let holders = after.keys.get(&format!("el:{form}:frw:holders")).map(parts);
            let ends = holders.unwrap_or_default().into_values();
            ends.filter_map(|end| score(&end)).any(|end| end > after.now as f64)
        };
        match old.keys().filter(|form| !new.contains_key(*form)).find(is_held) {
            Some(held) => Err(format!("{held} left the registry: {change:?}")),
            None => Ok(()),
        }
    }

    /// Checks that latches, guarded values and the number of permits change only with the right for
    /// it.
    fn count(
        &self,
        change: &Change<'_>,
        object: &Object,
        (before, after): (&Snapshot, &Snapshot),
    ) -> Result<(), String> {
        let rights: &[Right] = match object.kind {
            Latch => &[Right::Count, Right::Manage],
            Guard => &[Right::Guard],
            Semaphore | Permits => &[Right::Manage],
            _ => return Ok(()),
        };
        let is_kept = match (object.kind, object.form) {
            (Semaphore | Permits, Form::Bare | Form::Holds) => {
                total(before, &object.name) == total(after, &object.name)
            }
            (_, Form::Bare) => change.old.map(|old| &old.value) == change.new.map(|new| &new.value),
            _ => true,
        };
        let is_covered = rights.iter().any(|right| self.scope.has(*right));
        if is_kept || is_covered { Ok(()) } else { Err(format!("a count changed: {change:?}")) }
    }

    /// Checks that no hold of another client ended or became shorter, unless the token has the
    /// right for it.
    fn holds(&self, change: &Change<'_>, object: &Object, after: &Snapshot) -> Result<(), String> {
        let right = if object.kind == Guard { Right::Guard } else { Right::Force };
        let is_waiter = matches!(object.form, Form::Queue | Form::Seats | Form::FairQueue);
        // Each script that reads the head of a queue changes its watch record.
        let is_over = object.form == Form::Watch || is_waiter && after.now > self.since + WAITER;
        let Some(old) = change.old.filter(|_| !self.scope.has(right) && !is_over) else {
            return Ok(());
        };
        let is_longer = |new: &Stored| {
            // A queue of Redisson's has no end. The first waiter of ours gives it one, a day after
            // its call, which each later call extends (N4).
            let is_kept_queue = is_waiter && new.ends_at >= millis(self.since + DAY);
            new.ends_at < 0 || old.ends_at >= 0 && new.ends_at + 1 >= old.ends_at || is_kept_queue
        };
        let new = change.new.filter(|new| is_longer(new)).map(parts).unwrap_or_default();
        for (place, value) in parts(old) {
            if [change.key, &place, &value].iter().any(|text| self.is_theirs(text)) {
                let is_higher = |new: &String| score(new) >= score(&value) && score(new).is_some();
                if !new.get(&place).is_some_and(|new| *new == value || is_higher(new)) {
                    return Err(format!(
                        "the hold of another client ended: {place:?} of {change:?}"
                    ));
                }
            }
        }
        Ok(())
    }

    fn is_theirs(&self, text: &str) -> bool {
        text.contains(JAVA) || text.contains(&self.victims.mark)
    }
}

/// Returns the parts of a value: a text, fields, elements, or members and their scores.
fn parts(stored: &Stored) -> BTreeMap<String, String> {
    match &stored.value {
        Content::Text(text) => BTreeMap::from([(String::new(), text.clone())]),
        Content::Hash(fields) => fields.clone(),
        Content::List(all) => all.iter().map(|one| (one.clone(), String::new())).collect(),
        Content::Sorted(members) => {
            members.iter().map(|(member, score)| (member.clone(), score.to_string())).collect()
        }
    }
}

/// Returns the fencing token of a token key, of a fence, or of a fair read-write lock.
fn number(stored: &Stored) -> u64 {
    let text = match &stored.value {
        Content::Text(text) => text.as_str(),
        Content::Hash(fields) => fields.get("t").map_or("", String::as_str),
        _ => "",
    };
    text.split(':').next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// Returns the number of permits, available and held.
fn total(snapshot: &Snapshot, name: &str) -> Option<i64> {
    let Content::Text(available) = &snapshot.keys.get(name)?.value else { return None };
    let form = if name.contains('{') { name.to_owned() } else { format!("{{{name}}}") };
    let held = [format!("el:{form}:held"), format!("{form}:timeout")].map(|set| {
        let members = snapshot.keys.get(&set).map(|stored| &stored.value);
        let Some(Content::Sorted(members)) = members else { return 0 };
        let weight =
            |member: &String| member.split_once('|').map_or(1, |(n, _)| n.parse().unwrap());
        members.keys().map(weight).sum::<i64>()
    });
    Some(available.parse::<i64>().ok()? + held.iter().sum::<i64>())
}

fn score(text: &str) -> Option<f64> {
    text.parse().ok()
}

fn millis(time: u64) -> i64 {
    i64::try_from(time).unwrap()
}
