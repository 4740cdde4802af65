//! A week of renewals by a clock that does not run as Redis' does.

use edgelatch::error::LossReason;
use edgelatch::machine::{CallId, Input, Machine as _, Output, Renewal};
use edgelatch::protocol::reply::{Code, Reply};
use edgelatch::time::Instant;
use edgelatch::timing::{AttemptTime, LeaseTime};

use crate::support::conversation::*;

const LEASE: u64 = 30_000;
const WEEK: u64 = 7 * 24 * 3_600_000;

/// A hold, its holder's clock, and that of the Redis where it is.
struct Hold {
    machine: Renewal,
    now: Instant,
    /// What the holder's clock goes on while Redis' does by a hundred.
    pace: u64,
    /// When Redis lets it go, in ms since the start by its own clock.
    ends: u64,
    asked: u64,
}

impl Hold {
    /// Granted by Redis in the very moment in which it was asked for: as early as can be.
    fn new(pace: u64) -> Self {
        let (grant, attempt) = (grant(LeaseTime::DEFAULT), AttemptTime::DEFAULT);
        let machine = Renewal::new(target(), grant, true, attempt, entropy(), clock());
        Self { machine, now: start() + ms(10), pace, ends: LEASE, asked: 0 }
    }

    /// What Redis' clock shows when the holder's shows this.
    fn redis(&self, shown: Instant) -> u64 {
        u64::try_from(shown.since(start()).as_millis()).unwrap() * 100 / self.pace
    }

    /// Does what is next; each third answer and each fifth request is lost. Answers the reason of the loss when there is one.
    fn goes_on(&mut self, is_heard: bool) -> Option<Option<LossReason>> {
        match self.machine.poll(self.now) {
            Output::Call { call, .. } => {
                self.asked += 1;
                let server = self.redis(self.now);
                if is_heard && !self.asked.is_multiple_of(5) {
                    let code = if server > self.ends { Code::Lost } else { Code::Done };
                    self.ends = self.ends.max(server + LEASE);
                    if !self.asked.is_multiple_of(3) {
                        self.answers(call, code, server);
                    }
                }
            }
            Output::Wait { until, .. } => {
                self.now = until;
                self.machine.handle(Input::Woken, self.now);
            }
            Output::Done(reason) => return Some(reason),
            Output::Listen { .. } => {}
        }
        None
    }

    /// After some time that is never the same, so that renewals come at all times within a step.
    fn answers(&mut self, call: CallId, code: Code, server: u64) {
        self.now = self.now + ms(self.asked * 37 % 2_000);
        let server_ms = SERVER_MS + server;
        let reply = Reply { code, value: TOKEN.into(), ms: 30_000, server_ms, acknowledged: None };
        self.machine.handle(Input::Reply { call, reply }, self.now);
    }

    /// Whether it is believed in for no longer than Redis keeps it.
    fn is_safe(&self) -> bool {
        self.redis(self.machine.lease().expires_at()) <= self.ends
    }
}

/// Whether a hold is kept for a week, and never believed in for longer than Redis keeps it.
fn lasts_a_week(pace: u64) -> bool {
    let mut hold = Hold::new(pace);
    while hold.redis(hold.now) < WEEK {
        if hold.goes_on(true).is_some() || !hold.is_safe() {
            return false;
        }
    }
    assert!(hold.asked > WEEK / LEASE, "{}", hold.asked);
    // Nothing is heard any more: it is lost by the holder's clock before it is by Redis'.
    let reason = loop {
        if let Some(reason) = hold.goes_on(false) {
            break reason;
        }
    };
    assert_eq!(reason, Some(LossReason::Expired));
    hold.redis(hold.now) <= hold.ends
}

/// S21.
#[test]
fn a_clock_that_is_one_per_cent_wrong_for_a_week_keeps_its_hold_and_trusts_it_no_longer_than_redis()
{
    for pace in [99, 100, 101] {
        assert!(lasts_a_week(pace), "{pace}");
    }
    // With a clock that is slower than what is allowed for it is seen.
    assert!(!lasts_a_week(97));
}
