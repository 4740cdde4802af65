//! The calls of values of a group: Redisson's `getMultiLock(group, values)`.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use super::{Extension, IdempotentCall, Topic, Try, WakePolicy};
use crate::error::InvalidOption;
use crate::name::{LockName, OwnerId, RequestId};
use crate::protocol::script::{Bound, Publish, ScriptCall, scripts};
use crate::protocol::{highwayhash, key};
use crate::timing::{PeerSkew, TOKEN_KEPT};

/// The calls of a set of values of one group, which are held all or none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupCalls {
    group: LockName,
    publish: Publish,
    /// Sorted, without duplicates.
    fields: Arc<[String]>,
    skew: PeerSkew,
}

impl GroupCalls {
    /// The largest number of values in one set, which one script acquires.
    pub const VALUES_MAX: usize = 1000;

    /// Creates the calls of these values of a group, in any order; duplicates count once.
    ///
    /// Values are bytes, as the group's other clients encode them. Text is plain UTF-8, for which
    /// Redisson's clients must use `StringCodec` for `getMultiLock`. Redisson's default codec,
    /// Kryo5, is not supported; a caller may pass values that it has encoded elsewhere as bytes.
    ///
    /// # Errors
    /// [`InvalidOption`] when there is no value, or more than [`VALUES_MAX`](Self::VALUES_MAX).
    pub fn new<V: AsRef<[u8]>>(
        group: LockName,
        values: impl IntoIterator<Item = V>,
        skew: PeerSkew,
        publish: Publish,
    ) -> Result<Self, InvalidOption> {
        // Sorted by insertion: a sort of the standard library would cost the npm package 4 kB.
        let mut fields: Vec<String> = Vec::new();
        for value in values {
            let field = highwayhash::field(value.as_ref());
            if let Err(place) = fields.binary_search(&field) {
                fields.insert(place, field);
            }
            if fields.len() > Self::VALUES_MAX {
                break;
            }
        }
        if (1..=Self::VALUES_MAX).contains(&fields.len()) {
            Ok(Self { group, publish, fields: fields.into(), skew })
        } else {
            Err(InvalidOption::new("values", "1 to 1000 values"))
        }
    }

    /// The group's name.
    pub const fn name(&self) -> &LockName {
        &self.group
    }

    /// The tolerated error of the clocks of Redisson's clients.
    pub(super) const fn skew(&self) -> Duration {
        self.skew.get()
    }

    /// The number by which a refusal or a loss names this value, from 1; `None` if it is not in the
    /// set.
    pub fn number_of(&self, value: impl AsRef<[u8]>) -> Option<usize> {
        self.fields.binary_search(&highwayhash::field(value.as_ref())).ok().map(|place| place + 1)
    }

    /// The fields in Redis that stand for the values, sorted.
    pub fn fields(&self) -> &[String] {
        &self.fields
    }

    fn with_fields(&self, call: ScriptCall) -> ScriptCall {
        self.fields.iter().fold(call, ScriptCall::arg)
    }

    /// All waiters of a client: a release of some values may serve any waiter of the group.
    pub(super) fn topic(&self) -> Topic {
        Topic::new(key::channel(&self.group), self.publish, WakePolicy::All)
    }

    pub(super) fn acquire(&self, attempt: &Try) -> ScriptCall {
        let Try { request, bound, owner, .. } = *attempt;
        let group = &self.group;
        let keys = vec![key::latch(group, owner), key::lock(group), key::token(group)];
        let call = ScriptCall::new(&scripts::GROUP_ACQUIRE, request, bound, self.publish, keys)
            .arg(owner.to_text())
            .ms(attempt.lease.get())
            .flag(attempt.last)
            .ms(TOKEN_KEPT)
            .ms(self.skew.get());
        self.with_fields(call)
    }

    pub(super) fn renew(&self, extension: &Extension) -> ScriptCall {
        let Extension { request, bound, owner, lease, token } = *extension;
        let keys = vec![key::latch(&self.group, owner), key::lock(&self.group)];
        let call = ScriptCall::new(&scripts::GROUP_RENEW, request, bound, self.publish, keys)
            .arg(owner.to_text())
            .ms(lease.get())
            .arg(token.to_text())
            .ms(self.skew.get());
        self.with_fields(call)
    }

    pub(super) fn release(&self, request: RequestId, bound: Bound, owner: OwnerId) -> ScriptCall {
        let group = &self.group;
        let keys = vec![key::latch(group, owner), key::lock(group), key::channel(group)];
        let call = ScriptCall::new(&scripts::GROUP_RELEASE, request, bound, self.publish, keys)
            .arg(owner.to_text());
        self.with_fields(call)
    }

    pub(super) fn force_release(&self) -> IdempotentCall {
        let keys = vec![key::lock(&self.group), key::channel(&self.group)];
        let call = IdempotentCall::new(
            &scripts::GROUP_FORCE_RELEASE,
            self.group.clone(),
            self.publish,
            keys,
        );
        self.fields.iter().fold(call, IdempotentCall::arg)
    }

    pub(super) fn inspect(&self, request: RequestId, owner: Option<OwnerId>) -> ScriptCall {
        let keys = vec![key::token(&self.group), key::lock(&self.group)];
        let call =
            ScriptCall::new(&scripts::GROUP_INSPECT, request, Bound::NONE, self.publish, keys)
                .arg(owner.map_or_else(String::new, OwnerId::to_text))
                .ms(self.skew.get());
        self.with_fields(call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn group<const N: usize>(values: [&str; N]) -> Result<GroupCalls, InvalidOption> {
        let name = LockName::parse("students").unwrap();
        GroupCalls::new(name, values, PeerSkew::DEFAULT, Publish::Plain)
    }

    #[test]
    fn values_are_a_set() {
        assert_eq!(group(["A", "B", "A"]), group(["B", "A"]));
        let calls = group(["student:001", "A"]).unwrap();
        assert_eq!(calls.fields(), ["7lfauXx93omNKgwMm0g5eQ", "DqvoYruF5eyLDrILcprmBw"]);
        assert_eq!((calls.number_of("student:001"), calls.number_of("C")), (Some(2), None));
    }

    #[test]
    fn no_value_and_too_many_are_refused() {
        assert_eq!(group([]).unwrap_err().option(), "values");
        let name = LockName::parse("students").unwrap();
        let many = |count: u32| {
            let values: Vec<_> = (0..count).map(u32::to_le_bytes).collect();
            GroupCalls::new(name.clone(), values, PeerSkew::DEFAULT, Publish::Plain)
        };
        assert!(many(1000).is_ok() && many(1001).is_err());
    }
}
