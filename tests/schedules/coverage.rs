//! Counts the events of schedules: an invariant that holds because nothing happened proves nothing.

use std::collections::BTreeMap;

/// How often each event occurred.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage(BTreeMap<&'static str, u64>);

impl Coverage {
    pub(crate) fn count(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (what, count) in &other.0 {
            *self.0.entry(what).or_default() += count;
        }
    }

    /// Fails unless each of these events occurred more often than `least` times.
    pub(crate) fn assert_above(&self, least: u64, all: &[&str]) {
        for what in all {
            let count = self.0.get(what).copied().unwrap_or(0);
            assert!(count > least, "{what} came up {count} times, not more than {least}: {self:?}");
        }
    }
}
