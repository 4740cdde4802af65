//! The calls about a count-down latch. Nobody holds one: it is counted down, and asked for its
//! count.

use alloc::string::{String, ToString};
use alloc::vec;

use super::{LatchCount, OnceCall, Topic, Wakes};
use crate::name::{LockName, RequestId};
use crate::protocol::key;
use crate::protocol::script::{Bound, Publish, ScriptCall, scripts};

/// The calls about one count-down latch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CountDownLatchCalls {
    name: LockName,
    publish: Publish,
}

impl CountDownLatchCalls {
    /// The calls about the latch of this name.
    pub const fn new(name: LockName, publish: Publish) -> Self {
        Self { name, publish }
    }

    /// Its name.
    pub const fn name(&self) -> &LockName {
        &self.name
    }

    /// Counts down by one; answers what is left. An open latch has nothing to count.
    pub fn count_down(&self) -> OnceCall {
        self.change("down", String::new())
    }

    /// Closes an open latch with this count; a closed one answers no, and its count.
    pub fn try_set(&self, count: LatchCount) -> OnceCall {
        self.change("set", count.get().to_string())
    }

    /// Opens it, whatever its count is, which is answered; an open one answers no.
    pub fn delete(&self) -> OnceCall {
        self.change("delete", String::new())
    }

    /// Asks for its count. Open, and so 0, is only what Redis says.
    pub fn inspect(&self, request: RequestId) -> ScriptCall {
        let keys = vec![key::number(&self.name)];
        ScriptCall::new(&scripts::LATCH_INSPECT, request, Bound::NONE, self.publish, keys)
    }

    /// What those who wait before it can listen to.
    pub fn topic(&self) -> Topic {
        Topic::new(key::count_down_channel(&self.name), self.publish, Wakes::All)
    }

    fn change(&self, what: &str, count: String) -> OnceCall {
        let keys = vec![key::number(&self.name)];
        OnceCall::new(&scripts::LATCH_CHANGE, self.name.clone(), self.publish, keys)
            .arg(what)
            .arg(count)
            .arg(key::count_down_channel(&self.name))
    }
}
