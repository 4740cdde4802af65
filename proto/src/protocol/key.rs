//! Builds and parses keys and channels. No other module builds one.

mod reading;

pub(crate) use reading::{
    beside, channel_names, fair_rw_lock_names, fence_keys, held_permits_names, holds_names,
    latch_owner, read_timeout_owner, record_names,
};

use alloc::string::String;

use crate::name::{GuardKey, LockName, OwnerId, RequestId};

/// The hash of a lock: Redisson's, under the bare name.
pub(crate) fn lock(name: &LockName) -> String {
    name.as_str().into()
}

/// The last fencing token: the key of Redisson's `RFencedLock`.
pub(crate) fn token(name: &LockName) -> String {
    prefixed("redisson_lock_token", name)
}

/// The channel on which releases are published: Redisson's.
pub(crate) fn channel(name: &LockName) -> String {
    prefixed(CHANNEL, name)
}

/// The channel of one waiter of a fair lock: Redisson's.
pub(crate) fn waiter_channel(name: &LockName, owner: OwnerId) -> String {
    channel(name) + ":" + &owner.to_text()
}

/// The list of a fair lock's waiters: Redisson's.
pub(crate) fn queue(name: &LockName) -> String {
    prefixed("redisson_lock_queue", name)
}

/// The times until which Redisson considers the waiters alive: Redisson's.
pub(crate) fn timeouts(name: &LockName) -> String {
    prefixed("redisson_lock_timeout", name)
}

/// The times until which waiters of ours count as alive.
pub(crate) fn beats(name: &LockName) -> String {
    prefixed(OURS, name) + ":beat"
}

/// The arrival times of waiters of ours.
pub(crate) fn arrivals(name: &LockName) -> String {
    prefixed(OURS, name) + ":seat"
}

/// The last observation of the head of the queue.
pub(crate) fn watch(name: &LockName) -> String {
    prefixed(OURS, name) + ":watch"
}

/// The channel of both sides of a read-write lock: Redisson's.
pub(crate) fn rw_channel(name: &LockName) -> String {
    prefixed(RW_CHANNEL, name)
}

/// The field of a write hold: Redisson's.
pub(crate) fn write_field(owner: OwnerId) -> String {
    owner.to_text() + ":write"
}

/// The timeout key of the first entry of a read hold, whose TTL is that of the entry: Redisson's. A
/// hold of ours has one entry.
pub(crate) fn read_timeout(name: &LockName, owner: OwnerId) -> String {
    read_timeouts(name) + ":" + &owner.to_text() + FIRST_READ_TIMEOUT
}

/// The common beginning of the timeout keys of all readers, Redisson's included.
pub(crate) fn read_timeouts(name: &LockName) -> String {
    in_suffix_form(name)
}

/// Redisson's suffix form, which keeps a name's own hash tag.
fn in_suffix_form(name: &LockName) -> String {
    let text = name.as_str();
    if name.is_tagged() { text.into() } else { ["{", text, "}"].concat() }
}

/// The token that readers share. Ours.
pub(crate) fn epoch(name: &LockName) -> String {
    prefixed(OURS, name) + ":epoch"
}

/// The field of a waiting writer that goes first. Ours; it expires.
pub(crate) fn want(name: &LockName) -> String {
    prefixed(OURS, name) + ":want"
}

/// The number of a semaphore or a count-down latch: Redisson's, under the bare name.
pub(crate) fn number(name: &LockName) -> String {
    name.as_str().into()
}

/// The channel of a semaphore of either kind: Redisson's.
pub(crate) fn permits_channel(name: &LockName) -> String {
    prefixed(PERMITS_CHANNEL, name)
}

/// The held permits of a permit-expirable semaphore: Redisson's.
pub(crate) fn held_permits(name: &LockName) -> String {
    in_suffix_form(name) + HELD_PERMITS
}

/// The holds of our owners on a semaphore, which Redisson does not record.
pub(crate) fn holds(name: &LockName) -> String {
    prefixed(OURS, name) + HOLDS
}

/// The last fencing token of an object that has none in Redisson.
pub(crate) fn own_token(name: &LockName) -> String {
    prefixed(OURS, name) + ":token"
}

/// The channel of a count-down latch: Redisson's, which adds braces to any name. For a name with
/// braces of its own the channel is in another slot, so it is not passed as a key.
pub(crate) fn count_down_channel(name: &LockName) -> String {
    [COUNT_DOWN_CHANNEL, name.as_str(), "}"].concat()
}

/// The holders of a fair read-write lock.
pub(crate) fn fair_rw_holders(name: &LockName) -> String {
    prefixed(OURS, name) + FAIR_RW + HOLDERS
}

/// The waiting members of a fair read-write lock, with their tickets.
pub(crate) fn fair_rw_queue(name: &LockName) -> String {
    prefixed(OURS, name) + FAIR_RW + "queue"
}

/// The exclusive members of that queue.
pub(crate) fn fair_rw_writers(name: &LockName) -> String {
    prefixed(OURS, name) + FAIR_RW + "writers"
}

/// The times until which the waiters of a fair read-write lock count as alive.
pub(crate) fn fair_rw_beats(name: &LockName) -> String {
    prefixed(OURS, name) + FAIR_RW + "beats"
}

/// The last token and the last ticket of a fair read-write lock.
pub(crate) fn fair_rw_last(name: &LockName) -> String {
    prefixed(OURS, name) + FAIR_RW + "last"
}

/// The names of fair read-write locks in the namespace of `name`: those with the same hash tag.
pub(crate) fn fair_rw_names(name: &LockName) -> String {
    namespaced(name) + FAIR_RW + "names"
}

/// The times until which a hold or a wait of each of these names can last.
pub(crate) fn fair_rw_ends(name: &LockName) -> String {
    namespaced(name) + FAIR_RW + "ends"
}

/// The beginning of the keys of a namespace: our prefix, and the hash tag.
fn namespaced(name: &LockName) -> String {
    let text = name.as_str();
    let tag = text.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    [OURS, ":{", tag.map_or(text, |(tag, _)| tag), "}"].concat()
}

/// The latch of one owner, in the lock's slot. Ours; it expires.
pub(crate) fn latch(name: &LockName, owner: OwnerId) -> String {
    prefixed(OURS, name) + ":" + &owner.to_text()
}

/// The recorded reply of one request, in the lock's slot. Ours; it expires.
pub(crate) fn record(name: &LockName, request: RequestId) -> String {
    prefixed(OURS, name) + ":" + &request.to_text()
}

/// The fence of a guarded key: its newest write, in that key's slot. Ours.
pub(crate) fn fence(key: &GuardKey) -> String {
    in_prefix_form(OURS, key.as_str(), key.is_tagged()) + FENCE
}

/// The beginning of all keys of ours, without the colon.
const OURS: &str = "el";

const CHANNEL: &str = "redisson_lock__channel";
const RW_CHANNEL: &str = "redisson_rwlock";
const PERMITS_CHANNEL: &str = "redisson_sc";
const COUNT_DOWN_CHANNEL: &str = "redisson_countdownlatch__channel__{";
const HELD_PERMITS: &str = ":timeout";
/// The suffix of the first entry's timeout key; holds of ours have one entry.
const FIRST_READ_TIMEOUT: &str = ":rwlock_timeout:1";
const READ_TIMEOUT: &str = ":rwlock_timeout:";
const HOLDS: &str = ":held";
const FENCE: &str = ":fence";
const FAIR_RW: &str = ":frw:";
const HOLDERS: &str = "holders";

/// Redisson's prefix form, which keeps a name's own hash tag.
fn prefixed(prefix: &str, name: &LockName) -> String {
    in_prefix_form(prefix, name.as_str(), name.is_tagged())
}

fn in_prefix_form(prefix: &str, name: &str, is_tagged: bool) -> String {
    if is_tagged { [prefix, ":", name].concat() } else { [prefix, ":{", name, "}"].concat() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::slot::slot;
    use alloc::format;

    #[test]
    fn keys_are_those_of_redisson() {
        let plain = LockName::parse("myLock").unwrap();
        assert_eq!(lock(&plain), "myLock");
        assert_eq!(token(&plain), "redisson_lock_token:{myLock}");
        assert_eq!(channel(&plain), "redisson_lock__channel:{myLock}");
        let tagged = LockName::parse("x{a}b").unwrap();
        assert_eq!(token(&tagged), "redisson_lock_token:x{a}b");
        assert_eq!(channel(&tagged), "redisson_lock__channel:x{a}b");
    }

    #[test]
    fn a_queue_s_keys_are_redisson_s_and_beside_them() {
        let owner = OwnerId::new([0; 16], 1);
        for (name, form) in [("myLock", "{myLock}"), ("x{a}b", "x{a}b")] {
            let name = LockName::parse(name).unwrap();
            assert_eq!(queue(&name), format!("redisson_lock_queue:{form}"));
            assert_eq!(timeouts(&name), format!("redisson_lock_timeout:{form}"));
            assert_eq!(waiter_channel(&name, owner), channel(&name) + ":" + &owner.to_text());
            assert_eq!(beats(&name), format!("el:{form}:beat"));
            assert_eq!(arrivals(&name), format!("el:{form}:seat"));
            assert_eq!(watch(&name), format!("el:{form}:watch"));
        }
    }

    #[test]
    fn a_read_write_lock_s_keys_are_redisson_s_and_beside_them() {
        let (owner, field) = (OwnerId::new([0; 16], 1), "00000000-0000-8000-8000-000000000000:1");
        let plain = LockName::parse("myLock").unwrap();
        assert_eq!(rw_channel(&plain), "redisson_rwlock:{myLock}");
        assert_eq!(write_field(owner), format!("{field}:write"));
        assert_eq!(read_timeout(&plain, owner), format!("{{myLock}}:{field}:rwlock_timeout:1"));
        assert_eq!(epoch(&plain), "el:{myLock}:epoch");
        assert_eq!(want(&plain), "el:{myLock}:want");
        let tagged = LockName::parse("x{a}b").unwrap();
        assert_eq!(rw_channel(&tagged), "redisson_rwlock:x{a}b");
        assert_eq!(read_timeout(&tagged, owner), format!("x{{a}}b:{field}:rwlock_timeout:1"));
        assert_eq!(read_timeouts(&tagged), "x{a}b");
    }

    #[test]
    fn permits_and_latches_have_redissons_keys_and_a_record_of_ours() {
        for (name, form) in [("myLock", "{myLock}"), ("x{a}b", "x{a}b")] {
            let name = LockName::parse(name).unwrap();
            assert_eq!(number(&name), name.as_str());
            assert_eq!(permits_channel(&name), format!("redisson_sc:{form}"));
            assert_eq!(held_permits(&name), format!("{form}:timeout"));
            assert_eq!(holds(&name), format!("el:{form}:held"));
            assert_eq!(own_token(&name), format!("el:{form}:token"));
            let channel = format!("redisson_countdownlatch__channel__{{{}}}", name.as_str());
            assert_eq!(count_down_channel(&name), channel);
        }
    }

    #[test]
    fn a_fair_read_write_lock_shares_the_registry_of_its_hash_tag() {
        for (name, form, tag) in [("myLock", "{myLock}", "myLock"), ("x{a}b", "x{a}b", "a")] {
            let name = LockName::parse(name).unwrap();
            assert_eq!(fair_rw_holders(&name), format!("el:{form}:frw:holders"));
            assert_eq!(fair_rw_queue(&name), format!("el:{form}:frw:queue"));
            assert_eq!(fair_rw_writers(&name), format!("el:{form}:frw:writers"));
            assert_eq!(fair_rw_beats(&name), format!("el:{form}:frw:beats"));
            assert_eq!(fair_rw_last(&name), format!("el:{form}:frw:last"));
            assert_eq!(fair_rw_names(&name), format!("el:{{{tag}}}:frw:names"));
            assert_eq!(fair_rw_ends(&name), format!("el:{{{tag}}}:frw:ends"));
            assert_eq!(slot(&fair_rw_ends(&name)), slot(name.as_str()));
        }
    }

    #[test]
    fn a_fence_lies_in_the_slot_of_its_key() {
        for (text, expected) in [
            ("total", "el:{total}:fence"),
            ("{invoice:42}:total", "el:{invoice:42}:total:fence"),
            ("a{b}{c}}", "el:a{b}{c}}:fence"),
        ] {
            let key = GuardKey::parse(text).unwrap();
            assert_eq!(fence(&key), expected);
            assert_eq!(slot(&fence(&key)), slot(text), "{text}");
        }
    }

    #[test]
    fn keys_of_ours_lie_in_the_lock_s_slot() {
        let owner = OwnerId::new([0; 16], 1);
        let plain = LockName::parse("myLock").unwrap();
        assert_eq!(latch(&plain, owner), "el:{myLock}:00000000-0000-8000-8000-000000000000:1");
        let tagged = LockName::parse("x{a}b").unwrap();
        assert_eq!(record(&tagged, RequestId::new(255)), "el:x{a}b:00000000000000ff");
    }
}
