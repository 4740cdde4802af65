//! Limits how many names a client uses in a day. Redis keeps the last fencing token of each locked
//! name for a day.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long Redis keeps the last fencing token of a name.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The names that each client, or each address, has used. Stores only hashes of clients and names,
/// keyed by this process.
pub(super) struct Names {
    max: usize,
    hasher: RandomState,
    days: Mutex<HashMap<u64, Day>>,
}

/// A day of one client, which begins with its first name.
struct Day {
    began: Instant,
    names: HashSet<u64>,
}

impl Names {
    /// Creates a record that allows each client `max` names in a day.
    pub(super) fn new(max: usize) -> Self {
        Self { max, hasher: RandomState::new(), days: Mutex::default() }
    }

    /// Counts names, or returns the time after which the client may use new ones. A name counts
    /// once a day.
    pub(super) fn take(
        &self,
        client: &impl Hash,
        names: &[String],
        now: Instant,
    ) -> Result<(), Duration> {
        let mut days = self.days.lock().unwrap_or_else(PoisonError::into_inner);
        let day = days.entry(self.hasher.hash_one(client)).or_insert_with(|| Day::new(now));
        if day.age(now) >= DAY {
            *day = Day::new(now);
        }
        for name in names {
            let name = self.hasher.hash_one(name);
            if day.names.len() >= self.max && !day.names.contains(&name) {
                return Err(DAY.saturating_sub(day.age(now)));
            }
            day.names.insert(name);
        }
        Ok(())
    }

    /// Drops the records of clients whose day is over.
    pub(super) fn remove_idle(&self, now: Instant) {
        let mut days = self.days.lock().unwrap_or_else(PoisonError::into_inner);
        days.retain(|_, day| day.age(now) < DAY);
    }
}

impl Day {
    fn new(now: Instant) -> Self {
        Self { began: now, names: HashSet::new() }
    }

    fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.began)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(names: &[&str]) -> Vec<String> {
        names.iter().copied().map(str::to_owned).collect()
    }

    #[test]
    fn a_client_uses_no_more_names_in_a_day() {
        let names = Names::new(2);
        let begin = Instant::now();
        let later = begin + DAY / 4;
        assert_eq!(names.take(&"one", &texts(&["a", "b", "a"]), begin), Ok(()));
        assert_eq!(names.take(&"one", &texts(&["b", "c"]), later), Err(DAY / 4 * 3));
        assert_eq!(names.take(&"one", &texts(&["a", "b"]), later), Ok(()));
        assert_eq!(names.take(&"other", &texts(&["c", "d"]), later), Ok(()));
        assert_eq!(names.take(&"one", &texts(&["c", "d"]), begin + DAY), Ok(()));
        assert_eq!(names.take(&"one", &texts(&["a"]), begin + DAY), Err(DAY));
    }

    #[test]
    fn a_client_without_names_for_a_day_is_removed() {
        let names = Names::new(2);
        let begin = Instant::now();
        assert_eq!(names.take(&"one", &texts(&["a", "b"]), begin), Ok(()));
        names.remove_idle(begin + DAY / 2);
        assert!(names.take(&"one", &texts(&["c"]), begin + DAY / 2).is_err());
        names.remove_idle(begin + DAY);
        assert!(names.days.lock().unwrap().is_empty());
    }
}
