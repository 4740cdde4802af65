//! The frame of every script's reply: `[code, value, ms, server ms, request id]`.

use alloc::string::String;
use core::time::Duration;

use crate::name::RequestId;
use crate::time::{Instant, millis};
use crate::timing::drift;

/// One element of a flat reply.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RespValue {
    /// A number.
    Int(i64),
    /// Text.
    Text(String),
}

/// The reply of a script, with a verified echo.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reply {
    /// The verdict.
    pub code: Code,
    /// Decimal text whose meaning depends on script and code: a token, a count, a number of a lock.
    pub value: String,
    /// Milliseconds whose meaning depends on script and code: a remaining time. -1 for no end, -2
    /// for not there.
    pub ms: i64,
    /// Redis' clock when the script ran, in milliseconds since 1970.
    pub server_ms: u64,
    /// The number of replicas that had the script's writes when the wait for them ended. `None` if
    /// the call required no replicas, or the gateway refused to wait.
    pub acknowledged: Option<u32>,
}

/// The verdicts of scripts. All objects share one set, see `proto/src/protocol/README.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// 1: done, or granted now.
    Done = 1,
    /// 2: already yours, and extended.
    AlreadyYours = 2,
    /// 3: there was nothing to do.
    Nothing = 3,
    /// 0: refused, since busy; or was not held.
    No = 0,
    /// -1: not-after has passed. It was not executed and never will be.
    Late = -1,
    /// -2: this owner or request has ended.
    Gone = -2,
    /// -3: it was granted, and the hold is gone.
    Lost = -3,
    /// -4: a not-after is required.
    BoundRequired = -4,
    /// -5: beyond not-after and window: it is no longer known whether it was executed.
    Unknown = -5,
    /// -6: the fencing token would leave its range.
    TokenRange = -6,
    /// -7: a guard has seen a newer write of the same lease.
    Superseded = -7,
    /// -8: the token is older than a guard remembers.
    TooOld = -8,
    /// -9: the token is further ahead of Redis' clock than a guard, or a node of a majority,
    /// accepts.
    TokenAhead = -9,
    /// -10: a node of a quorum is too young to vote.
    TooYoung = -10,
    /// -11: the caller's own script failed.
    ScriptFailed = -11,
}

impl Reply {
    /// Parses the five elements. `None` if they are no reply to `request`: another length, another
    /// kind of element, an unknown code, no echo.
    pub fn read(cells: &[RespValue], request: RequestId) -> Option<Self> {
        let [code, value, ms, server_ms, echo] = cells else { return None };
        if text(echo)? != request.to_text() {
            return None;
        }
        Some(Self {
            code: Code::read(int(code)?)?,
            value: text(value)?.into(),
            ms: int(ms)?,
            server_ms: u64::try_from(int(server_ms)?).ok()?,
            acknowledged: None,
        })
    }

    /// The remaining time in the reply; `None` for no end.
    pub(crate) fn remaining(&self) -> Option<Duration> {
        u64::try_from(self.ms).ok().map(Duration::from_millis)
    }

    /// The first two numbers of a queue's refusal: the place, and the time to the next poll.
    pub(crate) fn place_in_queue(&self) -> Option<(u64, Duration)> {
        let mut numbers = self.value.split(',').map(|number| number.parse().ok());
        Some((numbers.next()??, Duration::from_millis(numbers.next()??)))
    }
}

impl Code {
    const ALL: [Self; 15] = [
        Self::Done,
        Self::AlreadyYours,
        Self::Nothing,
        Self::No,
        Self::Late,
        Self::Gone,
        Self::Lost,
        Self::BoundRequired,
        Self::Unknown,
        Self::TokenRange,
        Self::Superseded,
        Self::TooOld,
        Self::TokenAhead,
        Self::TooYoung,
        Self::ScriptFailed,
    ];

    fn read(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|code| *code as i64 == number)
    }
}

// A gateway may send numbers as text; none sends other text as a number.
fn int(cell: &RespValue) -> Option<i64> {
    match cell {
        RespValue::Int(number) => Some(*number),
        RespValue::Text(text) => text.parse().ok(),
    }
}

fn text(cell: &RespValue) -> Option<&str> {
    match cell {
        RespValue::Text(text) => Some(text),
        RespValue::Int(_) => None,
    }
}

/// Redis' clock as of the last reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ServerClock {
    server_ms: u64,
    seen_at: Instant,
}

impl ServerClock {
    /// Creates the clock from the `server_ms` of a reply that arrived at `seen_at`.
    pub const fn new(server_ms: u64, seen_at: Instant) -> Self {
        Self { server_ms, seen_at }
    }

    /// How far this clock shows less than `earlier`; `None` if it does not.
    pub fn behind(self, earlier: Self) -> Option<Duration> {
        earlier.server_ms.checked_sub(self.server_ms).map(Duration::from_millis)
    }

    /// An estimate of Redis' clock at `later` from now, in milliseconds. It is at most the travel
    /// time of a reply too low.
    pub fn after(self, later: Duration, now: Instant) -> u64 {
        self.server_ms.saturating_add(millis(now.max_elapsed(self.seen_at).saturating_add(later)))
    }

    /// The longest possible time from now until Redis' clock shows `server_ms`: counts only a lower
    /// bound of the time since the last reply.
    pub(crate) fn until(self, server_ms: u64, now: Instant) -> Duration {
        let passed = now.min_elapsed(self.seen_at);
        let passed = passed.saturating_sub(drift(passed));
        Duration::from_millis(server_ms.saturating_sub(self.server_ms)).saturating_sub(passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    const REQUEST: RequestId = RequestId::new(7);

    fn cells(code: i64, echo: &str) -> Vec<RespValue> {
        let (value, echo) = (RespValue::Text("12".into()), RespValue::Text(echo.into()));
        vec![
            RespValue::Int(code),
            value,
            RespValue::Int(-1),
            RespValue::Int(1_700_000_000_000),
            echo,
        ]
    }

    #[test]
    fn a_reply_without_the_echo_is_no_reply() {
        assert!(Reply::read(&cells(1, "0000000000000007"), REQUEST).is_some());
        assert_eq!(Reply::read(&cells(1, "0000000000000008"), REQUEST), None);
        assert_eq!(Reply::read(&cells(1, ""), REQUEST), None);
    }

    /// S49.
    #[test]
    fn a_reply_of_another_shape_is_no_reply() {
        let whole = cells(1, "0000000000000007");
        for length in 0..5 {
            assert_eq!(Reply::read(&whole[..length], REQUEST), None);
        }
        assert_eq!(Reply::read(&[whole.clone(), whole].concat(), REQUEST), None);
        assert_eq!(Reply::read(&cells(-99, "0000000000000007"), REQUEST), None);
    }

    #[test]
    fn numbers_may_come_as_text() {
        let mut text = cells(0, "0000000000000007");
        text[0] = RespValue::Text("0".into());
        text[3] = RespValue::Text("5".into());
        let reply = Reply::read(&text, REQUEST).unwrap();
        assert_eq!((reply.code, reply.server_ms, reply.remaining()), (Code::No, 5, None));
    }
}
