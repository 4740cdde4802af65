//! The records from which the invariants of a schedule are checked: grants and ends of owners,
//! tokens, leases, and idempotent requests.

use std::collections::{BTreeMap, BTreeSet};

use edgelatch_proto::protocol::reply::Reply;

use super::runner::Check;

/// Whether Redis recorded this reply at an earlier execution of the idempotent call, and now
/// repeats it.
pub(crate) const fn is_repeated(reply: &Reply) -> bool {
    reply.ms != 0
}

/// The owners of one object. Each scenario chooses the text that identifies an owner: its field in
/// Redis, or the key of its latch.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    /// The token of each owner that was granted.
    granted: BTreeMap<String, u64>,
    ended: BTreeSet<String>,
    /// The last token of each resource. The second number orders guarded writes with the same
    /// token; it is 0 for grants.
    tokens: BTreeMap<&'static str, (u64, usize)>,
}

impl Owners {
    /// Records a grant; an error if the owner was granted before or has ended.
    pub(crate) fn record_grant(&mut self, owner: &str, token: u64) -> Check {
        if self.ended.contains(owner) {
            return Err(format!("{owner} is granted after its end"));
        }
        match self.granted.insert(owner.to_owned(), token) {
            None => Ok(()),
            Some(_) => Err(format!("{owner} is granted twice")),
        }
    }

    /// The token of an owner's grant.
    pub(crate) fn token(&self, owner: &str) -> Option<u64> {
        self.granted.get(owner).copied()
    }

    /// Records the end of an owner: from now on Redis must store nothing of it. Returns false if it
    /// had ended before.
    pub(crate) fn record_end(&mut self, owner: &str) -> bool {
        self.ended.insert(owner.to_owned())
    }

    pub(crate) fn has_ended(&self, owner: &str) -> bool {
        self.ended.contains(owner)
    }

    pub(crate) fn ended(&self) -> impl Iterator<Item = &String> {
        self.ended.iter()
    }

    /// Records the token of a new grant or write; an error unless it is above the resource's last
    /// one.
    pub(crate) fn record_token(&mut self, resource: &'static str, token: (u64, usize)) -> Check {
        match self.tokens.insert(resource, token) {
            Some(last) if token <= last => {
                Err(format!("the token of {resource} does not rise: {token:?} after {last:?}"))
            }
            _ => Ok(()),
        }
    }
}

/// The leases on which holders rely: when each ends, by Redis' clock.
#[derive(Debug)]
pub(crate) struct Leases<K>(BTreeMap<K, u64>);

impl<K: Ord> Leases<K> {
    pub(crate) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Grants or extends a lease; never shortens it.
    pub(crate) fn extend(&mut self, holder: K, until: u64) {
        let end = self.0.entry(holder).or_default();
        *end = until.max(*end);
    }

    /// Removes the leases of the holders for which `keep` returns false.
    pub(crate) fn retain(&mut self, keep: impl Fn(&K) -> bool) {
        self.0.retain(|holder, _| keep(holder));
    }

    pub(crate) fn is_valid(&self, holder: &K, now: u64) -> bool {
        self.0.get(holder).is_some_and(|until| now < *until)
    }

    pub(crate) fn valid(&self, now: u64) -> impl Iterator<Item = &K> {
        self.0.iter().filter(move |(_, until)| now < **until).map(|(holder, _)| holder)
    }
}

/// Idempotent requests, by their ids: each must be executed at most once, and not after its client
/// knows the outcome.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// The code and value of each executed request.
    executed: BTreeMap<String, (i64, String)>,
    /// The requests whose outcome their client knows.
    known: BTreeSet<String>,
}

impl Requests {
    /// Records an execution, with the code and value of its reply; an error if it must not happen.
    pub(crate) fn record_execution(&mut self, id: &str, code: i64, value: &str) -> Check {
        if self.known.contains(id) {
            return Err("executed after its client knew the outcome".into());
        }
        match self.executed.insert(id.to_owned(), (code, value.to_owned())) {
            None => Ok(()),
            Some(_) => Err("executed twice".into()),
        }
    }

    /// Records that a client knows the outcome of one call, which it sent under these ids: the code
    /// and value of the reply, or `None` if the call was not executed. An error if that is not what
    /// Redis has executed.
    pub(crate) fn record_outcome(
        &mut self,
        sent: BTreeSet<String>,
        outcome: Option<(i64, String)>,
    ) -> Check {
        let executed: Vec<_> =
            sent.iter().filter_map(|id| self.executed.get(id)).cloned().collect();
        self.known.extend(sent);
        if executed == Vec::from_iter(outcome.clone()) {
            Ok(())
        } else {
            Err(format!("a client knows the outcome {outcome:?}, but Redis executed {executed:?}"))
        }
    }
}
