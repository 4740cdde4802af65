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

    /// Counts names for a client here and for its address in `addresses`. If one of the two may use
    /// no further names, counts none for either, and returns the time after which it may. A name
    /// counts once a day.
    pub(super) fn take(
        &self,
        client: &impl Hash,
        (addresses, address): (&Self, &impl Hash),
        names: &[String],
        now: Instant,
    ) -> Result<(), Duration> {
        let mut of_clients = self.days.lock().unwrap_or_else(PoisonError::into_inner);
        let mut of_addresses = addresses.days.lock().unwrap_or_else(PoisonError::into_inner);
        let (day, fresh) = self.fresh(&mut of_clients, client, names, now)?;
        let (shared, shared_fresh) = addresses.fresh(&mut of_addresses, address, names, now)?;
        day.names.extend(fresh);
        shared.names.extend(shared_fresh);
        Ok(())
    }

    /// Returns the day of `user`, and the hashes of the names that it has not used in it; fails if
    /// it may not use all of them.
    fn fresh<'d>(
        &self,
        days: &'d mut HashMap<u64, Day>,
        user: &impl Hash,
        names: &[String],
        now: Instant,
    ) -> Result<(&'d mut Day, HashSet<u64>), Duration> {
        let day = days.entry(self.hasher.hash_one(user)).or_insert_with(|| Day::new(now));
        if day.age(now) >= DAY {
            *day = Day::new(now);
        }
        let hashes = names.iter().map(|name| self.hasher.hash_one(name));
        let fresh: HashSet<u64> = hashes.filter(|name| !day.names.contains(name)).collect();
        if !fresh.is_empty() && day.names.len() + fresh.len() > self.max {
            return Err(DAY.saturating_sub(day.age(now)));
        }
        Ok((day, fresh))
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
        let (names, many) = (Names::new(2), Names::new(100));
        let take = |client: &str, used: &[&str], now| {
            names.take(&client, (&many, &"address"), &texts(used), now)
        };
        let begin = Instant::now();
        let later = begin + DAY / 4;
        assert_eq!(take("one", &["a", "b", "a"], begin), Ok(()));
        assert_eq!(take("one", &["b", "c"], later), Err(DAY / 4 * 3));
        assert_eq!(take("one", &["a", "b"], later), Ok(()));
        assert_eq!(take("other", &["c", "d"], later), Ok(()));
        assert_eq!(take("one", &["c", "d"], begin + DAY), Ok(()));
        assert_eq!(take("one", &["a"], begin + DAY), Err(DAY));
    }

    /// A fixed bug: a request that its address's limit refused used up the client's names of a day.
    #[test]
    fn a_refused_request_uses_no_names_of_its_client_and_none_of_its_address() {
        let (clients, addresses) = (Names::new(2), Names::new(3));
        let now = Instant::now();
        let take = |client: &str, address: &str, used: &[&str]| {
            clients.take(&client, (&addresses, &address), &texts(used), now).is_ok()
        };
        assert!(take("one", "office", &["a", "b"]));
        // Beyond the client's limit, with a name that it has, and one that is still free.
        assert!(!take("one", "office", &["a", "c"]));
        assert!(!take("two", "office", &["c", "d"]), "the address has one name left");
        assert!(take("two", "home", &["e", "f"]), "the client had used none");
        assert!(take("three", "office", &["c"]), "the address had used none");
        assert!(!take("three", "office", &["d"]));
    }

    #[test]
    fn a_client_without_names_for_a_day_is_removed() {
        let (names, many) = (Names::new(2), Names::new(100));
        let take = |used: &[&str], now| names.take(&"one", (&many, &"address"), &texts(used), now);
        let begin = Instant::now();
        assert_eq!(take(&["a", "b"], begin), Ok(()));
        names.remove_idle(begin + DAY / 2);
        assert!(take(&["c"], begin + DAY / 2).is_err());
        names.remove_idle(begin + DAY);
        assert!(names.days.lock().unwrap().is_empty());
    }
}
