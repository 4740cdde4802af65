//! Parses keys and channels back to names, for a gateway that checks the calls of its clients.

use alloc::vec::Vec;

use super::{
    CHANNEL, COUNT_DOWN_CHANNEL, FAIR_RW, FENCE, HELD_PERMITS, HOLDERS, HOLDS, OURS,
    PERMITS_CHANNEL, READ_TIMEOUT, RW_CHANNEL, latch, read_timeout,
};
use crate::name::{GuardKey, LockName, OwnerId};

/// Returns the owner, if the key is a latch of this name.
pub(crate) fn latch_owner(name: &LockName, key: &str) -> Option<OwnerId> {
    let (_, owner) = owned(key)?;
    OwnerId::parse(owner).filter(|owner| latch(name, *owner) == key)
}

/// Returns the owner, if the key is the timeout key of a read hold of this name.
pub(crate) fn read_timeout_owner(name: &LockName, key: &str) -> Option<OwnerId> {
    let (hold, _) = key.rsplit_once(READ_TIMEOUT)?;
    let (_, owner) = owned(hold)?;
    OwnerId::parse(owner).filter(|owner| read_timeout(name, *owner) == key)
}

/// Returns the names that the key may be a record of: two for a name that is only a hash tag, whose
/// keys are those of the name in its braces, except for the first.
pub(crate) fn record_names(key: &str) -> Vec<LockName> {
    let form = ours(key).and_then(|rest| rest.rsplit_once(':'));
    form.map_or_else(Vec::new, |(form, _)| names(form))
}

/// Returns the names that the key may have the held permits of.
pub(crate) fn held_permits_names(key: &str) -> Vec<LockName> {
    key.strip_suffix(HELD_PERMITS).map_or_else(Vec::new, names)
}

/// Returns the names that the key may have the holds of, as our owners have them on a semaphore.
pub(crate) fn holds_names(key: &str) -> Vec<LockName> {
    ours(key).and_then(|rest| rest.strip_suffix(HOLDS)).map_or_else(Vec::new, names)
}

/// Returns the names that the key may have the holders of, if it is that of a fair read-write lock.
pub(crate) fn fair_rw_lock_names(key: &str) -> Vec<LockName> {
    let form = ours(key).and_then(|rest| rest.strip_suffix(HOLDERS)?.strip_suffix(FAIR_RW));
    form.map_or_else(Vec::new, names)
}

/// Returns the guarded keys that the key may be the fence of.
pub(crate) fn fence_keys(key: &str) -> Vec<GuardKey> {
    let Some(form) = ours(key).and_then(|rest| rest.strip_suffix(FENCE)) else { return Vec::new() };
    let tagged = GuardKey::parse(form).ok().filter(GuardKey::is_tagged);
    let plain = in_braces(form).and_then(|key| GuardKey::parse(key).ok());
    plain.filter(|key| !key.is_tagged()).into_iter().chain(tagged).collect()
}

/// Returns the names that the channel may belong to. A channel that may be that of one waiter is
/// treated as such. The channel of an owner of a fair read-write lock is the text of its latch.
pub(crate) fn channel_names(channel: &str) -> Vec<LockName> {
    if let Some(rest) = channel.strip_prefix(COUNT_DOWN_CHANNEL) {
        let name = rest.strip_suffix('}').and_then(|name| LockName::parse(name).ok());
        return name.into_iter().collect();
    }
    let Some((prefix, form)) = channel.split_once(':') else { return Vec::new() };
    match prefix {
        CHANNEL => {
            let waiters = owned(form).map_or_else(Vec::new, |(form, _)| names(form));
            if waiters.is_empty() { names(form) } else { waiters }
        }
        OURS => owned(form).map_or_else(Vec::new, |(form, _)| names(form)),
        RW_CHANNEL | PERMITS_CHANNEL => names(form),
        _ => Vec::new(),
    }
}

/// Returns the names that have this key in addition to their first one. An object with this text as
/// its name would use that key.
pub(crate) fn beside(text: &str) -> Vec<LockName> {
    let readers = text.rsplit_once(READ_TIMEOUT).and_then(|(hold, _)| owned(hold));
    let readers = readers.map_or_else(Vec::new, |(form, _)| names(form));
    if readers.is_empty() { held_permits_names(text) } else { readers }
}

/// Returns the rest of a key of ours, after the common beginning.
fn ours(key: &str) -> Option<&str> {
    key.strip_prefix(OURS)?.strip_prefix(':')
}

/// Splits a text that ends with an owner, ours or one of Redisson's.
fn owned(text: &str) -> Option<(&str, &str)> {
    let (rest, number) = text.rsplit_once(':')?;
    let (form, uuid) = rest.rsplit_once(':')?;
    let is_owner = uuid.len() == 36 && number.bytes().all(|byte| byte.is_ascii_digit());
    text.get(form.len() + 1..).filter(|_| is_owner).map(|owner| (form, owner))
}

/// Returns the names that have this form in prefixes and suffixes.
fn names(form: &str) -> Vec<LockName> {
    let tagged = LockName::parse(form).ok().filter(LockName::is_tagged);
    let plain = in_braces(form).and_then(|name| LockName::parse(name).ok());
    plain.filter(|name| !name.is_tagged()).into_iter().chain(tagged).collect()
}

fn in_braces(form: &str) -> Option<&str> {
    form.strip_prefix('{')?.strip_suffix('}')
}

#[cfg(test)]
mod tests {
    use super::super::{
        channel, count_down_channel, fair_rw_holders, fence, held_permits, holds, permits_channel,
        record, rw_channel, waiter_channel,
    };
    use super::*;
    use crate::name::RequestId;
    use alloc::string::String;

    #[test]
    fn a_name_is_parsed_from_its_keys() {
        let owner = OwnerId::parse("00000000-0000-8000-8000-000000000000:12").unwrap();
        for text in ["app:a", "x{a}b", "{app:a}:é", "a:timeout", "{a}:timeout", "{app:a}"] {
            let name = LockName::parse(text).unwrap();
            let reads = |names: Vec<LockName>| assert!(names.contains(&name), "{text}: {names:?}");
            reads(record_names(&record(&name, RequestId::new(3))));
            reads(held_permits_names(&held_permits(&name)));
            reads(holds_names(&holds(&name)));
            reads(fair_rw_lock_names(&fair_rw_holders(&name)));
            reads(beside(&held_permits(&name)));
            reads(beside(&read_timeout(&name, owner)));
            for channel in [
                channel(&name),
                waiter_channel(&name, owner),
                latch(&name, owner),
                rw_channel(&name),
                permits_channel(&name),
                count_down_channel(&name),
            ] {
                reads(channel_names(&channel));
            }
            assert_eq!(latch_owner(&name, &latch(&name, owner)), Some(owner), "{text}");
            let timeout = read_timeout(&name, owner);
            assert_eq!(read_timeout_owner(&name, &timeout), Some(owner), "{text}");
            let key = GuardKey::parse(text).unwrap();
            assert!(fence_keys(&fence(&key)).contains(&key), "{text}");
        }
    }

    #[test]
    fn a_name_in_braces_shares_its_keys_and_nothing_else_is_read_twice() {
        let read = |names: Vec<LockName>| -> Vec<String> {
            names.iter().map(|name| name.as_str().into()).collect()
        };
        assert_eq!(read(holds_names("el:{a}:held")), ["a", "{a}"]);
        assert_eq!(read(holds_names("el:{a}b:held")), ["{a}b"]);
        // The channel of a waiter counts as its lock's, although a lock could have such a name.
        let waiter = "redisson_lock__channel:{a}:00000000-0000-8000-8000-000000000000:1";
        assert_eq!(read(channel_names(waiter)), ["a", "{a}"]);
        for foreign in
            ["", "a", "el:a", "el:{a}", "__keyspace@0__:a", "redisson_sc:a", "redisson_sc:{a"]
        {
            assert!(
                channel_names(foreign).is_empty() && holds_names(foreign).is_empty(),
                "{foreign}"
            );
            assert!(record_names(foreign).is_empty() && beside(foreign).is_empty(), "{foreign}");
        }
    }
}
