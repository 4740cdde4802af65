//! What has been seen so far, and what must hold after each script.

use std::collections::{BTreeMap, BTreeSet};

use edgelatch::protocol::reply::{Code, Reply};
use edgelatch::protocol::script::ScriptCall;

use super::super::given::timeouts;
use super::ours::{Stage, Taker};
use super::world::{JOB, World};
use crate::support::script_model::read_write::rules;

/// What has been seen so far. Those of ours by the number of their owner less one.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// With which token each was granted.
    granted: BTreeMap<usize, u64>,
    /// Of whom nothing may come back: Redis has ended it.
    ended: BTreeSet<usize>,
    /// The reads inside a write that has ended around them, and the token of that write.
    outlived: BTreeMap<usize, u64>,
    last_token: u64,
    last_write: u64,
    reads: u64,
    writes: u64,
    insides: u64,
    downgrades: u64,
    pub(super) java_reads: u64,
    pub(super) java_writes: u64,
    pub(super) lost: u64,
}

impl Seen {
    pub(super) const fn counts(&self) -> [u64; 7] {
        [
            self.reads,
            self.writes,
            self.insides,
            self.downgrades,
            self.java_reads,
            self.java_writes,
            self.lost,
        ]
    }
}

/// Somebody who relies on the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    Ours(usize),
    Java(usize),
}

impl World {
    /// A script has answered.
    pub(super) fn executed(
        &mut self,
        who: usize,
        call: &ScriptCall,
        reply: &Reply,
    ) -> Result<(), String> {
        let script = call.script().name;
        match (script, reply.code) {
            ("read_acquire" | "write_acquire", Code::Done) => self.granted(who, reply)?,
            ("read_acquire" | "write_acquire", Code::AlreadyYours)
                if self.seen.ended.contains(&who) =>
            {
                return Err(format!("{who} is granted again after its end"));
            }
            ("read_acquire", Code::AlreadyYours) => self.is_told(who, reply)?,
            ("read_acquire" | "write_acquire", Code::No) if call.args()[6] == "1" => {
                self.seen.ended.insert(who);
            }
            ("write_release", code) => {
                let first = self.seen.ended.insert(who);
                if code == Code::Done && first {
                    self.write_ends(who, reply)?;
                }
            }
            ("read_release", _) => drop(self.seen.ended.insert(who)),
            ("read_renew", Code::Done) => self.is_told(who, reply)?,
            _ => {}
        }
        let owner = &self.takers[who];
        if self.seen.ended.contains(&who) && self.model.pttl(&timeout(owner), self.now) != -2 {
            return Err(format!("a timeout key of {who} is left or has come back"));
        }
        Ok(())
    }

    fn granted(&mut self, who: usize, reply: &Reply) -> Result<(), String> {
        let token: u64 = reply.value.parse().unwrap();
        if self.seen.ended.contains(&who) || self.seen.granted.insert(who, token).is_some() {
            return Err(format!("{who} is granted twice, or after its end"));
        }
        let (seen, taker) = (&mut self.seen, &self.takers[who]);
        let inside = taker.parent.filter(|_| self.model.field(JOB, "mode") == Some("write"));
        let fair = match inside {
            // Inside what has just been lost and taken by somebody else nobody comes.
            Some(parent) => seen.granted.get(&parent) == Some(&token),
            None if taker.writes => token > seen.last_token,
            None => token > seen.last_write && token >= seen.last_token,
        };
        seen.last_token = seen.last_token.max(token);
        match inside {
            Some(_) => seen.insides += 1,
            None if taker.writes => {
                seen.last_write = token;
                seen.writes += 1;
            }
            None => seen.reads += 1,
        }
        if fair { Ok(()) } else { Err(format!("{who} is granted with the token {token}")) }
    }

    /// A read that stands was told its token.
    fn is_told(&self, who: usize, reply: &Reply) -> Result<(), String> {
        let token: u64 = reply.value.parse().unwrap();
        if self.seen.outlived.get(&who).is_some_and(|write| token <= *write) {
            return Err(format!("{who} has the token of a write that has ended"));
        }
        Ok(())
    }

    fn write_ends(&mut self, who: usize, reply: &Reply) -> Result<(), String> {
        let epoch: u64 = reply.value.parse().unwrap();
        // Those that the release names, and those that it does not know of.
        for (inner, taker) in self.takers.iter().enumerate() {
            if taker.parent == Some(who)
                && self.model.fields(JOB, self.now).any(|left| left == taker.field)
            {
                self.seen.downgrades += u64::from(self.takers[who].inner == Some(inner));
                self.seen.outlived.insert(inner, self.seen.granted[&who]);
            }
        }
        if epoch != 0 && epoch <= self.seen.last_token {
            return Err(format!("the epoch {epoch} after {who} has not risen"));
        }
        self.seen.last_token = self.seen.last_token.max(epoch);
        Ok(())
    }

    /// What must hold whenever a script has run.
    pub(super) fn check(&self, after: &str) -> Result<(), String> {
        let wrong = |what: String| Err(format!("after {after} at {}: {what}", self.now));
        let fields: BTreeSet<&str> = self.model.fields(JOB, self.now).collect();
        let ended = |who: &&usize| {
            let field = &self.takers[**who].field;
            fields.contains(field.as_str()) || self.wants(field)
        };
        if let Some(who) = self.seen.ended.iter().find(ended) {
            return wrong(format!("{who} has ended and something of it is there"));
        }
        let ours = |writes: bool| {
            let valid = move |taker: &Taker| taker.writes == writes && taker.is_valid(self.now);
            let all = self.takers.iter().enumerate();
            all.filter(move |(_, taker)| valid(taker)).map(|(who, _)| Holder::Ours(who))
        };
        let java = self.java.iter().enumerate();
        let writers: Vec<Holder> = ours(true)
            .chain(java.clone().filter(|(_, java)| java.writes_validly(self.now)).map(by_java))
            .collect();
        let readers: Vec<Holder> = ours(false)
            .chain(java.filter(|(_, java)| java.reads_validly(self.now)).map(by_java))
            .collect();
        if let Some(holder) =
            writers.iter().chain(&readers).find(|one| !self.is_there(**one, &fields))
        {
            return wrong(format!("{holder:?} relies on what is not there"));
        }
        if let [one, other, ..] = writers[..] {
            return wrong(format!("{one:?} and {other:?} both write"));
        }
        for writer in writers {
            if let Some(reader) = readers.iter().find(|reader| !self.is_inside(**reader, writer)) {
                return wrong(format!("{reader:?} reads while {writer:?} writes"));
            }
        }
        match self.tokens_of(&readers) {
            tokens if tokens.len() > 1 => wrong(format!("readers have the tokens {tokens:?}")),
            _ => Ok(()),
        }
    }

    fn wants(&self, field: &str) -> bool {
        self.model.text("el:{job}:want").is_some_and(|want| want == field)
    }

    fn is_there(&self, holder: Holder, fields: &BTreeSet<&str>) -> bool {
        match holder {
            Holder::Ours(who) => {
                let taker = &self.takers[who];
                let timed = taker.writes
                    || self.model.without == Some(rules::TIMEOUT_KEYS)
                    || self.model.pttl(&timeout(taker), self.now) != -2;
                timed && fields.contains(taker.field.as_str())
            }
            Holder::Java(who) => {
                let java = &self.java[who];
                let write = format!("{}:write", java.holder);
                (!java.reads_validly(self.now) || fields.contains(java.holder.as_str()))
                    && (!java.writes_validly(self.now) || fields.contains(write.as_str()))
            }
        }
    }

    fn is_inside(&self, reader: Holder, writer: Holder) -> bool {
        match (reader, writer) {
            (Holder::Ours(reader), Holder::Ours(writer)) => {
                self.takers[reader].parent == Some(writer)
            }
            (reader, writer) => reader == writer,
        }
    }

    /// The tokens of those readers who were not let in by a writer.
    fn tokens_of(&self, readers: &[Holder]) -> BTreeSet<u64> {
        let ours = readers.iter().filter_map(|holder| match holder {
            Holder::Ours(who) => Some(&self.takers[*who]),
            Holder::Java(_) => None,
        });
        let tokens =
            ours.filter(|taker| taker.parent.is_none()).filter_map(|taker| match taker.stage {
                Stage::Holding { token, .. } => Some(token),
                _ => None,
            });
        tokens.collect()
    }

    /// Long after the end only tokens are there.
    pub(super) fn nothing_is_left(&self) -> Result<(), String> {
        let tokens = ["el:{job}:epoch", "redisson_lock_token:{job}"];
        let left = self.model.dump(self.now);
        match left.iter().find(|(key, _)| !tokens.contains(&key.as_str())) {
            Some((key, entry)) => Err(format!("{key} is left: {entry:?}")),
            None => Ok(()),
        }
    }
}

fn by_java<T>((who, _): (usize, T)) -> Holder {
    Holder::Java(who)
}

fn timeout(taker: &Taker) -> String {
    format!("{}:{}:rwlock_timeout:1", timeouts(JOB), taker.field)
}
