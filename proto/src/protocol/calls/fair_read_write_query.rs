//! The query of all holds and waits of the fair read-write locks of one namespace.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use crate::name::{LockName, RequestId};
use crate::protocol::key;
use crate::protocol::reply::{Code, Reply};
use crate::protocol::script::{Bound, Publish, ScriptCall, scripts};

/// The largest number of entries of one slice, and of names that it reads.
const ENTRIES_MAX: u32 = 256;
const NAMES_MAX: u32 = 64;

/// The query of one namespace: the names with one hash tag.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FairReadWriteQuery {
    name: LockName,
    publish: Publish,
}

impl FairReadWriteQuery {
    /// Creates the query of the namespace that contains `name`: that of its hash tag, or of the
    /// whole name if it has none.
    pub const fn new(name: LockName, publish: Publish) -> Self {
        Self { name, publish }
    }

    /// Builds the call for one slice: the first, or the one that follows the slice that returned
    /// `cursor`.
    pub fn slice(&self, request: RequestId, cursor: &str) -> ScriptCall {
        let keys = vec![key::fair_rw_names(&self.name), key::fair_rw_ends(&self.name)];
        ScriptCall::new(&scripts::FAIR_RW_QUERY, request, Bound::NONE, self.publish, keys)
            .arg(cursor)
            .number(ENTRIES_MAX)
            .number(NAMES_MAX)
    }
}

/// A part of the result of a [`FairReadWriteQuery`], as of one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QuerySlice {
    /// The cursor of the next slice; `None` after the last one.
    pub cursor: Option<String>,
    /// Holds and waits: names in lexicographic order, of each name first its holders, then its
    /// waiters in the order of the queue.
    pub entries: Vec<QueryEntry>,
}

/// A hold of a fair read-write lock, or a wait for one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QueryEntry {
    /// The lock's name. A name that consists of its hash tag is shown without braces: `{a}` and `a`
    /// are the same lock.
    pub name: String,
    /// Whether it is exclusive.
    pub is_exclusive: bool,
    /// Whether it is a hold.
    pub is_held: bool,
    /// A hash that identifies the acquisition. A renewal during the query may return an entry in
    /// two slices.
    pub id: String,
    /// The client id that the acquisition was made with.
    pub client_id: String,
    /// Until when Redis counts it as alive without a further request.
    pub remaining: Duration,
}

impl QuerySlice {
    /// Reads the reply to [`FairReadWriteQuery::slice`]; `None` if it has another form.
    pub fn read(reply: &Reply) -> Option<Self> {
        if reply.code != Code::Done {
            return None;
        }
        let mut lines = reply.value.split('\n');
        let cursor = lines.next().filter(|cursor| !cursor.is_empty()).map(String::from);
        let entries = lines.map(QueryEntry::read).collect::<Option<_>>()?;
        Some(Self { cursor, entries })
    }
}

impl QueryEntry {
    fn read(line: &str) -> Option<Self> {
        let mut fields = line.split('\t');
        let mut next = || fields.next();
        let (form, mode, kind, id, client, ms) =
            (next()?, next()?, next()?, next()?, next()?, next()?);
        let tag = form.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let entry = Self {
            name: tag.filter(|tag| !tag.contains(['{', '}'])).unwrap_or(form).into(),
            is_exclusive: flag(mode, "x", "s")?,
            is_held: flag(kind, "h", "w")?,
            id: id.into(),
            client_id: client.into(),
            remaining: Duration::from_millis(ms.parse().ok()?),
        };
        fields.next().is_none().then_some(entry)
    }
}

fn flag(found: &str, yes: &str, no: &str) -> Option<bool> {
    (found == yes || found == no).then_some(found == yes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(value: &str) -> Reply {
        Reply { code: Code::Done, value: value.into(), ms: 1, server_ms: 5, acknowledged: None }
    }

    #[test]
    fn a_slice_is_read_with_its_cursor() {
        let text = "{b}c\tw\t17\t\n{a}\tx\th\t0123456789abcdef\ttab 7\t250\n{b}c\ts\tw\tff\t\t3";
        let slice = QuerySlice::read(&reply(text)).unwrap();
        assert_eq!(slice.cursor.as_deref(), Some("{b}c\tw\t17\t"));
        let [held, waiting] = slice.entries.as_slice() else { panic!("{slice:?}") };
        assert_eq!((held.name.as_str(), held.client_id.as_str()), ("a", "tab 7"));
        assert!(held.is_exclusive && held.is_held && !waiting.is_exclusive && !waiting.is_held);
        assert_eq!(held.remaining, Duration::from_millis(250));
        assert_eq!((waiting.name.as_str(), waiting.client_id.as_str()), ("{b}c", ""));
        let last = QuerySlice::read(&reply("")).unwrap();
        assert_eq!((last.cursor, last.entries.len()), (None, 0));
    }

    #[test]
    fn a_reply_of_another_form_is_no_slice() {
        for text in ["\na", "\na\tx\th\t0\tc\t-1", "\na\ty\th\t0\tc\t1", "\na\tx\th\t0\tc\t1\t2"] {
            assert_eq!(QuerySlice::read(&reply(text)), None, "{text}");
        }
        let refused = Reply { code: Code::No, ..reply("") };
        assert_eq!(QuerySlice::read(&refused), None);
    }
}
