//! A Redisson client. It acquires a lock when it is free, by the rules of Redisson's script, and
//! releases it some time later.

use std::collections::BTreeMap;

use super::coverage::CoverPoint;
use super::engine::{EventKind, Sim};
use super::host_fault::HostFault;
use test_support::script_model::Value;

/// Its field in Redis: a UUID of version 4, as Redisson's are.
const FIELD: &str = "8743c9c0-0795-4907-87fd-6c719a6b4586:1";
const LOCK: &str = "a";
const CHANNEL: &str = "redisson_lock__channel:{a}";

impl Sim {
    /// `RLock.tryLock(0, time)`
    pub(crate) fn java_acquires(&self, place: usize, time: u64) {
        let now = self.now();
        let mut nodes = self.nodes.borrow_mut();
        let node = &mut nodes[place];
        let millis = node.millis(now);
        node.model.expire(millis);
        if now < node.unready_until || node.model.pttl(LOCK, millis) != -2 {
            return;
        }
        self.coverage.count(CoverPoint::Java, 1);
        let hash = BTreeMap::from([(FIELD.to_owned(), "1".to_owned())]);
        let lease = (time / 1_000).max(1);
        node.model.put(LOCK, Value::Hash(hash), Some(millis + lease));
        self.record_java_hold(time);
        self.after(time, EventKind::HostFault(HostFault::JavaReleases { node: place }));
    }

    /// `RLock.unlock()`
    pub(crate) fn java_releases(&self, place: usize) {
        let mut nodes = self.nodes.borrow_mut();
        let model = &mut nodes[place].model;
        if model.field(LOCK, FIELD).is_none() {
            return;
        }
        model.delete(LOCK);
        drop(nodes);
        self.publish(place, CHANNEL, "0");
    }
}
