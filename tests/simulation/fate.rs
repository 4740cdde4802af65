//! The faults that one request meets, drawn when it is sent.

use fastrand::Rng;

use super::faults::Fault;
use super::plan::Plan;

/// The delays and faults of one request. Times are in microseconds: from the sending, or for
/// `returns` from the execution.
#[derive(Debug)]
pub(crate) struct Fate {
    /// Whether the request fails before it leaves.
    pub(crate) stays: bool,
    /// When the connection breaks, if it does.
    pub(crate) breaks: Option<u64>,
    /// When the request arrives; `None` if it is lost.
    pub(crate) arrives: Option<u64>,
    /// When copies of the request arrive; their replies are dropped.
    pub(crate) copies: Vec<u64>,
    /// How long the reply takes; `None` if it is lost.
    pub(crate) returns: Option<u64>,
    /// Whether the gateway rejects the request as overloaded, and executes nothing.
    pub(crate) throttled: bool,
    /// What the client receives in place of the reply.
    pub(crate) instead: Option<Instead>,
}

/// A substitute for a reply.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Instead {
    /// An empty body with this status, from the gateway.
    Failure(u16),
    /// The body with this index in `GARBAGE`.
    Garbage(usize),
    /// This many 256ths of the body.
    Cut(usize),
    /// The reply to another client, or an older reply.
    Others(usize),
}

impl Fate {
    /// Draws the delays of a request without faults.
    fn without_fault(plan: &Plan, rng: &mut Rng, healed: bool) -> Self {
        // A network without faults must be faster than the clients' timeouts.
        let most = if healed { plan.way.min(plan.attempt * 100) } else { plan.way };
        let way = |rng: &mut Rng| 50 + rng.u64(0..most);
        let (arrives, returns) = (Some(way(rng)), Some(way(rng)));
        let (stays, throttled, breaks, instead) = (false, false, None, None);
        Self { stays, breaks, arrives, copies: Vec::new(), returns, throttled, instead }
    }

    /// Draws the fate of one message from a seed of its own, so that it does not change the fate of
    /// other messages.
    pub(crate) fn draw(plan: &Plan, seed: u64, healed: bool) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut fate = Self::without_fault(plan, &mut rng, healed);
        if healed {
            return fate;
        }
        for fault in plan.faults.iter() {
            // Both are drawn whether or not the fault strikes, for the same reason.
            let (chance, mut own) = (rng.u32(0..256), rng.fork());
            if chance < plan.odds {
                fate.meet(fault, plan, &mut own);
            }
        }
        fate
    }

    fn meet(&mut self, fault: Fault, plan: &Plan, rng: &mut Rng) {
        // From a few microseconds to longer than the lease, with each order of magnitude equally
        // likely.
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
