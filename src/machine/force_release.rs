//! Ending somebody else's hold. No lease heals it when it is done too late, so it is never done without a bound.

use super::call::{Errand, Verdict};
use super::ids::Ids;
use super::question::{garbled, no_answer};
use super::{Entropy, Input, Machine, Output};
use crate::error::RequestError;
use crate::protocol::reply::{Code, ServerClock};
use crate::protocol::script::{Bound, LockCalls};
use crate::time::Instant;
use crate::timing::{AttemptTime, HORIZON};

/// Attempts at each request.
const ATTEMPTS: u8 = 3;
/// Requests: one that learns the server's clock if need be, one that does it, one more should that come late.
const REQUESTS: u8 = 3;

/// The machine that ends whatever hold a lock has. Ends with whether there was one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ForceRelease {
    calls: LockCalls,
    attempt: AttemptTime,
    ids: Ids,
    requests_left: u8,
    errand: Errand,
    outcome: Option<Result<bool, RequestError>>,
}

impl ForceRelease {
    /// Begins at `now`; without a `clock` the first request only learns it.
    pub fn new(
        calls: LockCalls,
        attempt: AttemptTime,
        entropy: Entropy,
        clock: Option<ServerClock>,
        now: Instant,
    ) -> Self {
        let mut ids = Ids::new(entropy);
        let errand = errand(&calls, attempt, clock, now, &mut ids);
        Self { calls, attempt, ids, requests_left: REQUESTS - 1, errand, outcome: None }
    }
}

impl Machine for ForceRelease {
    type Outcome = Result<bool, RequestError>;

    fn handle(&mut self, input: Input, now: Instant) {
        let Some(verdict) = self.errand.handle(input, now, &mut self.ids) else { return };
        let reply = match verdict {
            Verdict::Answered(reply, _) => reply,
            other => {
                self.outcome = Some(Err(no_answer(other, self.errand.is_unsure())));
                return;
            }
        };
        self.outcome = match reply.code {
            Code::Done => Some(Ok(true)),
            Code::No => Some(Ok(false)),
            // Both prove that nothing was done, so a new request may be made.
            Code::BoundRequired | Code::Late if self.requests_left > 0 => {
                self.requests_left -= 1;
                let clock = Some(ServerClock::new(reply.server_ms, now));
                self.errand = errand(&self.calls, self.attempt, clock, now, &mut self.ids);
                None
            }
            _ => Some(Err(garbled())),
        };
    }

    fn poll(&mut self, now: Instant) -> Output<Self::Outcome> {
        match &self.outcome {
            Some(outcome) => Output::Done(outcome.clone()),
            None => self.errand.poll(now, &mut self.ids),
        }
    }
}

fn errand(
    calls: &LockCalls,
    attempt: AttemptTime,
    clock: Option<ServerClock>,
    now: Instant,
    ids: &mut Ids,
) -> Errand {
    // All attempts are over before the bound is: a late one would find no record of an early one, and prove too much.
    let wait = attempt.get() * u32::from(ATTEMPTS) + HORIZON;
    let bound = Bound { not_after: clock.map(|clock| clock.after(wait, now)), keep: HORIZON };
    let script = calls.force_release(ids.request(), bound);
    Errand::new(script, ATTEMPTS, attempt.get())
}
