//! Detects rollbacks of two values that must only rise: Redis' clock, and the fencing tokens of a
//! name.

use alloc::vec::Vec;
use core::time::Duration;

use crate::name::{FencingToken, LockName};
use crate::protocol::calls::Target;
use crate::protocol::reply::ServerClock;

/// Clock skew tolerated between a failed primary and its replacement. Smaller backward steps are
/// not reported.
const APART: Duration = Duration::from_secs(1);
/// The largest number of names whose newest token is remembered.
const NAMES_MAX: usize = 64;

/// The newest clock reading and the newest tokens of one Redis.
#[derive(Clone, Debug, Default)]
pub(super) struct RollbackDetector {
    clock: Option<ServerClock>,
    /// The number of backward steps of its clock, and the size of the last one.
    last_rollback: Option<(u32, Duration)>,
    /// The newest granted token of each name, ordered by the last grant of the name.
    newest_tokens: Vec<(LockName, FencingToken)>,
}

impl RollbackDetector {
    pub(super) const fn clock(&self) -> Option<ServerClock> {
        self.clock
    }

    /// Records the clock reading of a reply. `before` is the reading that was known when the
    /// request was sent. Returns whether the clock went backwards in between.
    ///
    /// Replies can overtake each other. A step back is therefore reported only if the reading is
    /// behind `before`, and also behind the latest reading: otherwise another reply has reported it
    /// already.
    pub(super) fn observe(&mut self, clock: ServerClock, before: Option<ServerClock>) -> bool {
        let behind = |known: Option<ServerClock>| known.and_then(|known| clock.behind(known));
        let by = behind(before).min(behind(self.clock)).filter(|by| *by > APART);
        self.clock = Some(clock);
        if let Some(by) = by {
            let count = self.last_rollback.map_or(0, |(count, _)| count);
            self.last_rollback = Some((count.wrapping_add(1), by));
        }
        by.is_some()
    }

    /// The number of backward steps and the size of the last one; `None` if that number is `seen`.
    pub(super) fn last_rollback(&self, seen: u32) -> Option<(u32, Duration)> {
        self.last_rollback.filter(|(count, _)| *count != seen)
    }

    /// The newest remembered token of the names of `target`; `None` if several clients can
    /// hold it at once, since their replies can arrive in another order than the grants.
    pub(super) fn newest_token(&self, target: &Target) -> Option<FencingToken> {
        let names = if target.is_exclusive() { target.names() } else { Vec::new() };
        let known = self.newest_tokens.iter().filter(|(name, _)| names.contains(&name));
        known.map(|(_, token)| *token).max()
    }

    /// Records that `target` was granted with `token`.
    pub(super) fn on_grant(&mut self, target: &Target, token: FencingToken) {
        if !target.is_exclusive() {
            return;
        }
        for name in target.names() {
            let known = self.newest_tokens.iter().position(|(known, _)| known == name);
            let before = known.map(|at| self.newest_tokens.remove(at).1);
            if self.newest_tokens.len() >= NAMES_MAX {
                self.newest_tokens.remove(0);
            }
            self.newest_tokens
                .push((name.clone(), before.map_or(token, |before| before.max(token))));
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;
    use crate::protocol::calls::LockCalls;
    use crate::protocol::script::Publish;
    use crate::time::Instant;

    fn at(server_ms: u64) -> ServerClock {
        ServerClock::new(server_ms, Instant::from_millis(0, 0))
    }

    /// S27.
    #[test]
    fn a_clock_that_is_set_back_is_noticed_once_and_answers_that_overtake_each_other_are_not() {
        let mut rollback = RollbackDetector::default();
        assert!(!rollback.observe(at(700_000), None));
        // Executed before the last one; its reply arrived later.
        assert!(!rollback.observe(at(690_000), None));
        assert!(!rollback.observe(at(700_000), Some(at(690_000))));
        // Another node took over, with a clock that is off by the tolerated skew.
        assert!(!rollback.observe(at(699_000), Some(at(700_000))));
        assert_eq!(rollback.last_rollback(0), None);
        assert!(rollback.observe(at(100_000), Some(at(699_000))));
        assert!(!rollback.observe(at(100_005), Some(at(699_000))), "sent before that was known");
        assert_eq!(rollback.last_rollback(0), Some((1, Duration::from_secs(599))));
        assert_eq!(rollback.last_rollback(1), None);
    }

    #[test]
    fn the_newest_tokens_are_those_of_the_names_that_were_taken_last() {
        let lock = |name: &str| {
            Target::Lock(LockCalls::new(LockName::parse(name).unwrap(), Publish::Plain))
        };
        let token = |number: u64| FencingToken::parse(&number.to_string()).unwrap();
        let mut rollback = RollbackDetector::default();
        rollback.on_grant(&lock("a"), token(9));
        rollback.on_grant(&lock("a"), token(7));
        assert_eq!(rollback.newest_token(&lock("a")), Some(token(9)));
        for number in 0..NAMES_MAX {
            rollback.on_grant(&lock(&number.to_string()), token(1));
            rollback.on_grant(&lock("b"), token(1));
        }
        assert_eq!(rollback.newest_tokens.len(), NAMES_MAX);
        assert_eq!(rollback.newest_token(&lock("a")), None);
        assert_eq!(rollback.newest_token(&lock("b")), Some(token(1)));
    }
}
