//! The calls of a count-down latch. It has no holders: clients count it down and query its count.

use alloc::string::{String, ToString};
use alloc::vec;

use super::{IdempotentCall, LatchCount, Topic, Wakes};
use crate::name::{LockName, RequestId};
use crate::protocol::key;
use crate::protocol::script::{Bound, Publish, ScriptCall, scripts};

/// The calls of one count-down latch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CountDownLatchCalls {
    name: LockName,
    publish: Publish,
}

impl CountDownLatchCalls {
    /// Creates the calls of the latch `name`.
    pub const fn new(name: LockName, publish: Publish) -> Self {
        Self { name, publish }
    }

    /// The latch's name.
    pub const fn name(&self) -> &LockName {
        &self.name
    }

    /// Counts down by one; the reply has the remaining count. Does nothing on an open latch.
    pub fn count_down(&self) -> IdempotentCall {
        self.change("down", String::new())
    }

    /// Closes an open latch with this count, and is refused by a closed one. The reply has the
    /// count in both cases.
    pub fn try_set(&self, count: LatchCount) -> IdempotentCall {
        self.change("set", count.get().to_string())
    }

    /// Opens a closed latch; the reply has its last count. Is refused by an open one.
    pub fn delete(&self) -> IdempotentCall {
        self.change("delete", String::new())
    }

    /// Builds the query of the count. Only a reply of Redis proves that the latch is open, with a
    /// count of 0.
    pub fn inspect(&self, request: RequestId) -> ScriptCall {
        let keys = vec![key::number(&self.name)];
        ScriptCall::new(&scripts::LATCH_INSPECT, request, Bound::NONE, self.publish, keys)
    }

    /// The topic for waiters of the latch.
    pub fn topic(&self) -> Topic {
        Topic::new(key::count_down_channel(&self.name), self.publish, Wakes::All)
    }

    fn change(&self, what: &str, count: String) -> IdempotentCall {
        let keys = vec![key::number(&self.name)];
        IdempotentCall::new(&scripts::LATCH_CHANGE, self.name.clone(), self.publish, keys)
            .arg(what)
            .arg(count)
            .arg(key::count_down_channel(&self.name))
    }
}
