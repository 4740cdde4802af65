//! The changes between snapshots.

use super::Snapshot;
use crate::clock;
use crate::status::{Lock, State};

/// Finds the snapshots that differ from the one before. A remaining time that passes is no change.
#[derive(Debug, Default)]
pub(super) struct Changes {
    seen: Option<(State, Option<u64>)>,
    has_failed: bool,
}

impl Changes {
    /// Handles a snapshot; returns its line if it differs from the one before.
    pub(super) fn on_snapshot(&mut self, snapshot: &Snapshot) -> Option<String> {
        self.has_failed = false;
        let now = Some((lasting(snapshot.status.state), snapshot.queue));
        if self.seen == now {
            return None;
        }
        self.seen = now;
        Some(format!("{} {}", clock::text(snapshot.at), describe(snapshot)))
    }

    /// Handles a query that failed; returns whether it is the first one in a row.
    pub(super) fn on_failure(&mut self) -> bool {
        !std::mem::replace(&mut self.has_failed, true)
    }
}

/// The part of a state that does not change by itself.
fn lasting(state: State) -> State {
    let without_time = |lock: Lock| Lock { remaining_ms: None, ..lock };
    match state {
        State::Lock(lock) => State::Lock(without_time(lock)),
        State::Fair(lock) => State::Fair(without_time(lock)),
        other => other,
    }
}

fn describe(snapshot: &Snapshot) -> String {
    let text = match snapshot.status.state {
        State::Lock(lock) | State::Fair(lock) => {
            let token = lock.fencing_token.map(|token| format!(" token={token}"));
            let held = if lock.held { "held" } else { "free" };
            format!("{held}{}", token.unwrap_or_default())
        }
        State::Semaphore(state) => {
            format!("available={} held={} holders={}", state.available, state.held, state.holders)
        }
        State::Latch(latch) => {
            format!("{} count={}", if latch.open { "open" } else { "closed" }, latch.count)
        }
    };
    let queue = snapshot.queue.map(|length| format!(" queue={length}"));
    text + &queue.unwrap_or_default()
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::status::Status;

    pub(in super::super) fn snapshot(second: u64, lock: Lock, queue: Option<u64>) -> Snapshot {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_764_118_800 + second);
        let status = Status { name: "backup".to_owned(), state: State::Fair(lock) };
        Snapshot { at, status, queue }
    }

    pub(in super::super) const HELD: Lock = Lock {
        held: true,
        hold_count: 1,
        remaining_ms: Some(30_000),
        fencing_token: Some(1_764_118_800_000_000),
    };

    #[test]
    fn only_a_change_has_a_line() {
        let mut changes = Changes::default();
        let line = changes.on_snapshot(&snapshot(0, HELD, Some(0))).unwrap();
        assert_eq!(line, "2025-11-26T01:00:00Z held token=1764118800000000 queue=0");
        let later = Lock { remaining_ms: Some(29_000), ..HELD };
        assert_eq!(changes.on_snapshot(&snapshot(1, later, Some(0))), None);
        assert!(changes.on_snapshot(&snapshot(2, later, Some(1))).is_some());
        let free = Lock { held: false, hold_count: 0, remaining_ms: None, ..HELD };
        let line = changes.on_snapshot(&snapshot(3, free, Some(0))).unwrap();
        assert_eq!(line, "2025-11-26T01:00:03Z free token=1764118800000000 queue=0");
    }

    #[test]
    fn only_the_first_failure_in_a_row_is_reported() {
        let mut changes = Changes::default();
        assert!(changes.on_failure() && !changes.on_failure());
        changes.on_snapshot(&snapshot(0, HELD, None));
        assert!(changes.on_failure());
    }
}
