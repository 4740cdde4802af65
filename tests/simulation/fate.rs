//! What becomes of one request, drawn when it is sent.

use fastrand::Rng;

use super::faults::Fault;
use super::plan::Plan;

/// Times are in microseconds from the sending, or from the execution for what comes back.
#[derive(Debug)]
pub(crate) struct Fate {
    /// It does not leave.
    pub(crate) stays: bool,
    /// When the connection breaks, if it does.
    pub(crate) breaks: Option<u64>,
    /// When it arrives; `None` if it is lost.
    pub(crate) arrives: Option<u64>,
    /// When copies of it arrive, which nobody waits for.
    pub(crate) copies: Vec<u64>,
    /// How long the answer takes; `None` if it is lost.
    pub(crate) returns: Option<u64>,
    /// The gateway has no time, and does nothing.
    pub(crate) throttled: bool,
    /// What comes back in place of the answer.
    pub(crate) instead: Option<Instead>,
}

/// What comes back in place of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Instead {
    /// A status of the gateway's.
    Failure(u16),
    /// This body, of those that are none.
    Garbage(usize),
    /// So many 256ths of the body.
    Cut(usize),
    /// An answer to somebody else, or an older one.
    Others(usize),
}

impl Fate {
    /// A request's that meets no fault.
    fn without_fault(plan: &Plan, rng: &mut Rng, healed: bool) -> Self {
        // A network without faults is faster than clients give up.
        let most = if healed { plan.way.min(plan.attempt * 100) } else { plan.way };
        let way = |rng: &mut Rng| 50 + rng.u64(0..most);
        let (arrives, returns) = (Some(way(rng)), Some(way(rng)));
        let (stays, throttled, breaks, instead) = (false, false, None, None);
        Self { stays, breaks, arrives, copies: Vec::new(), returns, throttled, instead }
    }

    /// Of one message by a seed of its own: what the others meet is not changed by it.
    pub(crate) fn draw(plan: &Plan, seed: u64, healed: bool) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut fate = Self::without_fault(plan, &mut rng, healed);
        if healed {
            return fate;
        }
        for fault in plan.faults.iter() {
            // Drawn whether or not it strikes, for the same reason.
            let (chance, mut own) = (rng.u32(0..256), rng.fork());
            if chance < plan.odds {
                fate.meet(fault, plan, &mut own);
            }
        }
        fate
    }

    fn meet(&mut self, fault: Fault, plan: &Plan, rng: &mut Rng) {
        // From a moment to beyond what the request is about, each order of magnitude as often as
        // the others.
        let span =
            |rng: &mut Rng, longest_ms: u64| rng.u64(0..longest_ms * 1_000) >> rng.u32(0..12);
        let lease = plan.lease * 5 / 4;
        match fault {
            Fault::Lost => self.arrives = None,
            Fault::Unanswered => self.returns = None,
            Fault::Slow if rng.bool() => {
                self.arrives = self.arrives.map(|at| at + span(rng, lease));
            }
            Fault::Slow => self.returns = self.returns.map(|at| at + span(rng, lease)),
            Fault::Copies => {
                self.copies.extend((0..rng.u32(1..=3)).map(|_| span(rng, lease)));
            }
            Fault::LateCopies => self.copies.push(span(rng, 900_000)),
            Fault::Swapped => self.instead = Some(Instead::Others(rng.usize(..))),
            Fault::Throttled => self.throttled = true,
            Fault::Failing => {
                self.instead = Some(Instead::Failure([500, 502, 503, 504, 429][rng.usize(0..5)]));
            }
            Fault::Garbage => self.instead = Some(Instead::Garbage(rng.usize(..))),
            Fault::Cut => self.instead = Some(Instead::Cut(rng.usize(0..256))),
            Fault::Broken if rng.bool() => self.stays = true,
            Fault::Broken => self.breaks = Some(span(rng, lease)),
            _ => {}
        }
    }
}
