//! The measured libraries.

/// A library: its name in `tests/bench/subjects.mjs`, and in tables.
pub(super) struct Subject {
    pub(super) key: &'static str,
    pub(super) label: &'static str,
}

impl Subject {
    const fn new(key: &'static str, label: &'static str) -> Self {
        Self { key, label }
    }

    /// Whether it is Redisson, which runs in a JVM.
    pub(super) fn is_redisson(&self) -> bool {
        self.key == REDISSON.key
    }
}

pub(super) const EDGELATCH: Subject = Subject::new("edgelatch", "edgelatch");
const STREAM: Subject = Subject::new("edgelatch", "edgelatch, stream");
const POLLING: Subject = Subject::new("edgelatch-polling", "edgelatch, polling");
const FAIR: Subject = Subject::new("edgelatch-fair", "edgelatch, fair, stream");
pub(super) const UPSTASH: Subject = Subject::new("upstash", "@upstash/lock");
pub(super) const REDLOCK: Subject = Subject::new("redlock", "redlock (TCP)");
pub(super) const SEMAPHORE: Subject = Subject::new("redis-semaphore", "redis-semaphore (TCP)");
const REDISSON: Subject = Subject::new("redisson", "Redisson (TCP)");

/// The npm packages.
pub(super) const PACKAGES: [Subject; 4] = [EDGELATCH, UPSTASH, REDLOCK, SEMAPHORE];
/// The subjects of measurements with waiters.
pub(super) const WAITERS: [Subject; 7] =
    [STREAM, POLLING, FAIR, UPSTASH, REDLOCK, SEMAPHORE, REDISSON];

/// Returns the subjects' names for the head of a table.
pub(super) fn labels(subjects: &[Subject]) -> Vec<&'static str> {
    subjects.iter().map(|subject| subject.label).collect()
}
