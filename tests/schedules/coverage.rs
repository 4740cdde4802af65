//! Counts the events of schedules: an invariant that holds because nothing happened proves nothing.

use std::collections::BTreeMap;

/// How often each event occurred.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage(BTreeMap<&'static str, u64>);

impl Coverage {
    pub(crate) fn count(&mut self, event: &'static str) {
        *self.0.entry(event).or_default() += 1;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (event, count) in &other.0 {
            *self.0.entry(event).or_default() += count;
        }
    }

    /// Fails unless each of these events occurred more than `threshold` times.
    pub(crate) fn assert_above(&self, threshold: u64, events: &[&str]) {
        for event in events {
            let count = self.0.get(event).copied().unwrap_or(0);
            assert!(count > threshold, "{count} {event}, not more than {threshold}: {self:?}");
        }
    }
}
