//! The only place where a key or a channel is spelt.

use alloc::format;
use alloc::string::String;

use crate::name::{LockName, OwnerId, RequestId};

/// The hash that is the lock: Redisson's, under the bare name.
pub(crate) fn lock(name: &LockName) -> String {
    name.as_str().into()
}

/// The last fencing token: the key of Redisson's `RFencedLock`.
pub(crate) fn token(name: &LockName) -> String {
    prefixed("redisson_lock_token", name)
}

/// The channel on which a release is told: Redisson's.
pub(crate) fn channel(name: &LockName) -> String {
    prefixed("redisson_lock__channel", name)
}

/// The grant latch of one owner: ours alone, in the lock's slot, gone by itself.
pub(crate) fn latch(name: &LockName, owner: &OwnerId) -> String {
    format!("{}:{}", prefixed(OURS, name), owner.as_str())
}

/// The recorded answer of one request: ours alone, in the lock's slot, gone by itself.
pub(crate) fn record(name: &LockName, request: RequestId) -> String {
    format!("{}:{}", prefixed(OURS, name), request.to_text())
}

/// Where all keys of ours begin.
const OURS: &str = "el";

/// Redisson's prefix form, which keeps a name's own hash tag.
fn prefixed(prefix: &str, name: &LockName) -> String {
    let name_text = name.as_str();
    if name.is_tagged() {
        format!("{prefix}:{name_text}")
    } else {
        format!("{prefix}:{{{name_text}}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_spelt_as_redisson_spells_them() {
        let plain = LockName::parse("myLock").unwrap();
        assert_eq!(lock(&plain), "myLock");
        assert_eq!(token(&plain), "redisson_lock_token:{myLock}");
        assert_eq!(channel(&plain), "redisson_lock__channel:{myLock}");
        let tagged = LockName::parse("x{a}b").unwrap();
        assert_eq!(token(&tagged), "redisson_lock_token:x{a}b");
        assert_eq!(channel(&tagged), "redisson_lock__channel:x{a}b");
    }

    #[test]
    fn keys_of_ours_lie_in_the_lock_s_slot() {
        let owner = OwnerId::new([0; 16], 1);
        let plain = LockName::parse("myLock").unwrap();
        assert_eq!(latch(&plain, &owner), "el:{myLock}:00000000-0000-8000-8000-000000000000:1");
        let tagged = LockName::parse("x{a}b").unwrap();
        assert_eq!(record(&tagged, RequestId::new(255)), "el:x{a}b:00000000000000ff");
    }
}
